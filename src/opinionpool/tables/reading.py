"""A reading of a table (what each column is taken for), and what follows from it: repeated rows, votes, outcomes left.

A key is the columns that identify a row; a verdict is a judgement in words, or 0 or 1, in place of a probability.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from opinionpool.tables.classes import TRUTH, says_which
from opinionpool.tables.meanings import Meanings
from opinionpool.tables.profile import FEW, Column, Profile
from opinionpool.tables.roles import (
    LONG,
    LONG_CLASSES,
    ONE,
    PAIRS,
    PROBABILITY,
    TEXT,
    WIDE,
    Shape,
    class_names,
    normal,
)
from opinionpool.text import listed

# Most columns of words that may differ within an event, and that are left over beside an event that no name says.
_OTHERS, _FEW = 5, 3

# Positions of the columns of each role; () if no column plays the role.
Roles = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Caveat:
    """Caveat about a reading: a predicate, such as "is/are the outcome", that may be true of the columns `names`."""

    predicate: str  # begins with a verb in the singular and the plural
    names: tuple[str, ...]
    grave: bool = False  # whether columns that are used may be of another kind: the reading is not offered

    def __str__(self) -> str:
        verbs, _, rest = self.predicate.partition(" ")
        return f"{listed(self.names, 3)} {verbs.split('/')[len(self.names) > 1]} {rest}"


@dataclass(frozen=True, eq=False)
class Reading:
    """One way to read a table: its shape, and which columns (positions) play which role and hold the forecasts."""

    meanings: Meanings
    shape: Shape
    roles: Roles
    forecasts: tuple[int, ...]
    loose: bool = False  # whether cells may have suggested roles
    caveats: tuple[Caveat, ...] = ()

    @property
    def profile(self) -> Profile:
        """Contents of the table's columns."""
        return self.meanings.profile

    @cached_property
    def used(self) -> frozenset[int]:
        """Positions of the columns that have a role or hold forecasts."""
        return frozenset(self.forecasts).union(*self.roles.values())

    @property
    def event(self) -> tuple[int, ...]:
        """Positions of the columns that name the event."""
        return self.roles.get("event", ())

    def columns(self, role: str) -> list[Column]:
        """Return the columns that play `role`."""
        return [self.profile.columns[place] for place in self.roles.get(role, ())]

    @cached_property
    def forecast_columns(self) -> list[Column]:
        """The columns of forecasts."""
        return [self.profile.columns[place] for place in self.forecasts]

    @cached_property
    def key(self) -> list[int]:
        """Positions of the columns that identify a row."""
        return [place for role in self.shape.key for place in self.roles[role]]

    def within(self, other: Reading) -> bool:
        """Return True if `other` is this reading with more roles, and has no caveat that this one does not have."""
        same = self.shape == other.shape or (self.shape, other.shape) == (LONG, LONG_CLASSES)
        mine, its = ({role: at for role, at in each.roles.items() if at} for each in (self, other))
        same = same and mine.get("event") == its.get("event") and self.forecasts == other.forecasts
        return same and mine.items() < its.items() and {*other.caveats} <= {*self.caveats}

    def outdone(self, other: Reading) -> bool:
        """Return True if `other` differs only in columns whose headers are exactly the names of their roles."""
        if self.shape != other.shape or not {*other.caveats} <= {*self.caveats} or {*self.roles} != {*other.roles}:
            return False
        own = [c.named(role) for role in self.roles for c in other.columns(role)[:1] if self.differs_in(role, other)]
        return len(own) == sum(self.differs_in(role, other) for role in self.roles) > 0 and all(own)

    def differs_in(self, role: str, other: Reading) -> bool:
        """Whether other columns play `role` in `other`."""
        return self.roles.get(role, ()) != other.roles.get(role, ())

    def is_part(self, other: Reading) -> bool:
        """Return True if this has a single column of forecasts, and `other` has further ones, one for each expert."""
        own, others = {*self.forecasts}, {*other.forecasts}
        columns = self.profile.columns
        named = any(PROBABILITY in columns[place].roles for place in own)
        named |= all("summary" in columns[place].hints for place in others - own)
        return self.shape == ONE and other.shape == WIDE and own < others and not named

    @cached_property
    def meaning(self) -> tuple[object, ...]:
        """Key that is equal for two readings if they give the same forecasts on the same events."""
        places = [self.roles.get(role, ()) for role in ("event", "expert", "class", "verdict", "outcome")]
        groups = (self.profile.key(each).tobytes() if each else b"" for each in places)
        return (self.shape.key, self.forecasts, *groups)

    @cached_property
    def guesses(self) -> int:
        """Number of roles that neither headers nor the user give to their columns, or that headers give, in vain."""
        found, look = 0, self.meanings
        for role in self.roles if self.loose else ():
            own = self.columns(role)
            named = role in look.given or (role == PROBABILITY and "head" in own[0].hints)
            named |= role == "outcome" and all(c.may_be_outcome for c in own)
            named |= role == "verdict" and self.shape == PAIRS
            named |= role == "event" and self.shape.numbered and self.event in look.row_names
            found += not named and any(role not in c.roles for c in own)
        called = [
            role for role in ("expert", "outcome") for p in look.called(role) if self.profile.columns[p].distinct > 1
        ]
        unused = sum(not self.roles.get(role) for role in {*called})
        numbered = self.shape.numbered and not self.event and any(c.kind == "text" for c in look.labels)
        scores = self.loose and PROBABILITY not in look.given and any("score" in c.hints for c in self.forecast_columns)
        return found + unused + numbered + (scores and bool(self.shape.columns))

    @cached_property
    def settled(self) -> bool:
        """Whether headers or the user make the reading certain: a header is clear, or all columns are forecasts."""
        if self.meanings.given:
            return True
        given = self.meanings.given_roles
        named = [(role, c) for role in self.roles for c in self.columns(role) if role in c.roles]
        vague = [c for _, c in named if "other" in c.roles and TEXT not in c.roles and not c.folded <= TRUTH]
        clear = {role for role, c in named if c not in vague} - {PROBABILITY}
        clear |= {"index" for c in self.columns("event") if "index" in c.hints}
        sure = any({PROBABILITY, "sureness"} & c.roles or {"head", "question"} & c.hints for c in self.forecast_columns)
        every = not self.event and len(self.used) == sum(bool(c.kind) for c in self.profile.columns)
        known = self.meanings.known or self.meanings.beside.names or given.include or given.exclude
        return bool(clear or every or known or (sure and not vague))

    def guessed(self, role: str) -> bool:
        """Whether the column with `role` has this role neither by its header nor by the user's options."""
        return role not in self.meanings.given and not any(role in c.roles for c in self.columns(role))

    @cached_property
    def happened(self) -> frozenset[str]:
        """Distinct outcomes, in lower case; words for void and open events are left out."""
        return self.meanings.happened(self.roles.get("outcome", ()))

    def names_of(self, places: Iterable[int]) -> list[str]:
        """Return the headers of the columns at `places`."""
        return [self.profile.columns[place].name for place in places]

    def left(self, columns: Iterable[Column]) -> list[Column]:
        """Return those of `columns` that have no role and hold no forecasts."""
        return [c for c in columns if c.place not in self.used]

    def varies(self, place: int) -> bool:
        """Whether a column has several values within an event."""
        return bool(self.event) and self.profile.varies_within(place, self.event)

    def differs(self, column: Column) -> bool:
        """Whether verdicts in `column` differ between rows of one event, or from the outcome in the same row."""
        others = (c for c in self.meanings.free if "outcome" in self.meanings.roles(c) and c is not column)
        return self.profile.varies_within(column.place, self.event) or any(map(column.differs, others))

    @cached_property
    def adds_up(self) -> bool:
        """Whether forecast columns add up to 1 in nearly all rows, more than `FEW` unless headers name all outcomes."""
        return self.profile.add_up(self.forecasts, 1 if self.names_classes else FEW + 1)

    @cached_property
    def names_classes(self) -> bool:
        """Whether the headers of the forecast columns name every outcome, and so are classes."""
        labels = {label.lower() for label in class_names(self.names_of(self.forecasts))}
        able = [(c.place,) for c in self.meanings.free if "outcome" in self.meanings.roles(c)]
        found = map(self.meanings.happened, (self.roles.get("outcome", ()), *able))
        return any(words and words <= labels for words in found)

    def says_which(self, column: Column) -> bool:
        """Whether an outcome column says, row by row, if the class named in the row is the one that happened."""
        events = self.profile.key(self.event)
        return any(says_which(column.words, events, c.words) is not None for c in self.columns("class"))

    @cached_property
    def grid(self) -> tuple[tuple[str, str], ...] | None:
        """Expert and class of each column of forecasts, if headers combine all experts with all classes."""
        return self.profile.grid(self.forecasts, self.happened)

    @cached_property
    def asks(self) -> bool:
        """Whether all headers of forecast columns are questions, or are events in the table of outcomes."""
        return all("question" in c.hints or c.name in self.meanings.beside.events for c in self.forecast_columns)

    def outcomes_left(self) -> list[Column]:
        """Return unused columns that may hold outcomes: by header, or with few words that never differ in an event."""
        look, wide = self.meanings, self.shape.numbered
        repeated, classes = self.profile.repeated(self.event), "class" in self.shape.columns
        called = {*look.called("outcome")}

        def may_be(c: Column) -> bool:
            flag = (c.binary or c.mostly_truth) and not {"never", "decision"} & c.hints
            flag |= c.mostly_truth and "unsure" in c.hints
            once = (flag or c.levels or (wide and c.is_grade)) and (wide or bool(repeated))
            return c.may_be_outcome or (once and not self.varies(c.place)) or (classes and look.names_columns(c))

        plain = {*look.plain}
        return [c for c in self.left(look.free) if c.place in called or (c in plain and may_be(c))]

    @cached_property
    def are_confidences(self) -> bool:
        """Whether forecasts may be confidences in verdicts (choices of a class): headers say so, or verdicts differ."""
        columns, look = self.forecast_columns, self.meanings
        sure = any("sureness" in c.roles for c in columns)
        if self.shape.columns or sure:
            return sure
        verdicts = self.left(c for c in look.free if {"verdict", "outcome"} & look.roles(c))
        if any(PROBABILITY in c.roles for c in columns):
            verdicts = [c for c in verdicts if c.yes_no and not columns[0].agrees(c)]
        return any(self.differs(c) for c in verdicts if c.yes_no or "verdict" in look.roles(c))

    def votes(self) -> list[Column]:
        """Return the unused columns that may hold verdicts: experts' choices between classes, in words or 0 and 1."""
        look = self.meanings
        own = [c for c in look.free if "verdict" in look.roles(c) or (c.yes_no and "outcome" in look.roles(c))]
        return self.left([*own, *(c for c in look.plain if c.is_vote and self.varies(c.place))])

    def many_texts(self) -> list[str]:
        """Unused columns of words that vary within events, or all if no header names events; [] unless many."""
        left = self.left(c for c in self.meanings.plain if c.kind == "text" and "never" not in c.hints)
        named = any("event" in self.meanings.roles(c) and c.distinct > 1 for c in self.columns("event"))
        keys = [self.roles.get(role, ()) for role in ("event", "expert")]
        events, experts, both = map(self.profile.count, [*keys, [*keys[0], *keys[1]]])
        if min(events, experts) > 1 and events * experts == both == self.profile.rows:
            # Every expert is met once on every event.
            return []
        found = [c.name for c in left if not named or self.varies(c.place)]
        return found if len(found) > (_OTHERS if named else _FEW) else []

    @cached_property
    def _subjects(self) -> tuple[list[int], list[int]]:
        """Columns of the key (and time), and unused columns that may say more of what rows are about; if rows agree."""
        places = [*self.key, *([] if self.shape.numbered else self.meanings.times[:1])]
        if not places or not self.profile.repeated(places):
            return places, []
        able = [c for c in self.left(self.meanings.free) if c.is_key and c.present == 1]
        able = [c for c in able if c.is_part or c.kind != "number"]
        able = [c for c in able if self.meanings.roles(c) or c.kind == "time" or "unsure" not in c.hints]
        return places, [c.place for c in able]

    @cached_property
    def distinguishing(self) -> list[int]:
        """Unused columns that vary between any two rows that agree in the key."""
        key, able = self._subjects
        return [place for place in able if self.profile.distinguishes(place, key)]

    @cached_property
    def varying(self) -> list[int]:
        """Unused columns that vary between some rows that agree in the key."""
        key, able = self._subjects
        return [place for place in able if self.profile.varies_within(place, key)]

    def namesakes(self, column: Column) -> set[int]:
        """Positions of columns of numbers whose headers share most words with that of `column`; none if all do."""
        own = {*normal(column.name).split("_")}
        able = [c for c in self.meanings.free if c.kind in {"number", ""} and not (c.binary or c is column)]
        shared = {c.place: len(own & {*normal(c.name).split("_")}) for c in able}
        most = max(shared.values(), default=0)
        return {place for place, count in shared.items() if count == most and min(shared.values()) < most}

    @cached_property
    def unlike_votes(self) -> bool:
        """Whether forecasts say how sure experts are of verdicts, which differ in an event or are paired with them."""
        first = self.forecast_columns[0]
        paired = {place for _, _, place in self.meanings.pairs if not self.profile.columns[place].below}
        only = first.roles & {PROBABILITY, "sureness"} == {PROBABILITY} or first.below
        differ = not only and self.are_confidences and any(map(self.differs, self.votes()))
        return differ or not paired.isdisjoint(self.forecasts)
