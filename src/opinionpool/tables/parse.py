"""From open tables to forecasts: layout, cells, outcomes and facts, and which forecasts count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.earlier import Earlier
from opinionpool.errors import ArgumentError, DuplicateError, Note, OpinionPoolError
from opinionpool.findings import Place, fault, finding
from opinionpool.forecasts import Forecasts, History
from opinionpool.labels import UNRESOLVED
from opinionpool.scales import PLACES, scale_of
from opinionpool.tables.classes import as_listed
from opinionpool.tables.distinguishing import UnnamedTimes
from opinionpool.tables.event_facts import Facts, class_order, read_ends, read_facts, time_notes
from opinionpool.tables.known import in_time, known_by, void_by, with_silence, without_void
from opinionpool.tables.layout import Layout, find_layout, layout_notes
from opinionpool.tables.lives import Standing, coverage_note, standing
from opinionpool.tables.melt import Melted, Reading, melt_columns, melt_long, row_events
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.options_of_events import EventOptions, SharedClasses, find_options, fold_rows
from opinionpool.tables.outcome_files import Joined, beside, join_outcomes
from opinionpool.tables.outcomes import (
    TIED,
    Observed,
    Settled,
    absent_void_notes,
    graded,
    in_levels,
    settle,
    settle_among,
)
from opinionpool.tables.profile import Profile
from opinionpool.tables.remarks import ForecastCounts, alike_event_notes, alike_notes, formula_notes
from opinionpool.tables.shapes import UserRoles
from opinionpool.tables.sources import check_classes
from opinionpool.tables.statements import LongRows, drop_expired, earlier_forecasts, latest_of_pair, one_each
from opinionpool.tables.table import Table, Words, cell_fault
from opinionpool.tables.totals import refuse_totals
from opinionpool.tables.units import NumberRules, check_percent, small_percent_notes
from opinionpool.text import suggestion

# Rows that are looked at before all of so many more.
_HEAD, _MORE = 1 << 14, 64


@dataclass(frozen=True)
class Whole:
    """Layout, classes and profile of a whole table, for reading a part of it."""

    layout: Layout
    classes: tuple[object, ...] | None
    profile: Profile


def read_table(
    table: Table,
    other: Table | None,
    request: ReadOptions,
    reading: Reading | None = None,
    whole: Whole | None = None,
) -> Forecasts:
    """Return the forecasts in open tables; `whole` has layout, classes and profile if `table` is a part of a table."""
    profile = Profile(table, request.rules.missing_words) if whole is None else whole.profile
    asked, request = request, with_verdicts(profile, request)
    reading = Reading.of(request) if reading is None else reading
    if asked is not request:
        column, scale = request.columns["probability"], request.scale["*"]
        reading.notes.append(finding("verdicts", column=column, scale=scale))
    layout = layout_of(profile, other, request) if whole is None else whole.layout
    if table.rows > _HEAD * _MORE and layout.long and request.duplicates is None:
        _refuse_repeats(table, other, request, Whole(layout, None if whole is None else whole.classes, profile))
    return _read_as(_Known(table, other, request, reading, whole, profile, layout))


def with_verdicts(profile: Profile, request: ReadOptions) -> ReadOptions:
    """The options, with a scale for verdicts such as yes and no, or A, B and tie, in place of forecasts."""
    found = None if request.scale else profile.verdicts(request.columns)
    if found is None:
        return request
    columns = {role: name for role, name in request.columns.items() if role != "verdict"}
    return replace(request, columns={**columns, "probability": found[0]}, scale={"*": str(found[1])})


def _refuse_repeats(table: Table, other: Table | None, request: ReadOptions, whole: Whole) -> None:
    """Raise where experts repeat themselves in the first rows of very many, before all are taken into memory."""
    head = table.rows_from(table.first, _HEAD)
    try:
        _read_as(_Known(head, other, request, Reading.of(request), whole, whole.profile, whole.layout))
    except DuplicateError:
        raise
    except OpinionPoolError:
        # Whatever else is wrong in them may be right with the others.
        pass
    finally:
        head.connection.close()


def layout_of(profile: Profile, other: Table | None, request: ReadOptions) -> Layout:
    """Return the layout of a table from its headers and contents, the user's options and a table of outcomes."""
    names = () if other is None else other.names
    own = {role: name for role, name in request.keys.items() if name in profile.table.names or name not in names}
    given_roles = UserRoles(own, request.parts, tuple(map(str, request.include)), tuple(map(str, request.exclude)))
    known = None if other is None else beside(other, request, profile.table.names)
    return find_layout(profile.with_scales(request.rules.scales), given_roles, known, request.no_outcome.every)


@dataclass(frozen=True, eq=False)
class _Known:
    """A table with its layout and profile, and the rules for reading its cells."""

    table: Table
    other: Table | None
    request: ReadOptions
    reading: Reading
    whole: Whole | None
    profile: Profile
    layout: Layout


@dataclass(frozen=True, eq=False)
class _Parsed:
    """Parsed cells of a table: events, forecasts in long form, outcomes, and facts on events."""

    events: list[str]
    layout: Layout  # with the classes that columns are of
    joined: Joined | None
    melted: Melted
    timed: tuple[LongRows, Sequence[Note]]  # what was forecast in time, and notes on what was not
    options: EventOptions | None
    settled: Settled
    facts: Facts


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The forecasts that count, one by an expert on an event."""

    long_rows: LongRows
    probabilities: Array
    notes: tuple[Note, ...]
    earlier: Earlier | None


def _read_as(known: _Known) -> Forecasts:
    """Forecasts of a table whose columns are known."""
    request, parsed = known.request, _parse(known)
    facts, (timed, late) = parsed.facts, parsed.timed
    times = time_notes(timed, facts)
    chosen = _choose(known, parsed, timed)
    void, voided = void_by(request.cutoff, parsed.settled, facts)
    known.reading.counts.append(
        ForecastCounts.of(_not_void(chosen.long_rows, void), request.percent, known.reading.log.marked)
    )
    outcomes, hidden = known_by(request.cutoff, parsed.settled.outcomes, facts)
    notes = (*_reading_notes(known, parsed, chosen, times), *voided, *late, *hidden, *chosen.notes)
    if known.whole is None:
        notes += (*forecast_notes(known.reading.counts[0], parsed.layout, request.rules),)
    forecasts = _forecasts(known, parsed, chosen, outcomes, notes)
    if request.history:
        stood = standing(timed, facts.ends)
        history = _history(forecasts, stood, parsed.melted.written, request, known.reading)
        forecasts = replace(forecasts, history=history)
    return _finished(forecasts, parsed.options, void, request)


def _not_void(long_rows: LongRows, void: npt.NDArray[np.bool_]) -> LongRows:
    """Return the forecasts on events that are not void."""
    return long_rows.select(~void[long_rows.event]) if void.any() else long_rows


def _parse(known: _Known) -> _Parsed:
    """Read the cells: what classes there are depends on outcomes and forecasts, what facts mean on classes."""
    table, request, reading, layout = known.table, known.request, known.reading, known.layout
    events = row_events(table, layout)
    joined = None
    if known.other is not None:
        header = table.names[layout.roles["event"]] if "event" in layout.roles else None
        joined = join_outcomes(known.other, request.keys, events.values, table.name, header)
    observed = _observed(table, layout, events, joined)
    if request.at_least is not None:
        observed = [graded(each, request.at_least, request.rules.scales.values()) for each in observed]
    elif request.rules.scale is not None:
        observed = [in_levels(each, request.rules.scale) for each in observed]
    without = request.no_outcome
    if known.whole is None:
        refuse_totals(table, layout, events, [column.words for column in observed if column.table is table])
    melted = melt_long(table, layout, reading) if layout.long else melt_columns(table, layout, reading)
    _check_unit_names(table, melted.long_rows.experts, request)
    ends = read_ends(layout, melted, joined, reading)
    timed, late = in_time(melted.long_rows, request, ends, _unnamed_times(known, layout))
    last = request.duplicates in {"last", "last-row"}
    counting = timed.select(latest_of_pair(timed)) if last else melted.long_rows
    options = find_options(melted, layout, request.options, request.asked, counting)
    if options is not None:
        settled = settle_among(observed, events.values, options.of_events, without)
    else:
        classes = None if known.whole is None else known.whole.classes
        listed_ones = as_listed(request.asked, melted.written, long=layout.long)
        settled = settle(observed, events.values, melted.written, listed_ones, without, classes, request.rules.scale)
    if known.whole is None:
        settled = replace(settled, notes=(*settled.notes, *absent_void_notes(observed, without)))
    check_classes(table.name, len(settled.classes))
    facts = read_facts(layout, melted, joined, ends, settled.classes, reading, options)
    timed = _towards(_by_place(timed, layout), settled.classes, request.rules)
    return _Parsed(events.values, layout, joined, melted, (timed, late), options, settled, facts)


def _by_place(long_rows: LongRows, layout: Layout) -> LongRows:
    """The rows, in which first and second are A and B in the order in which these were shown, if a column says it."""
    if "order" not in layout.roles:
        return long_rows
    shown, turned = long_rows.table.words(layout.roles["order"]), np.zeros(len(long_rows.value), dtype=bool)
    letters = ["".join(filter(str.isalnum, word.lower().replace("model", ""))) for word in shown.values]
    first = [word[0] if word in {"a", "ab", "b", "ba"} else "" for word in letters]
    for column in np.unique(long_rows.column).tolist():
        words = long_rows.table.words(column)
        placed = words.expand(np.array([word.strip().lower() in PLACES for word in words.values], dtype=bool), False)
        if placed.any() and "" in first:
            row, count = int(shown.rows(first.index(""))[0]), first.count("")
            raise cell_fault("no-order", long_rows.table, row, layout.roles["order"], count=count)
        turned |= (long_rows.column == column) & (placed & shown.expand(np.array(first) == "b", False))[long_rows.row]
    return replace(long_rows, value=np.where(turned, 1.0 - long_rows.value, long_rows.value))


def _towards(long_rows: LongRows, classes: Sequence[object], rules: NumberRules) -> LongRows:
    """The rows, in which levels that are names of the two classes speak of these in whichever order they stand."""
    scales = [scale_of(rules.scales, name) for name in long_rows.experts]
    turned = np.array([scale is not None and scale.facing(classes) != scale for scale in scales], dtype=bool)
    if not turned.any():
        return long_rows
    return replace(long_rows, value=np.where(turned[long_rows.expert], 1.0 - long_rows.value, long_rows.value))


def _check_unit_names(table: Table, experts: Sequence[str], request: ReadOptions) -> None:
    """Raise if `units` has a name that is neither an expert nor a column."""
    names = list(dict.fromkeys([*experts, *table.names, *map(str, request.exclude)]))
    for name in request.units:
        if name not in names:
            raise fault("unit-of-nobody", Place(table.name), name=name, near=suggestion(name, names, "there are"))


def _choose(known: _Known, parsed: _Parsed, timed: LongRows) -> _Chosen:
    """Return one forecast of each expert on each event, with the probabilities of all classes."""
    table, request, layout, facts = known.table, known.request, parsed.layout, parsed.facts
    time_column = table.names[layout.roles["time"]] if "time" in layout.roles else None
    ends = facts.asked(request.cutoff, parsed.settled.outcomes, request.ahead)
    long_rows, repeated = one_each(
        timed, request.duplicates, time_column, layout.unused, ends, _unnamed_times(known, layout)
    )
    repeats = len(long_rows.value) < len(timed.value)
    long_rows, expired = drop_expired(long_rows, request.cutoff, facts.closes, facts.resolved_at)
    earlier = None
    if parsed.options is None:
        order = class_order(parsed.melted.written, parsed.settled.classes)
        long_rows, probabilities, folded = _ordered(long_rows, order, known.reading, request)
        if len(parsed.settled.classes) > 2 and probabilities.ndim == 1:
            probabilities = _over_levels(long_rows, probabilities, request.rules)
        earlier = earlier_forecasts(timed, long_rows, order) if repeats else None
    else:
        long_rows, probabilities, folded = fold_rows(
            long_rows, parsed.options, known.reading.half_units, request.drop_incomplete, request.normalise
        )
        if len(parsed.settled.classes) == 2:
            probabilities = np.ascontiguousarray(probabilities[:, 1])
    return _Chosen(long_rows, probabilities, (*repeated, *expired, *folded), earlier)


def _unnamed_times(known: _Known, layout: Layout) -> UnnamedTimes:
    """Return the unused columns of times; none if the user declares which column has times, or that none has."""
    given = layout if "time" not in known.request.keys else replace(layout, unused=())
    return UnnamedTimes.of(known.table, given, known.profile, known.reading.rules.missing_words, known.reading.dates)


def _reading_notes(known: _Known, parsed: _Parsed, chosen: _Chosen, times: Sequence[Note]) -> tuple[Note, ...]:
    """Notes on the table, its columns, its cells and its names."""
    experts, joined = chosen.long_rows.experts, parsed.joined
    return (
        *known.table.notes,
        *layout_notes(parsed.layout, known.table.names, _unnamed_times(known, parsed.layout).names),
        *times,
        *known.reading.log.notes(),
        *known.reading.notes,
        *alike_notes(experts),
        *alike_event_notes(parsed.events),
        *formula_notes([*parsed.events, *experts]),
        *(joined.notes if joined else ()),
        *parsed.facts.notes,
    )


def _forecasts(known: _Known, parsed: _Parsed, chosen: _Chosen, outcomes: Index, notes: tuple[Note, ...]) -> Forecasts:
    """The forecasts that count, with the facts about their events."""
    facts, rows, joined = parsed.facts, chosen.long_rows, parsed.joined
    closing = "closes" in parsed.layout.roles or (joined is not None and "closes" in joined.roles)
    return Forecasts(
        events=tuple(parsed.events),
        experts=tuple(rows.experts),
        classes=parsed.settled.classes,
        event_index=rows.event,
        expert_index=rows.expert,
        probabilities=chosen.probabilities,
        outcomes=np.maximum(outcomes, UNRESOLVED),
        prior=facts.prior,
        times=facts.latest(rows),
        groups=facts.groups,
        topics=facts.topics,
        settled=facts.settled,
        made=None if rows.time is None or np.isnat(rows.time).all() else rows.time,
        asked=facts.asked(known.request.cutoff, outcomes, known.request.ahead),
        earlier=chosen.earlier,
        closes=facts.closes if closing else None,
        texts=facts.texts,
        notes=notes,
        scales={
            name: scale.facing(parsed.settled.classes)
            for name in rows.experts
            if (scale := scale_of(known.reading.rules.scales, name))
        },
        ties=outcomes == TIED if (outcomes == TIED).any() else None,
    )


def _finished(
    forecasts: Forecasts, options: EventOptions | None, void: npt.NDArray[np.bool_], request: ReadOptions
) -> Forecasts:
    """Return the forecasts without void events, with --silence filled in and coverage at the horizon noted."""
    if request.silence is not None:
        forecasts = with_silence(forecasts, float(str(request.silence)))
    found = without_void(_with_options(options, forecasts, void))
    if request.ahead is None:
        return found
    return replace(found, notes=(*found.notes, coverage_note(found.resolved, found.crowd, request.ahead)))


def _history(
    forecasts: Forecasts, stood: Standing, written: Sequence[str], request: ReadOptions, reading: Reading
) -> History:
    """Return the active forecasts in every interval of the events' lives."""
    if forecasts.options is not None:
        raise ArgumentError("--time-averaged is for events that share their classes, and these have options")
    stretches, _ = one_each(stood.long_rows, request.duplicates, None)
    order = class_order(written, forecasts.classes)
    stretches, probabilities, _ = _ordered(stretches, order, reading, request)

    def own(of_events: Any) -> Any:  # noqa: ANN401 - arrays of several types
        return None if of_events is None else of_events[stood.event]

    found = Forecasts(
        events=tuple(stretches.events),
        experts=forecasts.experts,
        classes=forecasts.classes,
        event_index=stretches.event,
        expert_index=stretches.expert,
        probabilities=probabilities,
        outcomes=own(forecasts.outcomes),
        made=stretches.time,
        asked=stood.middle,
        prior=own(forecasts.prior),
        topics=own(forecasts.topics),
    )
    return History(found, stood.event, stood.share, stood.begin)


def forecast_notes(counts: ForecastCounts, layout: Layout, rules: NumberRules) -> list[Note]:
    """Return the notes on extreme forecasts, small percentages, and columns of only 0 and 1."""
    check_percent(counts.experts, counts.above, counts.inside, counts.exact, counts.every, rules)
    small = small_percent_notes(counts.experts, counts.above, counts.inside, rules)
    return [*small, *counts.extreme_notes(), *([] if layout.long else counts.vote_notes("outcome" in layout.roles))]


def _with_options(
    options: EventOptions | None, forecasts: Forecasts, void: npt.NDArray[np.bool_]
) -> tuple[Forecasts, npt.NDArray[np.bool_]]:
    """Return forecasts and void mask of events with two or more options, the options added."""
    if options is None:
        return forecasts, void
    known = options.sizes >= 2
    notes = [options.note]
    if not known.all():
        notes.append(finding("no-options", count=int((~known).sum())))
        forecasts = forecasts.select_events(known)
    labels = tuple(labels for labels, kept in zip(options.of_events, known.tolist(), strict=True) if kept)
    return replace(forecasts, options=labels, notes=(*forecasts.notes, *notes)), void[known]


def _observed(table: Table, layout: Layout, events: Words, joined: Joined | None) -> list[Observed]:
    """Return the columns of outcomes in the table and in the table of outcomes."""
    found = [Observed.of(table, layout.roles["outcome"], events)] if "outcome" in layout.roles else []
    if joined is not None:
        column = joined.roles["outcome"]
        found.append(Observed(joined.table, column, joined.table.words(column), joined.row_events))
    return found


def _over_levels(long_rows: LongRows, values: Array, rules: NumberRules) -> Array:
    """Probabilities of levels that are classes too, (M, K)."""
    for name in long_rows.experts:
        if scale_of(rules.scales, name) != rules.scale:
            raise fault("levels-beside-fractions", Place(long_rows.table.name), scale=str(rules.scale), name=name)
    assert rules.scale is not None
    return rules.scale.over_classes(values)


def _ordered(
    long_rows: LongRows, order: Sequence[int], reading: Reading, request: ReadOptions
) -> tuple[LongRows, Array, list[Note]]:
    """Return one row per forecast, ordered by event and expert, and its probability (M,) or probabilities (M, K)."""
    if long_rows.classes:
        slots, flags = SharedClasses(order), (request.drop_incomplete, request.normalise)
        long_rows, table, notes = fold_rows(long_rows, slots, reading.half_units, *flags)
        return long_rows, table if len(order) > 2 else np.ascontiguousarray(table[:, 1]), notes
    if not long_rows.in_order:
        long_rows = long_rows.select(np.argsort(long_rows.pair, kind="stable"))
    return long_rows, long_rows.value, []
