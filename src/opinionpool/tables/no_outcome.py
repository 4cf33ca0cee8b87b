"""Words in a column of outcomes that are none: for "not known" and for "void"."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from opinionpool.errors import Remedy
from opinionpool.labels import ALWAYS_VOID, FAMILIES, UNSETTLED, VOID
from opinionpool.tables.cells import looks_numeric
from opinionpool.tables.classes import key
from opinionpool.tables.units import MISSING
from opinionpool.text import quoted

# In files, this is what sites write for questions that were annulled, or settled at the market's price.
_VOID = VOID | {"n/a", "cancel", "mkt"}

# What a table of zeros and ones has for "not known".
_CODES = frozenset({"-1", "-1.0"})


@dataclass(frozen=True)
class NoOutcome:
    """Words that stand for no outcome, in lower case."""

    missing: frozenset[str] = MISSING  # for "not known"
    void: frozenset[str] = _VOID  # for "void"
    own: frozenset[str] = frozenset()  # those of them that the user names

    @classmethod
    def of(cls, missing: Sequence[str], void: Sequence[str], classes: Sequence[str]) -> NoOutcome:
        """Those that a user adds; what the user calls not known, or a class, is not void unless that is named too."""
        unknown, own = (frozenset(word.strip().lower() for word in words) for words in (missing, void))
        return cls(MISSING | unknown, (_VOID - unknown - frozenset(map(key, classes))) | own, own)

    def beside(self, words: Collection[str]) -> NoOutcome:
        """The same for a column of these words, one of which may be the opposite of the only other one, as invalid is.

        >>> ["invalid" in USUAL.beside(words).void for words in ({"valid", "invalid"}, {"yes", "invalid"})]
        [False, True]
        """
        others = {key(word) for word in words} - self.every
        if len(others) != 1 or any(others <= set(family) for family in FAMILIES):
            return self
        return replace(self, void=self.void - (VOID - ALWAYS_VOID - self.own))

    def coded(self, words: Collection[str]) -> NoOutcome:
        """The same for a column of these words: beside nothing but 0 and 1, -1 stands for "not known".

        >>> ["-1" in USUAL.coded(words).missing for words in ({"0", "1", "-1"}, {"-1", "1", "2"}, {"yes", "-1"})]
        [True, False, False]
        """
        others = {key(word) for word in words} - self.every - _CODES
        return replace(self, missing=self.missing | _CODES) if others and others <= {*FAMILIES[0]} else self

    @property
    def every(self) -> frozenset[str]:
        """All of them, and those for "not resolved yet"."""
        return self.missing | self.void | UNSETTLED


USUAL = NoOutcome()


def none_text(word: str) -> str:
    """What to say of a word that may stand for no outcome."""
    unknown = "leave it empty" if _may_be_forecast(word) else f"leave it empty or say --missing-value {quoted(word)}"
    return f"if the event is not resolved, {unknown}; if it is void, --void-value {quoted(word)}"


def none_remedies(word: str) -> list[Remedy]:
    """That as options: a number is more likely unknown than void, but for one that forecasts may be, too."""
    unknown: list[Remedy] = [{"missing_values": (word,)}]
    void: list[Remedy] = [{"void_values": (word,)}]
    if _may_be_forecast(word):
        return void
    return unknown if looks_numeric(word) else [*unknown, *void]


def _may_be_forecast(word: str) -> bool:
    """Whether a word is a number from 0 to 1, so that calling it missing would take forecasts away."""
    try:
        return 0.0 <= float(word.replace(",", ".")) <= 1.0
    except ValueError:
        return False
