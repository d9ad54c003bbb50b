"""Worldviews in YAML: what is read, what is written, and that the one undoes the other."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mutandis as mm
from mutandis.config.worldview import (
    make_worldview,
    read_worldview,
    worldview_from_graph,
    write_worldview,
)
from mutandis.errors import (
    CycleError,
    MutandisWarning,
    SettingsError,
    WorldviewError,
)
from mutandis.rooms.latent import Latent
from mutandis.scm import Additive, Categorical, Count, Linear, Ordinal, Stated, Worldview
from tests.config.test_yaml import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING = """\
# agreed on by the bank and the regulator
equations:
  salary:  {equation: linear, parents: [gender], bounds: [0, null], decimals: 2}
  balance: {equation: linear, parents: [salary, gender], link: log}
  visits:  {equation: count, parents: [gender]}
  grade:   {equation: ordinal, parents: [gender], levels: [low, mid, high]}
  job:     {equation: categorical, parents: [gender]}
  bonus:   {equation: stated, formula: "0.3 * salary + b * gender", fit: [b]}
  stars:
    equation: linear
    parents:
      - gender
      - salary
    interactions: true
    levels: [1, 2, 2.5]
latent:
  knowledge:
    residual_noise: false
    equations:
      UGPA: {equation: linear, parents: [sex]}
      LSAT: {equation: count, parents: [sex], bounds: [10, 48]}
resolving: [job]
edges: [gender -> wealth, "salary -> wealth", age->pension]
"""

THE_SAME = Worldview(
    {
        "salary": Linear("gender", bounds=(0, None), decimals=2),
        "balance": Linear("salary", "gender", link="log"),
        "visits": Count("gender"),
        "grade": Ordinal("gender", levels=("low", "mid", "high")),
        "job": Categorical("gender"),
        "bonus": Stated("0.3 * salary + b * gender", fit=("b",)),
        "stars": Linear("gender", "salary", interactions=True, levels=(1, 2, 2.5)),
        "wealth": Linear("gender", "salary"),
        "pension": Linear("age"),
    },
    latents=[
        Latent(
            "knowledge",
            {"UGPA": Linear("sex"), "LSAT": Count("sex", bounds=(10, 48))},
            residual_noise=False,
        )
    ],
    resolving=("job",),
)


def test_every_family_is_read_as_it_is_written_in_python(tmp_path: Path) -> None:
    found = read_worldview(EVERYTHING)
    assert found == THE_SAME == Worldview.read(EVERYTHING)
    assert list(found.equations) == list(THE_SAME.equations)
    for name in ("a.yaml", "b.YML"):
        # a byte order mark is no part of the first name
        (tmp_path / name).write_text(EVERYTHING, encoding="utf-8-sig")
        assert read_worldview(tmp_path / name) == read_worldview(str(tmp_path / name)) == THE_SAME
    text = THE_SAME.write(tmp_path / "bank.yaml")
    assert text == THE_SAME.write() == write_worldview(THE_SAME)
    assert (tmp_path / "bank.yaml").read_bytes() == text.encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("salary: {equation: linear, parents: [a]}\n", Worldview({"salary": Linear("a")})),
        # attributes may be called like sections
        (
            (
                "edges: {equation: linear, parents: [latent]}\n"
                "resolving: {equation: count, parents: [x]}\n"
            ),
            Worldview({"edges": Linear("latent"), "resolving": Count("x")}),
        ),
        (
            (
                "equations: {equations: {equation: linear, parents: [equation]}}\n"
                "resolving: [equation]\n"
            ),
            Worldview({"equations": Linear("equation")}, resolving=("equation",)),
        ),
        # names are their own text
        (
            "no: {equation: linear, parents: [yes, 2020, '1.10', 'null', '~', 2020-01-01, 0x1F]}\n",
            Worldview({"no": Linear("yes", "2020", "1.10", "null", "~", "2020-01-01", "0x1F")}),
        ),
        # null is what is left out
        (
            "a: {equation: linear, parents: [x], bounds: null, decimals: ~, levels: null}\n",
            Worldview({"a": Linear("x")}),
        ),
        ("equations: {}\n", Worldview({})),
    ],
)
def test_what_text_means(text: str, expected: Worldview) -> None:
    assert read_worldview(text) == expected
    assert read_worldview(write_worldview(expected)) == expected


def test_levels_keep_their_types() -> None:
    text = "grade: {equation: ordinal, parents: [x], levels: [no, '2', 3, 4.5, true, 1e3]}\n"
    equation = read_worldview(text).equations["grade"]
    assert isinstance(equation, Ordinal)
    assert list(map(repr, equation.levels or ())) == ["'no'", "'2'", "3", "4.5", "True", "1000.0"]
    worldview = Worldview({"a": Ordinal("x", levels=list(np.array([1, 2])))})
    assert "levels: [1, 2]" in write_worldview(worldview)


def test_it_is_written_as_two_experts_would_write_it() -> None:
    assert write_worldview(THE_SAME) == (
        "equations:\n"
        "  salary: {equation: linear, parents: [gender], bounds: [0.0, null], decimals: 2}\n"
        "  balance: {equation: linear, parents: [salary, gender], link: log}\n"
        "  visits: {equation: count, parents: [gender]}\n"
        "  grade: {equation: ordinal, parents: [gender], levels: [low, mid, high]}\n"
        "  job: {equation: categorical, parents: [gender]}\n"
        "  bonus: {equation: stated, formula: '0.3 * salary + b * gender', fit: [b]}\n"
        "  stars: {equation: linear, parents: [gender, salary], interactions: true,"
        " levels: [1.0, 2.0, 2.5]}\n"
        "  wealth: {equation: linear, parents: [gender, salary]}\n"
        "  pension: {equation: linear, parents: [age]}\n"
        "latent:\n"
        "  knowledge:\n"
        "    residual_noise: false\n"
        "    equations:\n"
        "      UGPA: {equation: linear, parents: [sex]}\n"
        "      LSAT: {equation: count, parents: [sex], bounds: [10.0, 48.0]}\n"
        "resolving: [job]\n"
    )


names = st.sampled_from(HOSTILE) | st.text(max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[float | None, float | None] | None:
    low, high = sorted(draw(st.lists(numbers, min_size=2, max_size=2, unique=True)))
    return draw(st.sampled_from([None, (low, None), (None, high), (low, high)]))


@st.composite
def numeric_settings(draw: st.DrawFn) -> dict[str, Any]:
    settings: dict[str, Any] = {"link": draw(st.sampled_from(["identity", "log"]))}
    settings["decimals"] = draw(st.none() | st.integers(-15, 15))
    if draw(st.booleans()):
        settings["bounds"] = draw(bounds())
    else:
        settings["levels"] = sorted(draw(st.lists(numbers, min_size=2, max_size=4, unique=True)))
    return settings


@st.composite
def equations(draw: st.DrawFn, causes: list[str], *, driven: bool = False) -> Any:
    parents = draw(st.permutations(causes))[: draw(st.integers(0, 3))]
    families = ["linear", "count"] if driven else ["linear", "count", "ordinal", "job", "stated"]
    family = draw(st.sampled_from(families))
    if family == "count":
        whole = draw(st.none() | st.integers(0, 9))
        return Count(*parents, bounds=None if whole is None else (whole, None))
    if family == "linear":
        settings = {} if driven else draw(numeric_settings())
        many = not driven and len(parents) > 1 and draw(st.booleans())
        return Linear(*parents, interactions=many, **settings)
    if family == "ordinal":
        plain = st.integers() | st.text(max_size=5) | numbers | st.sampled_from(HOSTILE)
        listed = st.none() | st.lists(plain, min_size=2, max_size=4, unique=True)
        return Ordinal(*parents, levels=draw(listed))
    if family == "job":
        return Categorical(*parents)
    free = draw(st.sampled_from([(), ("b",), ("b", "c")]))
    formula = "0.5 * alpha" + " + b * beta" * ("b" in free) + " + c" * ("c" in free)
    return Stated(formula, fit=free, **draw(numeric_settings()))


@st.composite
def worldviews(draw: st.DrawFn) -> Worldview:
    reserved = {"alpha", "beta"}
    columns = draw(st.lists(names.filter(lambda n: n not in reserved), max_size=9, unique=True))
    causes, children = columns[:3], columns[3:]
    split = draw(st.integers(0, len(children)))
    own, driven = children[:split], children[split:]
    explained: dict[str, Any] = {}
    for child in own:
        explained[child] = draw(equations(causes))
        causes = [*causes, child]
    latents = []
    if len(driven) >= 2:
        hidden = draw(names.filter(lambda n: n not in columns))
        under = {child: draw(equations(causes, driven=True)) for child in driven}
        latents.append(Latent(hidden, under, residual_noise=draw(st.booleans())))
    known = Worldview(explained, latents=latents).names
    resolving = draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
    return Worldview(explained, latents=latents, resolving=resolving)


@given(worldviews())
def test_what_is_written_is_read_back(worldview: Worldview) -> None:
    text = write_worldview(worldview)

    found = read_worldview(text)

    assert found == worldview
    assert list(found.equations) == list(worldview.equations)
    assert write_worldview(found) == text


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_survive_everywhere(name: str) -> None:
    worldview = Worldview({name: Linear("x"), "z": Linear(name)}, resolving=(name,))

    assert read_worldview(write_worldview(worldview)) == worldview


class _Mine(Linear):
    pass


class _Mean:
    def fit(self, features: Any, target: Any, /) -> None: ...

    def predict(self, features: Any, /) -> Any: ...


@pytest.mark.parametrize("equation", [Additive("x", regressor=_Mean()), _Mine("x")])
def test_an_equation_around_an_object_cannot_be_written(equation: Any) -> None:
    with pytest.raises(WorldviewError, match=r"'salary' is of the type \w+, which a file cannot"):
        write_worldview(Worldview({"salary": equation}))


@pytest.mark.parametrize("level", [dt.date(2020, 1, 1), float("inf"), ("a", "b"), None])
def test_a_level_that_is_no_plain_value_cannot_be_written(level: Any) -> None:
    with pytest.raises(WorldviewError, match="'grade' has a level of type"):
        write_worldview(Worldview({"grade": Ordinal("x", levels=["low", level])}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            (
                "equations:\n  a: {equation: linear, parents: [c]}\n"
                "  b: {equation: linear, parents: [a]}\n  c: {equation: linear, parents: [b]}\n"
            ),
            r"^Line 4, at 'equations' › 'c': The worldview has a cy",
        ),
        ("edges:\n- a -> b\n- c -> b\n- b -> a\n", r"^Line 4, at 'edges': .* a → b → a\."),
        (
            (
                "edges: [a -> x]\nlatent:\n  u:\n    equations:\n"
                "      b: {equation: linear, parents: [x]}\n"
                "      a: {equation: linear, parents: [x]}\n"
            ),
            r"^Line 6, at 'latent' › 'u' › 'equations' › 'a': ",
        ),
    ],
)
def test_a_cycle_is_named_with_the_line_that_closes_it(text: str, message: str) -> None:
    with pytest.raises(CycleError, match=message):
        read_worldview(text)


@pytest.mark.parametrize("name", ["w.txt", "w", "w.json", "salary: linear"])
def test_a_path_that_does_not_tell_its_kind_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=r"files that end in \.yaml or \.yml"):
        read_worldview(name)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be opened: No such file"):
        read_worldview(tmp_path / "none.yaml")
    with pytest.raises(SettingsError, match="cannot be opened: its name is not a path"):
        read_worldview("a\x00b.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: gr\xf6\xdfe\n")
    with pytest.raises(SettingsError, match=r"^latin\.yaml, line 2: the file is not in UTF-8"):
        read_worldview(tmp_path / "latin.yaml")
    (tmp_path / "huge.yaml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(SettingsError, match="The limit is 1,000,000 bytes"):
        read_worldview(tmp_path / "huge.yaml")


def test_protected_is_replaced_by_one_attribute_or_several() -> None:
    data = {"a": {"equation": "linear", "parents": ["$protected", "b"]}}
    assert make_worldview(data, ["no"]) == Worldview({"a": Linear("no", "b")})
    assert make_worldview(data, ["x", "y"]) == Worldview({"a": Linear("x", "y", "b")})


# --- graphs ---------------------------------------------------------------------------------------

LOAN = Worldview({"salary": Linear("gender"), "balance": Linear("gender", "salary")})


def test_arrows_become_linear_equations() -> None:
    graph = nx.DiGraph([("gender", "salary"), ("gender", "balance"), ("salary", "balance")])

    assert worldview_from_graph(graph) == LOAN
    assert mm.Worldview.from_graph(graph) == LOAN


def test_parallel_arrows_count_once() -> None:
    graph = nx.MultiDiGraph([("a", "b"), ("a", "b")])

    assert worldview_from_graph(graph) == Worldview({"b": Linear("a")})


def test_numbered_nodes_are_named_by_their_labels() -> None:
    graph = nx.DiGraph()
    graph.add_node(0, label="gender")
    graph.add_node("1", label="salary")
    graph.add_node("balance", label="the balance")
    graph.add_node(3, label=2020)
    graph.add_edges_from([(0, "1"), ("1", "balance"), (3, "balance")])

    assert worldview_from_graph(graph) == Worldview(
        {"salary": Linear("gender"), "balance": Linear("salary", "2020")}
    )


def test_a_node_without_arrows_is_left_out_and_said() -> None:
    graph = nx.DiGraph([("gender", "salary")])
    graph.add_node("age")

    with pytest.warns(MutandisWarning, match="No arrow touches 'age'"):
        found = worldview_from_graph(graph)

    assert found == Worldview({"salary": Linear("gender")})


def _labelled(*labels: Any) -> nx.DiGraph:
    graph = nx.DiGraph()
    for number, label in enumerate(labels):
        graph.add_node(number, label=label)
    graph.add_edge(0, len(labels) - 1)
    return graph


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (nx.Graph([("a", "b")]), "The graph is undirected"),
        (nx.MultiGraph([("a", "b")]), "The graph is undirected"),
        (nx.DiGraph([("a", "b"), ("b", "b")]), "an arrow from 'b' to itself"),
        (nx.DiGraph([(1, 2)]), "The node 1 of the graph has no name"),
        (nx.DiGraph([("a", ("b", 1))]), r"The node \('b', 1\) of the graph has no name"),
        (nx.DiGraph([("", "b")]), "The node '' of the graph has no name"),
        (_labelled("a", None), "The node 1 of the graph has no name"),
        (_labelled("a", True), "The node 1 of the graph has no name"),
        (_labelled("a", "b", "a"), "Two nodes of the graph are called 'a'"),
    ],
)
def test_graphs_that_are_no_worldviews_are_refused(graph: nx.DiGraph, said: str) -> None:
    with pytest.raises(WorldviewError, match=said):
        worldview_from_graph(graph)


def test_a_cycle_of_arrows_is_named() -> None:
    with pytest.raises(CycleError, match="c → a → b → c"):
        worldview_from_graph(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]))
