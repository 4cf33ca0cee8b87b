"""Contents of the columns of a table, as evidence on their roles; of a large table, in a sample of its rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.scales import Scale, Spread, scale_of
from opinionpool.tables.classes import TRUTH, USUAL, YES, bare
from opinionpool.tables.roles import (
    BETWEEN,
    DEAL,
    FACTS,
    PROBABILITY,
    SYNONYMS,
    TEXT,
    is_never,
    is_period,
    names_unit,
    normal,
    roles_of,
    split_names,
    verdict_pairs,
    words_of,
)
from opinionpool.tables.table import BLANK, Table, Words
from opinionpool.tables.times import are_times, moments
from opinionpool.tables.units import MISSING, add_up, looks_numeric, written_numbers
from opinionpool.text import counted, shown

# Most cells that are looked at, and the number of places in a large table that these are from.
CELLS, LOOKS = 1 << 18, 9
# Most distinct codes outside [0, 100] in a column of forecasts, and the largest share of numbers there.
_CODES, _STRAY = 2, 0.05
# If more events than this, and than this share, have several outcomes, these are answers, and no mistakes.
FEW, _SHARE = 2, 0.1
# Most columns of a table in which sets that add up to 1 are looked for, and most columns of a set.
_MANY, _CLASSES = 100, 8
# Most letters of a name.
_SHORT = 40
# Largest log of the probability that numbers are means of others by accident.
_ACCIDENT = -12.0
# Fewest different integers in a row, such as 1 to 6, that are ranks in whatever order they stand.
_RANKS = 6
# Most rows in which times, or means, are compared.
_LOOK = 2000
# Most words of a column that may be levels of a scale, or kinds of rows.
WORDS = 11


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table, and what its header and cells suggest about its role (event, expert, outcome, ...)."""

    place: int  # position in the table
    name: str  # header
    words: Words  # the cells that were looked at, words for "no answer" blank
    values: Array  # (rows,); numbers as they are written, with a per cent sign or not; NaN where there is none
    kind: str  # {"number", "text", "mixed", "time", ""}: what most cells hold, "" where all are blank
    levels: bool = False  # whether `values` are the fractions for levels of a scale
    several: bool = False  # whether other columns hold levels too
    mean: bool = False  # whether numbers are means of those in columns before it, in every row
    ahead: bool = False  # whether times are never before, and mostly after, those of another column

    @classmethod
    def of(cls, place: int, name: str, words: Words) -> Column:
        """Return the column with header `name` and cells `words` at position `place`, with its numbers and kind."""
        numbers = written_numbers(Words(np.arange(len(words.values)), words.values))
        numeric = np.array(list(map(looks_numeric, words.values)), dtype=bool)
        meant, some = int(words.counts[numeric].sum()), int(words.counts.sum())
        kind = "number" if 2 * meant >= some else "mixed" if not np.isnan(numbers).all() else "text"
        kind = "" if not words.values else "time" if are_times(words.values[:50]) else kind
        return cls(place, name, words, words.expand(numbers, np.nan), kind)

    @cached_property
    def known(self) -> Array:
        """Numbers in the column, without the blanks (NaN)."""
        return self.values[~np.isnan(self.values)]

    @cached_property
    def roles(self) -> frozenset[str]:
        """Roles that the header names; probability for a score or verdict, if no other column has levels of a scale."""
        if self.scored and not self.several:
            return frozenset({PROBABILITY})
        return roles_of(self.name) or frozenset({"outcome"} if self.says_end else ())

    @property
    def says_end(self) -> bool:
        """Whether the cells say how events ended: yes or no, but also words for void or open, or "Resolved yes"."""
        words = {*map(bare, self.folded)}
        ends = self.kind == "text" and bool(words & TRUTH) and not self.folded <= TRUTH | {"unknown", "?"}
        return ends and words <= TRUTH | USUAL.every

    @property
    def scored(self) -> bool:
        """Whether the cells are levels of a scale, and the header names a score or a verdict."""
        return self.levels and ("verdict" in roles_of(self.name) or "score" in words_of(self.name))

    @cached_property
    def hints(self) -> frozenset[str]:
        """Kinds of words in the header (`words_of`), such as "unit"; without "score" if cells are levels of a scale."""
        return words_of(self.name) - ({"score"} if self.levels else set()) | (
            {"ends"} if self.ahead else {"summary"} if self.mean else set()
        )

    @cached_property
    def parts(self) -> tuple[str, str] | None:
        """What stands before the header's last word, and that word: ("ann", "w2") for ann_w2; None if it is one."""
        found = split_names([self.name], "")
        return None if found is None else found[0]

    @cached_property
    def period(self) -> bool:
        """Whether the header is a time: a day, a month or a numbered round."""
        return is_period(self.name)

    def named(self, role: str) -> bool:
        """Whether the header is exactly the name of `role`."""
        return normal(self.name) == SYNONYMS[role][0]

    @property
    def is_id(self) -> bool:
        """Whether the header ends in "_id", as that of a column of ids."""
        return normal(self.name).endswith("_id")

    @property
    def names_things(self) -> bool:
        """Whether the cells may be names of things: words other than yes and no, or numbers that recur often."""
        often = self.kind != "number" or self.numbers_things or 2 * self.distinct <= len(self.values)
        return often and (self.distinct > 1 or len(self.values) == 1) and not self.folded <= TRUTH

    @property
    def ruled_out(self) -> frozenset[str]:
        """Roles that the column cannot play, by its cells."""
        barred = {
            "event": self.fractions,
            "expert": self.fractions or self.binary or frozenset() < self.folded <= {"true", "false", "yes", "no"},
            PROBABILITY: not self.forecasts and self.kind != "mixed",
            "sureness": not self.forecasts,
            "outcome": self.fractions and (self.roles != {"outcome"} or len(normal(self.name)) == 1),
            "verdict": self.fractions or self.folded <= DEAL,
            **dict.fromkeys(FACTS[:4], bool(self.folded) and self.folded <= TRUTH),
            "prior": self.kind in {"text", "time"},
        }
        return frozenset(role for role, out in barred.items() if out)

    @cached_property
    def is_key(self) -> bool:
        """Whether the column may help to name the event of each row.

        Such columns hold short words, numbers of rounds, weeks or the like, or times at which events end.
        """
        made = PROBABILITY in roles_of(normal(self.name).removesuffix("_id"))
        if {"again", "order"} & (self.hints | roles_of(self.name)) or BETWEEN in self.name or not self.kind or made:
            return False
        if self.kind == "time":
            return "ends" in self.hints and "expires" not in self.roles
        if self.kind == "number":
            return "round" in self.hints or (self.whole == 1 and self.is_part)
        return all(len(word) <= _SHORT for word in self.words.values)

    @property
    def is_part(self) -> bool:
        """Whether the header is that of a number that may be part of a name, such as an id, a week or a season."""
        return self.is_id or "part" in self.hints

    @property
    def is_grade(self) -> bool:
        """Whether the header names a score, and cells have so few values that they may be grades of what happened."""
        few = 1 < self.distinct <= 11 and (self.is_two or self.kind == "text" or self.whole == 1)
        return few and "score" in self.hints and not self.roles and not {"never", "summary"} & self.hints

    @property
    def may_say_outcome(self) -> bool:
        """Whether the cells can be outcomes, and the header or the cells suggest that they are."""
        able = self.kind in {"text", "mixed"} or self.binary or (self.whole == 1 and self.distinct <= 11) or self.levels
        suggests = (
            {"unsure", "score"} & self.hints or "verdict" in self.roles or self.binary or self.yes_no or self.levels
        )
        return bool(able and suggests and self.distinct) and not {"never", "decision"} & self.hints

    @property
    def numbers_things(self) -> bool:
        """Whether the column, by its header, numbers or counts something, and is no score."""
        return self.is_id or (is_never(self.name) and "score" not in self.hints)

    @property
    def is_label(self) -> bool:
        """Whether the header has a word that may mean an outcome, such as gold or target, but names no role."""
        return "unsure" in words_of(self.name) and not roles_of(self.name)

    @cached_property
    def folded(self) -> frozenset[str]:
        """Distinct words of the cells, in lower case."""
        return frozenset(word.lower() for word in self.words.values)

    @property
    def is_two(self) -> bool:
        """Whether the cells have two values: words, in whatever case, or 0 and 1."""
        return (self.distinct == 2 and self.binary) or (self.kind == "text" and len(self.folded) == 2)

    @property
    def yes_no(self) -> bool:
        """Whether the cells have two values such as yes and no, which say whether something happened."""
        return self.kind == "text" and self.is_two and self.folded <= TRUTH

    @property
    def is_amount_by_name(self) -> bool:
        """Whether the last word of the header is a unit of several letters, and none is a word for probabilities."""
        return names_unit(self.name) and self.name[-2:-1].isalpha() and not {"head", "summary"} & self.hints

    @property
    def mostly_truth(self) -> bool:
        """Whether the cells have few words, two or more of which say if something happened: yes, no, cancelled."""
        return self.kind == "text" and len(self.folded & TRUTH) >= 2 and len(self.folded) < 6

    @property
    def is_vote(self) -> bool:
        """Whether the cells have two values, and the header does not hint at an outcome, so that they may be votes."""
        return self.is_two and not {"unsure", "never"} & self.hints

    @property
    def is_amount(self) -> bool:
        """Whether the header hints at an outcome and numbers exceed 1, so that outcomes may be amounts."""
        return "unsure" in self.hints and "head" not in self.hints and self.kind == "number" and self.span[1] > 1

    @property
    def may_be_outcome(self) -> bool:
        """Whether the cells have two values, and the header hints at an outcome."""
        return self.is_two and not self.roles and "unsure" in self.hints and "never" not in self.hints

    @property
    def distinct(self) -> int:
        """Number of distinct words in the column."""
        return len(self.words.values)

    @cached_property
    def present(self) -> float:
        """Share of the cells that are not blank."""
        return float((self.words.codes != BLANK).mean()) if len(self.words.codes) else 0.0

    @cached_property
    def whole(self) -> float:
        """Share of whole numbers among the numbers."""
        return float((self.known == np.round(self.known)).mean()) if len(self.known) else 0.0

    @cached_property
    def span(self) -> tuple[float, float]:
        """Least and largest number; NaN if there are no numbers."""
        return (float(self.known.min()), float(self.known.max())) if len(self.known) else (np.nan, np.nan)

    @cached_property
    def binary(self) -> bool:
        """Whether nearly all numbers are 0 or 1, and there is at most one other value."""
        return self.kind == "number" and self.span == (0.0, 1.0) and self.whole >= 0.8 and self.distinct <= 3

    @cached_property
    def fractions(self) -> bool:
        """Whether the numbers are from 0 to 1, and few of them exactly 0 or 1."""
        return self.kind == "number" and self.span[0] >= 0 and self.span[1] <= 1 and self.whole < 0.8

    @cached_property
    def forecasts(self) -> bool:
        """Whether the column may hold forecasts: most numbers are in [0, 100], and they are not 1, 2, 3 and so on."""
        if self.kind != "number" or not len(self.known):
            return self.kind in {"number", ""}
        # -1 is how many tables write that there is no answer. Others beyond are errors or codes, or another scale.
        beyond = self.known[((self.known < 0) & (self.known != -1)) | (self.known > 100)]
        few = len(beyond) <= _STRAY * len(self.known) or len(np.unique(beyond)) <= _CODES
        return few and 2 * len(beyond) <= len(self.known) and not self.counts

    @cached_property
    def american(self) -> bool:
        """Whether the numbers are American odds: integers of both signs with absolute values of 100 or more."""
        far = len(self.known) > 1 and self.whole == 1.0 and bool((np.abs(self.known) >= 100).all())
        return self.kind == "number" and far and self.span[0] < 0 < self.span[1]

    @cached_property
    def counts(self) -> bool:
        """Whether the numbers are consecutive integers, as those that count rows, or in any order, as ranks."""
        few, known = len(self.known) < _RANKS, self.known
        return len(known) > 2 and self.whole == 1.0 and bool((np.diff(known if few else np.sort(known)) == 1).all())

    @property
    def scale(self) -> str:
        """Text on what the numbers may be instead of probabilities, such as log-odds; "" if they may be these."""
        low, high = self.span
        if self.kind != "number" or self.counts or "never" in self.hints:
            return ""
        if low < 0 < high and self.whole < 1 and "unsure" not in self.hints:
            return "log-odds? write 1 / (1 + exp(-x))"
        if self.spread == "odds":
            return "decimal odds? write 1 / odds"
        return "" if self.forecasts else "no probabilities"

    @cached_property
    def spread(self) -> str:
        """Kind of the numbers, such as "fractions", "percentages" or "odds"."""
        return Spread.of(self.values).kind

    @property
    def unit(self) -> str:
        """Unit of the numbers: "fractions", "percentages", "scale", "odds", "other" or "none"."""
        kind = "fractions" if self.levels else self.spread
        more = kind in {"fractions and more", "other"} and self.span[0] >= 0 and self.forecasts
        return "percentages" if more or (kind == "odds" and "%" in self.name) else kind

    @property
    def below(self) -> bool:
        """Whether any number is below one half."""
        return self.span[0] < self.half

    @property
    def half(self) -> float:
        """One half in the unit of the numbers: 50 if any number is above 1, else 0.5."""
        return 50.0 if self.span[1] > 1 else 0.5

    def agrees(self, verdicts: Column) -> bool:
        """Whether nearly all numbers are above one half where `verdicts` are yes, and below where they are no."""
        yes = verdicts.words.expand(np.array([word.lower() in YES for word in verdicts.words.values]), False)
        clear = (verdicts.words.codes != BLANK) & (self.values != self.half) & ~np.isnan(self.values)
        return not clear.any() or bool(((self.values > self.half) == yes)[clear].mean() > 1 - _SHARE)

    def differs(self, other: Column) -> bool:
        """Whether there is a row in which the column and `other` have different words; case and blanks do not count."""
        own, its = ([word.lower() for word in column.words.values] for column in (self, other))
        pairs = set(zip(self.words.codes.tolist(), other.words.codes.tolist(), strict=True))
        return any(BLANK not in pair and own[pair[0]] != its[pair[1]] for pair in pairs)

    def line(self, role: str) -> tuple[str, str, str, str, str]:
        """Return name, type, number of values, range or example, and `role`, for the question about columns."""
        if self.levels:
            return Column.of(self.place, self.name, self.words).line(role)
        kind = {"number": "numbers", "text": "text", "mixed": "numbers and text", "time": "times", "": "blank"}
        low, high = self.span
        range_ = f"{low:g} to {high:g}" if self.kind == "number" and len(self.known) else ""
        example = shown(self.words.values[0][:24]) if self.words.values else ""
        return self.name or "(no name)", kind[self.kind], counted(self.distinct, "value"), range_ or example, role


class Profile:
    """What the columns of a table hold, in all rows or in a sample of them; words for "no answer" are blanks."""

    def __init__(self, table: Table, missing: frozenset[str] = MISSING) -> None:
        self.table = table
        rows = min(table.rows, max(1, CELLS // max(len(table.names), 1)))
        parts: Sequence[Table] = [table]
        if rows < table.rows:
            each = max(1, rows // LOOKS)
            parts = table.looks([(int(first), each) for first in np.unique(np.linspace(0, table.rows - each, LOOKS))])
        self.rows = sum(part.rows for part in parts)
        self.columns = [
            Column.of(i, name, _concatenated([part.words(i) for part in parts], missing))
            for i, name in enumerate(table.names)
        ]
        self.columns = [replace(c, ahead=c.place in self._ahead()) if c.kind == "time" else c for c in self.columns]
        self.columns = [replace(c, mean=True) if self._is_mean(c) else c for c in self.columns]
        self._keys: dict[tuple[int, ...], Index] = {}

    def _is_mean(self, column: Column) -> bool:
        """Whether numbers without a role are, up to rounding and by no accident, means of those just before them."""
        if len(self.columns) > _MANY or column.kind != "number" or column.roles:
            return False
        known = ~np.isnan(column.values)
        own = column.values[known][:_LOOK]
        step = next((10.0**-d for d in range(9) if np.allclose(own, own.round(d), rtol=0, atol=1e-12)), 1e-9)
        before: list[Array] = []
        for each in reversed(self.columns[max(0, column.place - _CLASSES) : column.place]):
            if each.kind != "number":
                break
            before.append(each.values[known][:_LOOK])
            spread = np.ptp(before, axis=0)
            # A number between others is this near to their mean by accident in a share of rows of step / spread.
            accident = np.log(np.clip(step / np.maximum(spread, step), 0, 1)).sum()
            near = np.abs(np.mean(before, axis=0) - own) <= 0.501 * step
            if len(before) > 1 and near.all() and accident < _ACCIDENT:
                return True
        return False

    def _ahead(self) -> set[int]:
        """Positions of columns of times, without a role, that are never before, and mostly after, those of another."""
        times = [c for c in self.columns if c.kind == "time" and not c.roles]
        found = {
            c.place: c.words.expand(moments(c.words.values), np.datetime64("NaT"))[:_LOOK] for c in times[1:] and times
        }
        return {
            one
            for one, later in found.items()
            for other, first in found.items()
            if one != other and not (later < first).any() and 2 * np.count_nonzero(later > first) > len(later)
        }

    def with_key(self, names: Sequence[str]) -> Profile:
        """Return a copy with one more column: the key that the columns `names` form together."""
        found = copy(self)
        at = {column.name: column.place for column in reversed(self.columns)}
        key, name = self.key([at[name] for name in names]), BETWEEN.join(names)
        words = Words(key, [f"key {i}" for i in range(int(key.max(initial=0)) + 1)])
        found.columns = [*self.columns, Column.of(len(self.columns), name, words)]
        return found

    def with_scales(self, scales: Mapping[str, Scale], given: Mapping[str, str | Collection[str] | None]) -> Profile:
        """Return a copy in which columns of levels have as numbers the fractions that `scales` give to the levels.

        A scale for all columns, "*", applies to those that hold mostly levels and whose headers name no other role.
        """
        found = copy(self)
        names = given.get(PROBABILITY) or ()
        named = {*scales, *((names,) if isinstance(names, str) else names)}
        found.columns = [_with_levels(c, scales, c.name in named) for c in self.columns] if scales else self.columns
        if "expert" not in given and not any("expert" in column.roles for column in self.columns):
            levels = [column for column in found.columns if column.levels and column.name not in given.values()]
            found.columns = [replace(c, several=len(levels) > 1) if c in levels else c for c in found.columns]
        return found

    @cached_property
    def pairs(self) -> list[tuple[str, int, int]]:
        """Experts who have a column of verdicts (of one or two words) and one of confidences, with both positions."""
        found = verdict_pairs([column.name for column in self.columns])
        return [each for each in found if 0 < len(self.columns[each[1]].folded) < 3 and self.columns[each[2]].forecasts]

    @cached_property
    def sums(self) -> list[frozenset[int]]:
        """Sets of positions of neighbouring columns that add up to 1 in nearly all rows, as those of classes do."""
        able = [c.place for c in self.columns if c.kind == "number" and c.span[0] >= 0 and not c.binary]
        found: list[frozenset[int]] = []
        while len(able) > 1 and len(self.columns) <= _MANY:
            runs = (able[:size] for size in range(2, _CLASSES + 1))
            run = next((run for run in runs if len(run) > 1 and self.add_up(run, FEW + 1)), able[:1])
            found += [frozenset(run)] if len(run) > 1 else []
            able = able[len(run) :]
        return found

    def recognised(self, own: Collection[str] = ()) -> dict[str, Scale]:
        """Return the known scales of columns of words, by header; a header may name no role except those in `own`."""
        return {name: scale for name, scale in self.few_words(own).items() if scale is not None}

    def few_words(self, own: Collection[str] = ()) -> dict[str, Scale | None]:
        """Return the scale of each column of two to six words, by header; None if the order of the words is unknown.

        Headers may name no role but those in `own`, and may hint at an outcome only if `own` is not empty.
        """
        return {
            column.name: Scale.of_verdicts(column.words.values, "score" in column.hints)
            for column in self.columns
            if column.kind == "text" and 1 < len(column.folded) < 7 and 2 * len(column.folded) <= self.rows
            if not column.roles - {PROBABILITY, "verdict", *own}
            and not ("never" in column.hints or (column.is_label and not own))
        }

    def amounts(self, column: Column) -> list[str]:
        """Return the words of `column` in whose rows most numbers are outside [0, 1], and so must be amounts.

        Empty if other rows have numbers beyond 0 and 1 too. The word quantile is always returned.
        """
        found = [word for word in column.words.values if word.lower() == "quantile"]
        if found and column.distinct == 1:
            return found
        for each in self.columns if column.distinct <= WORDS and not found else ():
            if PROBABILITY in each.roles and each.kind == "number" and not each.forecasts:
                own = {word: each.values[column.words.rows(i)] for i, word in enumerate(column.words.values)}
                beyond = [word for word, values in own.items() if ((values < 0) | (values > 1)).mean() > 0.5]
                found = beyond if all(w in beyond or ((v >= 0) & (v <= 1)).all() for w, v in own.items()) else found
        return found if len(found) < column.distinct else []

    def verdicts(self, given: Mapping[str, object]) -> tuple[str, Scale] | None:
        """Return header and scale of the column of verdicts that is to be read as the forecasts, or None.

        `given` has the columns that the user names, by role.
        """
        if "verdict" in given:
            found = [c for c in self.columns if c.name == given["verdict"]]
        elif "expert" in given or any("expert" in c.roles for c in self.columns):
            # A word such as label has other readings, and belongs to no expert of a wide table.
            found = [c for c in self.columns if c.roles == {"verdict"} and c.name not in given.values()]
        else:
            return None
        certain = PROBABILITY in given or any(PROBABILITY in c.roles for c in self.columns if c not in found)
        scale = None if certain or len(found) != 1 else Scale.of_verdicts(found[0].words.values)
        return None if scale is None else (found[0].name, scale)

    def key(self, places: Iterable[int]) -> Index:
        """Integer for each row, (rows,), equal if rows agree in the columns `places`; -1 if one of these is blank."""
        places = tuple(places)
        if places not in self._keys:
            key, absent = np.zeros(self.rows, dtype=np.intp), np.zeros(self.rows, dtype=bool)
            for place in places:
                codes = self.columns[place].words.codes
                absent |= codes == BLANK
                _, key = np.unique(key * (codes.max(initial=0) + 2) + codes + 1, return_inverse=True)
            self._keys[places] = np.where(absent, BLANK, key)
        return self._keys[places]

    def count(self, places: Iterable[int]) -> int:
        """Return the number of distinct rows in the columns at `places`."""
        key = self.key(places)
        return int(np.count_nonzero(np.bincount(key[key != BLANK])))

    def repeated(self, places: Iterable[int]) -> int:
        """Return the number of rows that agree with an earlier row in all columns at `places`."""
        key = self.key(places)
        return int((key != BLANK).sum()) - self.count(places)

    def varies_within(self, place: int, places: Iterable[int]) -> bool:
        """Return True if the column at `place` differs between rows that agree in the columns at `places`."""
        return self.differing(place, places)[0] > 0

    def distinguishes(self, place: int, places: Sequence[int]) -> bool:
        """Return True if words of column `place` recur, but never in two rows that agree in the columns `places`."""
        return bool(self.repeated([place])) and not self.repeated([*places, place])

    def differing(self, place: int, event: Iterable[int]) -> tuple[int, int, bool]:
        """Number of events in which a column varies; number of events; whether the first is too large for mistakes."""
        key, words = self.key(event), self.columns[place].words
        there, size = (key != BLANK) & (words.codes != BLANK), max(len(words.values), 1)
        pairs = np.unique(key[there] * size + words.codes[there]) // size
        events, differing = np.unique(pairs, return_counts=True)
        some = int((differing > 1).sum())
        return some, len(events), some > max(FEW, _SHARE * len(events))

    def grid(self, places: Sequence[int], happened: Collection[str]) -> tuple[tuple[str, str], ...] | None:
        """Expert and class of each column, if the headers of `places` combine every expert with every class; else None.

        `happened` are outcomes in lower case.
        """
        names = [self.columns[place].name for place in places]
        found, colons = split_names(names, ":"), True
        if found is None:
            found, colons = split_names(names, ""), False
        if found is None:
            return None
        experts, classes = {expert for expert, _ in found}, {label.lower() for _, label in found}
        if colons and happened:
            return found if {*happened} <= classes else None
        own: dict[str, list[int]] = {}
        for place, (expert, _) in zip(places, found, strict=True):
            own.setdefault(expert, []).append(place)
        adds = all(map(self.add_up, own.values()))
        if colons:
            return found if len(classes) > 1 and (len(experts) > 1 or adds) else None
        return found if adds and len(experts) not in {1, len(found)} else None

    def own(self, columns: Sequence[Column], role: str) -> list[int]:
        """Return positions of `columns` whose header is `role` or, if no header is, of all; no copies of the first."""
        found = [c for c in columns if c.named(role)] or columns
        return [c.place for c in found if c is found[0] or (role != TEXT and not self.same(c.place, found[0].place))]

    def same(self, one: int, other: int) -> bool:
        """Return True if two columns' values correspond one to one."""
        return not self.varies_within(one, [other]) and not self.varies_within(other, [one])

    def add_up(self, places: Sequence[int], rows: int = 1) -> bool:
        """Whether the columns at `places` add up to 1 (or 100) in 90% of at least `rows` rows without blanks."""
        sums = np.sum([self.columns[place].values for place in places], axis=0)
        sums = sums[~np.isnan(sums)]
        total = 100.0 if any(self.columns[place].span[1] > 1 for place in places) else 1.0
        levels = any(self.columns[place].levels for place in places)
        return len(places) > 1 and len(sums) >= rows and add_up(sums, total) and not levels


def _with_levels(column: Column, scales: Mapping[str, Scale], named: bool) -> Column:
    """Return a copy of `column` with levels as fractions, if most cells are levels or if `named`; else `column`.

    In a column called score or verdict, levels may be on the scales of experts.
    """
    found = replace(column, levels=True)
    scale = scale_of(scales, column.name)
    able = [scale] if scale is not None else list(scales.values()) if found.scored else []
    if not able or (not named and (column.roles - {PROBABILITY, "verdict"} or found.is_label)):
        return column
    if not named and column.kind == "number" and (column.counts or not looks_numeric(able[0].levels[0])):
        return column
    levels = [
        next((p for own in able if (p := own.probability(own.place(word))) == p), np.nan)
        for word in column.words.values
    ]
    values = column.words.expand(np.array(levels, dtype=np.float64), np.nan)
    most = 2 * np.count_nonzero(values == values) > column.words.counts.sum()
    values = values if most or named else np.where(np.isnan(values), column.values, values)
    return replace(found, values=values, kind="number") if most or named or found.scored else column


def _concatenated(parts: Sequence[Words], missing: frozenset[str]) -> Words:
    """Return one column from the cells of several parts; words in `missing` become blanks."""
    position: dict[str, int] = {}
    codes = [
        np.append(
            [BLANK if word.lower() in missing else position.setdefault(word, len(position)) for word in part.values],
            BLANK,
        )[part.codes]
        for part in parts
    ]
    return Words(np.concatenate(codes).astype(np.intp), list(position))
