"""Choice of the column for each role: headers propose, cells only veto, and the user is asked about all else.

A reading has one of a few shapes, and a column for each role that the shape needs. All readings that headers allow are
judged: an objection is a veto, or a caveat that the user may overrule. If exactly one reading has neither, and no other
has only caveats, the table is read so. One exception: in a table without an expert column, the columns of numbers
whose headers are words for nothing else are the experts, and the one column of unique words left is the event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, combinations, islice, product

from opinionpool.tables.classes import TRUTH
from opinionpool.tables.meanings import sides, strangers
from opinionpool.tables.objections import Objections
from opinionpool.tables.profile import FEW, Column
from opinionpool.tables.roles import (
    CLASSES,
    FACTS,
    GRID,
    ONE,
    ONE_CLASSES,
    PAIRS,
    PROBABILITY,
    RESPONDENTS,
    SHAPES,
    SURE,
    SYNONYMS,
    TEXT,
    WIDE,
    Reading,
    Roles,
    Shape,
    class_names,
    is_never,
    names_unit,
    normal,
)

# Most assignments of columns to a shape's roles that are tried, and most columns for a role that no header names.
_TRIED, _GUESSED = 2000, 12


class Choice(Objections):
    """Enumeration of the readings of a table (ways to take its columns as event, expert, ...) that nothing rules out.

    A role is what a column holds, a veto a reason that rules a reading out, a caveat one that the user can overrule. A
    verdict is a judgement in words, or 0 or 1, in place of a probability. If `loose`, columns without a header for a
    role may have it by their cells.
    """

    def readings(self, loose: bool = False) -> Iterator[Reading]:
        """Yield the readings that no veto rules out, with their caveats; if `loose`, cells may suggest roles too."""
        for shape in SHAPES:
            players = {role: self._candidates(role, shape, loose) for role in shape.needs}
            if shape != RESPONDENTS:
                none: list[tuple[int, ...]] = [] if "outcome" in self.given else [()]
                players["outcome"] = [*self._candidates("outcome", shape, loose), *none]
            for chosen in islice(product(*players.values()), _TRIED):
                used = [place for places in chosen for place in places]
                if len(set(used)) < len(used):
                    continue
                roles = dict(zip(players, chosen, strict=True))
                if any(not roles[role] for role in shape.needs if not (role == "event" and shape.numbered)):
                    continue
                for forecasts in self._forecasts(shape, roles, loose):
                    reading = Reading(shape, roles, forecasts)
                    if not any(self._vetoes(reading, loose)):
                        yield replace(reading, caveats=tuple(self.caveats(reading)), harms=tuple(self.harms(reading)))

    @cached_property
    def loose_readings(self) -> list[Reading]:
        """Readings that no veto rules out, with roles that cells suggest."""
        return list(self.readings(loose=True))

    def _candidates(self, role: str, shape: Shape, loose: bool) -> list[tuple[int, ...]]:
        """Columns (tuples of positions) that may have `role`, by the user, by header or, if `loose`, by cells."""
        if role in self.given:
            return [self.given[role]]
        if role == "verdict" and shape == PAIRS:
            return [tuple(verdict for _, verdict, _ in self.pairs)] if self.pairs else []
        words = {"sureness", *([role] if loose else [])} if role == PROBABILITY and shape == SURE else {role}
        # The role's own name comes first, then ids, then other names.
        able = [(normal(c.name), c.place) for c in self.free if words & self.roles(c)]
        able.sort(key=lambda each: (each[0] != SYNONYMS[role][0], not each[0].endswith("_id")))
        named = [place for _, place in able]
        if role == "event":
            named = self._events(named)
        found: list[tuple[int, ...]] = [(place,) for place in named]
        if role == "event" and not found and shape.numbered:
            found = self._row_names()
        elif role == PROBABILITY and not found and shape != SURE:
            heads = [c for c in self.numbers if "head" in c.hints]
            found = [(heads[0].place,)] if len(heads) == 1 else []
        if loose and not (role in {"expert", PROBABILITY} and found):
            found += [places for places in self._guesses(role, shape) if places not in found]
        return found

    def _events(self, named: Sequence[int]) -> list[int]:
        """Positions in `named` without columns that may be experts or, beside ids, texts; all if none is left."""
        columns = [self.profile.columns[place] for place in named]
        ids = any(c.is_id for c in columns)
        plain = [c.place for c in columns if not (TEXT in c.roles and ids) and "expert" not in c.roles]
        return plain or list(named)

    def _row_names(self) -> list[tuple[int, ...]]:
        """Return the column that may name each row, [(position,)]; [()] if rows have only numbers; [] if several."""
        texts = [
            c
            for c in self.free
            if c.kind == "text" and self.roles(c) <= {TEXT, "other"}
            if "never" not in c.hints or not c.name or c.is_id
        ]
        for columns in (texts, [c for c in self.labels if c.kind == "number" and "index" in c.hints]):
            unique = [c for c in columns if c.present == 1 and not self.profile.repeated([c.place])]
            if len(unique) == 1:
                return [(unique[0].place,)]
            if unique:
                return []
        return [()] if not any(c.kind != "number" for c in self.labels) else []

    def _guesses(self, role: str, shape: Shape) -> Iterator[tuple[int, ...]]:
        """Yield columns, as tuples of positions, that may have `role` by their cells although no header says so."""
        label = [c.place for c in self.labels if c.present > 0.5 and not {"never", "unsure"} & c.hints]
        if role == "event":
            shared = tuple(c.place for c in self.shared)
            label = [place for place in label if self.profile.columns[place].names_things]
            parts = [c.place for c in self.free if self._part_of_event(c)]
            events = any("event" in self.roles(c) for c in self.free)
            days = [c.place for c in self.free if c.kind == "time" and not events and self.profile.repeated([c.place])]
            own = [(place,) for place in self._ids() or label or days][:_GUESSED]
            classes = [c.place for c in self.free if "class" in self.roles(c) and "class" not in shape.key]
            keys = list(dict.fromkeys([*self._ids(), *label, *parts, *classes]))[:_GUESSED]
            count = self.profile.count
            pairs = [
                pair
                for pair in combinations(sorted(keys), 2)
                if all(count(pair) > count([place]) for place in pair if place not in classes)
            ]
            # Where a column names each row, rows need no other key and no numbers.
            named = any("event" in self.roles(c) and not self.profile.repeated([c.place]) for c in self.free)
            named |= any(self._row_names())
            ways = own if named and shape.numbered else chain(own, pairs, [] if named else [()])
            yield from [shared] if shared else ways
        elif role == "expert":
            names = [c for c in self.labels if c.kind == "text" and c.place in label[:_GUESSED]]
            able = [c for c in names if c.distinct > 1 or self.profile.rows == 1]
            if shape == RESPONDENTS:
                able += [c for c in self.free if "index" in c.hints]
            yield from ((c.place,) for c in able if shape == RESPONDENTS or self.profile.repeated([c.place]))
        elif role == "class" and not any("class" in self.roles(c) for c in self.free):
            able = [c for c in self.free if "outcome" in self.roles(c) and c.kind == "text"]
            yield from ((c.place,) for c in able if c.distinct > 1 and c.present == 1)
        elif role == PROBABILITY:
            last = {c for side in sides(self.numbers)[:1] for c in side}
            numbers = [c for c in self.numbers if not c.period or c in last or not last]
            able = [c for c in [*numbers, *self.scores][:_GUESSED] if c.kind and not c.binary]
            single = [c for c in able if not any(c.place in each for each in self.profile.sums)]
            yield from ((c.place,) for c in [c for c in able if "head" in c.hints] or single)
        elif role == "outcome":
            able = [c for c in self.free if c.may_say_outcome or (shape.columns and self.names_columns(c))]
            yield from ((c.place,) for c in [c for c in able if c.is_two or c.levels] or able)
        elif role == "verdict":
            yield from ((c.place,) for c in self.plain if c.is_vote)
            yield from ((c.place,) for c in self.free if c.yes_no and "outcome" in self.roles(c))

    def _part_of_event(self, column: Column) -> bool:
        """Return True if a column may be part of an event's name: a name, a round, or a day other than a forecast's."""
        roles = self.roles(column)
        if "event" in roles or (column.kind == "time" and (is_never(column.name) or not roles)):
            return True
        return "part" in column.hints and column.whole == 1

    def _ids(self) -> list[int]:
        """Return the positions of columns of ids, in which some ids occur in several rows."""
        return [c.place for c in self.plain if c.is_id and c.present > 0.5 and self.profile.repeated([c.place])]

    def _forecasts(self, shape: Shape, roles: Roles, loose: bool) -> list[tuple[int, ...]]:
        """Sets of columns (positions) that may be the forecasts in a `shape`; if `loose`, also columns of scores."""
        if not shape.columns:
            return [roles[PROBABILITY]]
        if PROBABILITY in self.given:
            return [self.given[PROBABILITY]]
        if shape == PAIRS:
            return [tuple(sure for _, _, sure in self.pairs)] if self.pairs else []
        used = {place for places in roles.values() for place in places}
        free = [c for c in self.numbers if c.place not in used]
        sure = {c for c in free if self.given_roles.settles(c.name) or "head" in c.hints}
        flags = any(c.kind and not c.binary for c in free)
        free = [c for c in free if c in sure or not (flags and c.binary)]
        plain = [c for c in free if c in sure or not {"unsure", "summary"} & c.hints]
        if loose and shape == WIDE and plain:
            named = [c for c in self.free if c.roles == {PROBABILITY} and c.forecasts and c.kind]
            plain = sorted([*plain, *(c for c in named if c.place not in used)], key=lambda c: c.place)
        summed = [[c for c in free if any(c.place in each for each in self.profile.sums)]]
        grid = self.profile.grid([c.place for c in plain], self.happened(Reading(ONE, roles, ())))
        others = {*strangers(plain)}
        ways = [*([] if grid else [*sides(plain), *summed]), [c for c in plain if c not in others], plain, free]
        ways += [self._of_classes(free, roles)] if shape.columns == "class" else []
        if loose:
            scores = [c for c in self.scores if c.place not in used]
            either = {*plain, *scores}
            differ = any(c.fractions for c in plain) and not any(c.fractions for c in scores)
            ways += [scores if differ else [c for c in self.plain if c in either], scores]
        return list(dict.fromkeys(tuple(c.place for c in way) for way in ways if way or not free))

    def _of_classes(self, columns: Sequence[Column], roles: Roles) -> list[Column]:
        """Return those of `columns` whose header names a class that also occurs among the outcomes."""
        happened = self.happened(Reading(ONE, roles, ()))
        names = class_names([c.name for c in columns], happened) if columns else []
        return [c for c, name in zip(columns, names, strict=True) if name.lower() in happened]

    def _vetoes(self, reading: Reading, loose: bool) -> Iterator[str]:
        """Yield the reasons that rule out a reading; if `loose`, experts or verdicts may be unused in a wide table."""
        shape, roles, look = reading.shape, reading.roles, self.profile
        forecasts = [look.columns[place] for place in reading.forecasts]
        unused = [role for role, places in self.given.items() if places and role not in {*roles, *FACTS}]
        if unused and not (unused == [PROBABILITY] and shape.columns):
            yield f"no column is the {unused[0]}, as the user has it"
        yield from self._forecast_vetoes(reading, forecasts, loose)
        event = roles.get("event", ())
        if shape.numbered and not event and len(look.table.pieces) > 1:
            yield "rows are not numbered across files"
        for expert in roles.get("expert", ()) if "expert" not in self.given else ():
            vague = len(look.columns[expert].roles) > 1 and shape != RESPONDENTS
            if vague and look.rows > FEW and look.repeated([expert]) <= look.rows // 4:
                yield "nobody comes again"
        if event and "event" not in self.given:
            yield from self._event_vetoes(reading, look.columns[event[0]])
        if shape == RESPONDENTS:
            yield from self._respondent_vetoes(reading, look.columns[roles["expert"][0]])
        outcomes_of = {c.name for c in forecasts} & {*self.beside.events}
        if self.beside.events and bool(outcomes_of) != (shape == RESPONDENTS):
            yield "the table of outcomes has others for events"
        yield from self._class_vetoes(reading, [c for c in forecasts if c.kind])
        if "verdict" not in self.given and shape not in {PAIRS, SURE} and self._are_confidences(reading, forecasts[0]):
            yield "it is how sure each is of a verdict of its own"
        of_class = look.columns[roles["class"][0]] if "class" in shape.key and "class" not in self.given else None
        if of_class is not None and ("other" in of_class.roles or "class" not in of_class.roles):
            rest = [place for role in shape.key if role != "class" for place in roles[role]]
            if not look.varies_within(of_class.place, [*rest, *self.times[:1]]):
                yield "the class distinguishes no rows"
        if roles.get("outcome") and "outcome" not in self.given:
            yield from self._outcome_vetoes(reading, look.columns[roles["outcome"][0]])

    def _are_confidences(self, reading: Reading, forecast: Column) -> bool:
        """Whether forecasts say how sure experts are of verdicts, which differ in an event or are paired with them."""
        paired = {place for _, _, place in self.pairs if not self.profile.columns[place].below}
        only = forecast.roles & {PROBABILITY, "sureness"} == {PROBABILITY} or forecast.below
        differ = (
            not only and self.are_confidences(reading) and any(self.differs(c, reading) for c in self.votes(reading))
        )
        return differ or not paired.isdisjoint(reading.forecasts)

    def _forecast_vetoes(self, reading: Reading, forecasts: Sequence[Column], loose: bool) -> Iterator[str]:
        """Yield reasons against the columns read as forecasts: their cells or headers, or columns that stay unused."""
        shape, played = reading.shape, {role for role, places in reading.roles.items() if places}
        known = PROBABILITY not in self.given and self.known
        if known and (shape == RESPONDENTS or not known <= {*reading.forecasts}):
            yield "other columns are those of experts who are known"
        unique = loose and shape == WIDE and not self.profile.repeated(reading.roles["event"])
        # What each event has one of may be a property of it.
        for role in () if known else {*shape.forbids} - ({"expert", "verdict"} if unique else set()):
            called = [c for c in self.free if c.place not in reading.used and self.roles(c) - played == {role}]
            yield from (f"{c.name} is called the {role}" for c in called)
        several = len(forecasts) > 1 and not shape.columns
        if not forecasts or several or any(not c.forecasts for c in forecasts if c.kind not in {"mixed", "number"}):
            yield "no column of numbers is left"
        if PROBABILITY in self.given:
            return
        flags = [c for c in forecasts if c.binary and not self.given_roles.settles(c.name)]
        if flags and any(c.kind and not c.binary for c in forecasts):
            yield "it is 0 or 1, unlike others"
        elif forecasts and all(c.binary for c in forecasts):
            rest = any(c.fractions for c in self.plain if c.place not in reading.used and "never" not in c.hints)
            if rest or all("unsure" in c.hints for c in forecasts):
                yield "it may be what happened, and is no forecast"
        differ = len({c.spread for c in forecasts}) > 1
        if shape == WIDE and (odd := strangers(forecasts)) and (differ or any(names_unit(c.name) for c in odd)):
            yield "it holds something else than columns of a family do"

    def _respondent_vetoes(self, reading: Reading, expert: Column) -> Iterator[str]:
        """Yield the reasons against a reading in which each row is an expert and each column of forecasts an event."""
        sure = "expert" in self.given or ("expert" in expert.roles and "other" not in expert.roles)
        named = sure and (self.asks(reading) or PROBABILITY in self.given)
        if not (named if self.profile.repeated([expert.place]) else sure or self.asks(reading)):
            yield "the column is no list of experts"
        if len(reading.forecasts) == 1 and not self.asks(reading):
            yield "one column is no list of events"

    def _event_vetoes(self, reading: Reading, column: Column) -> Iterator[str]:
        """Yield the reasons against `column` as the event: it numbers rows, or another one fits better."""
        look, expert = self.profile, reading.roles.get("expert", ())
        named = [
            c for c in self.free if "event" in self.roles(c) and c.place not in reading.used and "expert" not in c.roles
        ]
        repeated = [bool(look.repeated([c.place])) for c in named]
        if reading.shape.numbered:
            if look.repeated(reading.roles["event"]) and ("event" not in column.roles or not all(repeated)):
                yield "it comes again"
            called = [c for c in self.free if "outcome" in self.roles(c) and c.kind == "text" and c.present == 1]
            event = reading.roles["event"] if look.repeated(reading.roles["event"]) else ()
            yield from (f"{c.name} is the class" for c in called if event and not look.repeated([*event, c.place]))
            return
        event = reading.roles["event"]
        rest = [place for role in reading.shape.key[1:] for place in reading.roles[role]]
        able = (c for c in map(look.columns.__getitem__, event) if "class" not in self.roles(c))
        guessed = [c.place for c in able if c not in self.shared]
        if look.count(event) > FEW and look.repeated(event) and any(look.same(event[0], place) for place in expert):
            yield "it is the expert by another name"
        if len(guessed) > 1 and any(not look.repeated([place, *rest]) for place in guessed):
            yield "one of its columns is a key"
        numbers = (normal(column.name) == "id" or "event" not in column.roles) and not look.repeated(event)
        if numbers and (any(repeated) or (expert and look.repeated(expert))):
            yield "it numbers the rows"

    def _class_vetoes(self, reading: Reading, forecasts: Sequence[Column]) -> Iterator[str]:
        """Yield reasons against taking forecast columns for classes, or for experts where they seem to be classes."""
        shape, look = reading.shape, self.profile
        places = [c.place for c in forecasts]
        grid = self.profile.grid(reading.forecasts, self.happened(reading))
        if shape == GRID and grid is None:
            yield "headers are not those of experts and classes"
        elif shape == WIDE and grid is not None:
            yield "headers are those of experts and classes"
        elif shape == WIDE and (self.adds_up(reading) or any(each <= {*places} for each in look.sums)):
            yield "columns add up to 1 as those of classes do"
        elif (shape == CLASSES and not look.add_up(places)) or (
            shape == ONE_CLASSES and (grid is not None or not self.adds_up(reading))
        ):
            yield "columns do not add up to 1 as those of classes do"

    def _outcome_vetoes(self, reading: Reading, column: Column) -> Iterator[str]:
        """Yield the reasons against reading `column` as the outcome."""
        look, event = self.profile, reading.roles.get("event", ())
        called = self.called("outcome")
        if called and column.place not in called:
            yield "another column is called the outcome"
        if "other" in column.roles and not reading.shape.of_classes and len(self.happened(reading)) > 2:
            yield "it holds more than two words"
        if "verdict" in column.roles and not reading.shape.numbered and not look.repeated(event):
            yield "it may as well be a verdict of each"
        if event and look.varies_within(column.place, event) and not self.says_which(reading, column):
            differing, events, many = look.differing(column.place, event)
            others = [c.place for c in self.free if "outcome" in self.roles(c) and c is not column]
            own = called or ("outcome" in column.roles and not many)
            each = many and 2 * differing > events and column.yes_no
            if each or not own or not all(look.varies_within(place, event) for place in others):
                yield "it differs within an event"
        named = "outcome" in self.roles(column) and "other" not in self.roles(column)
        if column.distinct == 1 < look.count(event) and not named and column.words.values[0].lower() not in TRUTH:
            yield "it holds one word throughout"
