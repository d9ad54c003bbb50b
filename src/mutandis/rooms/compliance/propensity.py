r"""Propensity-weighted risk differences: whole groups, made comparable by weights.

Qureshi et al. (2020) ask what the status does to decisions on average, among people who are alike
in their attributes. Each person of the reference status has the weight e(x) / (1 - e(x)), with the
propensity score e(x) = P(protected | x), so that as a whole they have the attributes of the
protected; then the two shares of refusals are compared. Attributes that the status affects are held
as they are, as in plain situation testing. This is about a table, and not about a complainant.

Notes
-----
With A the status, y a refusal and w = e / (1 - e), the difference is

.. math:: \hat\Delta = \frac{\sum A y}{\sum A} - \frac{\sum (1-A) w y}{\sum (1-A) w}

(Hájek's form of the average effect on the protected). e is a logistic regression, by maximum
likelihood. The variance is that of the stacked estimating equations, so that it includes what the
estimated score adds or takes away: the sum of squares of

.. math:: \frac{A_i (y_i - \mu_1)}{\sum A} - \frac{(1-A_i) w_i (y_i - \mu_0)}{\sum (1-A) w} -
          g^T J^{-1} (A_i - e_i) x_i,\quad g = \frac{\sum (1-A) w (y - \mu_0) x}{\sum (1-A) w},\quad
          J = \sum e (1-e) x x^T.

Bounds and p-value are those of a normal distribution.

References
----------
Qureshi, Kamiran, Karim, Ruggieri, Pedreschi (2020), Causal inference for social discrimination
reasoning, Journal of Intelligent Information Systems 54, 425-437. Lunceford, Davidian (2004),
Stratification and weighting via the propensity score, Statistics in Medicine 23, 2937-2960, for
variances of such estimates.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Categories, Numbers
from mutandis.errors import EquationError, PlanError
from mutandis.numeric.least_squares import row_products, solve_positive
from mutandis.numeric.order import canonical_order
from mutandis.outcomes.intervals import critical_value
from mutandis.scm.categorical import Categorical
from mutandis.scm.predictor import Design

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.data.columns import Column, Columns
    from mutandis.data.spaces import Stratum

    _Floats = NDArray[np.float64]

__all__ = ["PropensityDifference", "weigh_by_propensity"]


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
    n_effective: float  # as how many people the weighted reference rows count (Kish)
    # the largest difference of means among all attributes, in standard deviations
    imbalance: float
    imbalance_weighted: float

    def as_row(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        return asdict(self)


def weigh_by_propensity(audit: Audit) -> list[PropensityDifference]:
    """Compare each protected status with the reference rows, weighted to be like them."""
    plan = audit.plan
    if plan.combine == "multiple":
        raise PlanError(
            "This audit looks at several grounds one by one, and a propensity score is about one "
            f"status. Ask about one of them: audit.part({plan.protections[0].attribute!r})."
        )
    if not audit.plan.outcome.kind.two_sided:
        raise PlanError(
            f"Outcome {plan.outcome.column!r} is not a refusal or an approval, and a risk "
            "difference compares shares of refusals. Audit an outcome with two values."
        )
    return [_weigh(audit, stratum) for stratum in audit.study.strata]


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
    before, after = _imbalances(parents, status, weights)
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
        imbalance=before,
        imbalance_weighted=after,
    )


def _varying(audit: Audit, rows: NDArray[np.intp]) -> Iterator[tuple[str, Column]]:
    """Return the attributes that vary among these rows: ordered levels as ranks."""
    for each in audit.plan.attributes:
        column = audit.plan.population.part(each.name, rows)
        if column.data.min() < column.data.max():
            ordinal = each.kind is AttributeKind.ORDINAL
            yield each.name, Numbers(column.data.astype(np.float64)) if ordinal else column


def _fit(parents: Columns, status: _Floats) -> tuple[_Floats, Design]:
    """Return each row's log-odds of being protected, and the columns that they are made of."""
    levels = Categories(status.astype(np.int32), (False, True))
    try:
        fitted = Categorical(*parents).fit(levels, parents).predictors[0]
        design = Design.of(parents, rows=len(status))
    except EquationError as error:
        raise PlanError(f"The status cannot be explained by the attributes: {error}") from None
    return fitted.at(parents, rows=len(status)), design


def _from_score(design: Design, score: _Floats, status: _Floats, weighted: _Floats) -> _Floats:
    """Return what each row adds to the weighted share through the estimated score."""
    probability = 1 / (1 + np.exp(-score))
    spread = (probability * (1 - probability))[:, None]
    curvature = row_products(design.basis * spread, design.basis)
    direction = solve_positive(curvature, design.sums(weighted))
    return np.asarray((status - probability) * design.at(direction), dtype=np.float64)


def _p_value(audit: Audit, difference: float, error: float) -> float:
    """Test against τ, in the direction that the audit looks for."""
    from scipy.special import ndtr

    settings = audit.plan.settings
    tau = settings.tau if settings.measure.name == "risk-difference" else 0.0
    beyond = (difference if settings.worse else -difference) - tau
    if error == 0:
        return float(beyond <= 0)
    return float(ndtr(-beyond / error))


def _imbalances(parents: Columns, status: _Floats, weights: _Floats) -> tuple[float, float]:
    """Return the largest difference of means, without and with weights, in standard deviations."""
    largest = [0.0, 0.0]
    for column in parents.values():
        for values in _as_numbers(column):
            means, spread = [], 0.0
            for side in (status, 1 - status):
                share = side / np.add.reduce(side)
                mean = float(np.add.reduce(share * values))
                means.append(mean)
                spread += float(np.add.reduce(share * (values - mean) ** 2)) / 2
            means.append(float(np.add.reduce(weights * values) / np.add.reduce(weights)))
            if spread > 0:
                for place in (0, 1):
                    apart = abs(means[0] - means[place + 1]) / spread**0.5
                    largest[place] = max(largest[place], apart)
    return largest[0], largest[1]


def _as_numbers(column: Column) -> Iterator[_Floats]:
    """Return a column of numbers, or an indicator for each level."""
    if isinstance(column, Numbers):
        yield column.values
    else:
        for code in np.unique(column.codes).tolist():
            yield (column.codes == code).astype(np.float64)
