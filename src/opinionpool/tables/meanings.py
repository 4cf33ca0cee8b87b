"""What each column of a table can be: the roles that its name and the user allow, less those its cells exclude."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import chain

from opinionpool.labels import UNSETTLED, VOID
from opinionpool.tables.profile import Column, Profile
from opinionpool.tables.roles import (
    PROBABILITY,
    TEXT,
    Beside,
    UserRoles,
    is_never,
    normal,
)


def sides(columns: Sequence[Column]) -> list[list[Column]]:
    """Return alternative sets of forecast columns: the last period's, or one set for each suffix, as ann_w2, bob_w2."""
    periods = [c for c in columns if c.period]
    if len(periods) > 1:
        return [[c for c in columns if c not in periods[:-1]]]
    names = {c.name for c in columns}
    pairs = {c.place: c.parts for c in columns if c.parts}
    # Beside ann_r2, ann is a side of her own.
    longer = {first for first, _ in pairs.values()} & names
    pairs |= {c.place: (c.name, "") for c in columns if c.name in longer}
    suffixes: dict[str, list[str]] = {}
    for first, suffix in pairs.values():
        suffixes.setdefault(first, []).append(suffix)
    shared = Counter(tuple(own) for own in suffixes.values() if len(own) > 1)
    words = next((own for own, count in shared.items() if count > 1), ())
    whole = {first for first, own in suffixes.items() if tuple(own) == words}
    found = [[c for c in columns if pairs.get(c.place) in {(first, word) for first in whole}] for word in words]
    return [side for side in reversed(found) if len({c.spread for c in side}) == 1]


def stems(columns: Sequence[Column]) -> frozenset[str]:
    """Return the words that the headers of all `columns` share."""
    words = [normal(c.name).split("_") for c in columns]
    return frozenset(words[0]).intersection(*words[1:]) if words else frozenset()


def are_steps(names: Sequence[str]) -> bool:
    """Return True if headers differ only in the number at their end, and numbers do not follow one another.

    >>> are_steps(["risk_2", "risk_6", "risk_10"]), are_steps(["judge 1", "judge 2"]), are_steps(["risk_2", "ann"])
    (True, False, False)
    """
    found = [re.fullmatch(r"(.*\D)(\d+)", normal(name)) for name in names]
    numbers = [int(each[2]) for each in found if each]
    alike = len({each[1] for each in found if each}) == 1 and len(numbers) == len(names) > 1
    return alike and numbers != [*range(numbers[0], numbers[0] + len(numbers))]


def strangers(columns: Sequence[Column]) -> list[Column]:
    """Return the columns that are not of a family: at least three whose headers begin, or end, with the same word.

    Strangers share no word with the family; if the family's headers begin with one word (p_x, p_y), the strangers'
    numbers must also be of another kind.
    """
    for end in (-1, 0):
        words = {c.place: (normal(c.name) if end == 0 else c.name.lower()).split("_") for c in columns}
        number = Counter(own[end] for own in words.values() if len(own) > 1)
        for word in (word for word, count in number.items() if word.isalpha() and count > 2):
            family = [c for c in columns if words[c.place][end] == word]
            own = set(chain(*(words[c.place] for c in family)))
            others = [c for c in columns if own.isdisjoint(words[c.place])]
            alike = end == 0 and not {c.spread for c in family}.isdisjoint(c.spread for c in others)
            if others and (end == 0 or number[word] + len(others) == len(columns)) and not alike:
                return others
    return []


class Meanings:
    """Columns of a table, grouped by what they may hold (any role, numbers, labels, times), with roles by header."""

    def __init__(
        self, profile: Profile, given_roles: UserRoles, beside: Beside | None = None, void: Collection[str] = ()
    ) -> None:
        self.profile, self.given_roles, self.beside, self.void = profile, given_roles, beside or Beside(), void
        at = {column.name: column.place for column in reversed(profile.columns)}
        self.given = {
            role: () if names is None else tuple(at[name] for name in ((names,) if isinstance(names, str) else names))
            for role, names in given_roles.columns.items()
        }
        taken = {place for places in self.given.values() for place in places}
        aside = {at[name] for name in given_roles.parts if name in at}
        self.free = [c for c in profile.columns if c.place not in taken | aside and (c.name or c.kind or not c.place)]
        # The roles that names say and contents allow, without those that the user gives to others.
        self._roles = {column.place: column.roles - column.ruled_out - {*self.given} for column in self.free}
        self._roles |= {c.place: self._roles[c.place] & {PROBABILITY} for c in self.free if c.name in given_roles.known}
        fates = {} if "outcome" in self.given else dict.fromkeys(self.fates, frozenset({"outcome"}))
        self._roles = {place: fates.get(place, roles) for place, roles in self._roles.items()}
        # An expert whose name is a word for one role may be one where it cannot play that role.
        emptied = {role for role, places in self.given.items() if not places}
        self.plain = [
            c
            for c in self.free
            if not self.roles(c)
            if c.roles - emptied <= {"expert"} or len(normal(c.name)) == 1 or c.name in given_roles.known
        ]
        self.times = self.given.get("time") or tuple(c.place for c in self.free if "time" in self.roles(c))
        named = {*given_roles.include, *given_roles.exclude, *given_roles.known}
        free = {c.place for c in self.free}
        self.pairs = [each for each in profile.pairs if free.issuperset(each[1:])]
        self.known = {c.place for c in self.plain if c.name in given_roles.known and c.forecasts}
        last = {c.place: normal(c.name).split("_")[-1] for c in profile.columns}
        summed = {place for each in profile.sums for place in each if not is_never(last[place])}
        self.numbers = [
            c
            for c in self.plain
            if c.forecasts
            if c.name in named or c.place in summed or not ({"never", "score"} & c.hints or c.is_amount)
        ]
        # Odds, and what was predicted, are no forecasts beside other numbers.
        guess = {c.place for c in self.numbers if c.binary and "decision" in c.hints}
        odd = guess | {c.place for c in self.numbers if c.spread == "odds" and "%" not in c.name}
        other = [c for c in self.numbers if c.name in named or c.place not in odd]
        self.numbers = other if any(c.kind for c in other) else self.numbers
        self.labels = [
            c
            for c in self.plain
            if c.kind in {"text", "mixed"}
            or (c.kind == "number" and c.whole == 1 and (c.numbers_things or not c.forecasts))
        ]

    def roles(self, column: Column) -> frozenset[str]:
        """Roles that a column's header names, except those that its cells exclude or the user gives to others."""
        return self._roles.get(column.place, frozenset())

    def called(self, role: str) -> list[int]:
        """Return the positions of columns whose header is a word for `role`, and for no other role."""
        return [c.place for c in self.free if self.roles(c) == {role}]

    @cached_property
    def shared(self) -> list[Column]:
        """Columns of two or more distinct words, no forecasts, whose header is also in the table of outcomes."""
        return [c for c in self.free if c.name in self.beside.names and not c.forecasts and c.distinct > 1]

    @cached_property
    def scores(self) -> list[Column]:
        """Columns whose headers name scores, and whose cells may be forecasts all the same."""
        return [c for c in self.plain if "score" in c.hints and c.forecasts]

    def happened(self, places: Iterable[int]) -> frozenset[str]:
        """Return the distinct outcomes in the columns at `places`, and beside the table, in lower case.

        Words for void and open events are left out.
        """
        words = [self.profile.columns[place].words.values for place in places]
        found = {word.lower() for word in chain(*words, self.beside.happened)}
        return frozenset(found - VOID - UNSETTLED - {*self.void})

    def names_columns(self, column: Column) -> bool:
        """Whether each word in a column is the last word of a header, as an outcome is where columns are classes."""
        return column.kind == "text" and len(column.folded) > 1 and {*map(normal, column.folded)} <= self._last_words

    @cached_property
    def _last_words(self) -> set[str]:
        """Last word of each header of numbers."""
        return {normal(c.name).split("_")[-1] for c in self.numbers}

    @cached_property
    def repeated(self) -> frozenset[int]:
        """Positions of the columns in which words come again."""
        return frozenset(c.place for c in self.free if self.profile.repeated([c.place]))

    @cached_property
    def row_names(self) -> list[tuple[int, ...]]:
        """The column that may name each row, [(position,)]; [()] if rows have only numbers; [] if there are several."""
        texts = [
            c
            for c in self.free
            if c.kind == "text" and self.roles(c) <= {TEXT, "other"}
            if "never" not in c.hints or not c.name or c.is_id
        ]
        for columns in (texts, [c for c in self.labels if c.kind == "number" and "index" in c.hints]):
            unique = [c for c in columns if c.present == 1 and c.place not in self.repeated]
            if len(unique) == 1:
                return [(unique[0].place,)]
            if unique:
                return []
        return [()] if not any(c.kind != "number" for c in self.labels) else []

    @cached_property
    def measures(self) -> list[str]:
        """Headers of columns that say what amounts are measured in."""
        return [c.name for c in self.free if "measure" in c.hints]

    @cached_property
    def fates(self) -> frozenset[int]:
        """Positions of columns whose headers call them the outcome of another column: gold_x or x_result beside x."""
        names = {normal(column.name) for column in self.profile.columns}
        found = set[int]()
        for c in self.profile.columns:
            words = normal(c.name).split("_")
            if names & {"_".join(words[1:]), "_".join(words[:-1])} and c.is_label and not c.fractions:
                found.add(c.place)
        return frozenset(found)

    @cached_property
    def quantiles(self) -> frozenset[int]:
        """Positions of columns whose headers are p, q or a like letter and a number, as in p5, p50, p95."""
        found = [
            c.place
            for c in self.profile.columns
            if re.fullmatch(r"(?:p|q|pct|percentile|quantile)_?\d+", normal(c.name))
        ]
        return frozenset(
            found
            if len(found) > 1 and any(normal(self.profile.columns[p].name).replace("_", "") == "p50" for p in found)
            else ()
        )
