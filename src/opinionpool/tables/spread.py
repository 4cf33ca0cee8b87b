"""Kinds of numbers (fractions, percentages, odds, levels of a scale) by their spread, and the scales of levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array

# Most that rounding to single precision may add to 1: softmax outputs may be 1.0000001.
OVERSHOOT = 1e-6
# Decimal odds above this are rare in a column of odds.
_LONG_ODDS = 20
# Highest levels of usual scales.
_TOPS = (1, 2, 3, 4, 5, 6, 7, 10)
# Highest level of a scale from -5 to 5.
_BOTH = 5


@dataclass(frozen=True)
class Spread:
    """Summary of numbers as they are written: how many of each kind there are, and their range; `+` adds two."""

    every: int = 0
    above: int = 0
    inside: int = 0
    long: int = 0
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True  # whether all are integers
    levels: tuple[int, ...] = (0,) * 11  # how many are 0, 1, ... 10
    none: int = 0  # how many are -1, which stands for no answer in many tables
    halves: int = 0  # how many are 0.5, 1.5, ... 9.5

    @classmethod
    def of(cls, values: Array) -> Spread:
        """Return the summary of `values`, (N,), NaN left out."""
        known = values[~np.isnan(values)]
        if not len(known):
            return cls()
        above, inside = int((known > 1 + OVERSHOOT).sum()), int(((known > 0) & (known < 1)).sum())
        integers = known[known == np.round(known)]
        small = integers[(integers >= 0) & (integers <= 10)].astype(np.intp)
        levels, none = tuple(np.bincount(small, minlength=11).tolist()), int((known == -1).sum())
        whole, long = len(integers) == len(known), int((known > _LONG_ODDS).sum())
        halves = int((known[(known > 0) & (known < 10)] % 1 == 0.5).sum())
        return cls(len(known), above, inside, long, float(known.min()), float(known.max()), whole, levels, none, halves)

    def __add__(self, other: Spread) -> Spread:
        low, high, whole = min(self.low, other.low), max(self.high, other.high), self.whole and other.whole
        every, above, inside = self.every + other.every, self.above + other.above, self.inside + other.inside
        levels = tuple(a + b for a, b in zip(self.levels, other.levels, strict=True))
        long, none, halves = self.long + other.long, self.none + other.none, self.halves + other.halves
        return Spread(every, above, inside, long, low, high, whole, levels, none, halves)

    @property
    def kind(self) -> str:
        """Kind of the numbers, by their spread: one of the following.

        {"none", "fractions", "scale": levels from 0 or 1 to 10 at most but for strays, or from below -1 to 5 at most,
        "odds": decimal ones,
        "percentages": more than half of those that are not whole fractions are above 1, "fractions and more": some are
        beyond 1, "other"}
        """
        if self.signed:
            return "scale"
        if not self.above:
            return "none" if not self.every else "fractions" if self.low >= 0 else "other"
        if self._room >= 0 and any(self.levels[2:]):
            return "scale"
        if self.every > 1 and not self.whole and self.low >= 1 and self.long <= 0.1 * self.every:
            return "odds"
        if self.low < 0 or self.high > 100:
            return "other"
        return "percentages" if self.above > self.inside else "fractions and more"

    @property
    def signed(self) -> bool:
        """Whether numbers are levels on both sides of 0, within -5 to 5; a -1 as the only negative one is no answer."""
        return self.whole and -_BOTH <= self.low < -1 and self.high <= _BOTH and self._others > self._few

    @property
    def _room(self) -> int:
        """Number of further mistakes that there may be among levels; below 0 if there are too many."""
        return self._few - self._others + (self.halves if self.halved else 0)

    @property
    def _others(self) -> int:
        """Number of values that are neither a whole number from 0 to 10 nor -1."""
        return self.every - self.none - sum(self.levels)

    @property
    def _few(self) -> int:
        """Number of values that may be mistakes: 1% of all, or one if that is less, but at most 5%."""
        return min(self.every // 20, max(1, self.every // 100))

    @property
    def halved(self) -> bool:
        """Whether levels come in half points, such as 2.5."""
        return self._few < self.halves <= sum(self.levels)

    @property
    def ends(self) -> tuple[int, int]:
        """Lowest and highest level in use; a few numbers above a gap in the levels do not count."""
        if self.signed:
            return int(self.low), int(self.high)
        used = [level for level, count in enumerate(self.levels) if count]
        left = [each for each in used if sum(self.levels[each:]) > self._room]
        last = max(left, default=used[0])
        return used[0], next((level - 1 for level in range(last, used[-1]) if level not in used), used[-1])

    @property
    def bounds(self) -> tuple[int, int]:
        """First and last level of the shortest usual scale (0-1, 1-5, ...) that has all levels in use."""
        low, high = self.ends
        if self.signed:
            return min(low, -high), max(-low, high)
        return int(low > 0 and not (self.halved and self.low < 1)), next(
            top for top in _TOPS if top >= high and top > low
        )

    @property
    def scale(self) -> str:
        """Scale from the first to the last of `bounds`, as text for the option `scale`: "1-5"."""
        first, last = self.bounds
        if self.halved:
            return ",".join(f"{half / 2:g}" for half in range(2 * first, 2 * last + 1))
        return f"{first}-{last}"


def shared_scales(spreads: Mapping[str, Spread]) -> dict[str, str]:
    """Return each judge's scale: its own, or a longer one of others if the judge uses a level above its middle.

    A judge who uses both ends of a usual scale keeps it, unless the longer scale shares one of these ends.

    >>> spreads = {"ann": Spread.of(np.array([1.0, 5.0])), "bob": Spread.of(np.array([2.0, 3.0]))}
    >>> shared_scales({**spreads, "cyd": Spread.of(np.array([2.0, 9.0])), "dee": Spread.of(np.array([0.0, 3.0]))})
    {'ann': '1-5', 'bob': '1-5', 'cyd': '1-10', 'dee': '0-3'}
    """
    found: dict[str, str] = {}
    left = dict(spreads)
    while left:
        # Those who use most levels are looked at first.
        low, high = max((each.bounds for each in left.values()), key=lambda ends: (ends[1] - ends[0], ends[1]))
        own = {
            name: each
            for name, each in left.items()
            for first, last in [each.bounds]
            if low <= first and last <= high and (first == low or last == high or each.ends != each.bounds)
            if 2 * each.ends[1] > high + min(low, 0) or (first, last) == (low, high)
        }
        found |= dict.fromkeys(own, sum(own.values(), Spread()).scale)
        left = {name: each for name, each in left.items() if name not in own}
    return {name: found[name] for name in spreads}
