"""Strict YAML: plain data with lines, and back."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mutandis.config.yaml import read_yaml, write_yaml

HOSTILE = (
    "a: b", "- x", "#no comment", "'", '"', "a -> b", "no", "null", "~", "", " ", " a ", "1e5",
    "089", "2020", "2020-01-01", "{a}", "[a]", "*a", "&a", "!a", "|", ">", "%", "@", "`", "? x",
    "a\nb", "a\r\n\tb", "\x00", "\x85", "\u2028", "\ufeff", "ünï", "年収", "<<", "=", "x" * 200,
    "a, b", "equation", "parents", "\U0001f600", "a  b   c", "line\n\n\nbreaks", "---",
    "y" * 2000, "$protected", "1_000", "e5", ".inf", "0x1F", "a #b", "it's\n", "\U000e0001", "-1",
)  # fmt: skip

texts = st.sampled_from(HOSTILE) | st.text(max_size=8) | st.text("ab1_e$.-+ :#,'\"\\\n", max_size=6)


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
    found = read_yaml(f"a: {text}").data["a"]
    assert found == value
    assert isinstance(found, type(value))
    assert isinstance(found, bool) == isinstance(value, bool)


def test_every_value_has_its_line_and_its_keys() -> None:
    document = read_yaml("a:\n  b:\n    - x\n    - [y,\n       z]\nc: |\n  text\nd:\n\ne: 1\n")
    assert document.data == {"a": {"b": ["x", ["y", "z"]]}, "c": "text\n", "d": None, "e": 1}
    paths = [(), ("a",), ("a", "b"), ("a", "b", 0), ("a", "b", 1), ("a", "b", 1, 1), ("c",), ("d",)]
    assert [document.line(path) for path in paths] == [1, 1, 2, 3, 4, 5, 6, 8]
    assert document.line(("a", "b", 7, "missing")) == 2
    assert document.place(("a", "b", 1, 1)) == "Line 5, at 'a' › 'b'"


def test_an_unclosed_list_is_traced_to_its_beginning() -> None:
    with pytest.raises(ValueError, match=r"^Line 4: .* It begins in line 2\.$"):
        read_yaml("a: 1\nb: [x,\n  y,\nc: 2\n")


@given(texts, texts)
def test_what_is_written_is_read_back_by_any_reader(key: str, text: str) -> None:
    for value in ({key: text}, {"k": [text, key]}, {key: {"k": {key: [text]}}, "z": {}}):
        written = write_yaml(value)
        assert read_yaml(written).data == value
        assert yaml.safe_load(written) == value
