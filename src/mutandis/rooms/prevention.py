"""A study of prevention: confirmed cases relabelled, the table audited again, a model retrained.

This is the other half of k-NN situation testing (Thanh, Ruggieri & Turini 2011, KDD): the decisions
on those found to be discriminated against are changed in the table, and a classifier is trained on
the changed table. Both are audited again. It is a study of the table and not a remedy. No audit of
this study asks b(), which would repeat the decisions that were changed.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Categories, Numbers, frozen, in_order
from mutandis.decision.maker import decide
from mutandis.decision.model import ModelMaker
from mutandis.errors import DecisionError, MutandisError, MutandisWarning, PlanError
from mutandis.frames import columns_of, open_frame, to_frame
from mutandis.outcomes.binary import BinaryKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.data.population import Population
    from mutandis.engine.tally import Method
    from mutandis.verdicts.findings import Findings

__all__ = ["Prevention", "RelabelRule", "study_prevention"]

RelabelRule = Literal["own-case", "pattern"]

_RECORD: Final = "record"
_RELABELLED: Final = "relabelled"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prevention:
    """What remains of the findings when confirmed cases are relabelled: a study, not a remedy.

    Parameters
    ----------
    rule
        Who was relabelled: "own-case" or "pattern", see `study_prevention`.
    method, k
        The method and the group size whose verdicts were taken.
    ids
        The ids of the complainants whose decisions were relabelled.
    audits
        The audits that are compared, by their decisions: "record" and "relabelled", and with a
        model "model on record" and "model on relabelled".
    """

    rule: RelabelRule
    method: str
    k: int
    ids: NDArray[Any]
    audits: Mapping[str, Audit]

    @property
    def relabelled(self) -> int:
        """The number of decisions that were relabelled."""
        return len(self.ids)

    def decisions(self) -> Any:
        """Return the table with the relabelled decisions, in the caller's own frame type.

        It is a copy. Rows that the audit dropped for missing values are not in it.
        """
        return self.audits[_RELABELLED].plan.population.frame()

    def counts(self) -> Any:
        """Count what remains: a table with a row for each of the `audits`.

        `pattern_and_own_case` counts complainants whose verdict is significant after adjustment
        and who have a case of their own; it is missing where the method matches no people.
        """
        records = [
            {"decisions": name, **_count(audit.evaluate(self.method, self.k, depth="significance"))}
            for name, audit in self.audits.items()
        ]
        return to_frame(columns_of(records), self.audits[_RECORD].plan.population.source)


def _count(found: Findings) -> dict[str, Any]:
    both = found.significant_adjusted & found.has_own_case
    return {
        "complainants": len(found),
        "cases": int(found.comparison.evidence.sum()),
        "significant_adjusted": int(found.significant_adjusted.sum()),
        "pattern_and_own_case": None if found.own_case is None else int(both.sum()),
    }


def study_prevention(
    audit: Audit, model: Any = None, *, rule: RelabelRule = "own-case"
) -> Prevention:
    """Study what remains when confirmed cases are relabelled; it is not a remedy.

    The decisions on confirmed cases are changed in a copy of the table, which is audited again
    by the same plan, without b(). A model is trained on the record and on the changed table, and
    its decisions on the same people are audited (docs/compliance.md). That compensates none of the
    people concerned, and the model may still discriminate.

    Parameters
    ----------
    audit
        The audit with the confirmed cases: those of its headline. `audit.with_levels(method=…,
        k=…)` has another one.
    model
        A classifier with `fit` and `predict`, as those of scikit-learn have, not yet fitted; a
        copy of it is trained. Default: none.
    rule
        Whose decisions are changed. "own-case": the verdict is significant after adjustment,
        and the complainant has a case of their own. "pattern": the verdict is significant after
        adjustment, and the outcome is the one that is looked for (refused, unless the direction
        is "positive").

    Examples
    --------
    >>> import mutandis as mm
    >>> from mutandis.rooms.prevention import study_prevention
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=600, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous"},
    ...     worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
    ...     ks=(15,),
    ...     uncertainty=mm.Uncertainty(refits=0),
    ... )
    >>> study_prevention(found).counts()["significant_adjusted"].tolist()
    [50, 0]
    """
    chosen, size = audit.plan.choose(None, None)
    _check_audit(audit.plan)
    _check_rule(chosen, rule)
    _check_model(model)
    plan, found = audit.plan, audit.evaluate(chosen.name, size, depth="significance")
    worse = plan.settings.evidence.direction == "negative"
    confirmed = found.significant_adjusted & (found.is_negative if worse else ~found.is_negative)
    if rule == "own-case":
        confirmed = confirmed & found.has_own_case
    changed = plan.outcome.codes.copy()
    changed[audit.study.people[confirmed]] ^= True
    decisions = {_RECORD: plan.outcome.codes, _RELABELLED: changed}
    if model is not None:
        features = _features(plan)
        decisions |= {
            f"model on {name}": _retrain(model, features, plan, is_negative)
            for name, is_negative in decisions.items()
        }
    audits = {
        name: audit if name == _RECORD else _audit_again(audit, is_negative)
        for name, is_negative in decisions.items()
    }
    return Prevention(
        rule=rule,
        method=chosen.name,
        k=size,
        ids=frozen(found.ids[confirmed]),
        audits=MappingProxyType(audits),
    )


def _check_audit(plan: Plan) -> None:
    if plan.combine == "multiple":
        raise PlanError(
            "This audit looks at several grounds one by one, and a decision has only one label. "
            f"Study one of them: audit.parts[{plan.protections[0].attribute!r}]."
        )
    _sides_of(plan)
    if plan.settings.evidence.adjust == "none":
        raise PlanError(
            "Confirmed cases are significant after adjustment, and this audit has adjust='none'. "
            "Run it with an adjustment, such as the default."
        )


def _sides_of(plan: Plan) -> tuple[Any, Any]:
    """Return the favourable and the unfavourable value."""
    kind = plan.outcome.kind
    if not isinstance(kind, BinaryKind) or kind.several:
        raise PlanError(
            f"Outcome {plan.outcome.column!r} has more than two values, and it is not known which "
            "of them a relabelled decision would have. Audit an outcome with two values."
        )
    return kind.positive, kind.negative


def _check_rule(method: Method, rule: str) -> None:
    if rule not in get_args(RelabelRule):
        raise PlanError(f"rule={rule!r} is unknown. Allowed: {', '.join(get_args(RelabelRule))}.")
    if method.needs_counterfactual_outcome:
        raise PlanError(
            f"Method {method.name!r} asks the decision maker, who would repeat the decisions that "
            "are relabelled. Take audit.with_levels(method='cst_matched')."
        )
    if rule == "own-case" and not method.matched:
        raise PlanError(
            f"Method {method.name!r} says nothing about a complainant's own case. Take "
            "audit.with_levels(method='cst_matched'), or relabel by rule='pattern' alone."
        )


def _check_model(model: Any) -> None:
    able = all(callable(getattr(model, name, None)) for name in ("fit", "predict"))
    if model is not None and (isinstance(model, type) or not able):
        found = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise PlanError(
            f"model= is {found}. Give an object with the methods fit and predict, such as "
            "LogisticRegression() of scikit-learn."
        )


def _audit_again(audit: Audit, is_negative: NDArray[np.bool_]) -> Audit:
    """Run the same plan, without b(), on other decisions about the same people."""
    plan = audit.plan
    methods = tuple(each for each in plan.methods if not each.needs_counterfactual_outcome)
    ready = plan.counterfactuals
    again = replace(
        plan,
        population=_with_decisions(plan, is_negative),
        outcome=replace(plan.outcome, codes=frozen(is_negative)),
        # a table of counterfactuals may carry the old decisions as well
        counterfactuals=None if ready is None else replace(ready, is_negative=None),
        decision=None,
        methods=methods,
        settings=replace(plan.settings, methods=tuple(each.name for each in methods)),
        origin=None,
    )
    with warnings.catch_warnings():
        # the audit itself has said it already
        warnings.simplefilter("ignore", MutandisWarning)
        return again.run(threads=audit.ground.engine.threads, cluster=audit.ground.engine.workers)


def _with_decisions(plan: Plan, is_negative: NDArray[np.bool_]) -> Population:
    """Return the population with other recorded decisions."""
    outcome, population = plan.outcome, plan.population
    levels = population.categories(outcome.column).levels
    codes = [levels.index(value) for value in _sides_of(plan)]
    column = Categories(np.array(codes, dtype=np.int32)[is_negative.astype(np.intp)], levels)
    changed = population.with_columns({outcome.column: column})
    source = open_frame(changed.frame())
    return replace(
        changed, open_source=lambda: source, changed=population.changed, encoded=frozenset()
    )


# --- the model ------------------------------------------------------------------------------------


def _features(plan: Plan) -> pd.DataFrame:
    """Return the features of a model: numbers, ranks of ordered levels, one column per name."""
    import pandas as pd

    statuses = {each.attribute for each in plan.protections}
    kinds = {each.name: each.kind for each in plan.attributes if each.name not in statuses}
    columns: list[tuple[str, NDArray[np.float64]]] = []
    for name, kind in kinds.items():
        column = plan.population.columns[name]
        if isinstance(column, Numbers):
            columns.append((name, column.values))
        elif kind is AttributeKind.ORDINAL:
            columns.append((name, column.codes.astype(np.float64)))
        else:
            for level in in_order(column.occurring()):
                is_level = column.codes == column.code_of(level)
                columns.append((f"{name} = {level}", is_level.astype(np.float64)))
    names, values = zip(*columns, strict=True)
    return pd.DataFrame(np.column_stack(values), columns=list(names))


def _retrain(
    model: Any, features: pd.DataFrame, plan: Plan, is_negative: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Train a copy of the model on these decisions, and let it decide on the same people."""
    learner = deepcopy(model)
    # what is learned may depend on the order of rows, and this one depends on what they hold
    order = np.lexsort([is_negative, *features.to_numpy().T])
    decided = plan.outcome.kind.values(is_negative[order])
    name = type(model).__name__
    try:
        learner.fit(features.iloc[order].reset_index(drop=True), decided)
    except MutandisError:
        raise
    except Exception as error:
        raise DecisionError(
            f"The model ({name}) stopped with {type(error).__name__} when it was trained on "
            f"{len(features)} rows. Its message is not repeated here, because it may contain "
            "personal data: train it on the table yourself to see it."
        ) from error
    return decide(ModelMaker(learner), features.copy(), plan.outcome)
