"""How far counterfactuals move where a problem is mended, beside computations of another kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.rooms.latent import Latent
from mutandis.scm import Additive, Categorical, Count, Diagnosis, Linear, Ordinal, Stated, Worldview
from mutandis.scm.diagnosis import Finding, Movement
from mutandis.scm.movement import MovementMeter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROWS = 1500


def _women(rng: np.random.Generator) -> NDArray[np.int64]:
    return (rng.random(ROWS) < 0.4).astype(np.int64)


def _normal(rng: np.random.Generator) -> Floats:
    return rng.normal(size=ROWS)


def _check(worldview: Worldview, table: Any, **options: Any) -> Diagnosis:
    return worldview.check(table, protected="a", do={"a": 0}, **options)


def _about(check: Finding) -> tuple[str | None, set[str | None]]:
    if check.aspect == "independence":
        return None, {check.on, check.child}
    return check.aspect, {check.child, check.on, *check.further} - {None}


def _of(diagnosis: Diagnosis, *pair: str, aspect: str | None = None) -> Movement:
    """Give the movement of the one problem about these columns."""
    found = [check for check in diagnosis.problems if _about(check) == (aspect, set(pair))]
    (problem,) = found
    assert problem.movement is not None
    return problem.movement


def _fitted(target: Floats, *columns: Any) -> tuple[Floats, Floats]:
    """Least squares by NumPy: coefficients, the intercept first, and residuals."""
    design = np.column_stack([np.ones(len(target)), *columns])
    coefficients = np.linalg.lstsq(design, target, rcond=None)[0]
    return coefficients, target - design @ coefficients


def _assert_moved(movement: Movement, distances: Floats, attribute: str) -> None:
    assert movement.note == ""
    assert movement.attribute == attribute
    assert movement.median == pytest.approx(float(np.median(distances)), abs=1e-9)
    assert movement.largest == pytest.approx(float(distances.max()), abs=1e-9)
    assert movement.share == pytest.approx(float(np.mean(distances >= 0.1)), abs=1e-12)


# --- arrows ---------------------------------------------------------------------------------------


def _chain(seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a = _women(rng)
    x = -1.0 * a + _normal(rng)
    y = 0.8 * x - 0.5 * a + _normal(rng)
    return {"a": a, "x": x, "y": y}


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
        FLAT,
        Worldview({"x": Linear("a"), "y": Linear("a", "x")}),
        Worldview({"y": Linear("a"), "x": Linear("a", "y")}),
    ):
        moved = equations.counterfactuals(table, do={"a": 0}).population.numbers("y")
        assert moved[women] - y[women] == pytest.approx(np.full(women.sum(), shift), abs=1e-9)
    (sentence,) = diagnosis.sections()["Problems that move no counterfactual"]
    assert sentence.endswith(
        "With an arrow between them, in either direction, no counterfactual moves."
    )
    assert diagnosis.next_step.startswith("Next: ask experts whether anything hidden")


def _recorded(make: Any, children: list[str]) -> Any:
    def arrow(self: Any, cause: str, child: str) -> Any:
        if {cause, child} == {"x", "y"}:
            children.append(child)
        return make(self, cause, child)

    return arrow


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("names", [False, True])
def test_what_is_known_without_a_fit_is_what_a_fit_finds(
    known: bool, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(12)
    table = _chain(12)
    z = rng.integers(0, 3, ROWS) + table["a"]
    table["z"] = np.array(list("pqrs"))[z] if names else z.astype(float)
    table["x"] += z
    table["y"] += 2 * z
    table["w"] = table["y"] + _normal(rng)
    worldview = Worldview({"x": Linear("a", "z"), "y": Linear("z", "a"), "w": Linear("y")})
    tried: list[str] = []
    monkeypatch.setattr(MovementMeter, "_arrow", _recorded(MovementMeter._arrow, tried))
    if not known:
        monkeypatch.setattr(MovementMeter, "_is_known_to_move_nothing", lambda *_: False)
    movement = _of(_check(worldview, table), "x", "y")
    assert movement.repair == "an arrow between them, in either direction"
    assert movement.severity == "none"
    assert ({"x", "y"} <= set(tried)) == (not known)
    bounded = Worldview({**worldview.equations, "y": Linear("z", "a", bounds=(0, None))})
    assert _of(_check(bounded, table), "x", "y").severity in {"small", "large"}


def test_a_missing_arrow_from_a_moves_by_the_difference_of_two_fits() -> None:
    table = _chain()
    diagnosis = _check(Worldview({"x": Linear("a"), "y": Linear("x")}), table)
    a, x, y = (table[name] for name in "axy")
    shift_x = -_fitted(x, a)[0][1]
    without = _fitted(y, x)[0][1] * shift_x
    _, by_a, by_x = _fitted(y, a, x)[0]
    distances = np.full((a == 1).sum(), abs(by_x * shift_x - by_a - without) / y.std())
    for movement in (_of(diagnosis, "a", "y"), _of(diagnosis, "a", "y", aspect="level")):
        assert movement.repair == "an arrow from a to y"
        assert movement.severity == "large"
        _assert_moved(movement, distances, "y")


def test_behind_a_resolving_attribute_an_arrow_does_move() -> None:
    table = _chain()
    resolving = Worldview({"x": Linear("a"), "y": Linear("a")}, resolving=("x",))
    movement = _of(_check(resolving, table), "x", "y")
    a, x, y = (table[name] for name in "axy")
    # with x held, only the direct part of the effect is left
    distances = np.full((a == 1).sum(), abs(_fitted(y, a)[0][1] - _fitted(y, a, x)[0][1]) / y.std())
    assert movement.repair == "an arrow from x to y"
    _assert_moved(movement, distances, "y")


def test_the_effects_of_what_is_mended_move_along() -> None:
    rng = np.random.default_rng(2)
    table = _chain(2)
    table["x"] = table["x"] + 3.0 * table["a"]
    table["y"] = 5.0 * table["x"] + _normal(rng)
    # of y, 5 is missed where x does not follow from a
    worldview = Worldview({"x": Linear("z"), "y": Linear("x")})
    table["z"] = _normal(rng)
    movement = _of(_check(worldview, table), "a", "x", aspect="level")
    a, x, y, z = (table[name] for name in "axyz")
    shift = _fitted(x, z, a)[0][2]
    distances = {
        "x": abs(shift) / x.std(),
        "y": abs(shift * _fitted(y, x)[0][1]) / y.std(),
    }
    most = max(distances, key=lambda name: distances[name])
    _assert_moved(movement, np.full((a == 1).sum(), distances[most]), most)


def test_roots_move_only_if_a_acts_on_them() -> None:
    rng = np.random.default_rng(3)
    a: Any = _women(rng)
    age: Any = 0.7 * a + _normal(rng)
    wealth = age + _normal(rng)
    table = {"a": a, "age": age, "wealth": wealth, "x": a + age + wealth + _normal(rng)}
    diagnosis = _check(Worldview({"x": Linear("a", "age", "wealth")}), table)
    among = _of(diagnosis, "age", "wealth")
    assert (among.severity, among.attribute) == ("none", None)
    movement = _of(diagnosis, "a", "age")
    assert movement.repair == "an arrow from a to age"
    shift = _fitted(age, a)[0][1]
    by_age = _fitted(table["x"], a, age, wealth)[0][2]
    distances = {"age": abs(shift) / age.std(), "x": abs(shift * by_age) / table["x"].std()}
    most = max(distances, key=lambda name: distances[name])
    _assert_moved(movement, np.full((a == 1).sum(), distances[most]), most)


# --- equations ------------------------------------------------------------------------------------


def test_an_interaction_moves_as_two_lines_differ_from_one() -> None:
    rng = np.random.default_rng(4)
    a, z = _women(rng), 40 + 10 * _normal(rng)
    x = 0.1 * z - a + 0.08 * a * (z - 40) + _normal(rng)
    diagnosis = _check(Worldview({"x": Linear("a", "z")}), {"a": a, "z": z, "x": x})
    movement = _of(diagnosis, "a", "x", "z", aspect="interaction")
    women = a == 1
    # one line for each group, fitted apart
    (low0, slope0), (low1, slope1) = (_fitted(x[a == each], z[a == each])[0] for each in (0, 1))
    apart = (low0 + slope0 * z - low1 - slope1 * z)[women]
    together = -_fitted(x, a, z)[0][1]
    _assert_moved(movement, np.abs(apart - together) / x.std(), "x")
    assert movement.repair == "an effect of a that changes with z"


def test_a_bend_in_a_cause_of_few_values_moves_as_a_mean_for_each_value() -> None:
    rng = np.random.default_rng(5)
    a = _women(rng)
    z = np.clip(rng.poisson(2 + a), 0, 5).astype(float)
    x = z**2 - a + _normal(rng)
    worldview = Worldview({"z": Linear("a"), "x": Linear("a", "z")})
    z_cf = z - _fitted(z, a)[0][1] * a
    diagnosis = _check(worldview, {"a": a, "z": z, "x": x})
    movement = _of(diagnosis, "x", "z", aspect="level")
    values = np.unique(z)
    coefficients = _fitted(x, a, *(z == value for value in values[1:]))[0]
    means = np.array([0.0, *coefficients[2:]])
    # between values a line; beyond them the last one goes on
    slope_below = means[1] - means[0]

    def bent(at: Floats) -> Any:
        inside = np.interp(at, values, means)
        inside = np.where(at < values[0], slope_below * (at - values[0]), inside)
        beyond = means[-1] + (means[-1] - means[-2]) * (at - values[-1])
        return np.where(at > values[-1], beyond, inside)

    women = a == 1
    _, by_a, by_z = _fitted(x, a, z)[0]
    straight = -by_a + by_z * (z_cf - z)
    curved = -coefficients[1] + bent(z_cf) - bent(z)
    _assert_moved(movement, np.abs(curved - straight)[women] / x.std(), "x")


def test_wider_noise_moves_those_far_from_the_mean() -> None:
    rng = np.random.default_rng(6)
    a = _women(rng)
    x = -a + _normal(rng) * np.where(a == 1, 2.0, 1.0)
    table = {"a": np.where(a == 1, "f", "m"), "x": x}
    diagnosis = Worldview({"x": Linear("a")}).check(table, protected="a", do={"a": "m"})
    movement = _of(diagnosis, "a", "x", aspect="spread")
    women, men = x[a == 1], x[a == 0]
    widths = [np.mean(np.abs(one - np.median(one))) for one in (men, women)]
    stretched = men.mean() + (women - women.mean()) * widths[0] / widths[1]
    straight = women - women.mean() + men.mean()
    _assert_moved(movement, np.abs(stretched - straight) / x.std(), "x")
    assert movement.severity == "large"


def test_noise_that_follows_a_cause_which_stays_moves_nothing() -> None:
    rng = np.random.default_rng(7)
    a, z = _women(rng), _normal(rng)
    table = {"a": a, "z": z, "x": a + z + _normal(rng) * np.exp(0.3 * z)}
    movement = _of(_check(Worldview({"x": Linear("a", "z")}), table), "x", "z", aspect="spread")
    assert movement.severity == "none"


def test_categories_are_drawn_since_the_likeliest_hides_what_moves() -> None:
    rng = np.random.default_rng(8)
    a, z = _women(rng), _normal(rng)
    often = rng.random(ROWS) < np.where(a == 1, 0.15, 0.45)
    table = {"a": a, "z": z, "job": np.where(often, "b", "a")}
    movement = _of(_check(Worldview({"job": Categorical("z")}), table), "a", "job", aspect="level")
    assert (movement.median, movement.largest) == (None, None)
    # of the women who are not b, (0.45 - 0.15) / 0.85 would be: 30 % of all women; nobody would
    # change by the likeliest category, and every b stays b
    assert movement.share == pytest.approx(0.30, abs=0.05)
    assert "counterfactuals of job change their category in" in str(
        _check(Worldview({"job": Categorical("z")}), table)
    )


def test_a_count_is_compared_with_a_line() -> None:
    rng = np.random.default_rng(9)
    a = _women(rng)
    count = rng.negative_binomial(1, 1 / (1 + np.where(a == 1, 2.0, 4.0))).astype(float)
    worldview = Worldview({"n": Count("a")})
    movement = _of(_check(worldview, {"a": a, "n": count}), "n", aspect="distribution")
    assert (movement.repair, movement.attribute) == ("a linear equation instead", "n")
    # the line moves all women by the difference of means, in whole numbers
    women = a == 1
    straight = np.round(count[women] + count[~women].mean() - count[women].mean())
    drawn = worldview.counterfactuals(
        {"a": a, "n": count}, do={"a": 0}, draws=40, rng=np.random.default_rng(1)
    ).draws
    distances = [np.abs(one.numbers("n")[women] - straight) / count.std() for one in drawn]
    assert movement.share == pytest.approx(np.mean(np.array(distances) >= 0.1), abs=0.05)
    assert movement.median == pytest.approx(np.mean(np.median(distances, axis=1)), abs=0.1)


# --- what is not measured -------------------------------------------------------------------------


def test_without_an_intervention_nothing_is_measured() -> None:
    diagnosis = FLAT.check(_chain(), protected="a")
    (problem,) = diagnosis.problems
    assert problem.movement is None
    (heading, *_), next_step = diagnosis.sections(), diagnosis.next_step
    assert heading.startswith("Problems (give an intervention")
    assert next_step.startswith("Next: check again with an intervention")


def test_a_stated_equation_takes_no_further_cause() -> None:
    worldview = Worldview({"x": Linear("a"), "y": Stated("0.8 * x")})
    diagnosis = _check(worldview, _chain())
    movement = _of(diagnosis, "a", "y", aspect="level")
    assert movement.severity == "unknown"
    assert movement.note == "its equation cannot be given further causes"
    heading = "Problems of which it is not known whether they move counterfactuals"
    assert all("was not measured: its equation" in one for one in diagnosis.sections()[heading])
    assert diagnosis.next_step.startswith("Next: ask experts about the problems")


@pytest.mark.filterwarnings("ignore::mutandis.errors.MutandisWarning")
def test_what_a_hidden_cause_drives_is_not_fitted_again() -> None:
    rng = np.random.default_rng(10)
    a, talent = _women(rng), _normal(rng)
    table: dict[str, Any] = {"a": a, "x": a + talent + _normal(rng), "y": a + talent + _normal(rng)}
    latent = Latent("talent", {"x": Linear("a"), "y": Linear("a")})
    table["z"] = 2 * table["x"] + 2 * table["y"] + _normal(rng)
    diagnosis = _check(Worldview({"z": Linear("a", "x")}, latents=[latent]), table)
    # y may act on z; z on y would need talent to be fitted again
    movement = _of(diagnosis, "y", "z")
    assert (movement.repair, movement.attribute) == ("an arrow from y to z", "z")
    missing = Latent("talent", {"x": Linear("a"), "y": Linear("x")})
    movement = _of(_check(Worldview({}, latents=[missing]), table), "a", "y", aspect="level")
    assert movement.note == "a hidden cause drives it, which would have to be fitted again"


def test_what_cannot_be_fitted_is_said_without_made_up_names() -> None:
    class Stubborn:
        def fit(self, features: Any, target: Any) -> None:
            if features.shape[1] > 2:
                raise ValueError("too many")

        def predict(self, features: Any) -> Any:
            return 0.0 * features[:, 0]

    table = _chain()
    worldview = Worldview({"x": Linear("a"), "y": Additive("x", "z", regressor=Stubborn())})
    table["z"] = np.random.default_rng(1).normal(size=ROWS)
    diagnosis = _check(worldview, table)
    movement = _of(diagnosis, "a", "y", aspect="level")
    assert movement.note == "the equation cannot be fitted in that way"
    assert "\0" not in str(diagnosis)


def test_movements_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(11)
    a, z = _women(rng), _normal(rng)
    levels = np.array(["low", "mid", "high"])
    table = pd.DataFrame(
        {
            "a": a,
            "z": z,
            "job": rng.choice(["a", "b"], ROWS),
            "n": rng.poisson(2 + a) * 2,
            "level": levels[np.clip((a + z + _normal(rng)).astype(int) + 1, 0, 2)],
        }
    )
    worldview = Worldview(
        {
            "job": Categorical("z"),
            "n": Count("a", "job"),
            "level": Ordinal("z", levels=levels.tolist()),
        }
    )
    diagnosis = _check(worldview, table)
    assert sum(problem.movement is not None for problem in diagnosis.problems) >= 2
    shuffled = table.sample(frac=1.0, random_state=1).reset_index(drop=True)
    assert _check(worldview, shuffled) == diagnosis


# --- sentences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("movement", "severity"),
    [
        (Movement(form="r", attribute="x", share=0.1, median=0.0, largest=1.0), "large"),
        (Movement(form="r", attribute="x", share=0.099, median=0.05, largest=1.0), "small"),
        (Movement(form="r"), "none"),
        (Movement(note="why"), "unknown"),
    ],
)
def test_severities(movement: Movement, severity: str) -> None:
    assert movement.severity == severity


def test_problems_come_under_headings_and_good_news_apart() -> None:
    def problem(child: str, movement: Movement, p: float = 0.001) -> Finding:
        return Finding(
            child=child,
            on="a",
            aspect="level",
            test="t",
            statistic=9.0,
            p_value=p,
            p_adjusted=p,
            effect=0.1,
            effect_name="share",
            movement=movement,
        )

    little = Movement(form="r", attribute="u", share=0.0, median=0.001, largest=0.3)
    far, farther = (
        Movement(form=f"r{share}", attribute="v", share=share, median=0.2, largest=0.5)
        for share in (0.5, 0.9)
    )
    diagnosis = Diagnosis(
        rows=100,
        alpha=0.01,
        findings=(
            problem("good", Movement(), p=0.5),
            problem("none", Movement(form="r")),
            problem("little", little),
            problem("far", far),
            problem("farther", farther),
        ),
        changed=10,
        protected=("a",),
    )
    assert [sentence.split(":")[0] for sentence in diagnosis.sentences()[1:5]] == [
        "farther",
        "far",
        "little",
        "none",
    ]
    headings = list(diagnosis.sections())
    assert headings[:3] == [
        "Problems that move counterfactuals",
        "Problems that move counterfactuals little",
        "Problems that move no counterfactual",
    ]
    assert (
        "With r, counterfactuals of u move by less than 0.01 standard deviations in the median, by "
        "0.30 at most."
    ) in str(diagnosis)
    assert "(r0.9), and check again" in diagnosis.next_step
    assert "A hidden cause of both a and an attribute" in str(diagnosis)
