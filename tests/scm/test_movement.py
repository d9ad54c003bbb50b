"""How far counterfactuals move where a problem is repaired, beside computations of another kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.rooms.latent import Latent
from mutandis.scm import Additive, Categorical, Count, Diagnosis, Linear, Ordinal, Stated, Worldview
from mutandis.scm.diagnosis import Finding, Movement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROWS = 1500


def _people(seed: int, *names: str) -> dict[str, Any]:
    """Return women (a = 1) and men, and columns of noise."""
    rng = np.random.default_rng(seed)
    women = (rng.random(ROWS) < 0.4).astype(np.int64)
    return {"a": women, **{name: rng.normal(size=ROWS) for name in names}}


def _check(worldview: Worldview, table: Any, **options: Any) -> Diagnosis:
    return worldview.check(table, protected="a", do={"a": 0}, **options)


def _about(each: Finding) -> tuple[str | None, set[str | None]]:
    if each.aspect == "independence":
        return None, {each.on, each.child}
    return each.aspect, {each.child, each.on, *each.further} - {None}


def _of(diagnosis: Diagnosis, *columns: str, aspect: str | None = None) -> Movement:
    """Return the movement of the one problem about these columns."""
    found = [each for each in diagnosis.problems if _about(each) == (aspect, set(columns))]
    (problem,) = found
    assert problem.movement is not None
    return problem.movement


def _fitted(target: Floats, *columns: Any) -> Floats:
    """Least squares by NumPy: coefficients, the intercept first."""
    design = np.column_stack([np.ones(len(target)), *columns])
    coefficients: Floats = np.linalg.lstsq(design, target, rcond=None)[0]
    return coefficients


def _assert_moved(movement: Movement, distances: Any, attribute: str) -> None:
    assert (movement.note, movement.attribute) == ("", attribute)
    assert movement.median == pytest.approx(float(np.median(distances)), abs=1e-9)
    assert movement.largest == pytest.approx(float(np.max(distances)), abs=1e-9)
    assert movement.share == pytest.approx(float(np.mean(distances >= 0.1)), abs=1e-12)


def _assert_most_moved(movement: Movement, distances: dict[str, float]) -> None:
    most = max(distances, key=lambda name: distances[name])
    _assert_moved(movement, np.array([distances[most]]), most)


# --- arrows ---------------------------------------------------------------------------------------


def _chain(seed: int = 1) -> dict[str, Any]:
    table = _people(seed, "x", "y")
    table["x"] -= table["a"]
    table["y"] += 0.8 * table["x"] - 0.5 * table["a"]
    return table


FLAT = Worldview({"x": Linear("a"), "y": Linear("a")})


def test_an_arrow_between_effects_that_both_follow_from_a_moves_nothing() -> None:
    table = _chain()
    diagnosis = _check(FLAT, table)
    movement = _of(diagnosis, "x", "y")
    assert movement.severity == "none"
    assert movement.repair == "an arrow between them, in either direction"
    # the shift is E[y | a=0] - E[y | a=1] whatever the order of x and y
    y, women = table["y"], table["a"] == 1
    shift = y[~women].mean() - y[women].mean()
    for equations in (
        {"x": Linear("a"), "y": Linear("a")},
        {"x": Linear("a"), "y": Linear("a", "x")},
        {"y": Linear("a"), "x": Linear("a", "y")},
    ):
        made = Worldview(equations).counterfactuals(table, do={"a": 0})
        moved = made.population.numbers("y")[women] - y[women]
        assert moved == pytest.approx(np.full(women.sum(), shift), abs=1e-9)
    (sentence,) = diagnosis.sections()["Problems that move no counterfactual"]
    assert sentence.endswith(
        "With an arrow between them, in either direction, no counterfactual moves."
    )
    assert diagnosis.next_step.startswith("Next: ask experts whether anything hidden")


def test_a_missing_arrow_moves_by_the_difference_of_two_fits() -> None:
    table = _chain()
    a, x, y = (table[name] for name in "axy")
    diagnosis = _check(Worldview({"x": Linear("a"), "y": Linear("x")}), table)
    shift = -_fitted(x, a)[1]
    without = _fitted(y, x)[1] * shift
    _, by_a, by_x = _fitted(y, a, x)
    for movement in (_of(diagnosis, "a", "y"), _of(diagnosis, "a", "y", aspect="level")):
        assert (movement.repair, movement.severity) == ("an arrow from a to y", "large")
        _assert_moved(movement, np.array([abs(by_x * shift - by_a - without) / y.std()]), "y")
    # with x held, an arrow from it leaves only the direct part of the effect
    resolving = Worldview(dict(FLAT.equations), resolving=("x",))
    movement = _of(_check(resolving, table), "x", "y")
    assert movement.repair == "an arrow from x to y"
    _assert_moved(movement, np.array([abs(_fitted(y, a)[1] - by_a) / y.std()]), "y")


def test_the_effects_of_what_is_repaired_move_along() -> None:
    table = _people(2, "x", "y", "z")
    table["x"] += 2.0 * table["a"]
    table["y"] += 5.0 * table["x"]
    movement = _of(
        _check(Worldview({"x": Linear("z"), "y": Linear("x")}), table), "a", "x", aspect="level"
    )
    a, x, y, z = (table[name] for name in "axyz")
    shift = abs(_fitted(x, z, a)[2])
    by_x = abs(_fitted(y, x)[1])
    _assert_most_moved(movement, {"x": shift / x.std(), "y": shift * by_x / y.std()})


def test_roots_move_only_if_a_acts_on_them() -> None:
    table = _people(3, "age", "wealth", "x")
    table["age"] += 0.7 * table["a"]
    table["wealth"] += table["age"]
    table["x"] += table["a"] + table["age"] + table["wealth"]
    diagnosis = _check(Worldview({"x": Linear("a", "age", "wealth")}), table)
    among = _of(diagnosis, "age", "wealth")
    assert (among.severity, among.attribute) == ("none", None)
    movement = _of(diagnosis, "a", "age")
    assert movement.repair == "an arrow from a to age"
    a, age, wealth, x = table.values()
    shift = abs(_fitted(age, a)[1])
    by_age = abs(_fitted(x, a, age, wealth)[2])
    _assert_most_moved(movement, {"age": shift / age.std(), "x": shift * by_age / x.std()})


# --- equations ------------------------------------------------------------------------------------


def test_an_interaction_moves_as_two_lines_differ_from_one() -> None:
    table = _people(4, "z", "x")
    a, z = table["a"], 40 + 10 * table["z"]
    x = 0.1 * z - a + 0.08 * a * (z - 40) + table["x"]
    diagnosis = _check(Worldview({"x": Linear("a", "z")}), {"a": a, "z": z, "x": x})
    movement = _of(diagnosis, "a", "x", "z", aspect="interaction")
    # one line for each group, fitted apart
    (low0, slope0), (low1, slope1) = (_fitted(x[a == each], z[a == each]) for each in (0, 1))
    apart = (low0 + slope0 * z - low1 - slope1 * z)[a == 1]
    _assert_moved(movement, np.abs(apart + _fitted(x, a, z)[1]) / x.std(), "x")
    assert movement.repair == "an effect of a that changes with z"


def test_a_bend_in_a_cause_of_few_values_moves_as_a_mean_for_each_value() -> None:
    table = _people(5, "x")
    a = table["a"]
    z = np.clip(np.random.default_rng(50).poisson(2 + a), 0, 5).astype(float)
    x = z**2 - a + table["x"]
    z_cf = z - _fitted(z, a)[1] * a
    worldview = Worldview({"z": Linear("a"), "x": Linear("a", "z")})
    diagnosis = _check(worldview, {"a": a, "z": z, "x": x})
    movement = _of(diagnosis, "x", "z", aspect="level")
    values = np.unique(z)
    coefficients = _fitted(x, a, *(z == value for value in values[1:]))
    means = np.array([0.0, *coefficients[2:]])

    def bent(at: Floats) -> Any:
        """Draw lines between the values; beyond them the outer ones go on."""
        inside = np.interp(at, values, means)
        below = (means[1] - means[0]) * np.minimum(at - values[0], 0)
        return inside + below + (means[-1] - means[-2]) * np.maximum(at - values[-1], 0)

    _, by_a, by_z = _fitted(x, a, z)
    straight = -by_a + by_z * (z_cf - z)
    curved = -coefficients[1] + bent(z_cf) - bent(z)
    _assert_moved(movement, np.abs(curved - straight)[a == 1] / x.std(), "x")


def test_wider_noise_moves_those_far_from_the_mean() -> None:
    table = _people(6, "x", "z", "u")
    a, z = table["a"], table["z"]
    x = -a + table["x"] * np.where(a == 1, 2.0, 1.0)
    named = {"a": np.where(a == 1, "f", "m"), "x": x}
    diagnosis = Worldview({"x": Linear("a")}).check(named, protected="a", do={"a": "m"})
    movement = _of(diagnosis, "a", "x", aspect="spread")
    women, men = x[a == 1], x[a == 0]
    widths = [np.mean(np.abs(one - np.median(one))) for one in (men, women)]
    stretched = men.mean() + (women - women.mean()) * widths[0] / widths[1]
    straight = women - women.mean() + men.mean()
    _assert_moved(movement, np.abs(stretched - straight) / x.std(), "x")
    assert movement.severity == "large"
    # noise that follows a cause which stays moves nothing
    table = {"a": a, "z": z, "x": a + z + table["u"] * np.exp(0.3 * z)}
    movement = _of(_check(Worldview({"x": Linear("a", "z")}), table), "x", "z", aspect="spread")
    assert movement.severity == "none"


def test_categories_are_drawn_since_the_likeliest_hides_what_moves() -> None:
    """Of the women who are not b, (0.45 - 0.15) / 0.85 would be: 30 % of all women.

    Nobody would change by the likeliest category, and every b stays b.
    """
    table = _people(8, "z")
    often = np.random.default_rng(80).random(ROWS) < np.where(table["a"] == 1, 0.15, 0.45)
    table["job"] = np.where(often, "b", "a")
    diagnosis = _check(Worldview({"job": Categorical("z")}), table)
    movement = _of(diagnosis, "a", "job", aspect="level")
    assert (movement.median, movement.largest) == (None, None)
    assert movement.share == pytest.approx(0.30, abs=0.05)
    assert "counterfactuals of job change their category in" in str(diagnosis)


def test_a_count_is_compared_with_a_line() -> None:
    a = _people(9)["a"]
    mean = np.where(a == 1, 2.0, 4.0)
    count = np.random.default_rng(90).negative_binomial(1, 1 / (1 + mean)).astype(float)
    worldview, table = Worldview({"n": Count("a")}), {"a": a, "n": count}
    movement = _of(_check(worldview, table), "n", aspect="distribution")
    assert (movement.repair, movement.attribute) == ("a linear equation instead", "n")
    # the line moves all women by the difference of means, in whole numbers
    women = a == 1
    straight = np.round(count[women] + count[~women].mean() - count[women].mean())
    draws = worldview.counterfactuals(
        table, do={"a": 0}, draws=40, rng=np.random.default_rng(1)
    ).draws
    distances = [np.abs(one.numbers("n")[women] - straight) / count.std() for one in draws]
    assert movement.share == pytest.approx(np.mean(np.array(distances) >= 0.1), abs=0.05)
    assert movement.median == pytest.approx(np.mean(np.median(distances, axis=1)), abs=0.1)


# --- what is not measured -------------------------------------------------------------------------


def test_without_an_intervention_nothing_is_measured() -> None:
    diagnosis = FLAT.check(_chain(), protected="a")
    (problem,) = diagnosis.problems
    assert problem.movement is None
    assert next(iter(diagnosis.sections())).startswith("Problems (give an intervention")
    assert diagnosis.next_step.startswith("Next: check again with an intervention")


class _Stubborn:
    def fit(self, features: Any, target: Any) -> None:
        if features.shape[1] > 2:
            raise ValueError("too many")

    def predict(self, features: Any) -> Any:
        return 0.0 * features[:, 0]


@pytest.mark.parametrize(
    ("equation", "note"),
    [
        (Stated("0.8 * x"), "its equation cannot be given further causes"),
        (Additive("x", "z", regressor=_Stubborn()), "the equation cannot be fitted in that way"),
    ],
)
def test_what_cannot_be_fitted_is_said_without_made_up_names(equation: Any, note: str) -> None:
    table = {**_chain(), "z": np.random.default_rng(1).normal(size=ROWS)}
    diagnosis = _check(Worldview({"x": Linear("a"), "y": equation}), table)
    movement = _of(diagnosis, "a", "y", aspect="level")
    assert (movement.severity, movement.note) == ("unknown", note)
    heading = "Problems of which it is not known whether they move counterfactuals"
    assert any(f"was not measured: {note}" in one for one in diagnosis.sections()[heading])
    assert "\0" not in str(diagnosis)


@pytest.mark.filterwarnings("ignore::mutandis.errors.MutandisWarning")
def test_what_a_hidden_cause_drives_is_not_fitted_again() -> None:
    table = _people(10, "x", "y", "z", "talent")
    hidden = table["a"] + table.pop("talent")
    table["x"] += hidden
    table["y"] += hidden
    table["z"] += 2 * table["x"] + 2 * table["y"]
    latent = Latent("talent", {"x": Linear("a"), "y": Linear("a")})
    diagnosis = _check(Worldview({"z": Linear("a", "x")}, latents=[latent]), table)
    # y may act on z; z on y would need talent to be fitted again
    movement = _of(diagnosis, "y", "z")
    assert (movement.repair, movement.attribute) == ("an arrow from y to z", "z")
    missing = Latent("talent", {"x": Linear("a"), "y": Linear("x")})
    movement = _of(_check(Worldview({}, latents=[missing]), table), "a", "y", aspect="level")
    assert movement.note == "a hidden cause drives it, which would have to be fitted again"


def test_movements_do_not_depend_on_the_order_of_rows() -> None:
    rng, people = np.random.default_rng(11), _people(11, "z", "u")
    a, z, u = people.values()
    levels = ["low", "mid", "high"]
    table = pd.DataFrame(
        {
            "a": a,
            "z": z,
            "job": rng.choice(["a", "b"], ROWS),
            "n": rng.poisson(2 + a) * 2,
            "level": np.array(levels)[np.clip((a + z + u).astype(int) + 1, 0, 2)],
        }
    )
    equations = {
        "job": Categorical("z"),
        "n": Count("a", "job"),
        "level": Ordinal("z", levels=levels),
    }
    diagnosis = _check(Worldview(equations), table)
    assert sum(problem.movement is not None for problem in diagnosis.problems) >= 2
    shuffled = table.sample(frac=1.0, random_state=1).reset_index(drop=True)
    assert _check(Worldview(equations), shuffled) == diagnosis


def test_problems_come_under_headings_and_good_news_apart() -> None:
    def problem(child: str, movement: Movement, p: float = 0.001) -> Finding:
        about: dict[str, Any] = {"child": child, "on": "a", "aspect": "level", "test": "t"}
        return Finding(**about, p_value=p, p_adjusted=p, effect=0.1, movement=movement)

    def moved(share: float, median: float, largest: float) -> Movement:
        size = {"share": share, "median": median, "largest": largest}
        return Movement(form=f"r{share}", attribute="v", **size)  # type: ignore[arg-type]

    severities = [
        (moved(0.1, 0.0, 1.0), "large"),
        (moved(0.099, 0.05, 1.0), "small"),
        (Movement(form="r"), "none"),
        (Movement(note="why"), "unknown"),
    ]
    assert all(movement.severity == severity for movement, severity in severities)
    findings = (
        problem("good", Movement(), p=0.5),
        problem("none", Movement(form="r")),
        problem("little", moved(0.0, 0.001, 0.3)),
        problem("far", moved(0.5, 0.2, 0.5)),
        problem("farther", moved(0.9, 0.2, 0.5)),
    )
    diagnosis = Diagnosis(rows=100, alpha=0.01, findings=findings, changed=10, protected=("a",))
    children = [sentence.split(":")[0] for sentence in diagnosis.sentences()[1:5]]
    assert children == ["farther", "far", "little", "none"]
    assert list(diagnosis.sections())[:3] == [
        "Problems that move counterfactuals",
        "Problems that move counterfactuals little",
        "Problems that move no counterfactual",
    ]
    assert (
        "With r0.0, counterfactuals of v move by less than 0.01 standard deviations in the median, "
        "by 0.30 at most."
    ) in str(diagnosis)
    assert "(r0.9), and check again" in diagnosis.next_step
    assert "A hidden cause of both a and an attribute" in str(diagnosis)
