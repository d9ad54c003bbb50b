"""What a results folder is, for repositories and catalogues: `ro-crate-metadata.json` and schemas.

The crate follows RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) and its profile Process Run Crate 0.5
(https://w3id.org/ro/wfrun/process/0.5): which software made which files from what. Inputs stay
where they are, and are named by their hashes alone: neither a path nor a name of a person, a
machine or a source is in it. The schemas say which fields findings, case files and the record have.
"""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mutandis.files.results_folder import CASES, CRATE, RECORD, SCHEMAS
from mutandis.files.table_files import hash_file
from mutandis.limits import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["same_crate", "write_crate", "write_schemas"]

_PROCESS = "https://w3id.org/ro/wfrun/process/0.5"
_CONTEXT = [
    "https://w3id.org/ro/crate/1.1/context",
    "https://w3id.org/ro/terms/workflow-run/context",  # has sha256
]
_FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".npz": "application/zip",
    ".parquet": "application/vnd.apache.parquet",
    ".svg": "image/svg+xml",
}
_ABOUT = {
    "findings.parquet": "One row per method, k and complainant: personal data",
    "counts.csv": "Cases per method and k",
    "report.html": "The report",
    "queries.jsonl": "When an endpoint was asked, and how often, without any row",
    "audit.npz": "What was counted, and the columns that were used: personal data",
    RECORD: "The record: settings, versions, diagnostics, and a SHA-256 of every other file",
}
_KIND = {"plots": "A picture of the report", "schemas": "A JSON Schema"}
_BYTES = 50_000_000
# what differs between two runs that find the same
_OF_A_RUN = ("datePublished", "endTime", "sha256", "contentSize")


def write_schemas(folder: Path) -> None:
    """Write the schemas of findings, case files and the record."""
    (folder / SCHEMAS).mkdir()
    for each in files("mutandis.files").joinpath("schemas").iterdir():
        (folder / SCHEMAS / each.name).write_bytes(each.read_bytes())


def write_crate(folder: Path, record: Mapping[str, Any]) -> None:
    """Describe the files of a folder, and the run that made them; `record` is that of the audit."""
    made = sorted(path for path in folder.rglob("*") if path.is_file())
    outputs = [_describe_file(folder, path) for path in made]
    # it holds the hash of this file, so its own cannot stand here
    outputs.append(_file(RECORD))
    inputs, software = list(_inputs(record)), list(_software(record["provenance"]["versions"]))
    graph = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            "about": {"@id": "./"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "conformsTo": {"@id": _PROCESS},
            "name": "Results of an audit for individual discrimination",
            "description": "Counterfactual situation testing of a table of decisions. Case files "
            f"are written later and have a record of their own, {CASES}/SHA256SUMS.",
            "datePublished": record["created"],
            "license": {"@id": "#licence"},
            "hasPart": _refer(outputs),
            "mentions": [{"@id": "#audit"}],
        },
        {"@id": _PROCESS, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {
            "@id": "#licence",
            "@type": "CreativeWork",
            "name": "No licence is granted",
            "description": "These results hold personal data. Whoever answers for them decides who "
            "may use them, and for what.",
        },
        {
            "@id": "#audit",
            "@type": "CreateAction",
            "name": "An audit by counterfactual situation testing",
            "description": f"The settings, and all that was observed, are in {RECORD}.",
            "actionStatus": "http://schema.org/CompletedActionStatus",
            "endTime": record["created"],
            "instrument": {"@id": "#mutandis"},
            "object": _refer(inputs),
            "result": _refer(outputs),
        },
        *inputs,
        *software,
        *outputs,
    ]
    text = json.dumps({"@context": _CONTEXT, "@graph": graph}, indent=2, ensure_ascii=False)
    (folder / CRATE).write_text(f"{text}\n", encoding="utf-8")


def same_crate(first: Path, second: Path) -> bool:
    """Tell whether two crates say the same, but for times, and hashes that the records compare."""
    return bool(_lasting(first) == _lasting(second))


def _lasting(path: Path) -> Any:
    """Give what a crate says, but for what differs between two runs that find the same."""
    try:
        crate = json.loads(read_regular(path, most=_BYTES).decode("utf-8"))
        for entity in crate["@graph"]:
            for name in _OF_A_RUN:
                entity.pop(name, None)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # whatever it is, no crate of ours
    return crate


def _refer(entities: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"@id": each["@id"]} for each in entities]


def _describe_file(folder: Path, path: Path) -> dict[str, Any]:
    # no size: it would depend on the order of rows, and the hash says more
    return {**_file(path.relative_to(folder).as_posix()), "sha256": hash_file(path)}


def _file(name: str) -> dict[str, Any]:
    first, _, last = name.rpartition("/")
    suffix = last[last.rindex(".") :] if "." in last else ""
    return {
        "@id": quote(name),
        "@type": "File",
        "name": last,
        "description": _ABOUT.get(name) or _KIND.get(first, "A file of the audit"),
        "encodingFormat": _FORMATS.get(suffix, "application/octet-stream"),
    }


def _inputs(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Name what was read by its hash; none of it is in the folder, so none is a File."""
    data, text = record["provenance"]["data"], record["config"]["text"]
    yield {
        "@id": "#table",
        "@type": "CreativeWork",
        "name": "The table of decisions",
        "description": f"{data['rows']:,} rows were audited. SHA-256 of the ids and columns that "
        f"were used: {data['sha256']}.",
        **({"sha256": record["source"]["sha256"]} if record["source"].get("sha256") else {}),
    }
    yield {
        "@id": "#audit-file",
        "@type": "CreativeWork",
        "name": "The audit file",
        "description": f"Its text is in {RECORD}.",
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    for number, sha256 in enumerate(sorted(record["files"].values()), start=1):
        yield {
            "@id": f"#model-{number}",
            "@type": "CreativeWork",
            "name": "A file that the decision maker was made from",
            "sha256": sha256,
        }


def _software(versions: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    needed = [name for name in versions if name != "mutandis"]
    for name, version in versions.items():
        yield {
            "@id": f"#{name}",
            "@type": "SoftwareApplication",
            "name": name,
            "softwareVersion": version,
            **(
                {"softwareRequirements": [{"@id": f"#{each}"} for each in needed]}
                if name == "mutandis"
                else {}
            ),
        }
