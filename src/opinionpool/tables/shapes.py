"""The shapes that a table of forecasts can have, and what is known of the roles of its columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from opinionpool.tables.roles import PROBABILITY, TEXT

# Roles of facts about events and forecasts, which are given to what is left once the forecasts are known.
FACTS = ("time", "expires", "closes", "resolved_at", "prior", "group", "topic", TEXT, "order")


@dataclass(frozen=True)
class Shape:
    """A layout: the roles it needs and forbids, the key of its rows, and the meaning of its forecast columns."""

    name: str
    needs: tuple[str, ...]
    forbids: tuple[str, ...] = ()
    key: tuple[str, ...] = ("event",)  # the roles that distinguish its rows
    columns: str = ""  # what each column of forecasts is one of: "expert", "class", "expert and class", "event"

    @property
    def numbered(self) -> bool:
        """Whether rows are events, which may have no column of names."""
        return self.key == ("event",)


PAIR = ("event", "expert")
LONG = Shape("a row per forecast", (*PAIR, PROBABILITY), ("class",), PAIR)
SURE = Shape("a row per forecast, sure of a verdict", (*PAIR, PROBABILITY, "verdict"), ("class",), PAIR)
LONG_CLASSES = Shape("a row per forecast and class", (*PAIR, PROBABILITY, "class"), (), (*PAIR, "class"))
MARKET = replace(LONG_CLASSES, name="a row per class, one forecaster", needs=("event", PROBABILITY, "class"))
MARKET = replace(MARKET, forbids=("expert", "verdict"), key=("event", "class"))
CLASSES = Shape("a row per forecast, a column per class", PAIR, (PROBABILITY,), PAIR, "class")
ONE = Shape("a row per event, one forecaster", ("event", PROBABILITY), ("expert", "class", "verdict"))
WIDE = Shape("a row per event, a column per expert", ("event",), ("expert", PROBABILITY, "verdict"), columns="expert")
GRID = replace(WIDE, name="a row per event, a column per expert and class", columns="expert and class")
ONE_CLASSES = replace(WIDE, name="a row per event, a column per class", columns="class")
RESPONDENTS = Shape("a row per expert, a column per event", ("expert",), ("event", PROBABILITY), ("expert",), "event")
SHAPES = (LONG, SURE, LONG_CLASSES, MARKET, CLASSES, ONE, WIDE, GRID, ONE_CLASSES, RESPONDENTS)

# Roles to the places of their columns; none where no column plays the role.
Roles = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Reading:
    """One way to read a table."""

    shape: Shape
    roles: Roles
    forecasts: tuple[int, ...]
    caveats: tuple[str, ...] = ()

    @cached_property
    def used(self) -> frozenset[int]:
        """The columns that play a part."""
        return frozenset(self.forecasts).union(*self.roles.values())

    def within(self, other: Reading) -> bool:
        """Return True if another reading equals this one but for further roles, without further caveats."""
        same = self.shape == other.shape or (self.shape, other.shape) == (LONG, LONG_CLASSES)
        mine, its = ({role: at for role, at in each.roles.items() if at} for each in (self, other))
        same = same and mine.get("event") == its.get("event") and self.forecasts == other.forecasts
        return same and mine.items() < its.items() and set(other.caveats) <= set(self.caveats)


@dataclass(frozen=True)
class Beside:
    """Headers, events and outcomes of a table of outcomes; outcomes are in lower case."""

    names: Collection[str] = ()
    events: Collection[str] = ()
    happened: Collection[str] = ()


@dataclass(frozen=True)
class UserRoles:
    """The user's options on columns: roles, parts of keys, and experts to include or exclude."""

    columns: Mapping[str, str | tuple[str, ...] | None] = field(default_factory=dict)
    parts: Collection[str] = ()
    include: Collection[str] = ()
    exclude: Collection[str] = ()

    def settles(self, name: str) -> bool:
        """Return True if `include` or `exclude` decides on an expert of that name."""
        return name in self.exclude or name in self.include or bool(self.include)
