"""YAML with lines: what is read, and what is refused with a line and a sentence."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

import pytest

from mutandis.errors import SettingsError
from mutandis.files.yaml_nodes import Entries, Items, Scalar, plain_value, read_yaml

JARGON = re.compile(
    r"value_error|<class|Traceback|token|Scanner|Parser|SafeLoader|Event|simple key", re.IGNORECASE
)

# an equation, for where it does not matter which
ANY = "{equation: linear, parents: [x]}"
UNREADABLE = "The file cannot be read as YAML from here on: "


class Case(NamedTuple):
    """A text, the line that is wrong, the keys that lead there, and what is said."""

    text: str
    line: int
    trail: str
    said: str


REFUSED = {
    "nothing": Case("\n# only a comment\n", 1, "", "The file is empty."),
    "a key twice": Case(
        f"salary: {ANY}\nb: {ANY}\nsalary: {ANY}\n",
        3,
        "salary",
        "The key 'salary' is written twice, first in line 1.",
    ),
    "a key twice, once in quotes": Case(
        f"equations:\n  no: {ANY}\n  'no': {ANY}\n",
        3,
        "equations › no",
        "The key 'no' is written twice, first in line 2.",
    ),
    "an anchor": Case(
        f"a: &x {ANY}\nb: *x\n",
        1,
        "",
        "There is an anchor or alias here ('x'), which are not allowed.",
    ),
    "an alias": Case(f"a: {ANY}\nb: *x\n", 2, "", "There is an anchor or alias here ('x')"),
    "a tag": Case(
        "a:\n  equation: !!python/object/apply:os.system ['true']\n",
        2,
        "",
        "There is a tag here (it begins with '!'), which are not allowed.",
    ),
    "a local tag": Case("a: !mine {equation: linear}\n", 1, "", "There is a tag here"),
    "a merge": Case(
        "a:\n  <<: {equation: linear}\n  parents: [x]\n",
        2,
        "a",
        "'<<' would merge another mapping.",
    ),
    "an empty key": Case("? \n: a\n", 1, "", "A key is empty."),
    "a list as key": Case("[a, b]: c\n", 1, "", "A key is a list or a mapping."),
    "two documents": Case("a: {}\n---\nb: {}\n", 2, "", "A second document begins here"),
    "a tab": Case("equations:\n\tsalary: x\n", 2, "", f"{UNREADABLE}there is a tab."),
    "a stray colon": Case("salary: a: b\n", 1, "", f"{UNREADABLE}there is a colon where none can"),
    "an open bracket": Case(
        "salary: {parents: [x\nb: {}\n", 2, "", f"{UNREADABLE}a list in square"
    ),
    "an open brace": Case("salary: {parents: [x]\n", 1, "", f"{UNREADABLE}a mapping in braces"),
    "open quotes": Case("a: 'b\n", 1, "", f"{UNREADABLE}the file ends inside a quoted text."),
    "no colon": Case(f"a: {ANY}\nb\nc: {ANY}\n", 3, "", f"{UNREADABLE}a colon is missing."),
    "a sign": Case("a: @b\n", 1, "", f"{UNREADABLE}a text begins with a character that has"),
    "something else": Case("%YAML 9.9\n---\na: b\n", 1, "", f"{UNREADABLE}it is not clear what"),
    "bad indentation": Case(f"a: {ANY}\n b: {{}}\n", 2, "", f"{UNREADABLE}this line does not"),
    "an unknown escape": Case('a: "\\q"\n', 1, "", f"{UNREADABLE}a backslash in double quotes"),
    "a control character": Case("a: \x07\n", 1, "", "The file contains control characters"),
    "a character beyond Unicode": Case(
        'a: "\\UFFFFFFFF"\n', 1, "", "A character code or a number in the file is beyond all"
    ),
    "a huge directive": Case(
        f"%YAML 1.{'1' * 5000}\n---\na: b\n", 1, "", "A character code or a number in the file"
    ),
    "a version that is unknown": Case(
        "%YAML 1.3\n---\na: b\n", 1, "", "A character code or a number in the file is beyond all"
    ),
    "nested too deeply": Case(
        "a: " + "[" * 20 + "]" * 20 + "\n", 1, "", "Lists and mappings are nested more than 16"
    ),
    "brackets without end": Case("[" * 100_000 + "\n", 1, "", "Lists and mappings are nested"),
    "too long": Case(
        "a: b\n" * 150_000,
        1,
        "",
        "The text has 750,000 characters. The limit is 500,000 characters;",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_with_its_line(name: str) -> None:
    case = REFUSED[name]
    trail = " › ".join(map(repr, case.trail.split(" › "))) if case.trail else ""

    with pytest.raises(SettingsError) as caught:
        read_yaml(case.text, source="bank.yaml")

    message = str(caught.value)
    at = f", at {trail}" if trail else ""
    assert message.startswith(f"bank.yaml, line {case.line}{at}: {case.said}")
    assert not JARGON.search(message), message
    assert message.endswith(".")
    assert "\n" not in message


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )

    started = time.perf_counter()
    with pytest.raises(SettingsError, match="anchor or alias"):
        read_yaml(bomb)

    assert time.perf_counter() - started < 1.0


def test_an_unclosed_list_is_traced_to_its_beginning() -> None:
    with pytest.raises(SettingsError, match=r"^Line 4: .* It begins in line 2\.$"):
        read_yaml("a: 1\nb: [x,\n  y,\nc: 2\n")


def test_every_node_knows_its_line_and_its_keys() -> None:
    root = read_yaml("a:\n  b:\n    - x\n    - [y,\n       z]\nc: |\n  text\n", first_line=11)

    assert isinstance(root, Entries)
    block = root.entries["a"]
    assert isinstance(block, Entries)
    listed = block.entries["b"]
    assert isinstance(listed, Items)
    inner = listed.items[1]
    assert isinstance(inner, Items)
    text = root.entries["c"]
    assert isinstance(text, Scalar)
    assert [root.place.line, block.place.line, listed.place.line] == [11, 11, 12]
    assert [item.place.line for item in (*listed.items, *inner.items)] == [13, 14, 14, 15]
    assert inner.items[1].place.trail == ("a", "b")
    assert (text.text, text.quoted, text.place.line) == ("text\n", True, 16)
    assert root.keys["c"].line == 16


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("off", "off"),
        ("Yes", "Yes"),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("010", 10),
        ("1.50", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        (".inf", ".inf"),
        ("1.2.3", "1.2.3"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_unquoted_words_are_read_by_yaml_1_2(text: str, value: object) -> None:
    found = plain_value(text)

    assert found == value
    assert type(found) is type(value)
