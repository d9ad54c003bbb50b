"""Redaction: attacks that succeed on the full case file and must fail on the redacted one."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import mutandis as mm
from mutandis.auditing.provenance import hash_population
from mutandis.engine.tally import Sums
from mutandis.outcomes.intervals import INTERVALS
from mutandis.report.case_model import Cause, Movement
from mutandis.report.redact import LEAST, People, _movements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.report.case_model import CaseDocument

Auditing = Callable[..., mm.Audit]
WORLDVIEW = mm.Worldview({"salary": mm.Linear("woman"), "savings": mm.Linear("salary")})


def cloud(seed: int, rows: int = 400) -> pd.DataFrame:
    """Make up people who do not tie, with outcomes that depend on where they stand, and luck."""
    rng = np.random.default_rng(seed)
    woman = rng.integers(0, 2, rows)
    salary = rng.normal(50 - 6 * woman, 8, rows)
    savings = rng.normal(0.3 * salary, 4, rows)
    lucky = rng.random(rows) < 0.2
    return pd.DataFrame(
        {
            "who": [f"name-{row}-{seed}" for row in range(rows)],
            "woman": woman,
            "salary": salary,
            "savings": savings,
            "granted": ((salary + savings > 60) ^ lucky).astype(int),
        }
    )


def audit_table(table: pd.DataFrame, **options: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": 0,
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"salary": "continuous", "savings": "continuous"},
        "worldview": WORLDVIEW,
        "decision": "salary + savings > 60",
        "ks": (15, 30, 50),
        "id": "who",
        "evidence": mm.Evidence(primary=("cst_without", 30), adjust="none"),
        # as many as it takes to see them
        "uncertainty": mm.Uncertainty(refits=2),
    }
    return mm.audit(table, **{**settings, **options})


@cache
def audit_cloud(seed: int) -> mm.Audit:
    return audit_table(cloud(seed))


def some(audit: mm.Audit, number: int) -> list[Any]:
    ids: list[Any] = audit.findings()["id"].tolist()
    return ids[:: max(1, len(ids) // number)][:number]


@cache
def document_of(audit: mm.Audit, who: Any, *, redact: bool) -> CaseDocument:
    """Make each case file once: several tests look at it."""
    return audit.case_file(who, redact=redact)


def read(audit: mm.Audit, who: Any, *, redact: bool) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document_of(audit, who, redact=redact).to_json())
    return found


def both(audit: mm.Audit, who: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return read(audit, who, redact=False), read(audit, who, redact=True)


# --- what stays, what goes ------------------------------------------------------------------------


def smallest_group(audit: mm.Audit, who: Any) -> int:
    """Count the people behind the headline, in the smaller group of any ground."""
    method, k = audit.plan.settings.primary
    groups = [part.case(who).groups(method, k=k) for part in audit.parts.values()]
    places = [
        members.place[~members.is_center]
        for pair in groups
        for members in (pair.control, pair.test)
    ]
    # a match may hold several places, and counts as one person at most
    return min(int(each.sum() / max(1, *each, 0) + 1e-6) for each in places)


@pytest.mark.few("multiple", "coupled", "matched", "cf", "full", "with-centers")
def test_the_own_record_and_the_verdicts_stay_and_nothing_else(any_audit: mm.Audit) -> None:
    worse = any_audit.plan.settings.evidence.direction == "negative"
    for who in some(any_audit, 2):
        full, redacted = (document_of(any_audit, who, redact=each) for each in (False, True))
        assert redacted.complainant == full.complainant
        few = full.verdict.method != "cf" and smallest_group(any_audit, who) < LEAST
        if few:
            assert redacted.verdict.verdict == redacted.primary.verdict == "withheld"
            assert "would tell about fewer than 10 people" in redacted.verdict.sentence
            assert {part.verdict for part in redacted.parts} == {"withheld"}
        verdicts = {(row.method, row.k): row.verdict for row in full.figures}
        for row in redacted.figures:
            assert row.verdict == verdicts[row.method, row.k] or (few and row.primary)
        check_own_case(full, redacted, concerned=full.complainant.refused == worse, few=few)
        # nobody else is named; a name that begins another one's is no name of theirs
        others = [each for each in any_audit.plan.population.ids.tolist() if each != who]
        for text in (redacted.to_html(), redacted.to_json()):
            assert not [each for each in others if f'"{each}"' in text or f">{each}<" in text]
        check_data(read(any_audit, who, redact=True))


def check_own_case(
    full: CaseDocument, redacted: CaseDocument, *, concerned: bool, few: bool
) -> None:
    own = redacted.own_case
    if not concerned:
        assert own.answer == full.own_case.answer == "no"
    elif full.own_case.share is not None:
        assert own.answer == "withheld"
        assert "is not told here" in own.sentence
    assert own.share is None
    assert "%" not in own.sentence
    assert not few or "part of the pattern" not in own.sentence


def check_data(data: dict[str, Any]) -> None:
    """Check against a list of what may be there: a field that is added has to be thought about."""
    assert not list(members_of(data))
    assert set(data["provenance"]) == {"versions", "settings", "redacted"}
    for row in data["figures"]:
        assert row["method"] == "cf" or filled(row) <= _ROW
    for part in data["parts"]:
        assert not filled(part) & {"worlds", "verdict_share", "curve"}
        assert all(filled(check) <= {"role", "off_support"} for check in part["support"])
        for group in (part["control"], part["test"]):
            assert group is None or filled(group) <= {"role", "around", "places", "share"}


_ROW = {"method", "title", "k", "primary", "verdict", "p_control", "p_test"}


def filled(record: dict[str, Any]) -> set[str]:
    return {name for name, value in record.items() if value not in (None, [], {}, 0, False)}


# --- uniqueness -----------------------------------------------------------------------------------


def members_of(data: Any) -> Iterator[dict[str, Any]]:
    """Find everything in a file that looks like a person, wherever it stands."""
    if isinstance(data, dict):
        if "person" in data or data.get("role") == "person":
            yield data
        for part in data.values():
            yield from members_of(part)
    elif isinstance(data, list | tuple):
        for part in data:
            yield from members_of(part)


def count_unique(data: dict[str, Any]) -> int:
    """Count the people who are the only ones in their file with such values."""
    people = [json.dumps(each["values"]) for each in members_of(data) if each["role"] == "person"]
    return sum(times == 1 for times in Counter(people).values())


def test_nobody_is_unique_by_values() -> None:
    audit = audit_cloud(0)
    found = [[count_unique(data) for data in both(audit, who)] for who in some(audit, 4)]
    assert all(full >= 50 for full, _ in found)
    assert not any(redacted for _, redacted in found)


# --- exact sums -----------------------------------------------------------------------------------


def group_sum(data: dict[str, Any], name: str, spread: float) -> float | None:
    """Work out the sum of an attribute over her control group from its balance."""
    part = data["parts"][0]
    for check in part["support"]:
        if check["role"] == "control" and name in check["balance"]:
            center = data["complainant"]["attributes"][name]
            return float(part["control"]["people"] * (center - spread * check["balance"][name]))
    return None


def test_no_sum_over_a_group_can_be_worked_out() -> None:
    audit, table = audit_cloud(0), cloud(0).set_index("who")
    spread = float(table.salary.std(ddof=0))
    for who in some(audit, 6):
        full, redacted = both(audit, who)
        ids = audit.case(who).groups("cst_without", k=30).control.ids
        assert group_sum(full, "salary", spread) == pytest.approx(table.salary[ids].sum())
        assert group_sum(redacted, "salary", spread) is None


def solve_for_salary(data: dict[str, Any], table: pd.DataFrame, other: int) -> tuple[float, float]:
    """Bound one salary, knowing all others and how far hers moved from one status to the other."""
    (change,) = (m["change"] for m in data["parts"][0]["movements"] if m["attribute"] == "salary")
    men = table[table.woman == 0]
    known = float(men.salary.drop(other).sum())
    women = float(table.salary[table.woman == 1].mean())
    half = 0.0 if change != round(change, 1) else 0.05 if change != round(change) else 0.5
    low, high = (len(men) * (women + change + step) - known for step in (-half, half))
    return low, high


def test_the_counterfactual_does_not_tell_a_value_of_one_person() -> None:
    """Coefficients are means over the table: whoever knows all but one value would know it."""
    audit, table = audit_cloud(0), cloud(0)
    other = int(table.index[table.woman == 0][7])
    truth, spread = table.salary[other], table.salary.std()
    for who in some(audit, 3):
        full, redacted = both(audit, who)
        assert solve_for_salary(full, table, other) == pytest.approx((truth, truth))
        low, high = solve_for_salary(redacted, table, other)
        assert low < truth < high
        assert high - low > spread
    # files of several complainants cut at the same place
    changes = {
        json.dumps([m["change"] for m in read(audit, who, redact=True)["parts"][0]["movements"]])
        for who in some(audit, 3)
    }
    assert len(changes) == 1


# --- outcomes worked out from several files -------------------------------------------------------


class Knowledge:
    """What an attacker knows about outcomes, who knows everything else and this program.

    He searches the groups of any complainant himself, so that every file gives linear conditions
    on the outcomes (1 for refused) of people whom he can name.
    """

    def __init__(self, audit: mm.Audit) -> None:
        self._audit = audit
        self._rows: list[NDArray[np.float64]] = []
        self._bounds: list[tuple[float, float]] = []
        self.place = {who: i for i, who in enumerate(audit.plan.population.ids.tolist())}
        self.truth = audit.study.outcomes.astype(int)
        self.asked: set[int] = set()

    def _vector(self, ids: Iterable[Any]) -> NDArray[np.float64]:
        vector = np.zeros(len(self.place))
        vector[[self.place[who] for who in ids]] = 1.0
        return vector

    def _add(self, vector: NDArray[np.float64], low: float, high: float) -> None:
        self._rows.append(vector)
        self._bounds.append((low, high))

    def read(self, data: dict[str, Any]) -> None:
        """Learn from a file what it tells."""
        who = data["complainant"]["id"]
        self._add(self._vector([who]), *[float(data["complainant"]["refused"])] * 2)
        for row in data["figures"]:
            if row["method"] not in {"st", "cst_without"}:
                continue
            groups = self._audit.case(who).groups(row["method"], k=row["k"])
            control, test = (self._vector(m.ids) for m in (groups.control, groups.test))
            self.asked |= set(np.flatnonzero(control + test).tolist())
            for vector, share in ((control, row["p_control"]), (test, row["p_test"])):
                self._add(vector, *count_within(share, row["k"]))
            self._add(control - test, *difference_within(row["verdict"], row["k"]))

    def certain(self) -> dict[int, int]:
        """Give the outcomes that no other table could have: each is tried both ways."""
        bounds = np.array(self._bounds)
        conditions = LinearConstraint(np.array(self._rows), bounds[:, 0], bounds[:, 1])
        size = len(self.place)
        possible = [set[int]() for _ in range(size)]
        for index in sorted(self.asked):
            for value in (0, 1):
                if value in possible[index]:
                    continue
                low, high = np.zeros(size), np.ones(size)
                low[index] = high[index] = value
                solved = milp(
                    np.zeros(size),
                    constraints=conditions,
                    integrality=np.ones(size, dtype=np.int64),
                    bounds=Bounds(low, high),
                )
                if solved.success:
                    for each, chosen in enumerate(np.rint(solved.x).astype(int)):
                        possible[each].add(int(chosen))
        assert all(self.truth[index] in possible[index] for index in self.asked)
        return {i: min(possible[i]) for i in sorted(self.asked) if len(possible[i]) == 1}


def count_within(share: float | str, k: int) -> tuple[float, float]:
    """Give how many of k may have been refused."""
    if share == "withheld":
        return 0.0, float(k)
    if isinstance(share, float):
        return share * k - 1e-6, share * k + 1e-6
    counts = [
        count
        for count in range(k + 1)
        if People(dict.fromkeys(range(k), 1.0), count).band() == share
    ]
    return float(counts[0]), float(counts[-1])


@cache
def difference_within(verdict: str, k: int) -> tuple[float, float]:
    """Give by how many the refused of the control group exceed those of the test group."""
    counts = np.arange(k + 1)
    control, test = (each.ravel() for each in np.meshgrid(counts, counts))
    sizes, ones = np.full_like(control, k), np.ones_like(control)
    rejects = (
        INTERVALS["miettinen-nurminen"](
            Sums.of(marks=control, places=sizes, parts=ones),
            Sums.of(marks=test, places=sizes, parts=ones),
            tau=0.0,
            alpha=0.05,
        ).p_value
        <= 0.05
    )
    more = control > test
    fits = {"no-evidence": ~more, "evidence": more & ~rejects, "significant": more & rejects}
    apart = (control - test)[fits[verdict]]
    return float(apart.min()), float(apart.max())


def attack(audit: mm.Audit, complainants: Sequence[Any], *, redact: bool) -> tuple[int, int]:
    """Count the people other than the complainants whose outcomes are certain, and all of them."""
    knows = Knowledge(audit)
    for who in complainants:
        knows.read(read(audit, who, redact=redact))
    hers = {knows.place[who] for who in complainants}
    return len(knows.certain().keys() - hers), len(knows.asked - hers)


@pytest.mark.slow
def test_several_files_leave_every_outcome_open() -> None:
    """Groups overlap: the counts of several files are a system of equations."""
    audit = audit_table(cloud(0, rows=150), ks=(15, 30))
    complainants = some(audit, 6)
    found, people = attack(audit, complainants, redact=False)
    assert found > people / 10
    assert attack(audit, complainants, redact=True)[0] == 0


@pytest.mark.slow
def test_forty_files_leave_every_outcome_open() -> None:
    audit = audit_cloud(0)
    found, people = attack(audit, some(audit, 20), redact=False)
    assert found > 0.4 * people
    assert attack(audit, some(audit, 40), redact=True)[0] == 0


# --- differencing ---------------------------------------------------------------------------------


def told(data: dict[str, Any]) -> list[tuple[str, int]]:
    return [
        (row["method"], row["k"])
        for row in data["figures"]
        if row["method"] != "cf" and row["verdict"] != "withheld"
    ]


def check_apart(audit: mm.Audit, who: Any, keys: Sequence[tuple[str, int]]) -> int:
    """Check that any two groups are the same people or differ by ten; count those that differ."""
    groups = []
    for part in audit.parts.values():
        for method, k in keys:
            pair = part.case(who).groups(method, k=k)
            for members in (pair.control, pair.test):
                people = ~members.is_center
                groups.append(pd.Series(members.place[people], index=members.ids[people]))
    assert all(group.sum() > 9.999 for group in groups)
    apart = [a.sub(b, fill_value=0).abs().sum() for a, b in combinations(groups, 2)]
    assert not [each for each in apart if 1e-6 < each < 9.999]
    return sum(each > 1 for each in apart)


@pytest.mark.few("matched-draws", "full", "coupled", "all-ties", "alone")
def test_groups_that_are_told_differ_by_ten_people(any_audit: mm.Audit) -> None:
    for who in some(any_audit, 2):
        check_apart(any_audit, who, told(read(any_audit, who, redact=True)))


@pytest.mark.slow
def test_nested_groups_do_not_tell_the_people_between_them() -> None:
    audit = audit_table(
        cloud(3), ks=(5, 20, 21, 40), evidence=mm.Evidence(primary=("cst_without", 21))
    )
    for who in some(audit, 3):
        full, redacted = both(audit, who)
        counted = {
            row["k"]: row["p_control"] * row["k"]
            for row in full["figures"]
            if row["method"] == "st"
        }
        between = round(counted[21] - counted[20])
        last = audit.case(who).groups("st", k=21).control
        assert between == last.is_negative[-1]  # the outcome of one person
        keys = told(redacted)
        assert {k for method, k in keys if method == "cst_without"} == {21, 40}
        assert ("cst_with", 21) in keys  # the same people
        assert check_apart(audit, who, keys)
        shown = [row for row in redacted["figures"] if row["p_control"] != "withheld"]
        assert {row["k"] for row in shown if row["method"] != "cf"} <= {21}


def test_groups_around_both_centers_do_not_tell_the_people_between_them() -> None:
    """Where she hardly moves, ST and CST compare with nearly the same people."""
    audit = audit_table(
        cloud(3),
        worldview=mm.Worldview({"salary": mm.Stated("45 - 0.3 * woman")}),
        ks=(30,),
    )
    near = 0
    for who in some(audit, 8):
        first, second = (
            set(audit.case(who).groups(method, k=30).test.ids) for method in ("st", "cst_without")
        )
        keys = told(read(audit, who, redact=True))
        assert ("cst_without", 30) in keys
        assert (("st", 30) in keys) is not (0 < len(first ^ second) < 10)
        near += 0 < len(first ^ second) < 10
    assert near


@pytest.mark.slow
def test_who_is_told_does_not_depend_on_outcomes() -> None:
    table = cloud(4)
    other = table.assign(granted=np.random.default_rng(1).permutation(table.granted))
    before, after = audit_table(table), audit_table(other)
    for who in some(before, 6):
        first, second = (read(audit, who, redact=True) for audit in (before, after))
        assert told(first) == told(second)
        withheld = [
            [row["p_control"] == "withheld" for row in data["figures"]] for data in (first, second)
        ]
        assert withheld[0] == withheld[1]


@pytest.mark.parametrize("size", [10, 15, 19, 20, 25, 29, 30, 37, 100, 199, 200, 1000])
def test_a_band_holds_at_least_ten_counts(size: int) -> None:
    places = dict.fromkeys(range(size), 1.0)
    bands = [People(places, refused).band() for refused in range(size + 1)]
    counts = Counter(bands)
    assert min(counts.values()) >= 10
    assert len(counts) == max(1, min(size // 10, 20))
    assert (counts.keys() == {"withheld"}) is (size < 20)
    # each in one piece, from the lowest to the highest
    assert list(counts) == sorted(counts, key=bands.index)
    assert sum(a != b for a, b in pairwise(bands)) == len(counts) - 1


def test_bands_are_cut_exactly_where_places_are_shared() -> None:
    """Three people who hold two places: thirds that do not add up in binary."""
    places: dict[Any, float] = {**dict.fromkeys(range(28), 1.0), **dict.fromkeys("abc", 2 / 3)}
    assert People(places, 8 + 3 * (2 / 3)).band() == "33% to 67%"
    assert People(places, 8 + 2 * (2 / 3)).band() == "under 33%"
    assert People(places, 0).size == 30


def test_people_who_hold_several_places_count_once() -> None:
    """In a matched comparison few people can hold all places of the test group."""
    table = cloud(5)
    men = table.index[table.woman == 0]
    audit = audit_table(
        table.drop(men[12:]),
        methods=["cst_matched"],
        ks=(12,),
        evidence=mm.Evidence(primary=("cst_matched", 12), adjust="none"),
    )
    who = some(audit, 1)[0]
    members = audit.case(who).groups("cst_matched", k=12).test
    assert members.place.max() > 1.3  # 12 places, but fewer than ten people who count alike
    assert read(audit, who, redact=True)["verdict"]["verdict"] == "withheld"
    full = audit_table(
        table,
        methods=["cst_matched"],
        ks=(50,),
        evidence=mm.Evidence(primary=("cst_matched", 50), adjust="none"),
    )
    for who in some(full, 3):
        members = full.case(who).groups("cst_matched", k=50).test
        counted = members.place.sum() / max(1, members.place.max())
        part = read(full, who, redact=True)["parts"][0]
        assert part["test"]["places"] == (int(counted) // 10 * 10 if counted >= 10 else "withheld")


# --- fingerprints ---------------------------------------------------------------------------------


def guess_outcome(audit: mm.Audit, table: pd.DataFrame, person: int, text: str) -> set[int]:
    """Try both outcomes of one person against every hash in a file; all else is known."""
    hashes = set(re.findall(r"[0-9a-f]{16,}", text))
    fitting = set()
    for guess in (0, 1):
        tried = table.copy()
        tried.loc[person, "granted"] = guess
        plan = mm.plan(
            tried,
            outcome="granted",
            negative=0,
            protected=mm.Protection("woman", value=1, reference=0),
            attributes={"salary": "continuous", "savings": "continuous"},
            worldview=WORLDVIEW,
            decision="salary + savings > 60",
            id="who",
        )
        if hash_population(plan.population) in hashes:
            fitting.add(guess)
    assert len(audit.plan.population) == len(table)
    return fitting


def test_no_fingerprint_tells_an_outcome() -> None:
    audit, table = audit_cloud(0), cloud(0)
    who = some(audit, 1)[0]
    full, redacted = (audit.case_file(who, redact=each) for each in (False, True))
    for person in (3, 77, 200):
        assert guess_outcome(audit, table, person, full.to_json()) == {table.granted[person]}
        assert guess_outcome(audit, table, person, redacted.to_json() + redacted.to_html()) == set()
    assert not re.search(r"[0-9a-f]{32,}", redacted.to_json())


@pytest.mark.slow
def test_the_file_itself_is_no_fingerprint() -> None:
    """Another outcome of anybody gives the same bytes, or another band or verdict."""
    table = cloud(0, rows=200)
    audit = audit_table(table, ks=(15, 30))
    who = some(audit, 1)[0]
    before = {each: audit.case_file(who, redact=each).to_json() for each in (False, True)}
    groups = audit.case(who).groups("cst_without", k=30)
    same = 0
    for person in [*groups.control.ids[::6], *groups.test.ids[::6]]:
        row = table.index[table.who == person][0]
        other = table.copy()
        other.loc[row, "granted"] = 1 - table.granted[row]
        changed = audit_table(other, ks=(15, 30))
        after = {each: changed.case_file(who, redact=each).to_json() for each in (False, True)}
        assert before[False] != after[False]
        same += before[True] == after[True]
        if before[True] != after[True]:
            assert summary(json.loads(before[True])) != summary(json.loads(after[True]))
    assert same >= 6


def summary(data: dict[str, Any]) -> list[Any]:
    return [[row["p_control"], row["p_test"], row["verdict"]] for row in data["figures"]]


def test_two_people_of_a_group_could_be_each_other() -> None:
    """An exchange of their outcomes changes no byte: the file is about the group."""
    table = cloud(1, rows=200)
    audit = audit_table(table, ks=(15, 30))
    who = some(audit, 2)[1]
    members = audit.case(who).groups("cst_without", k=15).control
    refused, granted = (members.ids[members.is_negative == each] for each in (True, False))
    assert len(refused)
    assert len(granted)
    other = table.copy()
    for person, outcome in ((refused[0], 1), (granted[0], 0)):
        other.loc[table.who == person, "granted"] = outcome
    pages = [
        {each: found.case_file(who, redact=each).to_html() for each in (False, True)}
        for found in (audit, audit_table(other, ks=(15, 30)))
    ]
    assert pages[0][True] == pages[1][True]
    assert pages[0][False] != pages[1][False]


# --- further kinds of audits ----------------------------------------------------------------------


def test_figures_do_not_tell_which_of_several_grounds_is_the_weakest() -> None:
    """They are the figures of one ground: the parts have a band each."""
    table = cloud(4, rows=360)
    table["foreign"] = np.random.default_rng(9).integers(0, 2, len(table))
    audit = audit_table(
        table,
        protected=[
            mm.Protection("woman", value=1, reference=0),
            mm.Protection("foreign", value=1, reference=0),
        ],
        combine="multiple",
        worldview=None,
        decision=None,
        uncertainty=mm.Uncertainty(),
        ks=(30,),
        evidence=mm.Evidence(primary=("st", 30)),
    )
    looked = 0
    for who in some(audit, 6):
        document = audit.case_file(who, redact=True)
        (row,) = document.figures
        assert (row.p_control, row.p_test) == ("withheld", "withheld")
        assert "against withheld" not in document.verdict.sentence
        shown = [group.share for part in document.parts for group in part.groups]
        looked += row.verdict != "withheld" and "withheld" not in shown
    assert looked


def test_the_headline_has_the_bands_where_they_are_told() -> None:
    audit = audit_cloud(0)
    told = 0
    for who in some(audit, 6):
        document = document_of(audit, who, redact=True)
        row = document.primary
        assert (row.method, row.k) == ("cst_without", 30)
        assert row.title == document_of(audit, who, redact=False).primary.title
        if "withheld" not in {row.p_control, row.p_test}:
            told += 1
            assert f"{row.p_control} of the control group" in document.verdict.sentence
            assert f"against {row.p_test} of the test group" in document.verdict.sentence
    assert told


def test_a_change_that_rounds_to_nothing_has_no_sign() -> None:
    table = cloud(6, rows=200)
    audit = audit_table(
        table, worldview=mm.Worldview({"salary": mm.Stated("50 + 0.0001 * woman")}), ks=(30,)
    )
    who = some(audit, 1)[0]
    full, redacted = both(audit, who)
    changes = [
        [m["change"] for m in data["parts"][0]["movements"] if m["attribute"] == "salary"]
        for data in (full, redacted)
    ]
    assert changes == [[pytest.approx(-0.0001, abs=1e-9)], [0]]
    text = document_of(audit, who, redact=True).to_json()
    assert not re.search(r"-0\.0\b", text)


def test_rounded_draws_are_added_up_and_the_commonest_come_first() -> None:
    population = audit_cloud(0).plan.population  # the standard deviation of salaries is near 8
    movement = Movement(
        attribute="salary",
        compared=True,
        factual=50.0,
        counterfactual=53.21,
        change=3.21,
        how="total",
        drawn=((53.21, 0.25), (51.0, 0.25), (53.19, 0.25), (56.0, 0.25)),
        causes=(Cause(parents=("woman",), before=1, after=0, amount=3.214),),
        remainder=-0.004,
    )
    (rounded,) = _movements((movement,), population)
    assert rounded.change == pytest.approx(3.2)
    assert rounded.counterfactual == pytest.approx(53.2)
    assert rounded.drawn == ((pytest.approx(53.2), 0.5), (51.0, 0.25), (56.0, 0.25))
    assert rounded.causes[0].amount == pytest.approx(3.2)
    assert rounded.remainder == 0


def test_groups_of_fewer_than_ten_people_are_not_told() -> None:
    audit = audit_table(cloud(0), similarity=mm.Similarity(max_distance=0.05, min_group=1))
    few = 0
    for who in some(audit, 12):
        data = read(audit, who, redact=True)
        if smallest_group(audit, who) < 10:
            few += 1
            part = data["parts"][0]
            assert data["verdict"]["verdict"] == part["verdict"] == "withheld"
            assert part["control"]["share"] == part["test"]["places"] == "withheld"
            assert part["support"] == []
            assert [row["k"] for row in data["figures"] if row["primary"]] == [30]
    assert 0 < few < 12


def test_counts_about_the_table_are_left_out() -> None:
    table = cloud(1).round({"salary": 0, "savings": 0})
    table.loc[[3, 8], "salary"] = np.nan
    table.loc[[50, 150, 250], "salary"] += np.pi / 10
    audit = audit_table(table, missing="drop")
    who = some(audit, 1)[0]
    full, redacted = (audit.case_file(who, redact=each) for each in (False, True))
    assert audit.disagreement is not None
    share = f"{1 - audit.disagreement:.1%}"
    number = f"{len(audit.study.people)} complainants"
    for words in ("2 rows without a value", "3 values off it", share, number):
        assert words in full.to_json()
        assert words not in redacted.to_json()
        assert words not in redacted.to_html()
    assert "may differ from the record" in redacted.to_json()
    assert "rows" not in redacted.as_dict()["provenance"]


def test_the_page_reads_as_a_whole() -> None:
    audit = audit_cloud(0)
    html = audit.case_file(some(audit, 1)[0], redact=True).to_html()
    assert "Case file, redacted" in html
    assert "no row, value or distance of other people" in html
    for gone in (
        'id="people"',
        'id="robustness"',
        'id="support"',
        '#people"',
        "Δp =",
    ):
        assert gone not in html
    assert "People, at least" in html
