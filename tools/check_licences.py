"""Checks that every package that mutandis may bring along has a licence that allows it.

Follows the requirements of the core and of the extras that users install, as far as they are
installed here, and reads the licence that each package states. Exits with 1 on one that is not
allowed, or not stated.

usage: python tools/check_licences.py
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

# permissive, or copyleft of single files of a library that is used unchanged
ALLOWED = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "HPND", "ISC"),
    *(
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "MPL-1.1",
        "MPL-2.0",
        "OFL-1.1",
        "PSF-2.0",
        "Python-2.0",
        "Unlicense",
    ),
    *("Zlib", "ZPL-2.1"),
}
# what metadata does not say, or says of several licences without saying that one can be chosen
CHOSEN = {
    "pyphen": "MPL-1.1",  # "GPL 2.0+/LGPL 2.1+/MPL 1.1 tri-license", says its file LICENSE
    "skops": "MIT",  # says its file LICENSE
}
# what the older fields of metadata call them
NAMES = {
    "apache 2": "Apache-2.0",
    "apache license": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "3-clause bsd license": "BSD-3-Clause",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "new bsd": "BSD-3-Clause",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "isc license (iscl)": "ISC",
}
EXTRAS = {"all", "dowhy"}


def main() -> int:
    """Print each package with its licence; count those that are not allowed."""
    wanted, absent, refused = [("mutandis", frozenset(EXTRAS))], set(), 0
    seen: dict[str, frozenset[str]] = {}
    while wanted:
        name, extras = wanted.pop()
        if name in seen and extras <= seen[name]:
            continue
        seen[name] = extras | seen.get(name, frozenset())
        try:
            wanted += _requirements(distribution(name), seen[name])
        except PackageNotFoundError:
            absent.add(name)
    for name in sorted(seen.keys() - absent - {"mutandis"}):
        found = licence_of(distribution(name))
        fits = is_allowed(CHOSEN.get(name, found))
        refused += not fits
        print(f"{name:28} {found}{'' if fits else '   is not allowed'}")
    print(f"{len(seen) - len(absent) - 1} packages, {refused} with a licence that is not allowed.")
    if absent:
        print(f"Not installed here, and not checked: {', '.join(sorted(absent))}.")
    return bool(refused)


def _requirements(
    package: Distribution, extras: frozenset[str]
) -> list[tuple[str, frozenset[str]]]:
    found = []
    for line in package.requires or ():
        need = Requirement(line)
        environments = [{"extra": extra} for extra in ("", *extras)]
        if need.marker is None or any(map(need.marker.evaluate, environments)):
            name = re.sub(r"[-_.]+", "-", need.name).lower()
            found.append((name, frozenset(need.extras)))
    return found


def licence_of(package: Distribution) -> str:
    """Read the licence: the expression, else the classifiers, else the first line of the text."""
    data = package.metadata
    expression = data.get("License-Expression")
    if expression:
        return str(expression)
    stated = [
        each.split(" :: ")[-1] for each in data.get_all("Classifier") or () if "License" in each
    ]
    stated = [each for each in stated if each != "OSI Approved"]
    text = (data.get("License") or "").strip().splitlines()
    names = stated or text[:1] or ["not stated"]
    return " AND ".join(NAMES.get(each.lower(), each) for each in names)


def is_allowed(expression: str) -> bool:
    """Tell whether an SPDX expression can be met by licences that are allowed.

    Examples
    --------
    >>> is_allowed("MIT AND (GPL-3.0-only OR BSD-3-Clause)"), is_allowed("MIT AND GPL-3.0-only")
    (True, False)
    """
    words = re.findall(r"\(|\)|[^\s()]+", re.sub(r"\s+WITH\s+\S+", "", expression))
    held: list[list[list[bool]]] = [[[]]]  # alternatives of conjunctions, per bracket
    for word in words:
        if word == "(":
            held.append([[]])
        elif word == ")":
            inner = held.pop()
            held[-1][-1].append(any(all(each) for each in inner))
        elif word.upper() == "OR":
            held[-1].append([])
        elif word.upper() != "AND":
            held[-1][-1].append(word in ALLOWED)
    return bool(words) and any(all(each) for each in held[0])


if __name__ == "__main__":
    sys.exit(main())
