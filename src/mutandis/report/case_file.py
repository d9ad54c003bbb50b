"""Collect everything about one complainant in a case file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.case import drawn_values
from mutandis.auditing.doubt import REFITS, doubt_verdict
from mutandis.auditing.robustness import (
    describe_verdict,
    find_curve,
    name_worlds,
    rules_of,
    tipping_of,
)
from mutandis.data.columns import Numbers, plain_value
from mutandis.decision.maker import DescribedMaker, describe_maker
from mutandis.decision.rule import Rule
from mutandis.engine.tally import METHODS, Center
from mutandis.errors import FormulaError
from mutandis.numeric.order import order_of_ids
from mutandis.report.case_model import (
    CaseDocument,
    Cause,
    Complainant,
    Figures,
    GroupList,
    Member,
    Movement,
    OwnCase,
    Part,
    Redaction,
    Status,
    SupportCheck,
    VerdictRobustness,
    VerdictText,
)
from mutandis.report.context import draw_plan, record_of
from mutandis.report.formatting import known
from mutandis.report.html import to_pdf
from mutandis.report.redact import redact_case
from mutandis.report.sentences import assumptions_of, describe_headline, limits_of
from mutandis.scm import Linear, Worldview
from mutandis.store.audit_file import write_plan
from mutandis.store.files import hash_file
from mutandis.store.results_folder import CASES, RECORD, case_name, read_key, write_case_files
from mutandis.store.saved_audit import open_results
from mutandis.verdicts.findings import FIRM, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.case import Case
    from mutandis.auditing.plan import Plan
    from mutandis.auditing.robustness import CurvePoint
    from mutandis.data.labels import Labels
    from mutandis.data.population import Population
    from mutandis.engine.members import Members
    from mutandis.report.case_model import Role
    from mutandis.scm.additive import Decomposition
    from mutandis.scm.counterfactual import FittedWorldview

__all__ = ["case_document", "save_case"]

# A group has k people, and all who are as far away as the last of them: with many ties, nearly
# everyone in the table. The nearest are listed, and all are counted.
_MOST_LISTED = 1000
# more ways than these are counted, not written out
_PATHS = 8
_OTHERS = "and others"
# what rounding in float64 leaves of a sum, as a part of the numbers in it
_NOTHING = 1e-9


def save_case(
    folder: str | PathLike[str],
    id: Any,  # noqa: A002 - the public name
    *,
    redact: bool = False,
    pdf: bool = False,
    sign: str | PathLike[str] | None = None,
) -> tuple[CaseDocument, tuple[Path, ...]]:
    """Write the case file of one complainant into the folder of results: all of it, or nothing.

    Its files are recorded, so that `verify_results` finds what has been changed. The document and
    the paths of the files are given back.

    Parameters
    ----------
    folder
        The results folder.
    id
        The complainant.
    redact
        As for `Audit.case_file`.
    pdf
        Write a PDF beside HTML and JSON, by WeasyPrint.
    sign
        A private Ed25519 key in PEM, to sign the record of all case files with.

    Examples
    --------
    >>> import tempfile
    >>> import mutandis as mm
    >>> found = mm.audit(
    ...     {"woman": [1, 1, 0], "salary": [10.0, 11.0, 10.0], "granted": ["no", "no", "yes"]},
    ...     outcome="granted",
    ...     negative="no",
    ...     protected=mm.Protection("woman", value=1, reference=0),
    ...     attributes={"salary": "continuous"},
    ...     ks=(1,),
    ... )
    >>> folder = f"{tempfile.mkdtemp()}/results"
    >>> found.save(folder)
    >>> document, files = mm.save_case(folder, 0)
    >>> [path.name for path in files]
    ['0.html', '0.json']
    """
    if pdf:
        to_pdf("<p>")  # what is missing is said now, and not after the work
    key = read_key(sign, "private")
    results = Path(folder)
    # before the results are read: others that take their place meanwhile are noticed
    made_from = hash_file(results / RECORD) if (results / RECORD).is_file() else ""
    audit = open_results(results)
    document = case_document(audit, _read_id(audit, id), redact=redact)
    html = document.to_html()
    contents: dict[str, str | bytes] = {"html": html, "json": document.to_json()}
    if pdf:
        contents["pdf"] = to_pdf(html)
    stem = f"{case_name(str(id))}{'.redacted' if redact else ''}"
    files = {f"{stem}.{ending}": content for ending, content in contents.items()}
    write_case_files(results, files, made_from=made_from, key=key)
    return document, tuple(results / CASES / name for name in files)


def _read_id(audit: Audit, id: Any) -> Any:  # noqa: A002
    """Find the id that is written like this; ids on a command line are text."""
    ids = audit.plan.population.ids
    same = np.flatnonzero(ids.astype(np.str_) == str(id))
    return plain_value(ids[same[0]]) if len(same) else id


def case_document(
    audit: Audit,
    id: Any,  # noqa: A002 - the public name
    *,
    redact: bool = False,
) -> CaseDocument:
    """Collect everything about one complainant.

    `redact` leaves out all other people, but for verdicts and coarse shares of larger groups.
    """
    whole = audit.case(id)
    # one for each attribute, where several were audited one by one
    cases = [whole if part is audit else part.case(id) for part in audit.parts.values()]
    document = _document(audit, whole, cases)
    return redact_case(document, whole, cases) if redact else document


def _document(audit: Audit, whole: Case, cases: Sequence[Case]) -> CaseDocument:
    settings = audit.plan.settings
    parts = tuple(_part(case) for case in cases)
    method, k = settings.primary
    verdict = _verdict(whole)
    return CaseDocument(
        complainant=_complainant(whole),
        verdict=VerdictText(method=method, k=k, verdict=verdict, sentence=whole.explain_pattern()),
        own_case=OwnCase(
            answer=whole.own_case,
            sentence=whole.explain_own_case(),
            share=known(whole.own_result()["p_own"]),
        ),
        robustness=_robustness(whole, parts),
        figures=_figures(whole),
        parts=parts,
        whole_table=describe_headline(audit),
        assumptions=assumptions_of(audit),
        limits=limits_of(audit, parts, verdict),
        redaction=Redaction(redacted=False),
        provenance={**record_of(audit), "redacted": False},
        alpha=settings.alpha,
        tau=settings.tau,
        direction=settings.evidence.direction,
        measure=settings.evidence.measure,
        worldview=draw_plan(audit.plan),
        labels=_labels(audit.plan),
        settings_text=write_plan(audit.plan),
        words=audit.plan.words,
    )


def _verdict(case: Case) -> str:
    method, k = case.audit.plan.settings.primary
    return str(case.result(method, k=k)["verdict"])


def _labels(plan: Plan) -> Labels:
    """Return the labels, with one for each side where classes of the outcome are labelled."""
    column, levels = plan.outcome.column, dict(plan.labels.levels)
    if column in levels:
        levels[column] = {**levels[column], **plan.words.side_labels}
    return replace(plan.labels, levels=levels)


def _complainant(case: Case) -> Complainant:
    plan = case.audit.plan
    return Complainant(
        id=case.id,
        statuses=tuple(
            Status(
                attribute=each.attribute,
                value=_value_at(plan.population, each.attribute, case.row),
                reference=each.reference,
            )
            for each in plan.protections
        ),
        outcome_column=plan.outcome.column,
        outcome=case.outcome,
        negative=plan.outcome.kind.negative,
        refused=bool(case.audit.study.outcomes[case.row]) if plan.outcome.kind.two_sided else None,
        outcome_cf=case.outcome_cf,
        outcome_cf_share=case.outcome_cf_share,
        attributes=dict(case.factual),
    )


def _value_at(population: Population, name: str, row: int) -> Any:
    """Return one cell as a plain value."""
    column = population.columns[name]
    if isinstance(column, Numbers):
        return float(column.values[row])
    return plain_value(column.levels[column.codes[row]])


def _figures(case: Case) -> tuple[Figures, ...]:
    settings, kind = case.audit.plan.settings, case.audit.plan.outcome.kind
    own = {"measured": "", "measured_low": "_low", "measured_high": "_high"}
    columns = {each.name for each in fields(Figures)} - {"method", "title", "k", "primary", *own}
    rows = []
    for (method, k), result in case.results.items():
        row = kind.plain(result)
        measured: dict[str, Any] = {}
        for name, end in own.items():  # JSON has no number for what is infinite
            each = known(row.get(settings.measure.column + end))
            measured[name] = "∞" if each == np.inf else each
        rows.append(
            Figures(
                method=method,
                title=METHODS[method].title,
                k=k,
                primary=(method, k) == settings.primary,
                **{name: known(row.get(name)) for name in columns},
                **measured,
            )
        )
    return tuple(rows)


# --- one ground -----------------------------------------------------------------------------------


def _part(case: Case) -> Part:
    plan = case.audit.plan
    method, k = plan.settings.primary
    control = test = None
    if METHODS[method].count_neighbours:
        groups = case.groups(method, k=k)
        control, test = _group(case, "control", groups.control), _group(case, "test", groups.test)
    worlds, share = plan.settings.uncertainty.worlds, case.result(method, k=k).get("verdict_share")
    return Part(
        ground=tuple(each.attribute for each in plan.protections),
        do=plan.do,
        verdict=_verdict(case),
        outcome_cf=case.outcome_cf,
        movements=_movements(case.audit, case.row),
        control=control,
        test=test,
        support=_support(case),
        # where the audit has no draws and refits, some refits are made for this person
        worlds=worlds or REFITS,
        verdict_share=known(share) if worlds else doubt_verdict(case.audit, case.place),
        curve=_curve(case),
        decision=_explain_decision(case),
    )


def _explain_decision(case: Case) -> tuple[str, ...]:
    """Explain why b() decides otherwise on the counterfactual, where its inside is known."""
    plan, other = case.audit.plan, case.audit.ground.world.point
    maker: object = plan.decision
    described = {} if maker is None else describe_maker(maker)
    if described.get("kind") == "rule" and not isinstance(maker, Rule):
        # of an audit that was opened from its folder; a score for a threshold is no rule
        with suppress(FormulaError):
            maker = Rule.parse(described["rule"])
    if other is None or not isinstance(maker, DescribedMaker):
        return ()
    row = np.array([case.row])
    both = plan.population.take(row), other.take(row)
    if isinstance(maker, Rule) and all(name in both[0].columns for name in maker.names):
        # without a frame, which takes longer to load than all else here
        read = [each.as_read_by_rules for each in both]
        return maker.explain_columns(
            {name: np.concatenate([one(name) for one in read]) for name in maker.names},
            plan.labels.column,
        )
    return maker.explain_change(both[0].frame(), both[1].frame(), plan.labels.column)


def _group(case: Case, role: Role, members: Members) -> GroupList:
    """List one group under the primary method and k, person by person."""
    plan, world = case.audit.plan, case.audit.ground.world
    name, k = plan.settings.primary
    found, method = plan.outcome.kind.plain(case.result(name, k=k)), METHODS[name]
    around = "the complainant"
    if role == "test" and method.matched:
        around = "the counterfactuals of the control group"
    elif role == "test" and method.center is Center.COUNTERFACTUAL:
        drawn = "the draws of the counterfactual"
        around = drawn if world.draws else "the complainant's counterfactual"
    people = ~members.is_center
    outcomes = members.is_negative[people]
    sides = {"refused": int(outcomes.sum()), "granted": int((~outcomes).sum())}
    return GroupList(
        role=role,
        around=around,
        places=found[f"n_{role}"],
        people=int(people.sum()),
        # who holds a whole place shares it with no other person
        shared=int((people & (members.place < 1)).sum()),
        **(sides if plan.outcome.kind.two_sided else {}),
        share=known(found[f"p_{role}"]),
        radius=known(found[f"radius_{role}"]),
        members=tuple(_members(case, role, members)),
    )


def _members(case: Case, role: Role, members: Members) -> list[Member]:
    plan, other = case.audit.plan, case.audit.ground.world.point
    nearest = np.arange(len(members)) < _MOST_LISTED
    members = members.take(np.flatnonzero(nearest | members.is_center))
    rows = _rows_of(plan.population, members.ids)
    parts = _split_distances(case, role, rows)
    outcomes = plan.outcome.kind.values(members.is_negative)
    listed = []
    for index, row in enumerate(rows.tolist()):
        center = bool(members.is_center[index])
        world = other if center and role == "test" else None
        place = float(members.place[index])
        listed.append(
            Member(
                person=plain_value(members.ids[index]),
                role="person"
                if not center
                else "counterfactual"
                if role == "test"
                else "complainant",
                distance=float(members.distance[index]),
                parts=None
                if parts is None or center
                else {name: float(values[index]) for name, values in parts.items()},
                values={
                    attribute.name: _value_at(world or plan.population, attribute.name, row)
                    for attribute in plan.attributes
                },
                place=place,
                place_text=str(Fraction(place).limit_denominator(10**7)),
                outcome=plain_value(outcomes[index]),
            )
        )
    return listed


def _rows_of(population: Population, ids: NDArray[Any]) -> NDArray[np.intp]:
    """Find the rows of people by their ids."""
    if isinstance(order_of_ids(population.ids), slice):  # row positions, mostly
        return np.searchsorted(population.ids, ids)
    rows = np.flatnonzero(np.isin(population.ids, ids))
    found = dict(zip(population.ids[rows].tolist(), rows.tolist(), strict=True))
    return np.array([found[each] for each in ids.tolist()], dtype=np.intp)


def _split_distances(
    case: Case, role: Role, rows: NDArray[np.intp]
) -> dict[str, NDArray[np.float64]] | None:
    """Split each distance by attribute, in the exact units it was measured in."""
    audit, row = case.audit, np.array([case.row])
    if len(audit.parts) > 1:
        return None
    center = audit.plan.population
    method = METHODS[audit.plan.settings.primary[0]]
    if role == "test" and method.center is Center.COUNTERFACTUAL:
        center = audit.ground.world.point or center  # of an open one, the most likely
    embedding = audit.ground.engine.embedding
    there = embedding.apply(audit.plan.population, rows).points
    parts = embedding.split(embedding.apply(center, row).points, there)
    if parts is not None and embedding.metric.move is None:
        for axis in embedding.axes:
            # how much farther the center is than the metric reaches: mostly 0
            _, beyond = axis.place(center.part(axis.name, row).data.astype(np.float64))
            parts[axis.name] += float(beyond[0]) * axis.length / embedding.metric.unit
    return parts


def _support(case: Case) -> tuple[SupportCheck, ...]:
    """Measure how well the groups support the comparison; empty where that is not measured."""
    audit, place = case.audit, case.place
    method, k = audit.plan.settings.primary
    if not METHODS[method].count_neighbours or len(audit.parts) > 1:
        return ()
    measured, balance = audit.measure_support(method, k), case.balance(method, k)
    outside = tuple(name for name, marked in measured.outside.items() if marked[place])
    roles: tuple[Role, Role] = ("control", "test")
    return tuple(
        SupportCheck(
            role=role,
            radius=known(float(reach.radius[place])),
            typical=known(float(reach.typical[place])),
            limit=known(float(reach.limit[place])),
            off_support=bool(reach.off_support[place]),
            # the range is that of the test space
            outside=outside if role == "test" else (),
            balance={name: known(value) for name, value in getattr(balance, role).items()},
        )
        for role, reach in zip(roles, (measured.control, measured.test), strict=True)
    )


# --- how attributes moved, and through which causes -----------------------------------------------


def _movements(audit: Audit, row: int) -> tuple[Movement, ...]:
    """Describe how each attribute moved: those compared, and those that pass the change on."""
    after, plan, computed = audit.ground.world.point, audit.plan, audit.provenance.computed
    if after is None:
        return ()
    compared = [attribute.name for attribute in plan.attributes]
    names = dict.fromkeys([*compared, *computed["moved"], *computed["held"]])
    order = plan.worldview.names if plan.worldview is not None else ()
    causes_first = {name: place for place, name in enumerate(order)}
    mover = _Mover(
        before=plan.population,
        after=after,
        row=np.array([row]),
        plan=plan,
        computed=computed,
        fitted=_fit_linear(plan, computed["moved"]),
        drawn=drawn_values(audit.ground, row),
    )
    return tuple(
        mover.movement(name)
        for name in sorted(names, key=lambda name: causes_first.get(name, len(order)))
    )


def _fit_linear(plan: Plan, moved: Sequence[str]) -> FittedWorldview | None:
    """Fit once more the equations that can be taken apart: the run keeps their results alone."""
    declared = {} if plan.worldview is None else plan.worldview.equations
    wanted = {name: declared[name] for name in moved if isinstance(declared.get(name), Linear)}
    return Worldview(wanted).fit(plan.population) if wanted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mover:
    """One complainant in both worlds."""

    before: Population
    after: Population
    row: NDArray[np.intp]
    plan: Plan
    computed: Mapping[str, Any]
    fitted: FittedWorldview | None  # equations that can be taken apart
    drawn: Mapping[str, tuple[tuple[Any, float], ...]]

    def movement(self, name: str) -> Movement:
        factual, counterfactual = self._both(name)
        numbers = isinstance(factual, float) and isinstance(counterfactual, float)
        change = counterfactual - factual if numbers else None
        how = self._how(name)
        movement = Movement(
            attribute=name,
            compared=any(name == attribute.name for attribute in self.plan.attributes),
            factual=factual,
            counterfactual=counterfactual,
            change=change,
            how=how,
            coupling=self.computed["couplings"].get(name, ""),
            drawn=self.drawn.get(name, ()),
        )
        if how != "total":
            return movement
        movement, parts = replace(movement, paths=self._paths(name)), self._decomposed(name)
        if parts is None:
            return replace(movement, causes=self._changed(name, change))
        return replace(
            movement,
            how=parts.how,
            causes=tuple(self._cause(*each) for each in parts.contributions.items()),
            remainder=_remainder(parts, factual, counterfactual),
        )

    def _both(self, name: str) -> tuple[Any, Any]:
        row = int(self.row[0])
        return _value_at(self.before, name, row), _value_at(self.after, name, row)

    def _how(self, name: str) -> Any:
        if name in self.plan.do:
            return "intervened"
        if self.plan.worldview is None:
            return "given"
        if name in self.computed["held"]:
            return "held"
        return "total" if name in self.computed["moved"] else "unaffected"

    def _decomposed(self, name: str) -> Decomposition | None:
        if self.fitted is None or name not in self.fitted.equations:
            return None
        fitted: Any = self.fitted.equations[name]
        parents = self.fitted.graph.parents[name]
        before, after = (
            {parent: world.columns[parent].take(self.row) for parent in parents}
            for world in (self.before, self.after)
        )
        decomposition: Decomposition = fitted.decompose(before, after)
        return decomposition

    def _changed(self, name: str, change: float | None) -> tuple[Cause, ...]:
        """Name the causes that changed; one alone has done all of it."""
        parents = () if self.plan.worldview is None else self.plan.worldview.graph.parents[name]
        causes = [self._cause((parent,), None) for parent in parents]
        changed = [each for each in causes if each.before != each.after]
        return (replace(changed[0], amount=change),) if len(changed) == 1 else tuple(changed)

    def _cause(self, parents: tuple[str, ...], amount: float | None) -> Cause:
        before, after = self._both(parents[0]) if len(parents) == 1 else (None, None)
        return Cause(parents=parents, before=before, after=after, amount=amount)

    def _paths(self, name: str) -> tuple[str, ...]:
        if self.plan.worldview is None:
            return ()
        paths = self.plan.worldview.graph.paths(self.plan.do, name, held=self.computed["held"])
        first = [" → ".join(path) for path in islice(paths, _PATHS + 1)]
        return (*first[:_PATHS], _OTHERS) if len(first) > _PATHS else tuple(first)


def _remainder(parts: Decomposition, factual: float, counterfactual: float) -> float:
    """Return what rounding, levels and bounds did to the value after its causes had moved it."""
    carried = factual + parts.total if parts.how == "sum" else factual * parts.total
    rest = counterfactual - carried
    size = max(abs(factual), abs(counterfactual), *map(abs, parts.contributions.values()))
    return 0.0 if abs(rest) <= _NOTHING * size else rest


# --- how robust the verdict is to the worldview ---------------------------------------------------


def _curve(case: Case) -> tuple[CurvePoint, ...]:
    """Compute the comparison with each part of the effect; empty where there is no effect."""
    method, _ = case.audit.plan.settings.primary
    if _verdict(case) == Verdict.INSUFFICIENT or not METHODS[method].has_tipping:
        return ()
    return find_curve(case.audit, case.place)


def _robustness(case: Case, parts: Sequence[Part]) -> VerdictRobustness | None:
    """Measure how wrong the worldview may be before the headline falls."""
    plan, found = case.audit.plan, tipping_of(case.audit, case.place)
    if found is None:
        return None
    method, k = plan.settings.primary
    share = known(case.result(method, k=k).get("verdict_share"))
    worlds = name_worlds(plan)
    if not worlds and len(parts) == 1:  # made for this person alone
        share, worlds = parts[0].verdict_share, "refits"
    found = replace(found, fragile=np.array([share is not None and share < FIRM]))
    point, grade, compared = known(found.point[0]), found.grade[0], case.audit.results.worldviews
    robustness = VerdictRobustness(
        tipping=point,
        grade=grade,
        rule="" if grade is None else rules_of(case.audit)[grade],
        sentence="there is no verdict that could fall",
        appears=known(found.appears[0]),
        worldviews={} if compared is None else compared.verdicts_of(case.place),
    )
    if point is None:
        return robustness
    verdicts = {size: Verdict(case.result(method, k=size)["verdict"]) for size in plan.settings.ks}
    stays = [size for size, each in verdicts.items() if each.strength >= verdicts[k].strength]
    hidden: dict[str, Any] = {}
    if plan.worldview is not None:
        cause = case.audit.hidden_cause()
        hidden["robustness_value"] = cause.at(case.place, point).get("robustness_value")
        hidden["hidden_cause"] = cause.sentence(case.place, point)
    return replace(
        robustness,
        sentence=describe_verdict(
            plan,
            point,
            share=share,
            worlds=worlds,
            ks=stays,
            worldviews=None
            if compared is None
            else (int(compared.stays[case.place].sum()), len(compared.names)),
        ),
        stands_without={name: bool(stands[0]) for name, stands in found.without.items()},
        **hidden,
    )
