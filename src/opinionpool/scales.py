"""Scales of ordered levels that experts give instead of probabilities, and kinds of numbers by their spread."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import brief, labels_given
from opinionpool.arrays import Array, Mask, unmasked
from opinionpool.errors import ArgumentError, ProbabilityError, ShapeError
from opinionpool.labels import FAMILIES, label_text
from opinionpool.names import name_key
from opinionpool.text import listed, shown

_RANGE = re.compile(r"\s*(-?\d+)\s*(?:-|\.\.|to)\s*(-?\d+)\s*")
# Largest number of levels of a scale.
MOST = 101
# Where levels are classes: by how much the log-probability of the farthest class is below that of the level given;
# chosen by simulated judges (benchmarks/levels.py).
FAR = 4.5
# Other words for preferences of one of two, A and B, or neither.
_PREFERENCES = {
    **dict.fromkeys(("a>b", "b<a", "model_a"), "a"),
    **dict.fromkeys(("b>a", "a<b", "model_b"), "b"),
    **dict.fromkeys(("a=b", "b=a", "draw", "tied", "equal", "tie (bothbad)", "both_bad", "both bad"), "tie"),
}
# Words for the thing at one of two places; A stands first unless a column of orders says otherwise.
PLACES = {"first": "a", "left": "a", "second": "b", "right": "b"}
# Pairs of words for the lower and the upper of two levels; I and C are inspect_ai's for incorrect and correct.
_PAIRS = "incorrect/correct i/c fail/pass loss/win l/w benign/malignant"
_VERDICTS = (*FAMILIES, *(tuple(pair.split("/")) for pair in _PAIRS.split()))
# Prefixes that negate a word, as in irrelevant and not safe: the negated word is the lower level.
_NOT = re.compile(r"(?:in|im|ir|un|dis|not[ _-]|non[ _-]?)(?=.{4})")
# Words for what is between the two, and grades in order.
_BETWEEN = frozenset(
    (
        *("unsure", "maybe", "unclear", "neutral", "p", "partial"),
        *("partially", "partially correct", "partly", "not_attempted"),
    )
)
_GRADES = (("f", "e", "d", "c", "b", "a"), ("low", "medium", "high"), ("bad", "poor", "fair", "good", "excellent"))
_AGREEMENT = ("strongly disagree", "disagree", "neutral", "agree", "strongly agree")
# Stands for the names of all experts without a scale of their own.
ALL = "*"


@dataclass(frozen=True)
class Scale:
    """Scale of M levels in increasing order; level l, counted from 0, stands for the probability (l + ½)/M.

    Examples
    --------
    >>> scale = Scale.of("1-5")
    >>> scale.probabilities([1, "5", None]), scale.nearest(0.72), str(scale)
    (array([0.1, 0.9, nan]), '4', '1-5')
    >>> str(Scale.of(("no", "unsure", "yes")))
    'no,unsure,yes'
    """

    levels: tuple[str, ...]

    @classmethod
    def of(cls, given: object) -> Scale:
        """Return the scale given as a range such as "1-5", as levels between commas, or as a sequence of levels.

        Raises ArgumentError for fewer than two levels, more than 101, or a repeated level.
        """
        found = _RANGE.fullmatch(given) if isinstance(given, str) else None
        if isinstance(given, Scale):
            return given
        if found is not None:
            low, high = int(found[1]), int(found[2])
            levels = [str(level) for level in range(low, min(high, low + MOST) + 1)]
        elif isinstance(given, str):
            levels = [each.strip() for each in given.split(",")]
        else:
            levels = [label_text(level) for level in labels_given(given, "a scale")]
        if (
            not 2 <= len(levels) <= MOST
            or any(not each or {",", "="} & {*each} for each in levels)
            or len({_key(each) for each in levels}) < len(levels)
        ):
            raise ArgumentError(
                f"a scale is a range such as 1-10, or 2 to {MOST} different levels in order such as no,unsure,yes, and "
                f"not {brief(given)}"
            )
        return cls(tuple(levels))

    @classmethod
    def of_verdicts(cls, words: Sequence[str], grades: bool = False) -> Scale | None:
        """Return the scale of words such as yes and no, A, B and tie, or grades (only if `grades`); None for others.

        >>> [str(Scale.of_verdicts(words)) for words in (["no", "Yes", "YES"], ["A>B", "tie"], ["I", "P", "C"], ["7"])]
        ['no,yes', 'B,tie,A', 'I,P,C', 'None']
        >>> str(Scale.of_verdicts(["A", "C", "B"], grades=True))
        'C,B,A'
        """
        keys = {_key(word) for word in words}
        written = {_key(word): word.strip() if len(keys) == len(words) else _key(word) for word in words}
        if keys <= {"a", "b", "tie"} and keys != {"tie"}:
            return cls(("B", "tie", "A") if "tie" in keys else ("B", "A"))
        negated = [
            (word, bare) for word in sorted(keys) if (bare := _NOT.sub("", word, count=1)) != word and bare in keys
        ]
        for low, high in (*_VERDICTS, *negated):
            between = keys - {low, high}
            if not between or (len(between) == 1 < len(keys) and between <= _BETWEEN):
                return cls(tuple(written.get(level, level) for level in (low, *between, high)))
        order = next((each for each in (_AGREEMENT, *(_GRADES if grades else ())) if keys <= {*each}), ())
        return cls(tuple(written[level] for level in order if level in keys)) if order and len(keys) > 1 else None

    def __str__(self) -> str:
        numbers = list(map(str, range(len(self.levels))))
        if self.levels[0].lstrip("-").isdigit():
            numbers = [str(int(self.levels[0]) + i) for i in range(len(self.levels))]
        return f"{self.levels[0]}-{self.levels[-1]}" if list(self.levels) == numbers else ",".join(self.levels)

    def place(self, word: object) -> int:
        """Return the position of a level given as word or number, from 0; -1 if it is no level of the scale."""
        return self._places.get(_key(word), -1)

    @cached_property
    def _places(self) -> dict[str, int]:
        """Position of each level by `_key`; 4/5 means 4 if 5 is the last level; no, false and 0 mean the same."""
        keys = list(map(_key, self.levels))
        found = {f"{key}/{keys[-1]}": i for i, key in enumerate(keys)} | {key: i for i, key in enumerate(keys)}
        own = next((family for family in _VERDICTS if {*keys} == {*family}), None)
        if own is not None:
            found |= {family[i]: i if own[0] == keys[0] else 1 - i for family in _VERDICTS for i in (0, 1)}
        return found

    def facing(self, classes: Sequence[object]) -> Scale:
        """Return the scale so that it rises to the second of two classes: reversed if its first level is that class.

        >>> str(Scale.of("reject,accept").facing(["Accept", "Reject"])), str(Scale.of("1-5").facing([0, 1]))
        ('accept,reject', '1-5')
        """
        turned = len(classes) == 2 and [self.place(each) for each in classes] == [len(self.levels) - 1, 0]
        return Scale(self.levels[::-1]) if turned else self

    def is_tie(self, outcome: object) -> bool:
        """Return True if the scale is a preference between A and B, and `outcome` says that neither is preferred.

        >>> Scale.of("B,A").is_tie("A=B"), Scale.of("1-5").is_tie("tie")
        (True, False)
        """
        return _key(outcome) == "tie" and {*map(_key, (self.levels[0], self.levels[-1]))} == {"a", "b"}

    def probability(self, place: npt.ArrayLike) -> Array:
        """Return the probability (l + ½)/M of each level l in `place`; NaN for -1."""
        given = np.asarray(place, dtype=np.float64)
        return np.where(given < 0, np.nan, (given + 0.5) / len(self.levels))

    def probabilities(self, words: npt.ArrayLike, who: str = "") -> Array:
        """Probability of each level in `words`; NaN if missing. ProbabilityError, about `who`, for other words."""
        given = np.asarray(words)
        values, position = np.unique(given if given.dtype.kind in "fiu" else _texts(words), return_inverse=True)
        places, found = self._places, []
        for value in map(label_text, values.tolist()):
            place = places.get(_key(value), -1)
            if place < 0 and value not in ("", "nan", "None", "<NA>"):
                raise ProbabilityError(f"{shown(value)}{who and f' by {who}'} is no level of the scale {self}")
            found.append(place)
        return np.asarray(self.probability(found)[position.reshape(np.shape(words))])

    def as_classes(self, outcomes: Sequence[object]) -> tuple[object, ...]:
        """Return the levels as classes of the outcomes' type; () unless at least three levels, and only levels, occur.

        >>> Scale.of("0-3").as_classes([0, 3, 2]), Scale.of("0-3").as_classes([0, 1])
        ((0, 1, 2, 3), ())
        """
        levels = [each for each in outcomes if not self.is_tie(each)]
        if len({*levels}) < 3 or any(self.place(each) < 0 for each in levels):
            return ()
        named = {self.place(each): each for each in outcomes}
        numbers = not any(isinstance(each, str) for each in outcomes) and self.levels[0].lstrip("-").isdigit()
        return tuple(named.get(i, int(level) if numbers else level) for i, level in enumerate(self.levels))

    def over_classes(self, p: npt.ArrayLike) -> Array:
        """Probabilities (..., M) of the M levels as classes; they fall exponentially with a level's distance from `p`.

        >>> Scale.of("1-3").over_classes([0.5]).round(2).tolist()
        [[0.09, 0.83, 0.09]]
        """
        size = len(self.levels)
        place = np.asarray(p, dtype=np.float64)[..., None] * size - 0.5
        found = np.exp(-FAR / (size - 1) * np.abs(place - np.arange(size)))
        return np.asarray(found / found.sum(axis=-1, keepdims=True))

    def typical(self, p: float) -> str:
        """Return an expert's mean probability as text: a level or, if there are two, the upper one's share in per cent.

        >>> Scale.of("1-10").typical(0.72), Scale.of("no,yes").typical(0.65), Scale.of("bad,fair,good").typical(0.7)
        ('7.7', '80% yes', 'good')
        """
        size = len(self.levels)
        if size == 2:
            return f"{min(max(2.0 * p - 0.5, 0.0), 1.0):.0%} {self.levels[1]}"
        numbers = self.levels[0].lstrip("-").isdigit() and self.levels[1].lstrip("-").isdigit()
        return f"{int(self.levels[0]) + p * size - 0.5:.2g}" if numbers else self.nearest(p)

    def nearest(self, p: float) -> str:
        """Return the level whose probability is nearest to `p`."""
        return self.levels[min(max(int(p * len(self.levels)), 0), len(self.levels) - 1)]


def scales_given(given: object) -> dict[str, Scale]:
    """Return scales by expert, or under ``"*"`` one of all experts, from a scale or mapping; ArgumentError if wrong."""
    if given is None:
        return {}
    pairs = given.items() if isinstance(given, Mapping) else [(ALL, given)]
    return {str(name): Scale.of(scale) for name, scale in pairs}


def scales_about(given: object, classes: Sequence[object]) -> Mapping[str, Scale]:
    """Return the scales `given`, by expert, each reversed if needed so that it rises to the second of two `classes`.

    Raises ArgumentError if there are more than two classes, and a scale's levels are not these classes in order.
    """
    found = {name: scale.facing(classes) for name, scale in scales_given(given).items()}
    if len(classes) > 2 and any(scale.as_classes(classes) != tuple(classes) for scale in found.values()):
        raise ArgumentError(f"of more than two classes levels are these, in their order: {listed(list(classes))}")
    return found


def scale_texts(given: object) -> dict[str, str]:
    """Return each scale as text, such as "1-5", by expert, or under "*" for all experts."""
    return {name: str(scale) for name, scale in scales_given(given).items()}


def written(given: object) -> object:
    """Scales, one or by expert, as text or a dict of texts that `scales_given` reads; text and None unchanged."""
    texts = scale_texts(given)
    return given if given is None or isinstance(given, str) else texts.get(ALL, "") if {*texts} == {ALL} else texts


def scale_of(scales: Mapping[str, Scale], expert: str) -> Scale | None:
    """Return the scale of an expert, found by `name_key` if spelt differently; None if the expert has no scale."""
    found = scales.get(expert)
    if found is None and not scales.keys() <= {ALL}:
        key = name_key(expert)
        found = next((scale for name, scale in scales.items() if name_key(name) == key), None)
    return scales.get(ALL) if found is None else found


def level_of(scales: Mapping[str, Scale], expert: str, p: float) -> str:
    """Level nearest to an expert's probability `p`, as "4 of 1-5"; "" if `p` is NaN or the expert has no scale."""
    scale = scale_of(scales, expert)
    return "" if scale is None or p != p else f"{scale.nearest(p)} of {scale}"


def own_scales(scales: Mapping[str, Scale], experts: Sequence[str]) -> dict[str, Scale]:
    """Return the scale of each expert who has one, by name; an ArgumentError for the scale of an unknown expert."""
    keys = {ALL, *map(name_key, experts)}
    for name in scales:
        if name_key(name) not in keys:
            raise ArgumentError(f"a scale is given for {shown(name)}, who is no expert here")
    found = ((name, scale_of(scales, name)) for name in experts if scales)
    return {name: scale for name, scale in found if scale is not None}


def coded(values: object, experts: Sequence[str], scales: Mapping[str, Scale]) -> Array:
    """Return levels `values` (T, N) as probabilities, by the experts' scales; columns without a scale are unchanged.

    Raises ShapeError or ProbabilityError for another shape, or a value that is no level.
    """
    values = unmasked(values, None)
    found = np.asarray(values)
    table = found if found.dtype.kind in "fiu" else np.asarray(values, dtype=object)
    if table.ndim == 1 and len(experts) == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise ShapeError(f"levels of scales need two axes, events and experts, not shape {table.shape}")
    columns = [
        np.asarray(column, dtype=np.float64) if scale is None else scale.probabilities(column, name)
        for name, column in zip(experts, table.T, strict=True)
        for scale in [scale_of(scales, name)]
    ]
    return np.stack(columns, axis=1) if columns else np.empty(table.shape)


def towards(
    p: Array, experts: Sequence[str], scales: Mapping[str, Scale], classes: Sequence[object]
) -> tuple[Array, Sequence[object], dict[str, Scale]]:
    """Return probabilities of classes, the classes, and scales by expert, from probabilities `p` (T, N) of levels.

    If all experts share a scale, and its three or more levels occur as outcomes, the levels become the classes, and
    probabilities are (T, N, K). Otherwise they are (T, N), of the second class: 1 - p where a scale rises to the first
    class.
    """
    own = {name: scale for name in experts if (scale := scale_of(scales, name)) is not None}
    shared = next(iter(own.values())) if len(own) == len(experts) and len({*own.values()}) == 1 else None
    if shared is not None and (levels := shared.as_classes(classes)):
        return shared.over_classes(p), levels, own
    turned, faced = facing(experts, scales, classes)
    return (np.where(turned, 1.0 - p, p) if turned.any() else p), classes, faced


def facing(
    experts: Sequence[str], scales: Mapping[str, Scale], classes: Sequence[object]
) -> tuple[Mask, dict[str, Scale]]:
    """Return the mask (N,) of experts whose scale rises to the first class, and all scales, with these reversed."""
    own = [scale_of(scales, name) for name in experts]
    faced = [None if scale is None else scale.facing(classes) for scale in own]
    turned = np.array([one != other for one, other in zip(own, faced, strict=True)], dtype=bool)
    return turned, {name: scale for name, scale in zip(experts, faced, strict=True) if scale is not None}


def in_classes(values: object, experts: Sequence[str], scales: Mapping[str, Scale], classes: Sequence[object]) -> Array:
    """Levels `values` (T, N) as probabilities of the second of two classes, (T, N), or of K classes, (T, N, K)."""
    return towards(coded(values, experts, scales), experts, scales, classes)[0]


def without_ties(outcomes: Any, scales: Mapping[str, Scale]) -> tuple[Any, Mask | None]:  # noqa: ANN401 - as they are given
    """Return outcomes with None in place of ties of preferences, and the mask (T,) of ties; None if there is no tie."""
    preferences = [scale for scale in scales.values() if scale.is_tie("tie")]
    if not preferences or outcomes is None:
        return outcomes, None
    given = np.array(outcomes, dtype=object)
    ties = np.array([preferences[0].is_tie(each) for each in given.tolist()], dtype=bool)
    given[ties] = None
    return (given, ties) if ties.any() else (outcomes, None)


def _texts(words: npt.ArrayLike) -> npt.NDArray[np.str_]:
    """Return words and numbers as a one-dimensional array of text; "" for None."""
    return np.array(
        ["" if word is None else label_text(word) for word in np.asarray(words, dtype=object).ravel()], dtype=np.str_
    )


def _key(word: object) -> str:
    """Key of a level, equal for all its spellings: a number's value, a word without case and outer blanks."""
    text = str(word).strip().lower()
    text = (_PREFERENCES | PLACES).get(text, text)
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return text


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

        "none" (there are no numbers), "fractions" (all are from 0 to 1), "scale" (levels up to 10 from 0 or 1, but for
        a few mistakes; or levels on both sides of 0), "odds" (decimal odds), "percentages" (up to 100, with more
        numbers above 1 than fractions), "fractions and more" (fractions, with some numbers above 1) or "other".
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
        """Whether numbers are levels on both sides of 0, from -5 to 5 (-1 does not count: it may mean no answer)."""
        return self.whole and -_BOTH <= self.low < -1 and self.high <= _BOTH and self._others > self._few

    @property
    def _room(self) -> int:
        """Number of further values that may be mistakes, beside those that are no levels; below 0 if too many are."""
        return self._few - self._others + (self.halves if self.halved else 0)

    @property
    def _others(self) -> int:
        """Number of values that are neither a whole number from 0 to 10 nor -1."""
        return self.every - self.none - sum(self.levels)

    @property
    def _few(self) -> int:
        """Number of values that may be mistakes: 1% of all or, if that is below 1, one; but at most 5% of all."""
        return min(self.every // 20, max(1, self.every // 100))

    @property
    def halved(self) -> bool:
        """Whether half points such as 2.5 occur among the levels, the whole numbers from 0 to 10."""
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
    """Return the rating scale of each judge, found from the lowest and the highest level that each judge used.

    `spreads` are the levels used, by judge. A judge with a short scale shares the longer scale of another judge if the
    first judge used a level above half of the longer scale's highest level (above 0 if the scale has negative levels).
    But a judge who used both the lowest and the highest level of a common scale, such as 0-3, keeps the common scale,
    unless the longer scale begins or ends with the same level.

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
