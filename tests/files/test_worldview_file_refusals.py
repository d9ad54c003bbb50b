"""What is refused in worldview files: each with its line, in a sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.errors import (
    CycleError,
    EquationError,
    FormulaError,
    MutandisError,
    SettingsError,
    WorldviewError,
)
from mutandis.files.worldview_file import read_worldview

if TYPE_CHECKING:
    from pathlib import Path

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
        "'Linaer' is no family of equations. Did you mean 'linear'? There are 'linear', 'count', ",
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
        "A bound is inf. Bounds are finite numbers",
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
        "'null' is written here, but a level is a text, a number or a boolean.",
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
    with pytest.raises(SettingsError, match="cannot be opened: its name is no path"):
        read_worldview("a\x00b.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: gr\xf6\xdfe\n")
    with pytest.raises(SettingsError, match=r"^latin\.yaml, line 2: the file is not in UTF-8"):
        read_worldview(tmp_path / "latin.yaml")
    (tmp_path / "huge.yaml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(SettingsError, match="more than 1,000,000 bytes"):
        read_worldview(tmp_path / "huge.yaml")
