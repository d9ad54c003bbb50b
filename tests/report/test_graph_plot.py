"""Drawings of worldviews: complete, readable, harmless, and always the same."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.errors import CycleError, PlanError
from mutandis.report.chart import printable
from mutandis.report.graph_plot import draw_worldview
from mutandis.rooms.latent import Latent
from mutandis.scm import Count, Linear, Worldview

SVG = "{http://www.w3.org/2000/svg}"
SCRIPT = "</text><script>alert('x')</script>"

LOAN = Worldview({"Salary": Linear("Gender"), "Balance": Linear("Salary", "Gender")})
LAW = Worldview(
    {},
    latents=[Latent("Knowledge", {"UGPA": Linear("Sex", "Race"), "LSAT": Count("Sex", "Race")})],
)
TWELVE = Worldview(
    {
        "education": Linear("gender", "parental income"),
        "job": Linear("gender", "education"),
        "seniority": Linear("age", "job"),
        "salary": Linear("gender", "job", "seniority", "age"),
        "bonus": Linear("salary"),
        "savings": Linear("salary", "age"),
        "debt": Linear("salary", "parental income"),
        "credit score": Linear("debt", "savings", "age"),
        "loan amount": Linear("salary", "debt"),
    },
    resolving=("job",),
)
CHAIN = Worldview({f"step {n + 1}": Linear(f"step {n}") for n in range(15)})
HOSTILE = Worldview(
    {
        SCRIPT: Linear("a & b", "\"'\x00\u202e\ud800"),
        "x" * 5000: Linear(SCRIPT),
        "収入（年額）": Linear("a & b"),
        "": Linear("a & b"),
        "line\nbreak": Linear(""),
        "&lt;b&gt;": Linear("a & b"),
        "]]><!--": Linear("a & b"),
    },
    resolving=("収入（年額）",),
)


class Drawn:
    """What can be read off a drawing."""

    def __init__(self, worldview: Worldview, **options: Any) -> None:
        self.text = draw_worldview(worldview, **options).svg
        self.root = ET.fromstring(self.text)  # noqa: S314 - our own text
        groups = {"node": {}, "arrow": {}, "legend": {}}  # type: ignore[var-annotated]
        for group in self.root.iter(f"{SVG}g"):
            kind, _, which = group.get("class", "").partition(" ")
            title = group.findtext(f"{SVG}title", "")
            if kind in groups:
                assert title not in groups[kind]
                groups[kind][title] = (which, group)
        self.nodes: dict[str, tuple[str, ET.Element]] = groups["node"]
        self.arrows: dict[str, tuple[str, ET.Element]] = groups["arrow"]
        self.legend = [each.text for _, group in groups["legend"].values() for each in group[:]]
        self.legend = [text for text in self.legend if text]

    def box(self, name: str) -> tuple[float, float, float, float]:
        """Return the left, top, right and bottom of a node."""
        found = self.nodes[name][1].find(f"{SVG}rect")
        assert found is not None
        left, top, width, height = (
            float(found.attrib[key]) for key in ("x", "y", "width", "height")
        )
        return left, top, left + width, top + height


def path_of(group: ET.Element) -> list[tuple[float, float]]:
    """Follow an arrow's line: points along it, close together."""
    path = group.find(f"{SVG}path")
    assert path is not None
    at, points = (0.0, 0.0), []
    for command, numbers in re.findall(r"([MLC])([^MLC]+)", path.attrib["d"]):
        found = [float(number) for number in re.split(r"[ ,]+", numbers.strip())]
        stops = list(zip(found[::2], found[1::2], strict=True))
        if command == "M":
            points.append(stops[0])
        else:
            ends = [at, *stops]
            points += [_bezier(ends, step / 40) for step in range(1, 41)]
        at = stops[-1]
    return points


def _bezier(points: list[tuple[float, float]], share: float) -> tuple[float, float]:
    """De Casteljau's way: halve the sides of the polygon until a point is left."""
    while len(points) > 1:
        points = [
            ((1 - share) * x0 + share * x1, (1 - share) * y0 + share * y1)
            for (x0, y0), (x1, y1) in itertools.pairwise(points)
        ]
    return points[0]


def check_geometry(drawn: Drawn) -> None:
    """Nodes lie apart and within the picture, arrows touch their two nodes and pass the others."""
    width, height = (float(drawn.root.attrib[key]) for key in ("width", "height"))
    shift = next(g for g in drawn.root.iter(f"{SVG}g") if "translate" in g.get("transform", ""))
    inset = float(re.findall(r"translate\(([-0-9.]+)", shift.attrib["transform"])[0])
    boxes = {name: drawn.box(name) for name in drawn.nodes}
    for left, top, right, bottom in boxes.values():
        assert left + inset >= 0
        assert top >= 0
        assert right + inset <= width
        assert bottom <= height
    for one, two in itertools.combinations(boxes.values(), 2):
        apart_x = max(one[0], two[0]) - min(one[2], two[2])
        apart_y = max(one[1], two[1]) - min(one[3], two[3])
        assert max(apart_x, apart_y) >= 15
    for title, (_, group) in drawn.arrows.items():
        cause, effect = title.split(" → ")
        points = path_of(group)
        assert _distance(points[0], boxes[cause]) <= 0.2
        assert _distance(points[-1], boxes[effect]) <= 9.2
        for name, box in boxes.items():
            if name not in {cause, effect}:
                assert min(_distance(point, box) for point in points) > 4


def _distance(point: tuple[float, float], box: tuple[float, float, float, float]) -> float:
    across = max(box[0] - point[0], 0.0, point[0] - box[2])
    along = max(box[1] - point[1], 0.0, point[1] - box[3])
    return max(across, along)


def test_every_attribute_and_every_arrow_is_there() -> None:
    inputs = ["salary", "credit score"]
    drawn = Drawn(TWELVE, protected=["gender"], outcome="approved", decision_inputs=inputs)
    assert set(drawn.nodes) == {*TWELVE.names, "approved"}
    expected = {f"{a} → {b}" for b, causes in TWELVE.graph.parents.items() for a in causes}
    assert set(drawn.arrows) == expected | {f"{each} → approved" for each in inputs}
    check_geometry(drawn)


def test_kinds_can_be_told_apart() -> None:
    inputs = ["salary", "postcode"]
    drawn = Drawn(TWELVE, protected="gender", outcome="approved", decision_inputs=inputs)
    kinds = {name: kind for name, (kind, _) in drawn.nodes.items()}
    assert kinds["gender"] == "protected"
    assert kinds["job"] == "resolving"
    assert kinds["approved"] == "outcome"
    assert kinds["age"] == kinds["salary"] == kinds["postcode"] == "attribute"
    for name, boxes in (("gender", 2), ("age", 1), ("job", 1)):
        assert len(drawn.nodes[name][1].findall(f"{SVG}rect")) == boxes
    # arrows of different kinds do not run together
    decided, caused = (
        path_of(drawn.arrows[f"salary → {name}"][1]) for name in ("approved", "debt")
    )
    assert min(abs(a - c) + abs(b - d) for a, b in decided for c, d in caused) > 5


def test_hidden_causes_are_dashed_and_right_before_what_they_drive() -> None:
    drawn = Drawn(LAW, protected=["Sex", "Race"])
    kind, group = drawn.nodes["Knowledge"]
    assert kind == "latent"
    assert group[1].get("stroke-dasharray")
    hidden = {title for title, (kind, _) in drawn.arrows.items() if kind == "hidden"}
    assert hidden == {"Knowledge → UGPA", "Knowledge → LSAT"}
    assert len(drawn.arrows) == 6
    check_geometry(drawn)
    late = {"d": Linear("c"), "e": Linear("c")}
    worldview = Worldview({"b": Linear("a"), "c": Linear("b")}, latents=[Latent("U", late)])
    drawn = Drawn(worldview)
    assert drawn.box("b")[2] < drawn.box("U")[0] < drawn.box("U")[2] < drawn.box("d")[0]
    check_geometry(drawn)


def test_the_legend_explains_what_occurs_and_nothing_else() -> None:
    assert Drawn(LOAN).legend == ["attribute", "is a cause of"]
    hidden = ["hidden common cause", "is a cause of", "drives, unobserved"]
    assert Drawn(LAW, protected=["Sex"]).legend == ["protected attribute", "attribute", *hidden]
    drawn = Drawn(TWELVE, protected=["gender"], outcome="y", decision_inputs=["salary"])
    decided = ["decision", "is a cause of", "is used to decide"]
    assert drawn.legend[2:] == ["resolving: kept as it is", *decided]


def test_hostile_names_do_no_harm() -> None:
    drawn = Drawn(HOSTILE, protected=["a & b"], outcome="<Ŷ>", decision_inputs=[SCRIPT])
    tags = {element.tag.removeprefix(SVG) for element in drawn.root.iter()}
    assert tags == {"svg", "title", "desc", "g", "rect", "path", "text"}
    attributes = {key for element in drawn.root.iter() for key in element.attrib}
    assert not {key for key in attributes if key.startswith("on") or "href" in key}
    assert "url(" not in drawn.text
    assert "javascript" not in drawn.text
    assert set(drawn.nodes) == {*map(printable, HOSTILE.names), "<Ŷ>"}
    assert not set(drawn.text) & set("\x00\u202e\ud800")
    check_geometry(drawn)


def test_a_long_name_is_shortened_but_told_in_full() -> None:
    name = "a" * 100 + "b" * 100
    drawn = Drawn(Worldview({name: Linear("x")}))
    label = drawn.nodes[name][1].findtext(f"{SVG}text", "")
    assert re.fullmatch("aaa+…b+bbb", label)
    left, _, right, _ = drawn.box(name)
    assert right - left < 240


def test_it_can_be_read_aloud() -> None:
    root = Drawn(LAW, protected=["Sex", "Race"], outcome="Admitted").root
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Worldview"
    assert root.findtext(f"{SVG}desc") == (
        "Protected attribute: Sex, Race. Hidden common cause: Knowledge. Decision: Admitted. "
        "Knowledge → UGPA, LSAT. Sex → UGPA, LSAT. Race → UGPA, LSAT."
    )


def test_the_same_worldview_gives_the_same_bytes_as_in_the_documentation() -> None:
    again = Worldview(dict(TWELVE.equations), resolving=("job",))
    assert Drawn(TWELVE, protected=["gender"]).text == again.draw(protected=("gender",)).svg
    stored = Path(__file__).parents[2] / "docs" / "law-school-worldview.svg"
    driven = {"UGPA": Linear("race", "sex"), "LSAT": Linear("race", "sex")}
    worldview = Worldview({}, latents=[Latent("knowledge", driven)])
    inputs = ["UGPA", "LSAT"]
    drawn = Drawn(worldview, protected=["race", "sex"], outcome="admitted", decision_inputs=inputs)
    assert stored.read_text(encoding="utf-8") == drawn.text


def test_a_long_chain_runs_downwards_and_a_short_one_to_the_right() -> None:
    long, short = Drawn(CHAIN), Drawn(LOAN)
    assert long.box("step 0")[3] < long.box("step 1")[1]
    assert float(long.root.attrib["width"]) <= 1000
    assert short.box("Gender")[2] < short.box("Salary")[0]
    check_geometry(long)
    check_geometry(short)


def test_outcomes_and_attributes_that_the_worldview_does_not_mention() -> None:
    drawn = Drawn(Worldview({}), protected=["sex"], outcome="y")
    assert set(drawn.nodes) == {"sex", "y"}
    assert drawn.arrows == {}
    assert Drawn(Worldview({})).nodes == {}
    # an outcome that is an attribute is drawn once, and before its effects
    drawn = Drawn(LOAN, outcome="Balance", decision_inputs=["Salary", "Gender"])
    assert set(drawn.nodes) == set(LOAN.names)
    assert {title: kind for title, (kind, _) in drawn.arrows.items()} == {
        "Gender → Salary": "cause",
        "Salary → Balance": "read",
        "Gender → Balance": "read",
    }
    drawn = Drawn(LOAN, outcome="Salary", decision_inputs=["Gender"])
    assert drawn.box("Salary")[2] < drawn.box("Balance")[0]
    check_geometry(drawn)


def test_decisions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PlanError, match="Give outcome= too"):
        Drawn(LOAN, decision_inputs=["Salary"])
    with pytest.raises(CycleError, match="Gender → Salary → Gender"):
        Drawn(LOAN, outcome="Gender", decision_inputs=["Salary"])


@st.composite
def worldviews(draw: st.DrawFn) -> Worldview:
    count = draw(st.integers(1, 14))
    equations = {}
    for child in range(1, count):
        causes = draw(st.sets(st.integers(0, child - 1), max_size=4))
        if causes:
            equations[f"n{child}" * draw(st.integers(1, 9))] = Linear(*(f"n{n}" for n in causes))
    return Worldview(equations)


@given(worldviews())
def test_no_arrow_runs_through_a_node(worldview: Worldview) -> None:
    drawn = Drawn(worldview)
    assert set(drawn.nodes) == set(worldview.names)
    assert len(drawn.arrows) == sum(map(len, worldview.graph.parents.values()))
    check_geometry(drawn)


def test_crossings_that_need_not_be_are_undone() -> None:
    # three layers of four, connected crosswise: six crossings between two layers as declared
    edges = {f"b{n}": Linear(f"a{3 - n}") for n in range(4)}
    drawn = Drawn(Worldview(edges | {f"c{n}": Linear(f"b{n}") for n in range(4)}))
    order = {layer: sorted(range(4), key=lambda n: drawn.box(f"{layer}{n}")[1]) for layer in "abc"}
    assert order["b"] == order["c"] == [3 - n for n in order["a"]]
