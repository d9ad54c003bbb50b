"""Drawings of worldviews: complete, readable, harmless, and always the same."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, NamedTuple
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


def draw(worldview: Worldview, **options: Any) -> str:
    return draw_worldview(worldview, **options).svg


class Drawn(NamedTuple):
    """What can be read off a drawing."""

    root: ET.Element
    nodes: dict[str, tuple[str, ET.Element]]
    arrows: list[tuple[str, ET.Element]]

    def box(self, name: str) -> tuple[float, float, float, float]:
        """Give the left, top, right and bottom of a node."""
        found = self.nodes[name][1].find(f"{SVG}rect")
        assert found is not None
        left, top, width, height = (
            float(found.attrib[key]) for key in ("x", "y", "width", "height")
        )
        return left, top, left + width, top + height


def read(text: str) -> Drawn:
    root = ET.fromstring(text)  # noqa: S314 - our own text
    nodes, arrows = {}, []
    for group in root.iter(f"{SVG}g"):
        kind, _, which = group.get("class", "").partition(" ")
        title = group.findtext(f"{SVG}title", "")
        if kind == "node":
            assert title not in nodes
            nodes[title] = (which, group)
        elif kind == "arrow":
            arrows.append((title, group))
    return Drawn(root, nodes, arrows)


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
    for title, group in drawn.arrows:
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
    drawn = read(
        draw(
            TWELVE,
            protected=["gender"],
            outcome="approved",
            decision_inputs=["salary", "credit score"],
        )
    )

    assert set(drawn.nodes) == {*TWELVE.names, "approved"}
    expected = {f"{a} → {b}" for b, causes in TWELVE.graph.parents.items() for a in causes}
    expected |= {"salary → approved", "credit score → approved"}
    assert sorted(title for title, _ in drawn.arrows) == sorted(expected)
    check_geometry(drawn)


def test_kinds_can_be_told_apart() -> None:
    drawn = read(
        draw(TWELVE, protected="gender", outcome="approved", decision_inputs=["salary", "postcode"])
    )

    kinds = {name: kind for name, (kind, _) in drawn.nodes.items()}
    assert kinds["gender"] == "protected"
    assert kinds["job"] == "resolving"
    assert kinds["approved"] == "outcome"
    assert kinds["age"] == kinds["salary"] == kinds["postcode"] == "attribute"
    for name, boxes in (("gender", 2), ("age", 1), ("job", 1)):
        assert len(drawn.nodes[name][1].findall(f"{SVG}rect")) == boxes


def test_hidden_causes_are_dashed_and_stand_before_what_they_drive() -> None:
    drawn = read(draw(LAW, protected=["Sex", "Race"]))

    kind, group = drawn.nodes["Knowledge"]
    body = group.find(f"{SVG}rect")
    assert kind == "latent"
    assert body is not None
    assert body.get("stroke-dasharray")
    hidden = {title for title, arrow in drawn.arrows if arrow.get("class") == "arrow hidden"}
    assert hidden == {"Knowledge → UGPA", "Knowledge → LSAT"}
    assert len(drawn.arrows) == 6
    assert drawn.box("Knowledge")[2] < drawn.box("UGPA")[0]
    check_geometry(drawn)


def test_arrows_of_different_kinds_do_not_run_together() -> None:
    drawn = read(draw(TWELVE, outcome="y", decision_inputs=["salary"]))

    paths = {title: path_of(group) for title, group in drawn.arrows}
    decided, caused = paths["salary → y"], paths["salary → loan amount"]
    assert min(abs(a - c) + abs(b - d) for a, b in decided for c, d in caused) > 5


def test_the_legend_explains_what_occurs_and_nothing_else() -> None:
    def legend(text: str) -> list[str]:
        root = read(text).root
        group = next(g for g in root.iter(f"{SVG}g") if g.get("class") == "legend")
        return [entry.text or "" for entry in group.iter(f"{SVG}text")]

    assert legend(draw(LOAN)) == ["attribute", "is a cause of"]
    assert legend(draw(LAW, protected=["Sex"])) == [
        "protected attribute",
        "attribute",
        "hidden common cause",
        "is a cause of",
        "drives, unobserved",
    ]
    full = draw(TWELVE, protected=["gender"], outcome="y", decision_inputs=["salary"])
    assert legend(full)[2:] == [
        "resolving: kept as it is",
        "decision",
        "is a cause of",
        "is used to decide",
    ]


def test_hostile_names_do_no_harm() -> None:
    text = draw(HOSTILE, protected=["a & b"], outcome="<Ŷ>", decision_inputs=[SCRIPT])
    drawn = read(text)

    tags = {element.tag.removeprefix(SVG) for element in drawn.root.iter()}
    assert tags == {"svg", "title", "desc", "g", "rect", "path", "text"}
    attributes = {key for element in drawn.root.iter() for key in element.attrib}
    assert not {key for key in attributes if key.startswith("on") or "href" in key}
    assert "url(" not in text
    assert "javascript" not in text
    assert set(drawn.nodes) == {*map(printable, HOSTILE.names), "<Ŷ>"}
    labels = [entry.text or "" for entry in drawn.root.iter(f"{SVG}text")]
    assert max(map(len, labels)) < 60
    assert not set(text) & set("\x00\u202e\ud800")
    check_geometry(drawn)


def test_a_long_name_is_shortened_but_told_in_full() -> None:
    name = "a" * 100 + "b" * 100
    drawn = read(draw(Worldview({name: Linear("x")})))

    label = drawn.nodes[name][1].findtext(f"{SVG}text", "")
    assert label.startswith("aaa")
    assert "…" in label
    assert label.endswith("bbb")
    left, _, right, _ = drawn.box(name)
    assert right - left < 240


def test_it_can_be_read_aloud() -> None:
    root = read(draw(LAW, protected=["Sex", "Race"], outcome="Admitted")).root

    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Worldview"
    assert root.findtext(f"{SVG}desc") == (
        "Protected attribute: Sex, Race. Hidden common cause: Knowledge. Decision: Admitted. "
        "Knowledge → UGPA, LSAT. Sex → UGPA, LSAT. Race → UGPA, LSAT."
    )


def test_the_same_worldview_gives_the_same_bytes() -> None:
    again = Worldview(dict(TWELVE.equations), resolving=("job",))

    assert draw(TWELVE, protected=["gender"]) == again.draw(protected=("gender",)).svg


def test_the_drawing_in_the_documentation_is_what_is_drawn_today() -> None:
    stored = Path(__file__).parents[2] / "docs" / "law-school-worldview.svg"
    driven = {"UGPA": Linear("race", "sex"), "LSAT": Linear("race", "sex")}
    worldview = Worldview({}, latents=[Latent("knowledge", driven)])

    assert stored.read_text(encoding="utf-8") == draw(
        worldview, protected=["race", "sex"], outcome="admitted", decision_inputs=["UGPA", "LSAT"]
    )


def test_a_long_chain_runs_downwards_and_a_short_one_to_the_right() -> None:
    long, short = read(draw(CHAIN)), read(draw(LOAN))

    assert long.box("step 0")[3] < long.box("step 1")[1]
    assert float(long.root.attrib["width"]) <= 1000
    assert short.box("Gender")[2] < short.box("Salary")[0]
    check_geometry(long)
    check_geometry(short)


def test_what_the_worldview_does_not_mention_can_be_drawn_too() -> None:
    drawn = read(draw(Worldview({}), protected=["sex"], outcome="y"))

    assert set(drawn.nodes) == {"sex", "y"}
    assert drawn.arrows == []
    assert set(read(draw(Worldview({}))).nodes) == set()


def test_an_outcome_that_is_an_attribute_is_drawn_once() -> None:
    drawn = read(draw(LOAN, outcome="Balance", decision_inputs=["Salary", "Gender"]))

    assert set(drawn.nodes) == set(LOAN.names)
    assert {title: arrow.get("class") for title, arrow in drawn.arrows} == {
        "Gender → Salary": "arrow cause",
        "Salary → Balance": "arrow read",
        "Gender → Balance": "arrow read",
    }


def test_decisions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PlanError, match="Give outcome= too"):
        draw(LOAN, decision_inputs=["Salary"])
    with pytest.raises(CycleError, match="Gender → Salary → Gender"):
        draw(LOAN, outcome="Gender", decision_inputs=["Salary"])


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
    drawn = read(draw(worldview))

    assert set(drawn.nodes) == set(worldview.names)
    assert len(drawn.arrows) == sum(map(len, worldview.graph.parents.values()))
    check_geometry(drawn)


def test_crossings_that_need_not_be_are_undone() -> None:
    # three layers of four, connected crosswise: six crossings between two layers as declared
    edges = {f"b{n}": Linear(f"a{3 - n}") for n in range(4)}
    drawn = read(draw(Worldview(edges | {f"c{n}": Linear(f"b{n}") for n in range(4)})))

    rows = {layer: [drawn.box(f"{layer}{n}")[1] for n in range(4)] for layer in "abc"}
    assert [sorted(range(4), key=rows["b"].__getitem__)] == [
        sorted(range(4), key=rows["c"].__getitem__)
    ]
    assert [3 - n for n in sorted(range(4), key=rows["b"].__getitem__)] == sorted(
        range(4), key=rows["a"].__getitem__
    )
