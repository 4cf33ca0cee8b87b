"""Reading of open tables into forecasts, in stages: columns, roles, cells, times, outcomes, choice of forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import ArgumentError, DuplicateError, Note, OpinionPoolError, Remedy
from opinionpool.findings import Place, fault, finding
from opinionpool.forecasts import Forecasts, History
from opinionpool.labels import FAMILIES, UNRESOLVED
from opinionpool.names import name_key, places as positions
from opinionpool.scales import ALL, PLACES, facing, scale_of
from opinionpool.tables.classes import EventOptions, says_which
from opinionpool.tables.engine import CLASSES
from opinionpool.tables.event_facts import (
    EventColumn,
    Facts,
    active_rows,
    drop_expired,
    in_time,
    prior_of_events,
    read_facts,
    time_notes,
    with_silence,
)
from opinionpool.tables.layout import Layout, find_layout, layout_notes, levels_hint
from opinionpool.tables.melt import CellReader, Melted, melt
from opinionpool.tables.options import STAGES, ReadOptions, first_stage
from opinionpool.tables.outcomes import (
    TIED,
    Settled,
    as_asked,
    beside,
    find_options,
    join_outcomes,
    known_by,
    settle,
)
from opinionpool.tables.profile import Column, Profile
from opinionpool.tables.remarks import (
    ForecastCounts,
    name_notes,
    refuse_summaries,
    refuse_totals,
)
from opinionpool.tables.roles import KEYED, UserRoles, roles_of
from opinionpool.tables.statements import Distinctions, LongRows, fold_rows, latest_of_pair, one_each
from opinionpool.tables.table import BLANK, Table, Words, cell_fault
from opinionpool.tables.times import are_times, span_text
from opinionpool.tables.units import NumberRules
from opinionpool.text import suggestion

# First rows in which a table of more than `_HEAD * _MORE` rows is searched for repeated forecasts.
_HEAD, _MORE = 1 << 14, 64


class TableReader:
    """Reader of a table of forecasts, and of a table of outcomes, in stages; each result is computed when first used.

    Results that are known already, such as the `profile` and `layout` of a table for a part of it, may be given.
    """

    # Properties that take time to compute, by stage.
    _FOUND: ClassVar = {
        "columns": ("profile",),
        "roles": ("layout",),
        "cells": ("rules", "cell_reader", "events", "joined", "observed", "melted", "facts"),
    }

    classes: tuple[object, ...] | None = None

    def __init__(self, table: Table, other: Table | None, request: ReadOptions, **known: Any) -> None:  # noqa: ANN401
        self.table, self.other, self.asked = table, other, request
        self.__dict__.update(known)

    def revised(self, remedy: Remedy) -> TableReader | None:
        """Return a reader with the options that `remedy` changes, which keeps results that do not depend on these.

        None if the file must be opened again.
        """
        first = first_stage(remedy)
        if first == 0:
            return None
        # Reading cells is logged, so all of it is kept or none. Without a rule for duplicates, files may be experts.
        if "facts" not in self.__dict__ or ("duplicates" in remedy and len(self.table.pieces) > 1):
            first = min(first, STAGES.index("cells"))
        kept = {name for stage in STAGES[:first] for name in self._FOUND.get(stage, ())}
        known = {name: found for name, found in self.__dict__.items() if name in kept}
        return TableReader(self.table, self.other, self.asked.revised(remedy), **known)

    @cached_property
    def profile(self) -> Profile:
        """Profile of the table: header, kind and cells of each column."""
        return Profile(self.table, self.asked.rules.missing_words)

    @cached_property
    def request(self) -> ReadOptions:
        """Options as given; with a scale for a column of words such as yes and no, if these are the only forecasts."""
        asked = self.asked
        found = None if asked.rules.scales else self.profile.verdicts(asked.columns)
        if found is None:
            return asked
        columns = {role: name for role, name in asked.columns.items() if role != "verdict"}
        scale = dict.fromkeys(("*", found[0]), str(found[1]))
        return replace(asked, columns={**columns, "probability": found[0]}, scale=scale)

    @cached_property
    def layout(self) -> Layout:
        """Layout of the table: the column of each role, that is, of what it holds, such as event, expert or outcome."""
        profile, request, other = self.profile, self.request, self.other
        names = () if other is None else other.names
        own = {role: name for role, name in request.keys.items() if name in self.table.names or name not in names}
        judges = (*request.known_experts, *request.scale)
        given_roles = UserRoles(own, request.parts, tuple(request.include), tuple(request.exclude), judges)
        known = None if other is None else beside(other, request, self.table.names)
        scaled = profile.with_scales(request.rules.scales, request.columns)
        found = find_layout(scaled, given_roles, known, request.no_outcome.every)
        if self.table.rows > _HEAD * _MORE and request.duplicates is None:
            self._refuse_repeats(found)
        return found

    def _refuse_repeats(self, layout: Layout) -> None:
        """Raise an error early if an expert has several forecasts on one event in a very large table's first rows."""
        head = self.table.rows_from(self.table.first, _HEAD)
        with closing(head.connection):
            try:
                TableReader(head, self.other, self.asked, profile=self.profile, layout=layout).chosen  # noqa: B018
            except OpinionPoolError as error:
                # Whatever else is wrong in them may be right with the others.
                if isinstance(error, DuplicateError):
                    raise

    @cached_property
    def rules(self) -> NumberRules:
        """Rules for reading numbers; in a long table, a scale given for the column of forecasts is for all experts."""
        rules, names = self.request.rules, self.table.names
        column = names[self.layout.roles["probability"]] if self.layout.long else ""
        others = {name: scale for name, scale in rules.scales.items() if name != column}
        return replace(rules, scales={ALL: rules.scales[column], **others}) if column in rules.scales else rules

    @cached_property
    def cell_reader(self) -> CellReader:
        """Reader of the table's cells, with a log of how numbers were converted to probabilities."""
        return CellReader(self.request, self.rules)

    @cached_property
    def events(self) -> Words:
        """Event of each row: its cell in the event column, else its number; blank if columns are events."""
        table, layout = self.table, self.layout
        if layout.events:
            return Words(np.full(table.rows, BLANK), list(layout.events))
        if "event" in layout.roles:
            return table.words(layout.roles["event"])
        numbers = range(table.first + 1, table.first + table.rows + 1)
        return Words(np.arange(table.rows), [*map(str, numbers)])

    @cached_property
    def joined(self) -> tuple[Mapping[str, EventColumn], Sequence[Note]]:
        """Columns of the table of outcomes, by role, each row with the event that it is about, and notes on events."""
        if self.other is None:
            return {}, []
        names = [self.table.names[place] for role, place in self.layout.roles.items() if role == "event"]
        return join_outcomes(self.other, self.request.keys, self.events.values, self.table.name, names)

    def columns(self, role: str) -> list[EventColumn]:
        """Return the columns with the role `role`, first of the table of forecasts, then of the table of outcomes."""
        own = [place for each, place in self.layout.roles.items() if each == role]
        joined = [column for each, column in self.joined[0].items() if each == role]
        return [*(EventColumn.of(self.table, place, self.events.codes) for place in own), *joined]

    @cached_property
    def observed(self) -> list[EventColumn]:
        """Columns of outcomes in both tables; a yes to the class that a row names becomes the class, a no a blank."""
        found, of_class = as_asked(self.columns("outcome"), self.request), self.layout.roles.get("class")
        if of_class is None or not found or found[0].table is not self.table:
            return found
        labels = self.table.words(of_class)
        yes = says_which(found[0].words, found[0].row_events, labels)
        if yes is None:
            return found
        return [replace(found[0], words=Words(np.where(yes, labels.codes, BLANK), labels.values)), *found[1:]]

    @cached_property
    def melted(self) -> Melted:
        """Long form of the table, with a row for each number that an expert gave."""
        table, layout, names = self.table, self.layout, self.table.names
        if not table.part:
            refuse_totals(table, layout, self.events, [each.words for each in self.observed if each.table is table])
        found = melt(table, layout, self.events, self.cell_reader)
        refuse_summaries(table, layout, found.long_rows.experts, self.request.include)
        played = [name for place, name in enumerate(names) if place not in layout.unused]
        known = list(dict.fromkeys([*found.long_rows.experts, *played, *self.request.exclude]))
        keys = {ALL, *map(name_key, known)}
        # Of the experts in a part of a table nothing follows.
        for option, of in (("--unit", self.request.units), ("--scale", () if table.part else self.request.scale)):
            for name in (name for name in of if name_key(name) not in keys):
                near = suggestion(name, known, "there are")
                raise fault("option-of-nobody", Place(table.name), option=option, name=name, near=near)
        return found

    @cached_property
    def facts(self) -> Facts:
        """Facts on events: closing and resolution times, texts, groups and topics."""
        return read_facts(self.columns, self.melted.long_rows, self.cell_reader)

    @cached_property
    def by(self) -> Distinctions:
        """Columns that may say which of an expert's forecasts counts; of times, only if none has the role of time."""
        layout, look, time = self.layout, self.profile, self.layout.roles.get("time")
        unused, times = [look.columns[i] for i in layout.unused], list[Column]()
        if time is None and "time" not in self.request.keys:
            times = [c for c in unused if are_times(c.words.values[:50]) and "ends" not in c.hints]
        if "event" in layout.roles:
            times = [c for c in times if look.varies_within(c.place, [layout.roles["event"]])]
        keys = {role: self.table.names[place] for role, place in layout.roles.items() if role in KEYED}
        name = None if time is None else self.table.names[time]
        return Distinctions(self.table, name, unused, [c.name for c in times], keys, bool(self.rules.scales))

    @cached_property
    def timed(self) -> tuple[LongRows, Sequence[Note]]:
        """Forecasts made in time (before the event's end, --as-of and --horizon), and notes on those left out."""
        return in_time(self.melted.long_rows, self.request, self.facts, self.by)

    @cached_property
    def options(self) -> EventOptions | None:
        """Options of each event (the answers to choose from); None if all events share their classes."""
        timed, request = self.timed[0], self.request
        last = request.duplicates in {"last", "last-row"}
        counting = timed.select(latest_of_pair(timed)) if last else self.melted.long_rows
        rows = self.events.codes
        return find_options(self.melted, rows, self.layout, request, counting)

    @cached_property
    def settled(self) -> Settled:
        """Classes, outcome of each event, and which events are void (annulled)."""
        rows, about = (self.observed, self.events.values, self.melted.written), (self.classes, self.options)
        found = settle(*rows, self.request, *about, in_order=not self.layout.long)
        if len(found.classes) > CLASSES:
            # What pools learn grows with their square.
            raise fault("too-many-classes", file=self.table.name, classes=len(found.classes), most=CLASSES)
        return found

    @cached_property
    def placed(self) -> LongRows:
        """Forecasts made in time, with 1 - p for p where a scale, or the order of two things shown, is reversed."""
        rows, classes = self.timed[0], self.settled.classes
        turned = _shown_in_reverse(rows, self.layout, classes, self.request.duplicates)
        turned ^= facing(rows.experts, self.rules.scales, classes)[0][rows.expert]
        return replace(rows, value=np.where(turned, 1.0 - rows.value, rows.value)) if turned.any() else rows

    @cached_property
    def chosen(self) -> tuple[LongRows, Array, tuple[Note, ...]]:
        """One row for each expert and event; the probabilities, (M,) or (M, K) if K > 2; and notes on rows left out."""
        request, facts = self.request, self.facts
        ends = facts.asked(request.as_of, self.settled.outcomes, request.horizon)
        rows, repeated = one_each(self.placed, request.duplicates, self.by, ends)
        rows, expired = drop_expired(rows, request.as_of, facts.ends)
        rows, probabilities, folded = self._ordered(rows, self.settled.options)
        return rows, probabilities, (*repeated, *expired, *folded)

    def _ordered(self, rows: LongRows, options: EventOptions) -> tuple[LongRows, Array, Sequence[Note]]:
        """Return a row for each forecast, by event and expert, probabilities, (M,), or (M, K) if K > 2, and notes."""
        request, classes = self.request, len(self.settled.classes)
        if rows.classes:
            flags = request.drop_incomplete, request.normalise
            rows, table, notes = fold_rows(rows, options, self.cell_reader.half_units, *flags)
            return rows, table if classes > 2 else np.ascontiguousarray(table[:, 1]), notes
        if not rows.in_order:
            rows = rows.select(np.argsort(rows.pair, kind="stable"))
        return rows, rows.value if classes == 2 else _over_levels(rows, self.rules), []

    @cached_property
    def known(self) -> tuple[Index, Mask, Sequence[Note]]:
        """Each event's outcome, and whether it is void, (events,) each, as known at --as-of, and notes."""
        return known_by(self.request.as_of, self.settled, self.facts)

    @cached_property
    def counts(self) -> ForecastCounts:
        """Numbers of extreme probabilities among each expert's forecasts, void events left out."""
        rows, void = self.chosen[0], self.known[1]
        rows = rows.select(~void[rows.event]) if void.any() else rows
        return ForecastCounts.of(rows, self.request.percent, self.cell_reader.log.marked)

    @cached_property
    def forecasts(self) -> Forecasts:
        """Forecasts that the table has, with outcomes and facts on the events."""
        request, facts, (rows, probabilities, _) = self.request, self.facts, self.chosen
        classes, (outcomes, void, _) = self.settled.classes, self.known
        codes, reader = self.events.codes, self.cell_reader
        found = Forecasts(
            events=tuple(self.events.values),
            experts=tuple(rows.experts),
            classes=classes,
            event_index=rows.event,
            expert_index=rows.expert,
            probabilities=probabilities,
            outcomes=np.maximum(outcomes, UNRESOLVED),
            prior=prior_of_events(self.layout, self.melted, codes, self.settled.options, reader),
            times=facts.latest(rows),
            groups=facts.groups,
            topics=facts.topics,
            settled=facts.settled,
            made=None if rows.time is None or np.isnat(rows.time).all() else rows.time,
            asked=facts.asked(request.as_of, outcomes, request.horizon),
            closes=facts.closes if self.columns("closes") else None,
            texts=facts.texts,
            notes=self._notes(),
            scales=facing(rows.experts, self.rules.scales, classes)[1],
            ties=outcomes == TIED if (outcomes == TIED).any() else None,
        )
        if request.history:
            found = replace(found, history=self._history(found))
        if request.silence is not None:
            found = with_silence(found, request.silence)
        found = _of_events(self.options, found, void)
        if request.horizon is None:
            return found
        there = int((found.resolved & (found.crowd > 0)).sum())
        covered = finding("coverage", count=there, total=int(found.resolved.sum()), span=span_text(request.horizon))
        return replace(found, notes=(*found.notes, covered))

    def _notes(self) -> tuple[Note, ...]:
        """Notes of all stages, in the order of the stages."""
        (timed, late), rows = self.timed, self.chosen[0]
        column, scale = self.request.columns.get("probability"), self.request.scale.get("*")
        hint = levels_hint(self.profile, [self.table.names[place] for place in self.layout.unused], known=True)
        verdicts = [finding("verdicts", column=column, scale=scale)] if self.request is not self.asked else []
        return (
            *self.table.notes,
            *layout_notes(self.layout, self.table.names, self.by.names, hint),
            *time_notes(timed, self.facts),
            *self.cell_reader.log.notes(),
            *verdicts,
            *self.cell_reader.notes,
            *name_notes(rows.experts, self.events.values),
            *self.joined[1],
            *self.facts.notes,
            *self.known[2],
            *late,
            *self.chosen[2],
            *(() if self.table.part else self.counts.notes(self.request.rules)),
        )

    def _history(self, forecasts: Forecasts) -> History:
        """Return the forecasts in force in each interval between two changes of the forecasts on an event."""
        if self.options is not None:
            raise ArgumentError("--time-averaged is for events that share their classes, and these have options")
        stood = active_rows(self.placed, self.facts.ends)
        rows, _ = one_each(stood.long_rows, self.request.duplicates, Distinctions(self.table))
        options = EventOptions.shared(self.melted.written, self.settled.classes, len(rows.events))
        rows, probabilities, _ = self._ordered(rows, options)

        def own(of_events: Any) -> Any:  # noqa: ANN401 - arrays of several types
            return None if of_events is None else of_events[stood.event]

        found = Forecasts(
            events=tuple(rows.events),
            experts=forecasts.experts,
            classes=forecasts.classes,
            event_index=rows.event,
            expert_index=rows.expert,
            probabilities=probabilities,
            outcomes=own(forecasts.outcomes),
            made=rows.time,
            asked=stood.middle,
            prior=own(forecasts.prior),
            topics=own(forecasts.topics),
        )
        return History(found, stood.event, stood.share, stood.begin)


def _of_events(options: EventOptions | None, forecasts: Forecasts, void: Mask) -> Forecasts:
    """Return `forecasts` without events of fewer than two options, and with void events moved to the field `void`."""
    if options is not None:
        known = options.sizes >= 2
        notes = [options.note, *([] if known.all() else [finding("no-options", count=int((~known).sum()))])]
        labels = tuple(labels for labels, kept in zip(options.of_events, known.tolist(), strict=True) if kept)
        chosen = forecasts if known.all() else forecasts.select_events(known)
        forecasts, void = replace(chosen, options=labels, notes=(*chosen.notes, *notes)), void[known]
    if not void.any():
        return forecasts
    return replace(forecasts.select_events(~void), void=replace(forecasts.select_events(void), notes=()))


def _shown_in_reverse(rows: LongRows, layout: Layout, classes: Sequence[object], rule: str | None) -> Mask:
    """Mask (M,) of verdicts for the "first" or "second" of two things A and B where B was shown first.

    Raises an error for such verdicts if the order is unknown, and if verdicts for A or B seem to name the place.
    """
    table, order, none = rows.table, layout.roles.get("order"), np.zeros(len(rows.value), dtype=bool)
    if order is None and {str(label).lower() for label in classes} != {"a", "b"}:
        return none
    by_place = none.copy()
    for column in np.unique(rows.column).tolist():
        words, here = table.words(column), rows.column == column
        named = np.array([word.lower() in PLACES for word in words.values], dtype=bool)
        by_place[here] = words.expand(named, False)[rows.row[here]]
    if not by_place.any():
        unused = layout.unused if rule is None else ()
        orders = [each for each in unused if "order" in roles_of(table.names[each])] + _exchanged(table, unused)
        for column in orders if order is None else [order]:
            _refuse_letters(rows, column)
        return none
    if order is None:
        first, count = int(by_place.argmax()), int(by_place.sum())
        raise cell_fault("place-of-what", table, int(rows.row[first]), int(rows.column[first]), count=count)
    # A word says what was shown first, or whether the two were swapped.
    families = (("a", "b"), ("ab", "ba"), *FAMILIES[1:3])
    known, shown = {word: bool(i) for pair in families for i, word in enumerate(pair)}, table.words(order)
    first_is_b = [known.get("".join(filter(str.isalnum, word.lower().replace("model", "")))) for word in shown.values]
    if None in first_is_b:
        row, count = int(shown.rows(first_is_b.index(None))[0]), first_is_b.count(None)
        raise cell_fault("no-order", table, row, order, count=count)
    of_rows: Mask = shown.expand(np.array(first_is_b, dtype=bool), False)
    return by_place & of_rows[rows.row]


def _exchanged(table: Table, unused: Sequence[int]) -> list[int]:
    """Positions in `unused` of columns with the words of a later one, in other rows, as models that change sides."""
    of = {place: table.words(place) for place in unused}
    return [
        one
        for one, other in combinations(unused, 2)
        if len(of[one].values) > 1 and {*of[one].values} == {*of[other].values}
        if (positions(of[other].values, of[one].values)[of[other].codes] != of[one].codes).all()
    ]


def _refuse_letters(long_rows: LongRows, by: int) -> None:
    """Raise an error if an expert's verdicts on an event mostly contradict each other where column `by` differs."""
    at, pair, side = long_rows.table.words(by).codes[long_rows.row], long_rows.pair, np.sign(long_rows.value - 0.5)
    order = np.lexsort((at, pair))
    one, other = order[:-1], order[1:]
    agree = np.where((pair[one] == pair[other]) & (at[one] != at[other]), side[one] * side[other], 0.0)
    if (agree < 0).sum() > (agree > 0).sum():
        first, count = int(other[(agree < 0).argmax()]), int((agree < 0).sum())
        cell = int(long_rows.row[first]), int(long_rows.column[first])
        raise cell_fault("place-or-thing", long_rows.table, *cell, count=count, name=long_rows.table.names[by])


def _over_levels(rows: LongRows, rules: NumberRules) -> Array:
    """Return the probabilities of all classes, (M, K), from forecasts on a scale with a level for each class."""
    for name in rows.experts:
        if scale_of(rules.scales, name) != rules.scale:
            raise fault("levels-beside-fractions", Place(rows.table.name), scale=str(rules.scale), name=name)
    assert rules.scale is not None
    return rules.scale.over_classes(rows.value)
