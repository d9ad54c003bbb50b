"""Worldviews in YAML: what is read, what is written, and that the one undoes the other."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import mutandis as mm
from mutandis.errors import (
    CycleError,
    EquationError,
    FormulaError,
    MutandisError,
    SettingsError,
    WorldviewError,
)
from mutandis.files.worldview_file import read_worldview, worldview_from_node, write_worldview
from mutandis.files.yaml_nodes import Entries, read_yaml
from mutandis.rooms.latent import Latent
from mutandis.scm import Additive, Categorical, Count, Linear, Ordinal, Stated, Worldview

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING = """\
# agreed on by the bank and the regulator
equations:
  salary:  {equation: linear, parents: [gender], bounds: [0, null], decimals: 2}
  balance: {equation: linear, parents: [salary, gender], link: log}
  visits:  {equation: count, parents: [gender]}
  grade:   {equation: ordinal, parents: [gender], levels: [low, mid, high], method: logit}
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


def test_every_family_is_read_as_it_is_written_in_python() -> None:
    found = read_worldview(EVERYTHING)

    assert found == THE_SAME
    assert list(found.equations) == list(THE_SAME.equations)


def test_attributes_may_stand_at_the_top_level() -> None:
    found = read_worldview("salary: {equation: linear, parents: [gender]}\n")

    assert found == Worldview({"salary": Linear("gender")})


def test_attributes_may_be_called_like_sections() -> None:
    directly = (
        "edges: {equation: linear, parents: [latent]}\nresolving: {equation: count, parents: [x]}\n"
    )
    in_sections = (
        "equations: {equations: {equation: linear, parents: [equation]}}\nresolving: [equation]\n"
    )

    assert read_worldview(directly) == Worldview(
        {"edges": Linear("latent"), "resolving": Count("x")}
    )
    assert read_worldview(in_sections) == Worldview(
        {"equations": Linear("equation")}, resolving=("equation",)
    )


def test_names_are_their_own_text_and_never_truths_or_numbers() -> None:
    found = read_worldview(
        "equations:\n"
        "  no: {equation: linear, parents: [yes, on, 2020, 1.10, null, ~, 2020-01-01, 0x1F]}\n"
        "resolving: [no]\n"
        "edges: [off -> y]\n"
    )

    assert found == Worldview(
        {
            "no": Linear("yes", "on", "2020", "1.10", "null", "~", "2020-01-01", "0x1F"),
            "y": Linear("off"),
        },
        resolving=("no",),
    )


def test_levels_keep_their_types() -> None:
    text = "grade: {equation: ordinal, parents: [x], levels: [no, '2', 3, 4.5, true, 1e3]}\n"

    equation = read_worldview(text).equations["grade"]

    assert isinstance(equation, Ordinal)
    assert equation.levels is not None
    assert list(map(repr, equation.levels)) == ["'no'", "'2'", "3", "4.5", "True", "1000.0"]


def test_null_stands_for_what_is_left_out() -> None:
    text = "salary: {equation: linear, parents: [x], bounds: null, decimals: ~, levels: null}\n"

    assert read_worldview(text) == Worldview({"salary": Linear("x")})


def test_a_part_of_a_larger_file_is_read_with_its_own_lines() -> None:
    audit = (
        "outcome: {column: approved, negative: 0}\n"
        "worldview:\n"
        "  salary: {equation: linear, parents: [gender]}\n"
        "  balance: {equation: linnear, parents: [salary]}\n"
    )
    config = read_yaml(audit, source="audit.yaml")
    assert isinstance(config, Entries)

    with pytest.raises(mm.MutandisError, match=r"^audit\.yaml, line 4, at 'worldview' › 'balance'"):
        worldview_from_node(config.entries["worldview"])
    offset = read_yaml("a: {equation: linear}", source="audit.yaml", first_line=30)
    with pytest.raises(mm.MutandisError, match=r"^audit\.yaml, line 30, at 'a'"):
        worldview_from_node(offset)


def test_it_is_written_as_two_experts_would_write_it() -> None:
    assert write_worldview(THE_SAME) == (
        "equations:\n"
        "  salary: {equation: linear, parents: [gender], bounds: [0.0, null], decimals: 2}\n"
        "  balance: {equation: linear, parents: [salary, gender], link: log}\n"
        "  visits: {equation: count, parents: [gender]}\n"
        "  grade: {equation: ordinal, parents: [gender], levels: [low, mid, high]}\n"
        "  job: {equation: categorical, parents: [gender]}\n"
        "  bonus: {equation: stated, formula: 0.3 * salary + b * gender, fit: [b]}\n"
        "  stars: {equation: linear, parents: [gender, salary], levels: [1.0, 2.0, 2.5],"
        " interactions: true}\n"
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


def test_an_empty_worldview_can_be_written_and_read() -> None:
    assert read_worldview(write_worldview(Worldview({}))) == Worldview({})


HOSTILE_NAMES = (
    "a: b", "- x", "#no comment", "'", '"', "a -> b", "no", "null", "~", "", " ", " a ", "1e5",
    "089", "2020", "2020-01-01", "{a}", "[a]", "*a", "&a", "!a", "|", ">", "%", "@", "`", "? x",
    "a\nb", "a\r\n\tb", "\x00", "\x85", "\u2028", "\ufeff", "ünï", "年収", "<<", "=", "x" * 200,
    "a, b", "equation", "parents", "\U0001f600", "\ud800", "a  b   c", "line\n\n\nbreaks", "---",
)  # fmt: skip

names = st.sampled_from(HOSTILE_NAMES) | st.text(max_size=12)
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
        plain = st.integers() | st.text(max_size=5) | numbers | st.sampled_from(HOSTILE_NAMES)
        listed = st.none() | st.lists(plain, min_size=2, max_size=4, unique=True)
        method: Any = draw(st.sampled_from(["logit", "empirical"]))
        return Ordinal(*parents, levels=draw(listed), method=method)
    if family == "job":
        return Categorical(*parents)
    order = draw(st.permutations(["alpha", "beta"]))
    free = draw(st.sampled_from([(), ("b",), ("b", "c")]))
    formula = "0.5 * alpha" + " + b * beta" * ("b" in free) + " + c" * ("c" in free)
    chosen = [name for name in order if name in formula]
    return Stated(formula, parents=chosen, fit=free, **draw(numeric_settings()))


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


@given(worldviews())
def test_any_other_reader_of_yaml_finds_the_same_names(worldview: Worldview) -> None:
    plain = yaml.safe_load(write_worldview(worldview))

    assert list(plain["equations"]) == list(worldview.equations)
    for child, equation in worldview.equations.items():
        written = plain["equations"][child].get("parents")
        assert written is None or tuple(written) == equation.parents


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_survive_everywhere(name: str) -> None:
    worldview = Worldview({name: Linear("x"), "z": Linear(name)}, resolving=(name,))

    assert read_worldview(write_worldview(worldview)) == worldview


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    worldview = Worldview({"a": Ordinal("x", levels=list(np.array([1, 2])))})

    assert "levels: [1, 2]" in write_worldview(worldview)


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


def test_files_are_read_by_their_ending(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.YML"):
        (tmp_path / name).write_text(EVERYTHING, encoding="utf-8")
        assert read_worldview(tmp_path / name) == THE_SAME
        assert read_worldview(str(tmp_path / name)) == THE_SAME


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_bytes(b"\xef\xbb\xbfsalary: {equation: linear, parents: [x]}")

    assert list(read_worldview(tmp_path / "w.yaml").equations) == ["salary"]


def test_the_methods_are_these_functions(tmp_path: Path) -> None:
    assert Worldview.read(EVERYTHING) == read_worldview(EVERYTHING) == THE_SAME
    text = THE_SAME.write(tmp_path / "bank.yaml")
    assert text == THE_SAME.write() == write_worldview(THE_SAME)
    assert (tmp_path / "bank.yaml").read_bytes() == text.encode()
    assert mm.Worldview.read(tmp_path / "bank.yaml") == THE_SAME


# What is refused: each with its line, in a sentence.

JARGON = re.compile(
    r"pydantic|validation|value_error|extra_forbidden|type=|input_|<class|Traceback|token|"
    r"Scanner|Parser|SafeLoader|Event|Node\(|simple key",
    re.IGNORECASE,
)

# an equation, for where it does not matter which
ANY = "{equation: linear, parents: [x]}"


class Case(NamedTuple):
    """A text, the line that is wrong, the keys that lead there, and what is said."""

    text: str
    line: int
    trail: str
    said: str

    @property
    def place(self) -> str:
        at = f", at '{self.trail.replace(' › ', chr(39) + ' › ' + chr(39))}'" if self.trail else ""
        return f"ine {self.line}{at}: {self.said}"


REFUSED = {
    "unknown key": Case(
        f"salary: {ANY}\nbalance: {{equation: linear, parents: [x], lnik: log}}\n",
        2,
        "balance › lnik",
        "'lnik' is not a key of a linear equation. Did you mean 'link'? It can have 'equation', ",
    ),
    "unknown key, nothing near": Case(
        "equations:\n  salary:\n    equation: count\n    parents: [x]\n    zzz: 1\n",
        5,
        "equations › salary › zzz",
        "'zzz' is not a key of a count equation. It can have 'equation', 'parents', 'bounds'.",
    ),
    "the first of two": Case(
        "equations:\n  a: {parents: [x]}\n  b: {equation: nothing}\n",
        2,
        "equations › a",
        "The key 'equation' is missing, which names the family",
    ),
    "unknown section": Case(
        "equations: {}\nresolvng: [job]\n",
        2,
        "resolvng",
        "'resolvng' is not a key of a worldview. Did you mean 'resolving'?",
    ),
    "unknown section beside attributes": Case(
        f"salary: {ANY}\nresolvng: [salary]\n",
        2,
        "resolvng",
        "No equation is written for 'resolvng'. Did you mean 'resolving'?",
    ),
    "an attribute beside sections": Case(
        f"resolving: [job]\n\njob: {ANY}\n",
        3,
        "job",
        "The equation for 'job' stands beside sections ('resolving'). Move it under 'equations:'.",
    ),
    "unknown family": Case(
        "salary:\n  equation: Linaer\n  parents: [x]\n",
        2,
        "salary › equation",
        "'Linaer' is not a family of equations. Did you mean 'linear'? There are 'linear', ",
    ),
    "additive": Case(
        "salary: {equation: additive, parents: [x]}\n",
        1,
        "salary › equation",
        "An additive equation holds a regressor, which is an object of Python and cannot stand in",
    ),
    "no family": Case(
        f"a: {ANY}\nsalary:\n  parents: [x]\n",
        2,
        "salary",
        "The key 'equation' is missing, which names the family",
    ),
    "no parents": Case(
        "equations:\n\n  salary: {equation: linear}\n",
        3,
        "equations › salary",
        "'parents' is missing. Without it this is not a linear equation.",
    ),
    "no formula": Case("bonus: {equation: stated}\n", 1, "bonus", "'formula' is missing."),
    "parents as one word": Case(
        "salary:\n  equation: linear\n  parents: gender\n",
        3,
        "salary › parents",
        "'gender' is written here, but a list is needed, in square brackets: [gender].",
    ),
    "a parent that is a list": Case(
        "salary:\n  equation: linear\n  parents:\n  - gender\n  - [age]\n",
        5,
        "salary › parents",
        "A list is written here, but a name is needed.",
    ),
    "an empty parent": Case(
        "salary:\n  equation: linear\n  parents:\n  - gender\n  -\n",
        5,
        "salary › parents",
        "Nothing is written here, but a name is needed.",
    ),
    "the same parent twice": Case(
        f"a: {ANY}\nsalary: {{equation: linear, parents: [x, x]}}\n",
        2,
        "salary",
        "The equation for 'salary' names its parent 'x' more than once.",
    ),
    "an unknown link": Case(
        "salary: {equation: linear, parents: [x],\n  link: logg}\n",
        2,
        "salary › link",
        "'logg' is not known here. Did you mean 'log'? It can be 'identity', 'log'.",
    ),
    "a flag that is none": Case(
        "salary: {equation: linear, parents: [x], interactions: maybe}\n",
        1,
        "salary › interactions",
        "'maybe' is written here. Write true or false.",
    ),
    "decimals that are no number": Case(
        "salary: {equation: linear, parents: [x], decimals: two}\n",
        1,
        "salary › decimals",
        "'two' is written here, but a whole number is needed.",
    ),
    "decimals in quotes": Case(
        "salary: {equation: linear, parents: [x], decimals: '2'}\n",
        1,
        "salary › decimals",
        "'2' is written here, but a whole number is needed.",
    ),
    "decimals left open": Case(
        "salary:\n  equation: linear\n  decimals:\n  parents: [x]\n",
        3,
        "salary › decimals",
        "Nothing is written here, but a whole number is needed.",
    ),
    "too many decimals": Case(
        "salary: {equation: linear, parents: [x], decimals: 99}\n",
        1,
        "salary",
        "decimals=99 is not a whole number from -15 to 15.",
    ),
    "three bounds": Case(
        "salary: {equation: linear, parents: [x], bounds: [1, 2, 3]}\n",
        1,
        "salary › bounds",
        "Bounds are two, the lowest and the highest value: [0, null]",
    ),
    "no bounds in the list": Case(
        "salary: {equation: linear, parents: [x], bounds: []}\n",
        1,
        "salary › bounds",
        "Bounds are two",
    ),
    "bounds that are words": Case(
        "salary: {equation: linear, parents: [x], bounds: [zero, 1]}\n",
        1,
        "salary › bounds",
        "'zero' is written here, but bounds are numbers: [0, null]",
    ),
    "bounds beyond all numbers": Case(
        f"salary: {{equation: linear, parents: [x], bounds: [0, {'9' * 400}]}}\n",
        1,
        "salary › bounds",
        "'99999999999999999999999999999…99999999999999999999999999999' is written here, but",
    ),
    "bounds of infinity": Case(
        "salary: {equation: linear, parents: [x], bounds: [0, 1e999]}\n",
        1,
        "salary",
        "bounds=(0.0, inf) is not a pair of the lowest and the highest value.",
    ),
    "bounds the wrong way round": Case(
        f"a: {ANY}\nb: {{equation: linear, parents: [x], bounds: [2, 1]}}\n",
        2,
        "b",
        "bounds=(2.0, 1.0) leave no room",
    ),
    "an empty level": Case(
        "g: {equation: ordinal, parents: [x], levels: [a, null]}\n",
        1,
        "g › levels",
        "'null' is written here, but a text, a number or a boolean is needed.",
    ),
    "an equation that is a word": Case(
        "equations:\n  salary: linear\n",
        2,
        "equations › salary",
        "'linear' is written here, but an equation is a mapping",
    ),
    "an attribute without anything": Case(
        "equations:\n  salary:\n",
        2,
        "equations › salary",
        "Nothing is written here, but an equation is a mapping",
    ),
    "a section without anything": Case(
        "equations:\n",
        1,
        "equations",
        "Nothing is written here, but the section 'equations' is a mapping",
    ),
    "resolving, misspelt": Case(
        f"equations: {{salary: {ANY}}}\nresolving:\n- x\n- salry\n",
        4,
        "resolving",
        "The resolving attribute 'salry' is not in the worldview. Did you mean 'salary'?",
    ),
    "two equations through an edge": Case(
        f"equations: {{salary: {ANY}}}\nedges:\n- x -> y\n- y -> salary\n",
        4,
        "edges",
        "'salary' has an equation already, in line 1.",
    ),
    "two equations through a hidden cause": Case(
        f"equations: {{a: {ANY}}}\nlatent:\n  u:\n    equations:\n      a: {ANY}\n      b: {ANY}\n",
        5,
        "latent › u › equations › a",
        "'a' has an equation already, in line 1.",
    ),
    "an edge twice": Case(
        "edges:\n- x -> y\n- x  ->  y\n",
        3,
        "edges",
        "The arrow 'x' -> 'y' is written twice.",
    ),
    "an edge without an end": Case("edges: [x ->]\n", 1, "edges", "'x ->' is not one arrow."),
    "a chain of edges": Case(
        "edges: [a -> b -> c]\n",
        1,
        "edges",
        "'a -> b -> c' is not one arrow. Write one at a time, cause -> effect.",
    ),
    "an edge that is a mapping": Case(
        "edges: [a: b]\n", 1, "edges", "What is written here is not one arrow."
    ),
    "edges as one word": Case(
        "edges: a -> b\n", 1, "edges", "'a -> b' is written here, but a list is needed"
    ),
    "a hidden cause without equations": Case(
        "latent:\n  u: {residual_noise: true}\n",
        2,
        "latent › u",
        "'equations' is missing. Without it this is not a hidden common cause.",
    ),
    "a hidden cause of one attribute": Case(
        f"latent:\n  u: {{equations: {{a: {ANY}}}}}\n",
        2,
        "latent › u",
        "The hidden cause 'u' drives 1 attributes.",
    ),
    "a list": Case("- a\n- b\n", 1, "", "A list is written here, but a worldview is a mapping"),
    "a word": Case("\nsalary\n", 2, "", "'salary' is written here, but a worldview is a mapping"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_with_its_line(name: str) -> None:
    case = REFUSED[name]

    with pytest.raises(MutandisError) as caught:
        read_worldview(case.text)

    message = str(caught.value)
    assert message.startswith(f"L{case.place}")
    assert not JARGON.search(message), message
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize("name", REFUSED)
def test_the_file_is_named_where_there_is_one(name: str, tmp_path: Path) -> None:
    case = REFUSED[name]
    (tmp_path / "bank.yaml").write_text(case.text, encoding="utf-8")

    with pytest.raises(MutandisError) as caught:
        read_worldview(tmp_path / "bank.yaml")

    assert str(caught.value).startswith(f"bank.yaml, l{case.place}")


def test_a_cycle_is_named_with_the_line_that_closes_it() -> None:
    text = (
        "equations:\n"
        "  a: {equation: linear, parents: [c]}\n"
        "  b: {equation: linear, parents: [a]}\n"
        "  c: {equation: linear, parents: [b]}\n"
        "  d: {equation: linear, parents: [a]}\n"
    )

    with pytest.raises(CycleError, match=r"^Line 4, at 'equations' › 'c': The worldview has a cy"):
        read_worldview(text)


def test_a_cycle_through_edges_is_found_too() -> None:
    text = "edges:\n- a -> b\n- c -> b\n- b -> a\n"

    with pytest.raises(CycleError, match=r"^Line 4, at 'edges': .* a → b → a\."):
        read_worldview(text)


def test_a_cycle_through_a_hidden_cause_is_found_too() -> None:
    text = (
        "edges: [a -> x]\n"
        "latent:\n"
        "  u:\n"
        "    equations:\n"
        f"      b: {ANY}\n"
        f"      a: {ANY}\n"
    )  # fmt: skip

    with pytest.raises(CycleError, match=r"^Line 6, at 'latent' › 'u' › 'equations' › 'a': "):
        read_worldview(text)


def test_errors_of_equations_keep_their_kind() -> None:
    with pytest.raises(EquationError, match=r"^Line 1, at 'a': "):
        read_worldview("a: {equation: linear, parents: [x], decimals: 99}\n")
    with pytest.raises(FormulaError, match=r"^Line 2, at 'equations' › 'a': "):
        read_worldview("equations:\n  a: {equation: stated, formula: '__import__(1)'}\n")
    with pytest.raises(WorldviewError, match=r"^Line 1, at 'latent' › 'u'"):
        read_worldview("latent: {u: {equations: {}}}\n")


@given(st.data())
def test_whatever_the_text_an_error_is_ours(data: st.DataObject) -> None:
    text = "\n" + data.draw(st.sampled_from([case.text[:400] for case in REFUSED.values()]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 3))
        put = data.draw(st.text(alphabet="{}[]:,-\n '\"&*!|>%#?ax1\t\\\ufeff", max_size=3))
        text = text[:at] + put + text[at + cut :]

    said = "Line 0"
    try:
        read_worldview("\n" + text)
    except MutandisError as error:
        said = str(error)

    assert re.match("Line [0-9]+", said)
    assert not JARGON.search(said)


@pytest.mark.parametrize("name", ["w.txt", "w", "w.json", "salary: linear"])
def test_a_path_that_does_not_tell_its_kind_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=r"files that end in \.yaml, \.yml, \.gml, \.dot, \.gv"):
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
