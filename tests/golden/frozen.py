"""Collect, store and compare the numbers of the golden audits.

`python -m tests.golden.frozen` compares all of them; with `--write` it stores what is computed now,
for all audits or for those that are named.

Integers, truth values and texts have to be equal. Floats are stored as `float.hex()` and have to be
equal to the last bit on the processor, and with the NumPy and SciPy, that the values come from
(`values/machine.json`), or where MUTANDIS_GOLDEN_EXACT is 1. Elsewhere, or where it is 0, they may
differ by a relative 1e-9: iterative fits stop one step earlier or later where another processor
rounds an exponential otherwise, and the counterfactuals, distances and p-values that follow differ
in their last digits. Differences of nearly equal numbers are compared to 1e-12 absolutely.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np

from tests.golden.audits import AUDITS, run_quietly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import mutandis as mm

__all__ = ["GONE", "RENAMED", "collect", "differences", "is_exact", "read", "write"]

Tables: TypeAlias = dict[str, dict[str, list[Any]]]

VALUES = Path(__file__).parent / "values"
_MACHINE = VALUES / "machine.json"
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12

GONE: dict[str, str] = {}
"""Stored tables ("support") and columns ("unfit", or "findings st 5: unfit") that no longer exist.

Each has the reason for which it was given up.
"""

RENAMED: dict[str, str] = {}
"""Columns that have another name now, by the name under which they are stored."""

# sentences, which may be reworded
_PROSE = frozenset({"robustness", "insufficient"})


# --- what an audit computes: all access to its API -----------------------------------------------


def collect(audit: mm.Audit, also: frozenset[str] = frozenset()) -> Tables:
    """Collect the numbers of an audit as tables of columns.

    Parameters
    ----------
    audit
        A finished audit, run or reopened.
    also
        As in `Golden`.
    """
    found = {"counts": _columns(audit.counts())}
    for method in audit.methods:
        for k in audit.ks:
            found[f"findings {method} {k}"] = _columns(audit.findings(method, k=k))
    found |= _counterfactuals(audit)
    for title in sorted(also):
        found |= _FURTHER[title](audit)
    return found


def _counterfactuals(audit: mm.Audit) -> Tables:
    """Collect the counterfactual attributes and outcomes, of the columns that are saved."""
    frame = audit.counterfactuals()
    if frame is None:
        return {}
    known = {audit.plan.outcome.column, *(each.name for each in audit.plan.attributes)}
    columns = {name: each for name, each in _columns(frame).items() if name in known}
    return {"counterfactuals": columns}


def _worldviews(audit: mm.Audit) -> Tables:
    compared = audit.results.worldviews
    assert compared is not None
    return {"worldviews": {name: _values(each) for name, each in compared.columns().items()}}


def _grounds(audit: mm.Audit) -> Tables:
    found: Tables = {}
    for ground, part in audit.parts.items():
        found[f"{ground} counts"] = _columns(part.counts())
        found[f"{ground} findings"] = _columns(part.findings())
    return found


def _people(audit: mm.Audit) -> Tables:
    """Collect the groups of two complainants, their draws and their curves over λ."""
    method, k = audit.plan.settings.primary
    findings = _columns(audit.findings(method, k=k))
    found: Tables = {}
    for place in _chosen(findings["verdict"]):
        person = findings["id"][place]
        case = audit.case(person)
        for each in audit.methods:
            if each != "cf":
                groups = case.groups(each, k=k)
                for side, members in (("control", groups.control), ("test", groups.test)):
                    found[f"person {place} {each} {side}"] = {
                        "id": _values(members.ids),
                        "distance": _values(members.distance),
                        "place": _values(members.place),
                    }
        for name, drawn in case.drawn.items():
            found[f"person {place} draws of {name}"] = {
                "value": _values([value for value, _ in drawn]),
                "share": _values([share for _, share in drawn]),
            }
        found |= _curves(audit, person, f"person {place}")
    return found


def _curves(audit: mm.Audit, person: Any, title: str) -> Tables:
    parts = audit.case_file(person).as_dict()["parts"]
    return {
        f"{title} curve {number}": {
            name: _values([point[name] for point in curve]) for name in sorted(curve[0])
        }
        for number, curve in enumerate(part["curve"] for part in parts)
        if curve
    }


_FURTHER: dict[str, Callable[[mm.Audit], Tables]] = {
    "grounds": _grounds,
    "hidden cause": lambda audit: {"hidden cause": _columns(audit.hidden_cause().table())},
    "people": _people,
    "support": lambda audit: {"support": _columns(audit.support())},
    "tipping": lambda audit: {"tipping": _columns(audit.tipping())},
    "worldviews": _worldviews,
}


def _chosen(verdicts: list[Any]) -> list[int]:
    """Return the places of the first complainant and of the first with another verdict."""
    others = [place for place, verdict in enumerate(verdicts) if verdict != verdicts[0]]
    return [0, *others[:1]]


def _columns(frame: Any) -> dict[str, list[Any]]:
    opened = nw.from_native(frame, eager_only=True)
    return {name: _values(opened[name].to_list()) for name in opened.columns if name not in _PROSE}


def _values(column: Any) -> list[Any]:
    return [_value(each) for each in np.asarray(column, dtype=object).tolist()]


def _value(value: Any) -> Any:
    """Return an integer, a truth value or a text as it is, and a float as hexadecimal text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value.hex()
    return str(value)


# --- comparison ----------------------------------------------------------------------------------


def differences(stored: Tables, found: Tables, *, exact: bool) -> list[str]:
    """List where found numbers are not those that are stored; new tables and columns are ignored.

    Parameters
    ----------
    stored, found
        What `read` and `collect` return.
    exact
        Whether floats have to be equal to the last bit.
    """
    return list(_differences(stored, found, exact=exact))


def _differences(stored: Tables, found: Tables, *, exact: bool) -> Iterator[str]:
    for title, columns in stored.items():
        if title in GONE:
            continue
        if title not in found:
            yield f"{title}: the table is missing; if it was given up, add it to GONE"
            continue
        for name, values in columns.items():
            where = f"{title}: {name}"
            if name in GONE or where in GONE:
                continue
            now = found[title].get(RENAMED.get(name, name))
            if now is None:
                yield f"{where}: the column is missing; if it was given up, add it to GONE"
            elif len(now) != len(values):
                yield f"{where}: {len(values)} rows are stored, and there are {len(now)}"
            else:
                yield from _unequal(where, values, now, exact=exact)


def _unequal(where: str, stored: list[Any], found: list[Any], *, exact: bool) -> Iterator[str]:
    for row, (was, now) in enumerate(zip(stored, found, strict=True)):
        if not _is_same(was, now, exact=exact):
            yield f"{where}, row {row}: {_shown(was)} is stored, found {_shown(now)}"


def _is_same(was: Any, now: Any, *, exact: bool) -> bool:
    if type(was) is type(now) and was == now:
        return True
    first, second = _float(was), _float(now)
    if exact or first is None or second is None:
        return False
    return math.isclose(first, second, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)


def _float(value: Any) -> float | None:
    is_hex = isinstance(value, str) and value.lstrip("-").startswith(("0x", "inf"))
    return float.fromhex(value) if is_hex else None


def _shown(value: Any) -> str:
    number = _float(value)
    return repr(value) if number is None else f"{value} ({number!r})"


# --- files ---------------------------------------------------------------------------------------


def read(name: str) -> Tables:
    """Read the stored numbers of an audit."""
    stored = json.loads((VALUES / f"{name}.json").read_text(encoding="utf-8"))
    tables: Tables = {}
    for title, table in stored.items():
        tables[title] = {
            column: _expand(values, table["rows"], tables, column)
            for column, values in table["columns"].items()
        }
    return tables


def _expand(values: Any, rows: int, before: Tables, column: str) -> list[Any]:
    if isinstance(values, list):
        return values
    return before[values["as in"]][column] if "as in" in values else [values["all"]] * rows


def write(name: str, tables: Tables) -> None:
    """Store the numbers of an audit, a line for each column.

    A column with one value has it once; one that an earlier table has too names that table.
    """
    sections: list[str] = []
    seen: dict[tuple[str, str], str] = {}
    for title, columns in tables.items():
        lines = []
        for key, values in columns.items():
            line = _line(values)
            earlier = seen.setdefault((key, line), title)
            if earlier != title and line.startswith("["):
                line = json.dumps({"as in": earlier})
            lines.append(f"{json.dumps(key)}: {line}")
        rows, body = len(next(iter(columns.values()), [])), ",\n".join(lines)
        sections.append(f'{json.dumps(title)}: {{"rows": {rows}, "columns": {{\n{body}\n}}}}')
    text = ",\n".join(sections)
    (VALUES / f"{name}.json").write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def _line(values: list[Any]) -> str:
    first = values[0] if values else None
    if len(values) > 1 and all(type(each) is type(first) and each == first for each in values):
        return json.dumps({"all": first}, ensure_ascii=False)
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


@cache
def is_exact() -> bool:
    """Return whether floats have to be equal to the last bit here."""
    asked = os.environ.get("MUTANDIS_GOLDEN_EXACT", "")
    if asked:
        return asked != "0"
    return bool(json.loads(_MACHINE.read_text(encoding="utf-8")) == machine())


def machine() -> dict[str, str]:
    """Return what the last bits of a float can depend on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    facts = {
        key.strip(): value.strip() for key, _, value in (each.partition(":") for each in lines)
    }
    processor = {key: facts.get(key, "") for key in ("model name", "cpu family", "model")}
    return {**processor, **{name: version(name) for name in ("numpy", "scipy")}}


def main() -> int:
    """Compare or store the numbers of all audits, or of those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="default: all audits")
    parser.add_argument("--write", action="store_true", help="store what is computed now")
    asked = parser.parse_args()
    found = [
        each
        for name in asked.names or AUDITS
        for each in _compare_or_write(name, store=asked.write)
    ]
    if asked.write:
        _MACHINE.write_text(json.dumps(machine(), indent=2) + "\n", encoding="utf-8")
    sys.stdout.writelines(f"{each}\n" for each in found)
    return 1 if found else 0


def _compare_or_write(name: str, *, store: bool) -> list[str]:
    golden = AUDITS[name]
    found = collect(run_quietly(golden.plan()), golden.also)
    if store:
        write(name, found)
        return []
    return [f"{name}: {each}" for each in differences(read(name), found, exact=is_exact())]


if __name__ == "__main__":
    sys.exit(main())
