"""The parts of a drawing: layers, order, places, and the widths of names."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from mutandis.pictures.layout import Spacing, arrange, crossings, lay_out, longest_paths
from mutandis.pictures.svg import element, number, printable, shortened, text_width


@given(st.integers(2, 9), st.data())
def test_layers_are_the_longest_ways_from_a_root(nodes: int, data: st.DataObject) -> None:
    pairs = [(a, b) for a in range(nodes) for b in range(a + 1, nodes)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True))

    def longest(node: int) -> int:
        return max((longest(cause) + 1 for cause, effect in edges if effect == node), default=0)

    assert longest_paths(nodes, edges) == [longest(node) for node in range(nodes)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True))
def test_crossings_are_counted_as_by_looking_at_all_pairs(pairs: list[tuple[int, int]]) -> None:
    by_looking = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in itertools.combinations(pairs, 2))

    assert crossings(pairs) == by_looking


def test_a_tangle_that_can_be_undone_is_undone() -> None:
    # three rows of four, connected crosswise: 6 crossings a passage as declared, none if turned
    edges = {(n, 7 - n): 1 for n in range(4)} | {(4 + n, 8 + n): 1 for n in range(4)}

    rows = arrange([0] * 4 + [1] * 4 + [2] * 4, edges).rows

    places = [{vertex.node: place for place, vertex in enumerate(row)} for row in rows]
    for first, second in itertools.pairwise(range(3)):
        between = [(places[first][a], places[second][b]) for a, b in edges if a in places[first]]
        assert len(between) == 4
        assert crossings(between) == 0


def test_arrows_of_one_strand_share_their_way_and_others_do_not() -> None:
    # 0 -> 1 -> 2 -> 3, and 0 -> 2, 0 -> 3 past them
    chain = {(0, 1): 1, (1, 2): 1, (2, 3): 1}

    shared = arrange([0, 1, 2, 3], chain | {(0, 2): 1, (0, 3): 1})
    apart = arrange([0, 1, 2, 3], chain | {(0, 2): 1, (0, 3): 2})

    assert list(map(len, shared.rows)) == [1, 2, 2, 1]
    assert list(map(len, apart.rows)) == [1, 3, 2, 1]


def test_nodes_stand_in_the_middle_of_what_they_are_connected_to() -> None:
    spacing = Spacing(across=20, lane=10, forward=50)

    boxes = lay_out(
        [(60, 30)] * 4, {(0, n): 1 for n in (1, 2, 3)}, layers=[0, 1, 1, 1], spacing=spacing
    ).boxes

    assert [box.across for box in boxes] == [50, 0, 50, 100]
    assert boxes[0].forward == 0
    # 15 hundredths of the 50 that the outer arrows go across are added to the passage
    assert [box.forward for box in boxes[1:]] == [60 + 50 + 7.5] * 3


def test_names_are_measured_rather_too_wide() -> None:
    # in Helvetica, n has 0.556 and M 0.833 of the font size
    assert 5.56 <= text_width("n", 10) <= 6.5
    assert 8.33 <= text_width("M", 10) <= 9.5
    assert text_width("収", 10) >= 10
    assert text_width("é", 10) >= 5.56
    assert text_width("e\u0301", 10) == text_width("e", 10)


@given(st.text(max_size=300), st.floats(20, 200))
def test_shortened_names_fit(name: str, width: float) -> None:
    short = shortened(name, width=width, size=10)

    assert short == name or (text_width(short, 10) <= max(width, 35) and "…" in short)


def test_the_middle_of_a_long_name_is_left_out() -> None:
    assert shortened("AnnualSalaryBeforeTaxes2019", width=120, size=14) == "AnnualS…es2019"
    assert round(text_width("salary", 14), 1) == 39.2


def test_svg_is_written_escaped_and_with_short_numbers() -> None:
    written = element("text", text="a < b", x=3.04, text_anchor="middle", class_="name")
    assert written == '<text x="3" text-anchor="middle" class="name">a &lt; b</text>'
    assert [number(each) for each in (12.0, 12.34, -0.01)] == ["12", "12.3", "0"]
    assert (printable("a\x00b"), printable("")) == ("a�b", '""')


def test_a_node_and_its_effect_stand_side_by_side() -> None:
    layout = lay_out([(60, 30), (60, 30)], {(0, 1): 0}, layers=[0, 1], spacing=Spacing())
    assert [(box.forward, box.across) for box in layout.boxes] == [(0, 0), (124, 0)]
    assert layout.routes[0, 1] == ((60, 15), (60, 15), (124, 15), (124, 15))
