"""Choice of the column for each role: headers propose, cells only veto, and the user is asked about all else.

A reading has one of a few shapes, and a column for each role that the shape needs. A table is read if headers allow one
reading only, and it has no caveat: no column may be something else than it is taken for. Else readings are offered that
leave two things open at most: roles that are guessed by cells, or one caveat, which the question quotes. One exception:
in a table without an expert column, the columns of numbers whose headers are words for nothing else are the experts,
and the one column of unique words left is the event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice, product
from typing import NamedTuple

from opinionpool.tables.caveats import caveats, vetoes
from opinionpool.tables.classes import TRUTH
from opinionpool.tables.meanings import Meanings, sides, strangers
from opinionpool.tables.profile import Column
from opinionpool.tables.reading import Reading, Roles
from opinionpool.tables.roles import (
    FACTS,
    PAIRS,
    PROBABILITY,
    RESPONDENTS,
    SHAPES,
    SURE,
    SYNONYMS,
    TEXT,
    WIDE,
    Shape,
    class_names,
    is_never,
    normal,
)

# Most assignments of columns to a shape's roles that are tried, and most columns for a role that no header names.
_TRIED, _GUESSED = 2000, 12
# Most roles that are guessed, and caveats, in a reading that is offered.
_OPEN = 2


class Choice(NamedTuple):
    """The reading of a table, if headers and cells leave one; else readings to offer, and the nearest that is not."""

    fit: Reading | None
    offered: list[Reading]
    rejected: Reading | None = None


def choose(meanings: Meanings) -> Choice:
    """Return the one reading of a table that leaves no caveat, or the readings that the user is asked about."""
    judged = [replace(one, caveats=tuple(caveats(one))) for one in _readings(meanings)]
    fit = _best(one for one in judged if one.settled and not one.caveats)
    known = {one.meaning for one in fit}
    questionable = [
        one
        for one in _best(one for one in judged if one.caveats or not one.settled)
        if one.meaning not in known and not any(one.within(other) or one.outdone(other) for other in fit)
    ]
    questionable = _with_outcome(questionable, fit)
    if len(fit) == 1 and not questionable:
        whole = list(_with_facts(fit[0]))
        return Choice(whole[0], []) if len(whole) == 1 else Choice(None, whole)
    if fit:
        return Choice(None, [*fit, *filter(_is_offered, questionable)])
    loose = [replace(one, caveats=tuple(caveats(one))) for one in _readings(meanings, loose=True)]
    able = _best(filter(_is_offered, [*questionable, *loose]))
    # A guess with a caveat is worth the question only if those without a caveat guess more.
    least = min((one.guesses for one in able if not one.caveats), default=_OPEN + 1)
    able = [one for one in able if not (one.caveats and one.loose) or one.guesses < least]
    able = _with_outcome([one for one in able if not any(one.is_part(other) for other in able)], able)
    able.sort(key=lambda one: (not one.roles.get("outcome"), one.shape == WIDE and one.asks, one.guesses))
    rejected = (one for one in loose if 0 < len(one.caveats) <= _OPEN)
    return Choice(None, able, min(rejected, key=lambda one: (one.guesses, len(one.caveats)), default=None))


def _is_offered(one: Reading) -> bool:
    """Whether the user is offered a reading: it has one caveat at most, none grave, and leaves two things open."""
    grave = any(each.grave for each in one.caveats)
    return len(one.caveats) <= 1 and len(one.caveats) + one.guesses <= _OPEN and not grave


def _with_outcome(readings: list[Reading], others: Sequence[Reading]) -> list[Reading]:
    """Return the readings that have an outcome, if any of `others` without a caveat has one; else all."""
    known = any(one.roles.get("outcome") for one in others if not one.caveats)
    return [one for one in readings if not known or one.roles.get("outcome") or one.shape == RESPONDENTS]


def _best(readings: Iterable[Reading]) -> list[Reading]:
    """Return one reading for each set of forecasts and events, without readings to which another one is preferred."""
    found: dict[object, Reading] = {}
    for reading in readings:
        found.setdefault(reading.meaning, reading)
    left = list(found.values())
    return [one for one in left if not any(one.within(other) or one.outdone(other) for other in left)]


def _with_facts(reading: Reading) -> Iterator[Reading]:
    """Yield copies of `reading` with columns of facts (times, topics, ...), one for each choice that headers allow."""
    wanted = FACTS[:1] if reading.shape == RESPONDENTS else FACTS
    players = {role: places for role in wanted if (places := _fact_columns(reading, role))}
    for chosen in product(*players.values()):
        facts = {role: (place,) for role, place in zip(players, chosen, strict=True)}
        if len(set(facts.values())) == len(facts):
            yield replace(reading, roles={**reading.roles, **facts})


def _fact_columns(reading: Reading, role: str) -> list[int]:
    """Positions of columns whose headers name `role`, a fact such as topic, without copies of the first one."""
    look, profile = reading.meanings, reading.profile
    if role in look.given or role == "order":
        return list(look.given.get(role, ()))
    found = reading.left(c for c in look.free if role in look.roles(c))
    found = [c for c in found if not c.name.lower().startswith("prior:")]
    if role in {"time", "expires"}:
        # What all forecasts on an event have in common is when it begins or ends itself.
        own = [c for c in found if normal(c.name) not in {"start_time", "end_time"}]
        varying = [c for c in found if reading.varies(c.place)]
        found = [c for c in found if c in own or c.present < 1 or c in varying]
        found = varying if role == "time" and varying else found
    found.sort(
        key=lambda c: SYNONYMS[role].index(normal(c.name)) if role == TEXT and normal(c.name) in SYNONYMS[role] else 0
    )
    return profile.own(found, role)


def _readings(meanings: Meanings, loose: bool = False) -> Iterator[Reading]:
    """Yield the readings that no veto rules out; if `loose`, cells may suggest roles too."""
    search = _Search(meanings, loose)
    for shape in SHAPES:
        for roles in search.assignments(shape):
            for forecasts in search.forecasts(shape, roles):
                reading = Reading(meanings, shape, roles, forecasts, loose)
                if next(vetoes(reading), None) is None:
                    yield reading


class _Search:
    """Enumeration of the columns for each role of a shape, by headers and, if `loose`, by cells."""

    def __init__(self, meanings: Meanings, loose: bool) -> None:
        self.meanings, self.profile, self.loose = meanings, meanings.profile, loose

    def assignments(self, shape: Shape) -> Iterator[Roles]:
        """Yield ways to give the roles that `shape` needs, and the outcome, to different columns."""
        players = {role: self._candidates(role, shape) for role in shape.needs}
        if shape != RESPONDENTS:
            none: list[tuple[int, ...]] = [] if "outcome" in self.meanings.given else [()]
            players["outcome"] = [*self._candidates("outcome", shape), *none]
        for chosen in islice(product(*players.values()), _TRIED):
            used = [place for places in chosen for place in places]
            roles = dict(zip(players, chosen, strict=True))
            empty = (role for role in shape.needs if not roles[role])
            if len(set(used)) == len(used) and all(role == "event" and shape.numbered for role in empty):
                yield roles

    def _candidates(self, role: str, shape: Shape) -> list[tuple[int, ...]]:
        """Columns (tuples of positions) that may have `role`, by the user, by header or, if `loose`, by cells."""
        look = self.meanings
        if role in look.given:
            return [look.given[role]]
        if role == "verdict" and shape == PAIRS:
            return [tuple(verdict for _, verdict, _ in look.pairs)] if look.pairs else []
        words = {"sureness", *([role] if self.loose else [])} if role == PROBABILITY and shape == SURE else {role}
        # The role's own name comes first, then ids, then other names.
        able = [(normal(c.name), c.place) for c in look.free if words & look.roles(c)]
        able.sort(key=lambda each: (each[0] != SYNONYMS[role][0], not each[0].endswith("_id")))
        named = [place for _, place in able]
        if role == "event":
            named = self._events(named)
        elif role == "class":
            # Where one class is blank in some rows and another never is, the first says less.
            named = [place for place in named if self.profile.columns[place].present == 1] or named
        found: list[tuple[int, ...]] = [(place,) for place in named]
        if role == "event" and not found and shape.numbered:
            found = [*look.row_names]
        elif role == PROBABILITY and not found and shape != SURE:
            heads = [c for c in look.numbers if "head" in c.hints]
            found = [(heads[0].place,)] if len(heads) == 1 else []
        if self.loose and not (role in {"expert", PROBABILITY} and found):
            found += [places for places in self._guesses(role, shape) if places not in found]
        return found

    def _events(self, named: Sequence[int]) -> list[int]:
        """Positions in `named` without columns that may be experts or, beside ids, texts; all if none is left."""
        columns = [self.profile.columns[place] for place in named]
        ids = any(c.is_id for c in columns)
        plain = [c.place for c in columns if not (TEXT in c.roles and ids) and "expert" not in c.roles]
        return plain or list(named)

    def _guesses(self, role: str, shape: Shape) -> Iterator[tuple[int, ...]]:
        """Yield columns, as tuples of positions, that may have `role` by their cells although no header says so."""
        look, able = self.meanings, list[Column]()
        if role == "event":
            yield from self._event_guesses(shape)
        elif role == "class" and not any("class" in look.roles(c) for c in look.free):
            able = [c for c in look.free if "outcome" in look.roles(c) and c.kind == "text"]
            able = [c for c in able if c.distinct > 1 and c.present == 1]
        elif role == PROBABILITY:
            last = {c for side in sides(look.numbers)[:1] for c in side}
            numbers = [c for c in look.numbers if not c.period or c in last or not last]
            able = [c for c in [*numbers, *look.scores][:_GUESSED] if c.kind and not c.binary]
            single = [c for c in able if not any(c.place in each for each in self.profile.sums)]
            able = [c for c in able if "head" in c.hints] or single
        elif role == "outcome":
            able = [c for c in look.free if c.may_say_outcome or (shape.columns and look.names_columns(c))]
            able = [c for c in able if "decision" not in c.hints]
            able = [c for c in able if c.is_two or c.levels] or able
        elif role == "expert" and (look.called("event") or shape == RESPONDENTS):
            able = [
                c for c in look.labels if c.kind == "text" and c.present > 0.5 and not {"never", "unsure"} & c.hints
            ]
            able = [c for c in able[:_GUESSED] if (c.distinct > 1 and not c.folded <= TRUTH) or self.profile.rows == 1]
            able += [c for c in look.free if "index" in c.hints] if shape == RESPONDENTS else []
            able = [c for c in able if shape == RESPONDENTS or c.place in look.repeated]
        elif role == "verdict":
            words = look.happened(look.called("outcome")) or TRUTH | {"0", "1"}
            heads = any("head" in c.hints for c in look.numbers)
            able = [c for c in look.plain if c.is_vote and c.folded <= words and not heads]
            able += [c for c in look.free if c.yes_no and "outcome" in look.roles(c)]
        yield from ((c.place,) for c in able)

    def _event_guesses(self, shape: Shape) -> Iterator[tuple[int, ...]]:
        """Yield columns, or pairs of columns, that may name events by their cells; () if rows may be numbered."""
        look, count = self.meanings, self.profile.count
        if look.shared:
            yield tuple(c.place for c in look.shared)
            return
        label = [c for c in look.labels if c.present > 0.5 and not {"never", "unsure"} & c.hints and c.names_things]
        ids = [c for c in look.plain if c.is_id and c.present > 0.5 and c.place in look.repeated]
        named = any("event" in look.roles(c) for c in look.free)
        days = [c for c in look.free if c.kind == "time" and not named and c.place in look.repeated]
        own = [(c.place,) for c in ids or label or days][:_GUESSED]
        classes = [c for c in look.free if "class" in look.roles(c) and "class" not in shape.key]
        keys = dict.fromkeys(c.place for c in [*ids, *label, *filter(self._part_of_event, look.free), *classes])
        pairs = (
            pair
            for pair in combinations(sorted([*keys][:_GUESSED]), 2)
            if all(count(pair) > count([c]) for c in pair if self.profile.columns[c] not in classes)
        )
        # Where a column names each row, rows need no other key and no numbers.
        named = any("event" in look.roles(c) and c.place not in look.repeated for c in look.free)
        named |= any(look.row_names)
        yield from own if named and shape.numbered else chain(own, pairs, [] if named else [()])

    def _part_of_event(self, column: Column) -> bool:
        """Return True if a column may be part of an event's name: a name, a round, or a day other than a forecast's."""
        roles = self.meanings.roles(column)
        if "event" in roles or (column.kind == "time" and (is_never(column.name) or not roles)):
            return True
        return "part" in column.hints and column.whole == 1

    def forecasts(self, shape: Shape, roles: Roles) -> list[tuple[int, ...]]:
        """Return sets of columns (positions) that may be the forecasts in a `shape`; if `loose`, also scores."""
        look = self.meanings
        if not shape.columns:
            return [roles[PROBABILITY]]
        if PROBABILITY in look.given:
            return [look.given[PROBABILITY]]
        if shape == PAIRS:
            return [tuple(sure for _, _, sure in look.pairs)] if look.pairs else []
        used = {place for places in roles.values() for place in places}
        free = [c for c in look.numbers if c.place not in used]
        known = {c for c in free if look.given_roles.settles(c.name)}
        sure = known | {c for c in free if "head" in c.hints}
        flags = any(c.kind and not c.binary for c in free)
        free = [c for c in free if c in sure or not (flags and c.binary)]
        plain = [c for c in free if (c in sure or "unsure" not in c.hints) and (c in known or "summary" not in c.hints)]
        if self.loose and shape == WIDE and plain:
            named = [c for c in look.free if c.roles == {PROBABILITY} and c.forecasts and c.kind]
            plain = sorted([*plain, *(c for c in named if c.place not in used)], key=lambda c: c.place)
        summed = [[c for c in free if any(c.place in each for each in self.profile.sums)]]
        happened = look.happened(roles.get("outcome", ()))
        grid = self.profile.grid([c.place for c in plain], happened)
        others = {*strangers(plain)}
        ways = [*([] if grid else [*sides(plain), *summed]), [c for c in plain if c not in others], plain, free]
        if shape.columns == "class" and free:
            # Those whose header names a class that also occurs among the outcomes.
            names = class_names([c.name for c in free], happened)
            ways += [[c for c, name in zip(free, names, strict=True) if name.lower() in happened]]
        if self.loose:
            scores = [c for c in look.scores if c.place not in used]
            either = {*plain, *scores}
            differ = any(c.fractions for c in plain) and not any(c.fractions for c in scores)
            ways += [scores if differ else [c for c in look.plain if c in either], scores]
        return list(dict.fromkeys(tuple(c.place for c in way) for way in ways if way or not free))
