"""Bad input and the message for it: the matrix is in `refused/`, one file for each surface.

A case is a text as somebody might write it, and after "=>" the beginning of the message.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mutandis as mm
from mutandis.config.worldview import read_worldview
from mutandis.config.yaml import read_yaml
from mutandis.errors import (
    CycleError,
    DecisionError,
    EquationError,
    FormulaError,
    MutandisError,
    PlanError,
    SettingsError,
    WorldviewError,
)
from mutandis.store.audit_file import read_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

JARGON = re.compile(
    r"pydantic|validat|value_error|extra_forbidden|type=|input_|<class|Traceback|a token|Scanner|"
    r"Input should|Parser|SafeLoader|Event|Node\(|simple key|tuple|\bdict\b",
    re.IGNORECASE,
)
COMPLETE = {
    "data": "{source: t.csv}",
    "outcome": "{column: y, negative: 0}",
    "protected": "{attribute: gender, value: f, reference: m}",
    "attributes": "{salary: continuous, job: nominal}",
}


def cases(name: str) -> list[Any]:
    text = (Path(__file__).parent / "refused" / f"{name}.txt").read_text(encoding="utf-8")
    found = re.findall(r"((?:.|\n)*?)\n=> (.*)\n(?:\n|\Z)", text)
    return [pytest.param(f"{case}\n", said, id=case[:40]) for case, said in found]


def refused(read: Callable[[], object]) -> str:
    with pytest.raises(MutandisError) as caught:
        read()
    message = str(caught.value)
    assert not JARGON.search(message), message
    assert message.endswith(".")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("text", "said"), cases("yaml"))
def test_yaml_that_is_not_read(text: str, said: str) -> None:
    assert refused(lambda: read_yaml(text)).startswith(said)


@pytest.mark.parametrize(("text", "said"), cases("worldview"))
def test_worldviews_that_cannot_be_meant(text: str, said: str, tmp_path: Path) -> None:
    assert refused(lambda: read_worldview(text)).startswith(said)
    (tmp_path / "bank.yaml").write_text(text, encoding="utf-8")
    named = refused(lambda: read_worldview(tmp_path / "bank.yaml"))
    assert named.startswith(f"bank.yaml, l{said[1:]}")


@pytest.mark.parametrize(("text", "said"), cases("audit"))
def test_audits_that_cannot_be_meant(text: str, said: str, tmp_path: Path) -> None:
    lacking = (key for key in COMPLETE if not re.search(f"^{key}:", text, re.MULTILINE))
    whole = text + "".join(f"{key}: {COMPLETE[key]}\n" for key in lacking)
    message = refused(
        lambda: read_arguments(
            whole, folder=tmp_path, name="audit.yaml", trust_code="python" in text
        )
    )
    assert message.startswith(f"audit.yaml, l{said[1:]}")
    assert message.count("audit.yaml") == 1
    assert "s3cret" not in message


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        (mm.Similarity, {"max_distance": -1}, "max_distance=-1 is not allowed. Give the larg"),
        (mm.Similarity, {"min_group": True}, "min_group=True is not allowed. Give the fewest"),
        (mm.Similarity, {"ties": "fare"}, "ties='fare' is unknown. Did you mean 'fair'? Allow"),
        (mm.Similarity, {"tie": "all"}, "'tie' is not a key of Similarity. Did you mean 'ties'?"),
        (mm.Evidence, {"primary": ("cf",)}, "primary=('cf',) is not allowed. Give a method and"),
        (mm.Uncertainty, {"tipping": "yes"}, "tipping='yes' is not allowed. Give true or false"),
        (mm.Uncertainty, {"worldviews": {"a": 1}}, "a=1 is not allowed. Give Worldview(…)."),
        (mm.Uncertainty, {"worldviews": {}}, "worldviews={} is not allowed. Give worldviews"),
    ],
)
def test_arguments_that_cannot_be_meant(kind: Any, settings: dict[str, Any], said: str) -> None:
    assert refused(lambda: kind(**settings)).startswith(said)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ks": 30}, "ks=30 is not allowed. Give group sizes, such as [15, 30]."),
        *[
            ({"ks": [15, k]}, f"ks={k!r} is not allowed. Give an integer of at least 1.")
            for k in (0, -3, 2.5, "3", True, None)
        ],
        ({"ks": ()}, "ks=() is not allowed. Give group sizes, such as [15, 30]."),
        ({"methods": []}, "methods=[] is not allowed. Give a list of methods"),
        ({"methods": ["st", "sst"]}, "methods='sst' is unknown. Did you mean 'st'? Allowed: st, "),
        (
            {"methods": "st"},
            "methods='st' is not allowed. Give a list of methods, such as [st, cf]",
        ),
        *[
            (
                {"alpha": alpha},
                f"alpha={alpha!r} is not allowed. Give the level of a one-sided test",
            )
            for alpha in (0, 0.5, -0.1, 1, float("nan"), "0.05", None)
        ],
        ({"tau": 2}, "tau=2 is outside [0, 1)."),
        ({"seed": "1"}, "seed='1' is not allowed. Give an integer of at least 0."),
        ({"similarity": "heom"}, "similarity='heom' is not allowed. Give Similarity(…)."),
    ],
)
def test_settings_of_a_plan_that_cannot_be_meant(settings: dict[str, Any], said: str) -> None:
    message = refused(
        lambda: mm.plan(
            mm.datasets.loan(n=20, seed=1),
            outcome="LoanApproval",
            negative=-1,
            protected=mm.Protection("Gender", value=1, reference=0),
            attributes={"AnnualSalary": "continuous"},
            **settings,
        )
    )
    assert message.startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n# only a comment\n", "Line 1: The file is empty."),
        ("equations:\n\tsalary: x\n", "Line 2: The file cannot be read as YAML from here on: ther"),
        ("? \n: a\n", "Line 1: A key is empty."),
        ("a: \x07\n", "Line 1: The file contains control characters"),
        (f"%YAML 1.{'1' * 5000}\n---\na: b\n", "Line 1: A character code or a number in the file"),
        ("[" * 100_000 + "\n", "Line 1: Lists and mappings are nested more than 16 deep"),
        ("a: b\n" * 150_000, "Line 1: The text has 750,000 characters. The limit is 500,000"),
    ],
)
def test_text_that_no_one_can_see(text: str, said: str) -> None:
    assert refused(lambda: read_yaml(text)).startswith(said)


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    started = time.perf_counter()
    with pytest.raises(SettingsError, match="anchor or alias"):
        read_yaml(bomb)
    assert time.perf_counter() - started < 1.0


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("equations: {a: {equation: linear, parents: [x], decimals: 99}}", EquationError),
        ("equations: {a: {equation: stated, formula: '__import__(1)'}}", FormulaError),
        ("latent: {u: {equations: {}}}", WorldviewError),
        ("edges:\n- a -> b\n- c -> b\n- b -> a", CycleError),
        ("edges: [a -> b -> c]", SettingsError),
    ],
)
def test_errors_keep_their_kind(text: str, kind: type[MutandisError]) -> None:
    with pytest.raises(MutandisError) as caught:
        read_worldview(f"{text}\n")
    assert type(caught.value) is kind


def test_errors_of_settings_and_of_decisions_keep_theirs(tmp_path: Path) -> None:
    with pytest.raises(PlanError):
        mm.Similarity(min_group=0)
    whole = "".join(f"{key}: {text}\n" for key, text in COMPLETE.items())
    with pytest.raises(DecisionError, match="line 5, at 'decision' › 'python'"):
        read_arguments(f"{whole}decision: {{python: a:b}}", folder=tmp_path, name="audit.yaml")


TEXTS = [case.values[0] for name in ("yaml", "worldview") for case in cases(name)]


@given(st.data())
def test_whatever_the_text_an_error_is_ours(data: st.DataObject) -> None:
    text = "\n" + data.draw(st.sampled_from(TEXTS))
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
