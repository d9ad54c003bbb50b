"""Texts and measures that authorities ask for: whole groups compared, in tables and words.

These compare groups as they are or as weighted, not a person with similar people, and are no part
of situation testing.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import ndtr

from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Categories, Numbers, is_number, plain_value
from mutandis.errors import EquationError, PlanError, suggest
from mutandis.frames import columns_of, to_frame
from mutandis.numeric.least_squares import row_products, solve_positive
from mutandis.numeric.order import canonical_order
from mutandis.outcomes.intervals import critical_value
from mutandis.report.context import ReportContext
from mutandis.report.formatting import count, listed, plural
from mutandis.report.sentences import summarise
from mutandis.scm.categorical import Categorical
from mutandis.scm.predictor import Design

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.data.protection import Stratum

__all__ = ["compute_impact_ratios", "impact_ratios", "propensity_weighted", "write_text"]


# --- impact ratios, as New York City's rules ask for them -----------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactRatio:
    """One category: its rate, and that rate divided by the highest one."""

    table: str  # "sex", "race" or "sex × race"
    category: str
    applicants: int
    selected: int | None  # with the favourable outcome, or a score above the median of all
    impact_ratio: Fraction | None = None
    note: str = ""

    @property
    def rate(self) -> Fraction | None:
        """The share of those selected."""
        return None if self.selected is None else Fraction(self.selected, self.applicants)

    def as_row(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        names = ("table", "category", "applicants", "selected", "rate", "impact_ratio", "note")
        values = {name: getattr(self, name) for name in names}
        return {k: float(v) if isinstance(v, Fraction) else v for k, v in values.items()}


def impact_ratios(
    audit: Audit,
    *,
    by: Sequence[str] | None = None,
    unknown: Sequence[Any] = (),
    leave_out_below: float = 0.0,
    score: str | None = None,
) -> Any:
    """Compute the rates of whole groups and their impact ratios (docs/compliance.md).

    They are what New York City's rules on automated employment decision tools ask for (6 RCNY
    § 5-301): the selection rate of each category, divided by the highest one.

    Parameters
    ----------
    audit
        The audit whose people are counted.
    by
        The columns of categories: protected statuses or nominal attributes of the audit, each
        by itself and all of them together. Default: the protected statuses.
    unknown
        Values of a category that is not known: these people are counted, and left out.
    leave_out_below
        The share of the rows below which a category gets no impact ratio; the rules allow 0.02.
    score
        An attribute that holds a score: the scoring rate is the share above its median.

    Examples
    --------
    >>> import mutandis as mm
    >>> from mutandis.rooms.compliance import impact_ratios
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=400, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous"},
    ...     ks=(10,),
    ... )
    >>> impact_ratios(found)[["category", "applicants", "selected"]].values.tolist()
    [['0', 273, 165], ['1', 126, 48]]
    """
    rows = compute_impact_ratios(
        audit, by=by, unknown=unknown, leave_out_below=leave_out_below, score=score
    )
    return to_frame(columns_of([row.as_row() for row in rows]), audit.plan.population.source)


def compute_impact_ratios(
    audit: Audit,
    *,
    by: Sequence[str] | None,
    unknown: Sequence[Any],
    leave_out_below: float,
    score: str | None,
) -> list[ImpactRatio]:
    """Compute the categories of each column by itself, and of all of them together."""
    if not (is_number(leave_out_below) and 0 <= leave_out_below < 1):
        raise PlanError(
            f"leave_out_below={leave_out_below!r} is outside [0, 1). Give the share of the rows "
            "below which a category is left out, such as 0.02; 0 leaves none out."
        )
    columns = _read_categories(audit, by)
    selected = _selected(audit, score)
    least = Fraction(str(leave_out_below)) * len(selected)
    unknowns = {str(value) for value in unknown}
    tables = [(name,) for name in columns] + ([tuple(columns)] if len(columns) > 1 else [])
    rows: list[ImpactRatio] = []
    for names in tables:
        table = " × ".join(names)
        rows += _count_categories(
            table, [columns[name] for name in names], selected, unknowns, least
        )
        dropped = sum(audit.plan.population.dropped.get(name, 0) for name in names)
        if dropped:
            note = "dropped before the audit, since the value is missing; in no other row"
            rows.append(
                ImpactRatio(
                    table=table, category="missing", applicants=dropped, selected=None, note=note
                )
            )
    return rows


def _count_categories(
    table: str,
    columns: list[NDArray[np.str_]],
    selected: NDArray[np.bool_],
    unknowns: set[str],
    least: Fraction,
) -> Iterator[ImpactRatio]:
    levels = [sorted(set(each.tolist()) - unknowns) for each in columns]
    counted = []
    for values in product(*levels):
        here = np.all([each == value for each, value in zip(columns, values, strict=True)], axis=0)
        if here.any():
            counted.append((" × ".join(values), int(here.sum()), int((here & selected).sum())))
    best = max((Fraction(s, n) for _, n, s in counted if n >= least), default=Fraction(0))
    for name, number, chosen in counted:
        small = number < least
        share = f"{number / len(selected):.1%} of all: left out of the impact ratios"
        yield ImpactRatio(
            table=table,
            category=name,
            applicants=number,
            selected=chosen,
            impact_ratio=None if small or not best else Fraction(chosen, number) / best,
            note=share if small else "",
        )
    is_unknown = np.any([np.isin(each, sorted(unknowns)) for each in columns], axis=0)
    if is_unknown.any():
        yield ImpactRatio(
            table=table,
            category="unknown",
            applicants=int(is_unknown.sum()),
            selected=int((is_unknown & selected).sum()),
            note="unknown, in no other row",
        )


def _read_categories(audit: Audit, by: Sequence[str] | None) -> dict[str, NDArray[np.str_]]:
    """Read the categories of every row, as text, by column."""
    plan, everyone = audit.plan, np.arange(len(audit.plan.population))
    own = [each.attribute for each in plan.protections]
    if isinstance(by, str):
        raise PlanError(f"by= takes a list, not a text. Write by=[{by!r}].")
    allowed = list(dict.fromkeys([*own, *(each.name for each in plan.attributes)]))
    columns = {}
    for name in own if by is None else by:
        found = plan.population.part(name, everyone) if name in allowed else None
        if found is None or (isinstance(found, Numbers) and name not in own):
            raise PlanError(
                f"{name!r} is no column of categories in this audit.{suggest(name, allowed)} Give "
                "protected statuses or nominal attributes of the audit, such as the sex and the "
                "race of people."
            )
        if isinstance(found, Numbers):
            values = [f"{each:g}" for each in found.values.tolist()]
        else:
            levels = [str(plain_value(each)) for each in found.levels]
            values = [levels[code] for code in found.codes.tolist()]
        columns[name] = np.array(values, dtype=np.str_)
    if not columns:
        raise PlanError("by= is empty. Name at least one column.")
    return columns


def _selected(audit: Audit, score: str | None) -> NDArray[np.bool_]:
    """Mark rows that were selected, or have a score above the median."""
    outcomes, population = audit.study.outcomes, audit.plan.population
    if score is None and audit.plan.outcome.kind.two_sided:
        return ~outcomes
    if score is None:  # the outcome is a score itself, counted in steps from the best
        return np.asarray(outcomes < np.median(outcomes), dtype=np.bool_)
    known = [each.name for each in audit.plan.attributes]
    found = population.part(score, np.arange(len(population))) if score in known else None
    if not isinstance(found, Numbers):
        raise PlanError(
            f"score={score!r} is no column of numbers in this audit.{suggest(score, known)} Name "
            "an attribute that holds the score."
        )
    return np.asarray(found.values > np.median(found.values), dtype=np.bool_)


# --- propensity-weighted risk differences ---------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PropensityDifference:
    """The risk difference of one protected status, with the reference rows weighted."""

    status: str
    protected: int
    reference: int
    p_protected: float
    p_reference: float  # as it is
    p_weighted: float  # with the attributes of the protected
    risk_difference: float  # p_protected - p_weighted
    ci_low: float
    ci_high: float
    p_value: float
    n_effective: float  # effective number of weighted reference rows (Kish)
    imbalance: float  # largest difference of means of an attribute, in standard deviations
    imbalance_weighted: float


def propensity_weighted(audit: Audit) -> Any:
    r"""Compare whole groups, the reference rows weighted to be like the protected ones.

    A table with a row for each protected status (docs/distances.md). Each reference row counts
    e / (1 - e), with its propensity score e, the probability of the protected status given the
    attributes, by logistic regression (Qureshi et al. 2020). Attributes that the status affects
    are held as they are.

    Parameters
    ----------
    audit
        The audit of one protected status.

    Notes
    -----
    With A the status, y a refusal and w = e / (1 - e), the difference is

    .. math:: \hat\Delta = \frac{\sum A y}{\sum A} - \frac{\sum (1-A) w y}{\sum (1-A) w}

    (Hájek's form of the average effect on the protected). The variance is that of the stacked
    estimating equations (Lunceford, Davidian 2004), with that of the estimated score in it; bounds
    and p-value are those of a normal distribution.

    References
    ----------
    Qureshi, Kamiran, Karim, Ruggieri, Pedreschi (2020), Causal inference for social discrimination
    reasoning, Journal of Intelligent Information Systems 54, 425-437.

    Examples
    --------
    >>> import mutandis as mm
    >>> from mutandis.rooms.compliance import propensity_weighted
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=2000, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    ...     ks=(10,),
    ... )
    >>> columns = ["p_protected", "p_reference", "p_weighted", "risk_difference"]
    >>> propensity_weighted(found)[columns].round(3).values.tolist()
    [[0.633, 0.38, 0.596, 0.038]]
    """
    plan = audit.plan
    if plan.combine == "multiple":
        raise PlanError(
            "This audit looks at several grounds one by one, and a propensity score is about one "
            f"status. Ask about one of them: audit.parts[{plan.protections[0].attribute!r}]."
        )
    if not plan.outcome.kind.two_sided:
        raise PlanError(
            f"Outcome {plan.outcome.column!r} is not a refusal or an approval, and a risk "
            "difference compares shares of refusals. Audit an outcome with two values."
        )
    rows = [asdict(_weigh(audit, stratum)) for stratum in audit.study.strata]
    return to_frame(columns_of(rows), plan.population.source)


def _weigh(audit: Audit, stratum: Stratum) -> PropensityDifference:
    rows = np.concatenate([stratum.control, stratum.test])
    status = np.repeat([1.0, 0.0], [len(stratum.control), len(stratum.test)])
    refused = audit.study.outcomes[rows].astype(np.float64)
    parents = dict(_varying(audit, rows))
    if not parents:
        raise PlanError(
            "No attribute varies among the people who are compared, so there is nothing to weigh "
            "them by: the difference is that of the two shares of refusals as they are."
        )
    # sums of floats depend on their order, and this one depends on what rows hold
    keys = {"\0status": Numbers(status), "\0refused": Numbers(refused)}
    order = canonical_order({**parents, **keys})
    parents = {name: column.take(order) for name, column in parents.items()}
    status, refused = status[order], refused[order]
    score, design = _fit(parents, status)
    weights = np.where(status == 1, 0.0, np.exp(score))
    total = float(np.add.reduce(weights))
    p_protected = float(np.add.reduce(status * refused)) / len(stratum.control)
    p_weighted = float(np.add.reduce(weights * refused)) / total
    influence = status * (refused - p_protected) / len(stratum.control)
    of_weighted = weights * (refused - p_weighted) / total
    influence -= of_weighted + _from_score(design, score, status, of_weighted)
    error = float(np.sqrt(np.add.reduce(influence**2)))
    difference = p_protected - p_weighted
    margin = critical_value(audit.plan.settings.alpha) * error
    return PropensityDifference(
        status=stratum.label,
        protected=len(stratum.control),
        reference=len(stratum.test),
        p_protected=p_protected,
        p_reference=float(np.add.reduce((1 - status) * refused)) / len(stratum.test),
        p_weighted=p_weighted,
        risk_difference=difference,
        ci_low=difference - margin,
        ci_high=difference + margin,
        p_value=_p_value(audit, difference, error),
        n_effective=total**2 / float(np.add.reduce(weights**2)),
        imbalance=_imbalance(parents, status, 1 - status),
        imbalance_weighted=_imbalance(parents, status, weights),
    )


def _varying(audit: Audit, rows: NDArray[np.intp]) -> Iterator[tuple[str, Column]]:
    """Return the attributes that vary among these rows: ordered levels as ranks."""
    for each in audit.plan.attributes:
        column = audit.plan.population.part(each.name, rows)
        if column.data.min() < column.data.max():
            ordinal = each.kind is AttributeKind.ORDINAL
            yield each.name, Numbers(column.data.astype(np.float64)) if ordinal else column


def _fit(parents: Columns, status: Floats) -> tuple[Floats, Design]:
    """Return each row's log-odds of being protected, and the columns that they are made of."""
    levels = Categories(status.astype(np.int32), (False, True))
    try:
        fitted = Categorical(*parents).fit(levels, parents).predictors[0]
        design = Design.of(parents, rows=len(status))
    except EquationError as error:
        raise PlanError(f"The status cannot be explained by the attributes: {error}") from None
    return fitted.at(parents, rows=len(status)), design


def _from_score(design: Design, score: Floats, status: Floats, weighted: Floats) -> Floats:
    """Return what each row adds to the weighted share through the estimated score."""
    probability = 1 / (1 + np.exp(-score))
    spread = (probability * (1 - probability))[:, None]
    curvature = row_products(design.basis * spread, design.basis)
    direction = solve_positive(curvature, design.sums(weighted))
    return np.asarray((status - probability) * design.at(direction), dtype=np.float64)


def _p_value(audit: Audit, difference: float, error: float) -> float:
    """Test against τ, in the direction that the audit looks for."""
    settings = audit.plan.settings
    tau = settings.tau if settings.measure.name == "risk-difference" else 0.0
    beyond = (difference if settings.worse else -difference) - tau
    if error == 0:
        return float(beyond <= 0)
    return float(ndtr(-beyond / error))


def _imbalance(parents: Columns, status: Floats, weights: Floats) -> float:
    """Return the largest difference of means of an attribute, in standard deviations."""
    largest = 0.0
    sides = [side / np.add.reduce(side) for side in (status, 1 - status)]
    weighted = weights / np.add.reduce(weights)
    for column in parents.values():
        for values in _as_numbers(column):
            means = [float(np.add.reduce(share * values)) for share in sides]
            pairs = zip(sides, means, strict=True)
            spread = sum(float(np.add.reduce(each * (values - m) ** 2)) for each, m in pairs) / 2
            if spread > 0:
                apart = abs(means[0] - float(np.add.reduce(weighted * values)))
                largest = max(largest, apart / spread**0.5)
    return largest


def _as_numbers(column: Column) -> list[Floats]:
    """Return a column of numbers, or an indicator for each level."""
    if isinstance(column, Numbers):
        return [column.values]
    return [(column.codes == code).astype(np.float64) for code in np.unique(column.codes)]


# --- texts, in Markdown ---------------------------------------------------------------------------

_TITLES: Final = {
    "prima-facie": "# Prima facie summary",
    "model-card": "## Individual discrimination (counterfactual situation testing)",
}
_LAW: Final = (
    "*Burden of proof.* In Great Britain, section 136 of the Equality Act 2010 asks for facts "
    "from which the court could decide, in the absence of any other explanation, that there "
    "was a contravention; it then holds that there was, unless the other side shows that there "
    "was not. In the European Union, Article 19(1) of Directive 2006/54/EC (sex), Article 8(1) "
    "of Directive 2000/43/EC (race and ethnic origin) and Article 10(1) of Directive "
    "2000/78/EC (religion or belief, disability, age, sexual orientation; employment) ask for "
    "facts from which it may be presumed that there has been discrimination; it is then for "
    "the respondent to prove that there has been no breach."
)
_NOT_ADVICE: Final = (
    "*This text states what a statistical audit found. It is not legal advice, and no finding "
    "that the law was broken: whether these facts shift a burden of proof, and whether the other "
    "side discharges it, is for a court to decide.*"
)
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$&!])")


def write_text(audit: Audit, kind: str) -> str:
    """Write a text that others ask for, in Markdown (docs/compliance.md).

    Parameters
    ----------
    audit
        The audit that it reports.
    kind
        "prima-facie", a summary for the question of who has to prove what, or "model-card", a
        section of a model card. Neither is legal advice.
    """
    if kind not in _TITLES:
        raise PlanError(
            f"{kind!r} is not a text that can be written.{suggest(kind, _TITLES)} Allowed: "
            f"{', '.join(_TITLES)}."
        )
    return "\n\n".join(_sections(ReportContext(audit=audit), kind)) + "\n"


def _sections(context: ReportContext, kind: str) -> Iterator[str]:
    yield _TITLES[kind]
    yield _escape(
        f"{plural(len(context.plan.population), 'decision')} on "
        f"{context.labels.column(context.plan.outcome.column)}; on the ground of "
        f"{context.grounds}: {context.complainants}, compared with {context.others}."
    )
    yield from [_LAW] if kind == "prima-facie" else []
    yield "### The facts"
    yield from map(_escape, summarise(context))
    yield _table(_counts(context))
    yield "### How they were compared"
    yield _bullets(_compared(context))
    yield "### What they rest on"
    yield _bullets(_rests_on(context))
    if kind == "prima-facie":
        yield "### What they leave to be explained"
        yield _bullets(
            [
                f"A reason that is not in the table, and has nothing to do with {context.grounds}.",
                "Whether a justification is one in law. The audit knows none.",
            ]
        )
    provenance = context.audit.provenance
    yield (
        f"Computed by mutandis {_escape(str(provenance.versions['mutandis']))} with the seed "
        f"{context.plan.settings.seed or 0} from a table with the SHA-256 "
        f"`{provenance.data['sha256']}`; all settings are in the record of the audit."
    )
    yield _NOT_ADVICE


def _counts(context: ReportContext) -> Iterator[list[str]]:
    yield ["Method", "k", "Evidence", "Significant", "After adjustment", "Complainants"]
    for method in context.methods:
        tested = method.count_neighbours
        # without neighbours, every k is the same
        for k in context.plan.settings.ks if tested else context.plan.settings.ks[:1]:
            row = context.audit.results.summaries[method.name, k].counts
            tests = [count(row[key]) for key in ("significant", "significant_adjusted")]
            yield [
                method.title,
                str(k) if tested else "any",
                count(row["cases"]),
                *(tests if tested else ["no test", "no test"]),
                count(row["complainants"]),
            ]


def _compared(context: ReportContext) -> Iterator[str]:
    settings, measure = context.plan.settings, context.plan.settings.measure
    beyond = measure.condition(settings.tau, worse=context.worse)
    yield f"Measure: {measure.name}, {measure.formula}; evidence is {beyond}."
    yield (
        f"Test: one-sided at the level {settings.alpha:g} ({settings.interval}), adjusted by "
        f"{settings.evidence.adjust}."
    )
    yield f"Headline: {context.where}."
    names = (context.labels.column(each.name) for each in context.plan.attributes)
    yield f"Alike in {listed(names)}."
    source = context.source_of_counterfactuals
    yield f"Counterfactuals from {source}." if source else "No counterfactuals were needed."


def _rests_on(context: ReportContext) -> Iterator[str]:
    yield "What is not in the table is not seen: attributes, people who never applied, reasons."
    if context.source_of_counterfactuals:
        yield (
            f"Every figure of a counterfactual method is conditional on "
            f"{context.source_of_counterfactuals}, which no test here examines."
        )
    yield "A pattern is a finding about similar people, not about the complainant."
    yield from context.audit.cautions()


def _table(rows: Iterable[Sequence[str]]) -> str:
    first, *others = [[_escape(cell) for cell in row] for row in rows]
    rule = ["---" if place == 0 else "--:" for place in range(len(first))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [first, rule, *others])


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_escape(line)}" for line in lines)


def _escape(shown: str) -> str:
    """Escape names and values of the table, so that no Markdown and no HTML is made of them."""
    return _SPECIAL.sub(r"\\\1", " ".join(shown.split()))
