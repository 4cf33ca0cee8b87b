"""Forecasts from files and data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import ArgumentError, CellError, DuplicateError, Note, Remedy, TableError
from opinionpool.forecasts import Forecasts, History
from opinionpool.names import alike
from opinionpool.progress import Progress, advancing
from opinionpool.tables.class_rows import fold_classes
from opinionpool.tables.classes import as_listed
from opinionpool.tables.contents import Contents
from opinionpool.tables.event_facts import class_order, read_facts, time_notes
from opinionpool.tables.event_options import EventOptions, find_options, fold_options
from opinionpool.tables.frames import FrameTable, Table
from opinionpool.tables.known import in_time, known_by, void_by, without_void
from opinionpool.tables.layout import WIDE, Layout, guesses, layout_notes, split_classes
from opinionpool.tables.lives import Standing, coverage_note, standing
from opinionpool.tables.melt import Reading, melt_columns, melt_long, row_events
from opinionpool.tables.options import ReadOptions, options_given
from opinionpool.tables.outcome_files import Joined, join_outcomes
from opinionpool.tables.outcomes import Observed, distinct_outcomes, settle, settle_among
from opinionpool.tables.recognise import recognise
from opinionpool.tables.roles import position
from opinionpool.tables.sources import check_cells, check_classes
from opinionpool.tables.statements import ForecastCounts, LongRows, drop_expired, one_each
from opinionpool.tables.times import Times
from opinionpool.text import FORMULAS, counted, is_formula, listed, quoted, shown

if TYPE_CHECKING:
    from opinionpool.tables.file_table import FileTable


def read_forecasts(
    source: object,
    *,
    outcomes: object = None,
    progress: Progress = None,
    **options: Any,  # noqa: ANN401 - the fields of ReadOptions, each with its type there
) -> Forecasts:
    """Forecasts from a table.

    A long table has a row per forecast: columns event, expert and probability, and where there are more than two
    classes a column class with a row for each. A wide table has a row per event and a column per expert, called
    ``expert:class`` for K classes. Further columns in both: outcome, time, closes, resolved_at, prior, group, topic.
    They are recognised by their names and the usual synonyms.

    Parameters
    ----------
    source : path, ``"-"``, binary file object, data frame, Arrow table, dict of columns, or array
        Files are CSV (fields between commas, semicolons, tabs or bars), Parquet, or JSON lines; gzip too. ``"-"`` is
        standard input. Arrays are events x experts.
    outcomes : like `source`, optional
        A table with an event and an outcome column, joined by event id; may hold closes and resolved_at.
    positive : optional
        The class that probabilities are about, of two. Not needed for 0 and 1, no and yes,
        false and true.
    classes : sequence, optional
        All classes in the order wanted; sorted if not given.
    columns : mapping, optional
        From a role (event, expert, probability, class, outcome, time, closes, resolved_at, prior, group, topic) to the
        name of the column that plays it; None if none does.
    options : {"event", "shared"}, optional
        Whether each event has options of its own, in a long table with classes, or all events share their classes. If
        not given, they are its own where sets that differ have no class in common; where they do, an error asks.
    duplicates : {"last", "mean", "time-weighted"}, optional
        Which of several forecasts by one expert on one event counts; several are an error if not given. The last is
        that with the latest time, or the last row if there are no times. "time-weighted" is their mean over the time
        that each stood, until the next by the same expert, the last until the event closed or was resolved, or until
        `as_of`, or else until the newest forecast on the event.
    as_of : str, date, datetime or datetime64, optional
        Leaves out later forecasts, and outcomes that became known later (by resolved_at). Independently of it,
        forecasts made after their event closed or was resolved are left out.
    percent : bool, default False
        Whether numbers without a per cent sign are percentages. Without it, numbers above 1 are an error: they may be
        percentages, or codes for no answer.
    decimal : {".", ","}, optional
        The decimal mark; by column if not given.
    encoding : str, optional
        Of text files; UTF-8, or UTF-16 with a byte-order mark, if not given. Holds for `outcomes` too, unless that
        is UTF-8.
    missing_values : sequence, optional
        Words or numbers that mean "no answer", besides empty cells, NA, N/A, NaN, null, none, ``-`` and ``.``
    include, exclude : sequence of str, optional
        Experts to keep, and to leave out.
    horizon : number of days, str or timedelta, optional
        Takes forecasts as they stood so long before their event closed or was resolved, such as ``"7d"``.
    history : bool, default False
        Keeps what was forecast at every moment until the events closed, for time-averaged scores.
    progress : callable or bool, optional
        Called now and then, from another thread, with the share of the file that is read; True shows a bar on standard
        error once there is something to wait for.

    Returns
    -------
    Forecasts
        Every event of the table in order of first appearance, with or without forecasts. Its `notes` say what was
        recognised, coerced and left out. `times` are resolved_at, else closes, else the latest forecast.

    Raises
    ------
    TableError
        If the table cannot be read: `LayoutError` for its columns, `CellError` for a cell, `DuplicateError`.
    ExpertError
        If `include` or `exclude` names nobody.
    ArgumentError
        If an option is none of those above.

    Notes
    -----
    Units are decided for a column, never for a cell: a column has per cent signs on all numbers or on none. Times
    without a zone are UTC, dates are midnight. Probabilities over classes may be off a sum of 1 by half a unit of the
    last digit written for each class, or 1e-4; then they are normalised.

    Errors and notes name options as the command line has them. Here ``--column ROLE=NAME`` is
    ``columns={"ROLE": "NAME"}``, ``--column ROLE=`` is ``columns={"ROLE": None}``, ``--missing-value V`` is
    ``missing_values=["V"]``, and every other option is the argument of its name.

    Examples
    --------
    >>> table = {"event": ["q1", "q2"], "ann": ["90%", "35%"], "bob": ["70 %", None], "outcome": ["yes", ""]}
    >>> f = read_forecasts(table)
    >>> f.X
    array([[0.9 , 0.7 ],
           [0.35,  nan]])
    >>> f.classes, f.outcomes.tolist()
    (('no', 'yes'), [1, -1])
    """
    found = options_given(options)
    with ExitStack() as stack:
        advance = stack.enter_context(advancing(progress, "reading forecasts"))
        table = stack.enter_context(open_table(source, found, advance))
        other = None if outcomes is None else stack.enter_context(open_outcomes(outcomes, found))
        return read_table(table, other, found)


@contextmanager
def open_table(
    source: object, options: ReadOptions, progress: Callable[[float], None] | None = None, on_disk: bool = False
) -> Iterator[Table]:
    """A file, several files or a frame as a table, with the rows and the keys that were asked for.

    Only what is needed for it is imported.
    """
    with _open(source, options, progress, on_disk) as table:
        chosen: Table = table
        if options.where is not None:
            from opinionpool.tables.duckdb import matching

            chosen = matching(table, options.where)
        if chosen.rows == 0:
            raise TableError(f"no row of {table.name} meets --where {options.where}")
        yield _keyed(chosen, options)


@contextmanager
def open_outcomes(source: object, options: ReadOptions) -> Iterator[Table]:
    """A table of outcomes; it is read whole, and has the keys that it has all columns of."""
    with _open(source, replace(options, expert_from_name=False), None, False) as table:
        yield _keyed(table, options, optional=True)


@contextmanager
def _open(
    source: object, options: ReadOptions, progress: Callable[[float], None] | None, on_disk: bool
) -> Iterator[FileTable | FrameTable]:
    paths = isinstance(source, list | tuple) and all(isinstance(each, str | PathLike) for each in source)
    if paths or isinstance(source, str | PathLike) or hasattr(source, "read"):
        from opinionpool.tables.duckdb import open_file

        with open_file(source, options.encoding, progress, on_disk, options.expert_from_name or None) as table:
            yield table
    else:
        from opinionpool.tables.frames import read_frame

        yield read_frame(source)


def _keyed(table: Table, options: ReadOptions, optional: bool = False) -> Table:
    """The table with a column for each key of several columns."""
    for parts in options.columns.values():
        if isinstance(parts, tuple):
            there = all(name in table.names for name in parts)
            if there or not optional:
                table = table.with_key([position(table.name, table.names, name) for name in parts])
    return table


@dataclass(frozen=True)
class Whole:
    """What was decided for a whole table of which a part is read."""

    layout: Layout
    classes: tuple[object, ...]


def read_table(
    table: Table,
    other: Table | None,
    request: ReadOptions,
    reading: Reading | None = None,
    whole: Whole | None = None,
) -> Forecasts:
    """From open tables to forecasts; for a part of a table, as was decided for the whole."""
    reading = request.reading() if reading is None else reading
    contents = Contents(table, reading.rules.missing_words)
    layout = recognise(contents, _own(request, table, other), request.parts) if whole is None else whole.layout
    try:
        return _read_as(table, other, request, reading, whole, contents, layout)
    except CellError as error:
        guessed = guesses(layout, table.names)
        if not guessed or guessed in str(error):
            raise
        raise CellError(f"{error}{guessed}", remedies=error.remedies, count=error.count) from None


def _read_as(
    table: Table,
    other: Table | None,
    request: ReadOptions,
    reading: Reading,
    whole: Whole | None,
    contents: Contents,
    layout: Layout,
) -> Forecasts:
    """Forecasts of a table whose columns are known."""
    asked, cutoff = request.asked, request.cutoff
    events = row_events(table, layout)
    joined = None if other is None else join_outcomes(other, request.keys, events.values, table.name)
    observed = _observed(table, layout, events.codes, joined)
    missing = reading.rules.missing_words
    if whole is None:
        layout = split_classes(layout, distinct_outcomes(observed, missing))
    melted = melt_long(table, layout, reading) if layout.long else melt_columns(table, layout, contents, reading)
    options = find_options(melted, layout, request.options, asked)
    if options is not None:
        settled = settle_among(observed, events.values, options.of_events, missing)
    else:
        classes = None if whole is None else whole.classes
        listed_ones = as_listed(asked, melted.written, long=layout.long)
        settled = settle(observed, events.values, melted.written, listed_ones, missing, classes)
    check_classes(table.name, len(settled.classes))
    facts = read_facts(layout, melted, joined, settled.classes, reading, options)
    long_rows, late = in_time(melted.long_rows, request, facts)
    timed = long_rows
    times = time_notes(long_rows, facts)
    time_column = table.names[layout.roles["time"]] if "time" in layout.roles else None
    try:
        long_rows, repeated = one_each(
            long_rows,
            request.duplicates,
            time_column,
            layout.unused,
            facts.asked(cutoff, settled.outcomes, request.ahead),
        )
    except DuplicateError as error:
        hint, remedies = _long_hint(table, layout, contents)
        raise DuplicateError(f"{error}{hint}", remedies=(*remedies, *error.remedies), count=error.count) from None
    long_rows, expired = drop_expired(long_rows, cutoff, facts.closes, facts.resolved_at)
    if options is None:
        long_rows, probabilities, folded = _ordered(
            long_rows, class_order(melted.written, settled.classes), reading, request.drop_incomplete
        )
    else:
        long_rows, probabilities, folded = fold_options(long_rows, options, reading.half_units, request.drop_incomplete)
        probabilities = probabilities if len(settled.classes) > 2 else np.ascontiguousarray(probabilities[:, 1])
    outcomes, hidden = known_by(cutoff, settled.outcomes, facts.resolved_at)
    void, settled_notes = void_by(cutoff, settled, facts.resolved_at)
    reading.counts.append(ForecastCounts.of(long_rows))
    forecasts = Forecasts(
        events=tuple(events.values),
        experts=tuple(long_rows.experts),
        classes=settled.classes,
        event_index=long_rows.event,
        expert_index=long_rows.expert,
        probabilities=probabilities,
        outcomes=outcomes,
        prior=facts.prior,
        times=facts.latest(long_rows),
        groups=facts.groups,
        topics=facts.topics,
        settled=facts.settled,
        made=None if long_rows.time is None or np.isnat(long_rows.time).all() else long_rows.time,
        asked=facts.asked(cutoff, outcomes, request.ahead),
        closes=facts.closes if "closes" in layout.roles or (joined and "closes" in joined.roles) else None,
        texts=facts.texts,
        notes=(
            *table.notes,
            *layout_notes(layout, table.names),
            *times,
            *reading.log.notes(),
            *reading.notes,
            *alike_notes(long_rows.experts),
            *formula_notes([*events.values, *long_rows.experts]),
            *(joined.notes if joined else ()),
            *facts.notes,
            *settled_notes,
            *late,
            *hidden,
            *repeated,
            *expired,
            *folded,
            *(forecast_notes(reading.counts[0], layout) if whole is None else ()),
        ),
    )
    if request.history:
        stood = standing(timed, facts.ends)
        forecasts = replace(forecasts, history=_history(forecasts, stood, melted.written, request, reading))
    return _finished(forecasts, options, void, request)


def _finished(
    forecasts: Forecasts, options: EventOptions | None, void: npt.NDArray[np.bool_], request: ReadOptions
) -> Forecasts:
    """Forecasts without void events, with what silence is taken for, and with how many there are at the horizon."""
    if request.silence is not None:
        forecasts = with_silence(forecasts, float(str(request.silence)))
    found = without_void(_with_options(options, forecasts, void))
    if request.ahead is None:
        return found
    return replace(found, notes=(*found.notes, coverage_note(found.resolved, found.crowd, request.ahead)))


def _history(
    forecasts: Forecasts, stood: Standing, written: Sequence[str], request: ReadOptions, reading: Reading
) -> History:
    """What stood at every moment of the events' lives."""
    if forecasts.options is not None:
        raise ArgumentError("--time-averaged is for events that share their classes, and these have options")
    stretches, _ = one_each(stood.long_rows, request.duplicates, None)
    order = class_order(written, forecasts.classes)
    stretches, probabilities, _ = _ordered(stretches, order, reading, request.drop_incomplete)

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


def with_silence(forecasts: Forecasts, p: float) -> Forecasts:
    """Forecasts in which who gave none is taken to have given a probability.

    Raises
    ------
    ArgumentError
        If there are more than two classes.
    """
    if len(forecasts.classes) > 2:
        raise ArgumentError("--silence is for events of two classes: who is silent says nothing of several")
    t, n = forecasts.shape
    check_cells("the table with --silence", t, n, t * n)
    x = np.full((t, n), p)
    x[forecasts.event_index, forecasts.expert_index] = forecasts.probabilities
    silent = t * n - len(forecasts.event_index)
    text = f"{counted(silent, 'missing forecast')} taken as {p:.3g}, since --silence says that silence is a statement"
    return replace(
        forecasts,
        event_index=np.repeat(np.arange(t), n),
        expert_index=np.tile(np.arange(n), t),
        probabilities=x.ravel(),
        made=None if forecasts.made is None else _spread_times(forecasts),
        notes=(*forecasts.notes, Note("silence", text, silent)),
    )


def _spread_times(forecasts: Forecasts) -> Times:
    """When each of all possible forecasts was made, NaT where nobody made it, (T N,)."""
    assert forecasts.made is not None
    made = np.full(forecasts.shape, np.datetime64("NaT", "us"))
    made[forecasts.event_index, forecasts.expert_index] = forecasts.made
    return made.ravel()


def alike_notes(experts: Sequence[str]) -> list[Note]:
    """Experts whose names hardly differ: one of them, perhaps, written in two ways."""
    groups = alike(experts)
    if not groups:
        return []
    phrase = "; ".join(" and ".join(map(shown, group[:4])) for group in groups[:3])
    text = (
        f"{phrase}{'; ...' if len(groups) > 3 else ''}: names that differ only in case, white space or the form "
        "of their "
        "letters count as different experts; if they are one, say --merge-names"
    )
    return [Note("similar-names", text, sum(map(len, groups)), serious=True)]


def formula_notes(names: Sequence[str]) -> list[Note]:
    """Names that a spreadsheet would take for formulas."""
    if FORMULAS.isdisjoint({name[:1] for name in names}):
        return []
    odd = [name for name in names if is_formula(name)]
    if not odd:
        return []
    text = (
        f"{listed(odd, 3)} would be a formula in a spreadsheet: CSV has an apostrophe before such names, which is "
        "taken off where they are read; JSON has them as they are"
    )
    return [Note("formulas", text, len(odd))]


def forecast_notes(counts: ForecastCounts, layout: Layout) -> list[Note]:
    """What stands out among all that was read."""
    return [*counts.extreme_notes(), *([] if layout.long else counts.vote_notes("outcome" in layout.roles))]


def _with_options(
    options: EventOptions | None, forecasts: Forecasts, void: npt.NDArray[np.bool_]
) -> tuple[Forecasts, npt.NDArray[np.bool_]]:
    """Forecasts on events with options of their own, without events of which no options are known; and what is void."""
    if options is None:
        return forecasts, void
    known = options.sizes >= 2
    notes = [options.note]
    if not known.all():
        text = f"{counted(int((~known).sum()), 'event')} without forecasts and options left out"
        notes.append(Note("no-options", text, int((~known).sum())))
        forecasts = forecasts.select_events(known)
    labels = tuple(labels for labels, kept in zip(options.of_events, known.tolist(), strict=True) if kept)
    return replace(forecasts, options=labels, notes=(*forecasts.notes, *notes)), void[known]


def _long_hint(table: Table, layout: Layout, contents: Contents) -> tuple[str, list[Remedy]]:
    """How to read a table as a long one, if it was read as a wide one and has a column that may name experts."""
    names = [table.names[i] for i in layout.unused if layout.shape == WIDE and contents.kind(i) == "words"]
    if not names:
        return "", []
    words = [quoted(name) for name in names]
    who = words[0] if len(words) == 1 else "NAME"
    value = quoted(table.names[layout.experts[0]]) if len(layout.experts) == 1 else "NAME"
    which = f"column {words[0]}" if len(words) == 1 else f"one of the columns {', '.join(words)}"
    hint = f"; if {which} says whose forecast a row is, say --column expert={who} --column probability={value}"
    if len(layout.experts) > 1:
        return hint, []
    value = table.names[layout.experts[0]]
    return hint, [{"columns": {"expert": name, "probability": value}} for name in names]


def _own(request: ReadOptions, table: Table, other: Table | None) -> dict[str, str | None]:
    """The roles that the user named, without those that only the table of outcomes has a column for."""
    names = () if other is None else other.names
    return {role: name for role, name in request.keys.items() if name in table.names or name not in names}


def _observed(table: Table, layout: Layout, row_events: Index, joined: Joined | None) -> list[Observed]:
    """The columns of outcomes, in the table itself and in the one that is joined to it."""
    places = [(table, layout.roles["outcome"], row_events)] if "outcome" in layout.roles else []
    if joined is not None:
        places.append((joined.table, joined.roles["outcome"], joined.row_events))
    return [Observed(where, column, where.words(column), rows) for where, column, rows in places]


def _ordered(
    long_rows: LongRows, order: Sequence[int], reading: Reading, drop_incomplete: bool
) -> tuple[LongRows, Array, list[Note]]:
    """One forecast per statement, by event and expert, with its probability or those of all classes."""
    if long_rows.classes:
        long_rows, table, notes = fold_classes(long_rows, order, reading.half_units, drop_incomplete)
        return long_rows, table if len(order) > 2 else np.ascontiguousarray(table[:, 1]), notes
    pair = long_rows.pair
    if (pair[1:] < pair[:-1]).any():
        long_rows = long_rows.select(np.argsort(pair, kind="stable"))
    return long_rows, long_rows.value, []
