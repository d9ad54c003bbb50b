"""Collect everything about one complainant in a case file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import plain_value
from mutandis.decision.maker import DescribedMaker, describe_maker
from mutandis.decision.rule import Rule
from mutandis.engine.methods import METHODS, Center
from mutandis.errors import FormulaError
from mutandis.numeric.order import order_of_ids
from mutandis.report.case_model import (
    CaseDocument,
    Complainant,
    Figures,
    GroupList,
    Member,
    OwnCase,
    Part,
    Redaction,
    Status,
    SupportCheck,
    VerdictText,
)
from mutandis.report.case_movement import movements_of, value_at
from mutandis.report.case_robustness import curve_of, doubt_of, robustness_of
from mutandis.report.context import draw_plan
from mutandis.report.formatting import known
from mutandis.report.html import to_pdf
from mutandis.report.redact import redact_case
from mutandis.report.sentences import assumptions_of, describe_headline, limits_of
from mutandis.store.audit_file import write_plan
from mutandis.store.files import hash_file
from mutandis.store.output_folder import read_settled
from mutandis.store.results_folder import CASES, RECORD, case_name, read_key, write_case_files
from mutandis.store.saved_audit import open_results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.case import Case
    from mutandis.auditing.plan import Plan
    from mutandis.data.labels import Labels
    from mutandis.data.population import Population
    from mutandis.engine.members import Members
    from mutandis.engine.tally import Pair
    from mutandis.geometry.embedding import Axis
    from mutandis.report.case_model import Role

__all__ = ["case_document", "save_case"]

# A group has k people, and all who are as far away as the last of them: with many ties, nearly
# everyone in the table. The nearest are listed, and all are counted.
_MOST_LISTED = 1000


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
    cases = [whole if part is audit else part.case(id) for part in audit.parts]
    document = _document(audit, whole, cases)
    return redact_case(document, whole, cases) if redact else document


def _document(audit: Audit, whole: Case, cases: Sequence[Case]) -> CaseDocument:
    settings, origin = audit.plan.settings, audit.plan.origin
    parts = tuple(_part(case) for case in cases)
    method, k = settings.primary
    verdict = str(whole.result(method, k=k)["verdict"])
    return CaseDocument(
        complainant=_complainant(whole),
        verdict=VerdictText(method=method, k=k, verdict=verdict, sentence=whole.explain_pattern()),
        own_case=OwnCase(
            answer=whole.own_case,
            sentence=whole.explain_own_case(),
            share=known(whole.own_result()["p_own"]),
        ),
        robustness=robustness_of(whole, parts),
        figures=_figures(whole),
        parts=parts,
        whole_table=describe_headline(audit),
        assumptions=assumptions_of(audit),
        limits=limits_of(audit, parts, verdict),
        redaction=Redaction(redacted=False),
        provenance={
            **audit.provenance.as_dict(),
            "source": None if origin is None else dict(origin.source),
            "redacted": False,
        },
        alpha=settings.alpha,
        tau=settings.tau,
        direction=settings.evidence.direction,
        measure=settings.evidence.measure,
        worldview=draw_plan(audit.plan),
        labels=_labels(audit.plan),
        settings_text=write_plan(audit.plan),
        words=audit.plan.words,
    )


def _labels(plan: Plan) -> Labels:
    """Return the labels, with one for each side where classes of the outcome are labelled."""
    column, levels = plan.outcome.column, dict(plan.labels.levels)
    if column in levels:
        levels[column] = {**levels[column], **plan.words.side_labels}
    return replace(plan.labels, levels=levels)


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
    audit, made_from = read_settled(
        results, lambda: (open_results(results), hash_file(results / RECORD))
    )
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


def _complainant(case: Case) -> Complainant:
    plan = case.audit.plan
    return Complainant(
        id=case.id,
        statuses=tuple(
            Status(
                attribute=each.attribute,
                value=value_at(plan.population, each.attribute, case.row),
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


def _figures(case: Case) -> tuple[Figures, ...]:
    settings, kind = case.audit.plan.settings, case.audit.plan.outcome.kind
    primary, measure = settings.primary, settings.measure
    own = {"measured": "", "measured_low": "_low", "measured_high": "_high"}
    columns = {each.name for each in fields(Figures)} - {"method", "title", "k", "primary", *own}
    return tuple(
        Figures(
            method=method,
            title=METHODS[method].title,
            k=k,
            primary=(method, k) == primary,
            **{name: known(row.get(name)) for name in columns},
            **{name: _finite(row.get(measure.column + end)) for name, end in own.items()},
        )
        for (method, k), row in ((key, kind.plain(result)) for key, result in case.results.items())
    )


def _finite(shown: Any) -> Any:
    """Write what is infinite as a text, since JSON has no number for it."""
    shown = known(shown)
    return "∞" if shown == float("inf") else shown


def _part(case: Case) -> Part:
    audit = case.audit
    method, k = audit.plan.settings.primary
    groups = case.groups(method, k=k) if METHODS[method].count_neighbours else None
    worlds, verdict_share = doubt_of(case)
    return Part(
        ground=tuple(each.attribute for each in audit.plan.protections),
        do=audit.plan.do,
        verdict=str(case.result(method, k=k)["verdict"]),
        outcome_cf=case.outcome_cf,
        movements=movements_of(audit, case.row),
        control=None if groups is None else _GroupLister(case, "control", groups).group(),
        test=None if groups is None else _GroupLister(case, "test", groups).group(),
        support=_support(case),
        worlds=worlds,
        verdict_share=verdict_share,
        curve=curve_of(case),
        decision=_explain_decision(case),
    )


def _explain_decision(case: Case) -> tuple[str, ...]:
    """Say why b() decides otherwise on her counterfactual, where its inside is known."""
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
    her, otherwise = plan.population.take(row), other.take(row)
    if isinstance(maker, Rule) and all(name in her.columns for name in maker.names):
        # without a frame, which takes longer to load than all else here
        read = [each.as_read_by_rules for each in (her, otherwise)]
        return maker.explain_columns(
            {name: np.concatenate([one(name) for one in read]) for name in maker.names},
            plan.labels.column,
        )
    return maker.explain_change(her.frame(), otherwise.frame(), plan.labels.column)


class _GroupLister:
    """One of the complainant's groups under the primary method and k, person by person."""

    def __init__(self, case: Case, role: Role, groups: Pair[Members]) -> None:
        self._case, self._audit, self._role = case, case.audit, role
        method, k = self._audit.plan.settings.primary
        self._members: Members = getattr(groups, role)
        self._found = case.audit.plan.outcome.kind.plain(case.result(method, k=k))
        self._method = METHODS[method]
        # the group was searched around her counterfactual
        self._around_other = role == "test" and self._method.center is Center.COUNTERFACTUAL
        self._is_matched = role == "test" and self._method.matched

    def group(self) -> GroupList:
        members, role = self._members, self._role
        people = ~members.is_center
        return GroupList(
            role=role,
            around="the counterfactuals of the control group"
            if self._is_matched
            else "the complainant"
            if not self._around_other
            else "the draws of her counterfactual"
            if self._audit.ground.world.draws
            else "the complainant's counterfactual",
            places=self._found[f"n_{role}"],
            people=int(people.sum()),
            # who holds a whole place shares it with no other person
            shared=int((people & (members.place < 1)).sum()),
            **self._decided(members.is_negative[people]),
            share=known(self._found[f"p_{role}"]),
            radius=known(self._found[f"radius_{role}"]),
            members=tuple(self._each_member()),
        )

    def _decided(self, outcomes: NDArray[Any]) -> dict[str, int]:
        """Count refusals and grants; a score is neither."""
        if not self._audit.plan.outcome.kind.two_sided:
            return {}
        return {"refused": int(outcomes.sum()), "granted": int((~outcomes).sum())}

    def _each_member(self) -> list[Member]:
        plan, nearest = self._audit.plan, np.arange(len(self._members)) < _MOST_LISTED
        members = self._members.take(np.flatnonzero(nearest | self._members.is_center))
        rows = _rows_of(plan.population, members.ids)
        parts = self._parts(rows)
        outcomes = plan.outcome.kind.values(members.is_negative)
        listed = []
        for index, row in enumerate(rows.tolist()):
            center = bool(members.is_center[index])
            counterfactual = center and self._role == "test"
            world = self._audit.ground.world.point if counterfactual else None
            role = "counterfactual" if counterfactual else "complainant"
            place = float(members.place[index])
            listed.append(
                Member(
                    person=plain_value(members.ids[index]),
                    role=role if center else "person",  # type: ignore[arg-type]
                    distance=float(members.distance[index]),
                    parts=None
                    if parts is None or center
                    else {name: float(values[index]) for name, values in parts.items()},
                    values={
                        attribute.name: value_at(world or plan.population, attribute.name, row)
                        for attribute in plan.attributes
                    },
                    place=place,
                    place_text=str(Fraction(place).limit_denominator(10**7)),
                    outcome=plain_value(outcomes[index]),
                )
            )
        return listed

    def _parts(self, rows: NDArray[np.intp]) -> dict[str, NDArray[np.float64]] | None:
        """Split each distance by attribute, in the exact units it was measured in."""
        if len(self._audit.parts) > 1:
            return None
        embedding = self._audit.ground.engine.embedding
        here = embedding.apply(self._world, np.array([self._case.row])).points
        there = embedding.apply(self._audit.plan.population, rows).points
        parts = embedding.split(here, there)
        if parts is not None and embedding.metric.move is None:
            for axis in embedding.axes:
                parts[axis.name] += self._overflow(axis) / embedding.metric.unit
        return parts

    def _overflow(self, axis: Axis) -> float:
        """Give how much farther the center lies on one axis than the metric reaches: mostly 0."""
        column = self._world.part(axis.name, np.array([self._case.row]))
        _, beyond = axis.place(column.data.astype(np.float64))
        return float(beyond[0]) * axis.length

    @property
    def _world(self) -> Population:
        """The world of the search center; of an open counterfactual, the most likely one."""
        world = self._audit.ground.world.point if self._around_other else None
        return world or self._audit.plan.population


def _rows_of(population: Population, ids: NDArray[Any]) -> NDArray[np.intp]:
    """Find the rows of people by their ids."""
    if isinstance(order_of_ids(population.ids), slice):  # row positions, mostly
        return np.searchsorted(population.ids, ids)
    rows = np.flatnonzero(np.isin(population.ids, ids))
    found = dict(zip(population.ids[rows].tolist(), rows.tolist(), strict=True))
    return np.array([found[each] for each in ids.tolist()], dtype=np.intp)


def _support(case: Case) -> tuple[SupportCheck, ...]:
    """Measure how well her groups support the comparison; empty where that is not measured."""
    audit, place = case.audit, case.place
    method, k = audit.plan.settings.primary
    if not METHODS[method].count_neighbours or len(audit.parts) > 1:
        return ()
    measured = audit.measure_support(method, k)
    balance = case.balance(method, k)
    outside = tuple(name for name, marked in measured.outside.items() if marked[place])
    roles: tuple[Role, Role] = ("control", "test")
    return tuple(
        SupportCheck(
            role=role,
            radius=known(float(reach.radius[place])),
            typical=known(float(reach.typical[place])),
            limit=known(float(reach.limit[place])),
            off_support=bool(reach.off_support[place]),
            # the range is that of the test space: the control group stands around her as she is
            outside=outside if role == "test" else (),
            balance={name: known(value) for name, value in getattr(balance, role).items()},
        )
        for role, reach in zip(roles, (measured.control, measured.test), strict=True)
    )
