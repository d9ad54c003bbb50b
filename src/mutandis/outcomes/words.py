"""How outcomes are worded in documents: the contract that every kind fulfils."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from mutandis.data.labels import PLAIN, Labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from mutandis.outcomes.outcome import Kind, Outcome

__all__ = ["Concerned", "Words"]

MISSING = "–"


class Concerned(NamedTuple):
    """Names of complainants by their own outcome, and by whether they have a case of their own."""

    own_case: str
    without: str  # concerned, without a case of their own
    concerned: str  # where it is not known who has a case
    other: str  # neither
    not_concerned: str  # where it is not known who has a case


def capitalised(text: str) -> str:
    """Begin a text with a capital, and leave the rest as it is."""
    return text[:1].upper() + text[1:]


def listed(names: Iterable[object], *, last: str = "and") -> str:
    """Join names as in a sentence."""
    *others, final = [*map(str, names)] or [""]
    return f"{', '.join(others)} {last} {final}" if others else final


@dataclass(frozen=True, slots=True, kw_only=True)
class Words(ABC):
    """How values, averages, differences and evidence are named and written.

    Parameters
    ----------
    kind, column, labels
        The kind of the outcome, its column, and what columns and values are called.
    """

    kind: Kind
    column: str = ""
    labels: Labels = PLAIN

    symbol: ClassVar[str] = "Δ"  # a difference
    of_them: ClassVar[str] = "worse off"  # a column that counts people with evidence

    @property
    def name(self) -> str:
        """The outcome."""
        return self.labels.column(self.column)

    # --- numbers ---

    @property
    def decimals(self) -> int:
        """Decimals of a difference."""
        return 3

    def number(self, value: float) -> str:
        """Write a number with the decimals of a difference."""
        # what rounds to zero has no sign
        return f"{round(float(value), self.decimals) + 0.0:,.{self.decimals}f}"

    def difference(self, value: float | str | None) -> str:
        """Write a difference between groups, with a real minus."""
        if isinstance(value, str):
            return value
        if value is None or isnan(value):
            return MISSING
        return self.number(value).replace("-", "−")

    def average(self, value: float | str | None) -> str:
        """Write what is averaged over a group."""
        if isinstance(value, str):
            return value
        return MISSING if value is None or isnan(value) else f"{value:.1%}"

    def value(self, value: Any) -> str:
        """Write a value of the outcome."""
        return self.labels.level(self.column, value)

    @abstractmethod
    def average_of(self, codes: NDArray[Any]) -> float | str:
        """Return what describes the outcomes of some people: their average, or all shares."""

    @abstractmethod
    def facts(self, outcome: Outcome) -> tuple[str, dict[str, Any]]:
        """Describe the column in a few words after the number of decisions, and as plain data."""

    # --- names ---

    @property
    @abstractmethod
    def averaged(self) -> str:
        """What is averaged over a group, as it follows its name: "refused", "mean rate"."""

    @property
    def described(self) -> str:
        """What a group is described by alone: "refused (Loan = no)", "levels of answer"."""
        return self.averaged

    @property
    @abstractmethod
    def worse(self) -> str:
        """Which outcomes are worse: "Loan = no", "a higher rate"."""

    @property
    def meaning(self) -> tuple[str, str]:
        """Term and explanation: which outcomes are worse."""
        return "Worse means", self.worse

    @property
    def sides(self) -> tuple[str, ...]:
        """The unfavourable and the favourable side; none where outcomes have no sides."""
        return ()

    @property
    def side_labels(self) -> dict[Any, str]:
        """Labels of sides that have several classes."""
        return {}

    @property
    def axis(self) -> tuple[str, str]:
        """Title of an axis of differences, and the name that is put into it, shortened."""
        return f"{self.symbol}, how much worse the mean {{}} of the control group is", self.name

    @property
    @abstractmethod
    def own_average(self) -> str:
        """What a complainant's own matches are described by, as the title of a column."""

    @property
    @abstractmethod
    def caption(self) -> str:
        """Caption of a table of both averages, their difference and the verdict."""

    @property
    @abstractmethod
    def dots(self) -> tuple[str, str]:
        """What filled and empty dots are, one per person of a group."""

    @abstractmethod
    def is_filled(self, value: Any, own: Any) -> bool:
        """Return whether a person's dot is filled, set against the complainant's own outcome."""

    @property
    def changing_first(self) -> str:
        """Whose outcomes are changed first to see what the verdict depends on."""
        return (
            "Those whose own place, and whose distance from that outcome, make the largest "
            "difference change first."
        )

    # --- sentences ---

    @property
    @abstractmethod
    def definition(self) -> str:
        """What is compared, and how a difference is formed: the first sentence on verdicts."""

    @property
    @abstractmethod
    def counts(self) -> str:
        """What counts in this audit, as a sentence."""

    @abstractmethod
    def no_evidence(self, *, worse: bool) -> str:
        """Predicate of a control group without evidence, before "by more than τ"."""

    @abstractmethod
    def evidence(self) -> str:
        """Verb of a control group with evidence: "was", "had"."""

    @property
    @abstractmethod
    def with_evidence(self) -> str:
        """Who is counted by `of_them`: "those with evidence whose …"."""

    @abstractmethod
    def concerned(self, *, worse: bool) -> Concerned:
        """Return the names of complainants by their own outcomes."""

    @abstractmethod
    def themselves(self, *, worse: bool) -> str:
        """Say what holds of complainants who are concerned themselves, as it follows "were"."""

    @property
    def not_themselves(self) -> str:
        """What holds of complainants who are not concerned themselves."""
        return f"were not {self.themselves(worse=True)}"

    def cautions(self, outcome: Outcome) -> Iterable[str]:
        """Return what a reader must know about the column."""
        return ()

    @abstractmethod
    def have_own_case(self, number: str, *, worse: bool, tau: float) -> str:
        """Say that a number of people have a case of their own."""

    @abstractmethod
    def on_record(self, mine: str, theirs: str | None) -> str:
        """Say what complainants had on record on average, and others, without a full stop."""

    @abstractmethod
    def would_have_been(self, average: str) -> str:
        """Say what complainants would have had on average, as it follows a condition."""

    @abstractmethod
    def changed(self, before: NDArray[Any], after: NDArray[Any], *, drawn: bool) -> str:
        """Say how many outcomes change in the counterfactual world, as it follows its name.

        Parameters
        ----------
        before, after
            Codes; of open counterfactuals, averages of codes over draws.
        drawn
            Whether the counterfactuals are drawn.
        """

    @abstractmethod
    def in_groups(self, control: float, test: float) -> str:
        """Write the averages of both groups in a sentence: "60% of the control group refused …"."""

    @abstractmethod
    def in_group(self, average: float) -> str:
        """Write the average of one group under a picture."""

    # --- one complainant ---

    def decided(self, value: Any) -> str:
        """Name the side of a value, "refused"; empty where outcomes have no sides."""
        return ""

    def is_concerned(self, value: Any, *, worse: bool) -> bool:
        """Return whether a complainant's own outcome is one that is looked for."""
        return True

    @abstractmethod
    def had(self, value: Any) -> str:
        """Say what was decided on one person: "was refused (outcome no)"."""

    @abstractmethod
    def averages(
        self, control: float | str | None, test: float | str | None
    ) -> tuple[tuple[str, str], str]:
        """Return the words before and after "the control group", and before "the test group"."""

    def delta(self, value: float, *, decisions: bool = False) -> str:
        """Write a difference with its symbol; between two single `decisions`, if it is one."""
        return f"{self.symbol} = {self.number(value)}"

    def untested(self, *, several: bool) -> str:
        """Say why a difference of `several` people, or between two decisions, is not tested."""
        if several:
            return "a difference of means of too few people to be tested"
        return "a single comparison to which no test applies"

    @abstractmethod
    def own_matches(self, own: float, *, has_case: bool, worse: bool, tau: float) -> str:
        """Compare the own outcome with those of the own matches, as it follows `had`."""

    @abstractmethod
    def counterfactual(self, value: Any, own: Any) -> str:
        """Say what would have been decided on the counterfactual, as it follows its name."""

    def row(self) -> tuple[tuple[str, str], int]:
        """Titles of both averages in a table of text, and the width of a column."""
        names: Mapping[str, str] = self.kind.renamed
        return (names["p_control"], names["p_test"]), 10


def compared_with(others: str) -> Concerned:
    """Name complainants by how their own outcome compares with that of others."""
    return Concerned(
        own_case="with a case of their own",
        without=f"without one, worse off than {others}",
        concerned=f"worse off than {others}",
        other="neither",
        not_concerned="not worse off than that",
    )


def count_moved(name: str, before: NDArray[Any], after: NDArray[Any]) -> str:
    """Count people with a better and with a worse outcome in the counterfactual world."""
    better, worse = int((after < before).sum()), int((after > before).sum())
    people = f"{len(before):,} complainant{'' if len(before) == 1 else 's'}"
    return (
        f", {better:,} of {people} would have had a better {name} than they had, and {worse:,} a "
        "worse one."
    )


def set_against(outcomes: str, shown: str, *, has_case: bool, worse: bool, tau: float) -> str:
    """Compare an own outcome with those of the own matches."""
    by = f" by more than τ = {tau:g}" if tau else ""
    return (
        f"{'' if has_case else 'not '}{'worse' if worse else 'better'} than {outcomes} of the "
        f"people most like her own counterfactual{by} ({shown})"
    )
