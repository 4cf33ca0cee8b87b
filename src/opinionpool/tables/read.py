"""Forecasts from files and data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.errors import ArgumentError, DuplicateError, LayoutError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.names import alike
from opinionpool.tables.cells import NumberRules, Times, as_time
from opinionpool.tables.classes import Asked, EventOptions, find_options, fold_options
from opinionpool.tables.event_facts import class_order, read_facts, time_notes
from opinionpool.tables.files import check_classes
from opinionpool.tables.frames import Table
from opinionpool.tables.layout import Layout, check_columns, layout_notes, recognise, split_classes
from opinionpool.tables.melt import Contents, Reading, melt_long, melt_wide, row_events
from opinionpool.tables.outcomes import Joined, Observed, distinct_outcomes, join_outcomes, settle, settle_among
from opinionpool.tables.statements import ForecastCounts, LongRows, drop_late, fold_classes, one_each
from opinionpool.text import counted, is_formula, listed, quoted, shown


def read_forecasts(  # noqa: PLR0913 - each is one thing that a table may leave open
    source: object,
    *,
    outcomes: object = None,
    positive: object = None,
    classes: Sequence[object] | None = None,
    columns: Mapping[str, str | None] | None = None,
    options: str | None = None,
    duplicates: str | None = None,
    as_of: object = None,
    percent: bool = False,
    decimal: str | None = None,
    encoding: str | None = None,
    missing_values: Sequence[object] = (),
    include: Sequence[object] = (),
    exclude: Sequence[object] = (),
    progress: Callable[[float], None] | None = None,
) -> Forecasts:
    """Forecasts from a table.

    A long table has a row per forecast: columns event, expert and probability, and where there are more than two
    classes a column class with a row for each. A wide table has a row per event and a column per expert, called
    ``expert:class`` for K classes. Further columns in both: outcome, time, closes, resolved_at, prior, group. They are
    recognised by their names and the usual synonyms.

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
        From a role (event, expert, probability, class, outcome, time, closes, resolved_at, prior, group) to the name
        of the column that plays it; None if none does.
    options : {"event", "shared"}, optional
        Whether each event has options of its own, in a long table with classes, or all events share their classes. If
        not given, they are its own where sets that differ have no class in common; where they do, an error asks.
    duplicates : {"last", "mean"}, optional
        Which of several forecasts by one expert on one event counts; several are an error if not given. The last is
        that with the latest time, or the last row if there are no times.
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
    progress : callable, optional
        Called now and then, from another thread, with the share of the file that is read.

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
    request = Request.of(
        positive=positive,
        classes=classes,
        columns=columns,
        options=options,
        duplicates=duplicates,
        as_of=as_of,
        percent=percent,
        decimal=decimal,
        missing_values=missing_values,
        include=include,
        exclude=exclude,
    )
    with ExitStack() as stack:
        table = stack.enter_context(_open(source, encoding, progress))
        other = None if outcomes is None else stack.enter_context(_open(outcomes, encoding, None))
        return read_table(table, other, request)


@dataclass(frozen=True)
class Request:
    """How a table is to be read: the arguments of `read_forecasts`, checked."""

    asked: Asked
    rules: NumberRules
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    columns: dict[str, str | None]
    options: str | None
    duplicates: str | None
    cutoff: np.datetime64 | None

    @classmethod
    def of(  # noqa: PLR0913 - as for `read_forecasts`
        cls,
        *,
        positive: object = None,
        classes: Sequence[object] | None = None,
        columns: Mapping[str, str | None] | None = None,
        options: str | None = None,
        duplicates: str | None = None,
        as_of: object = None,
        percent: bool = False,
        decimal: str | None = None,
        missing_values: Sequence[object] = (),
        include: Sequence[object] = (),
        exclude: Sequence[object] = (),
    ) -> Request:
        """From what a user gave; raises `ArgumentError`."""
        if duplicates not in {None, "last", "mean"}:
            raise ArgumentError(f"duplicates can be 'last' or 'mean', and not {duplicates!r}")
        return cls(
            Asked(None if positive is None else str(positive), _texts(classes)),
            NumberRules(percent, decimal, _texts(missing_values)),
            _texts(include),
            _texts(exclude),
            check_columns(columns),
            options,
            duplicates,
            None if as_of is None else as_time(as_of, "as_of"),
        )

    def reading(self) -> Reading:
        """How cells are read, nothing done so far."""
        return Reading(self.rules, self.include, self.exclude)


def _texts(values: Sequence[object] | None) -> tuple[str, ...]:
    """Values as text; a single one needs no list around it."""
    return (values,) if isinstance(values, str) else tuple(map(str, values or ()))


@contextmanager
def _open(source: object, encoding: str | None, progress: Callable[[float], None] | None) -> Iterator[Table]:
    """A file or frame as a table; only what is needed for it is imported."""
    if isinstance(source, (str, PathLike)) or hasattr(source, "read"):
        from opinionpool.tables.duckdb import open_file

        with open_file(source, encoding, progress) as table:
            yield table
    else:
        from opinionpool.tables.frames import read_frame

        yield read_frame(source)


@dataclass(frozen=True)
class Whole:
    """What was decided for a whole table of which a part is read."""

    layout: Layout
    classes: tuple[object, ...]


def read_table(
    table: Table,
    other: Table | None,
    request: Request,
    reading: Reading | None = None,
    whole: Whole | None = None,
) -> Forecasts:
    """From open tables to forecasts; for a part of a table, as was decided for the whole."""
    reading = request.reading() if reading is None else reading
    asked, cutoff = request.asked, request.cutoff
    contents = Contents(table, reading)
    layout = (
        recognise(table.name, table.names, contents.kind, _own(request.columns, table, other))
        if whole is None
        else whole.layout
    )
    events = row_events(table, layout)
    joined = None if other is None else join_outcomes(other, request.columns, events.values, table.name)
    observed = _observed(table, layout, events.codes, joined)
    missing = reading.rules.missing_words
    if whole is None:
        layout = split_classes(layout, distinct_outcomes(observed, missing))
    melted = melt_long(table, layout, reading) if layout.long else melt_wide(table, layout, contents, reading)
    options = find_options(melted, layout.long, request.options, asked)
    if options is None:
        classes = None if whole is None else whole.classes
        settled = settle(observed, events.values, melted.written, asked, missing, classes)
    else:
        settled = settle_among(observed, events.values, options.of_events, missing)
    check_classes(table.name, len(settled.classes))
    facts = read_facts(layout, melted, joined, settled.classes, reading, options)
    long_rows, late = drop_late(melted.long_rows, cutoff, facts.closes, facts.resolved_at)
    if cutoff is not None and long_rows.time is None:
        raise LayoutError(f"{table.name} has no column with times, so --as-of cannot be obeyed")
    times = time_notes(long_rows, facts)
    time_column = table.names[layout.roles["time"]] if "time" in layout.roles else None
    try:
        long_rows, repeated = one_each(long_rows, request.duplicates, time_column)
    except DuplicateError as error:
        raise DuplicateError(f"{error}{_long_hint(table, layout, contents)}") from None
    if options is None:
        long_rows, probabilities, folded = _ordered(long_rows, class_order(melted.written, settled.classes), reading)
    else:
        long_rows, probabilities, folded = fold_options(long_rows, options, reading.half_units)
        probabilities = probabilities if len(settled.classes) > 2 else np.ascontiguousarray(probabilities[:, 1])
    outcomes, hidden = _known_by(cutoff, settled.outcomes, facts.resolved_at)
    reading.long_rows.append(ForecastCounts.of(long_rows))
    return _with_options(
        options,
        Forecasts(
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
            settled=facts.settled,
            notes=(
                *table.notes,
                *layout_notes(layout, table.names),
                *times,
                *reading.log.notes(),
                *reading.notes,
                *alike_notes(long_rows.experts),
                *formula_notes([*events.values, *long_rows.experts]),
                *(joined.notes if joined else ()),
                *settled.notes,
                *late,
                *hidden,
                *repeated,
                *folded,
                *(forecast_notes(reading.long_rows[0], layout) if whole is None else ()),
            ),
        ),
    )


def alike_notes(experts: Sequence[str]) -> list[Note]:
    """Experts whose names hardly differ: one of them, perhaps, written in two ways."""
    groups = alike(experts)
    if not groups:
        return []
    phrase = "; ".join(" and ".join(map(shown, group[:4])) for group in groups[:3])
    text = (
        f"{phrase}{'; ...' if len(groups) > 3 else ''}: names that differ only in case, white space or the form "
        "of their "
        "letters count as different experts; if they are one, give them one name in the file"
    )
    return [Note("similar-names", text, sum(map(len, groups)), serious=True)]


def formula_notes(names: Sequence[str]) -> list[Note]:
    """Names that a spreadsheet would take for formulas."""
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


def _with_options(options: EventOptions | None, forecasts: Forecasts) -> Forecasts:
    """Forecasts on events with options of their own, without events of which no options are known."""
    if options is None:
        return forecasts
    known = options.sizes >= 2
    notes = [options.note]
    if not known.all():
        text = f"{counted(int((~known).sum()), 'event')} without forecasts and options left out"
        notes.append(Note("no-options", text, int((~known).sum())))
        forecasts = forecasts.select_events(known)
    labels = tuple(labels for labels in options.of_events if len(labels) >= 2)
    return replace(forecasts, options=labels, notes=(*forecasts.notes, *notes))


def _long_hint(table: Table, layout: Layout, contents: Contents) -> str:
    """How to read a table as a long one, if it was read as a wide one and has a column that may name experts."""
    words = [quoted(table.names[i]) for i in layout.unused if not layout.long and contents.kind(i) == "words"]
    if not words:
        return ""
    who = words[0] if len(words) == 1 else "NAME"
    value = quoted(table.names[layout.experts[0]]) if len(layout.experts) == 1 else "NAME"
    which = f"column {words[0]}" if len(words) == 1 else f"one of the columns {', '.join(words)}"
    return f"; if {which} says whose forecast a row is, say --column expert={who} --column probability={value}"


def _own(columns: dict[str, str | None], table: Table, other: Table | None) -> dict[str, str | None]:
    """The roles that the user named, without those that only the table of outcomes has a column for."""
    names = () if other is None else other.names
    return {role: name for role, name in columns.items() if name in table.names or name not in names}


def _observed(table: Table, layout: Layout, row_events: Index, joined: Joined | None) -> list[Observed]:
    """The columns of outcomes, in the table itself and in the one that is joined to it."""
    places = [(table, layout.roles["outcome"], row_events)] if "outcome" in layout.roles else []
    if joined is not None:
        places.append((joined.table, joined.roles["outcome"], joined.row_events))
    return [Observed(where, column, where.words(column), rows) for where, column, rows in places]


def _ordered(long_rows: LongRows, order: Sequence[int], reading: Reading) -> tuple[LongRows, Array, list[Note]]:
    """One forecast per statement, by event and expert, with its probability or those of all classes."""
    if long_rows.classes:
        long_rows, table, notes = fold_classes(long_rows, order, reading.half_units)
        return long_rows, table if len(order) > 2 else np.ascontiguousarray(table[:, 1]), notes
    pair = long_rows.pair
    if (np.diff(pair) < 0).any():
        long_rows = long_rows.select(np.argsort(pair, kind="stable"))
    return long_rows, long_rows.value, []


def _known_by(cutoff: np.datetime64 | None, outcomes: Index, resolved_at: Times) -> tuple[Index, list[Note]]:
    """Outcomes as they were known at the cutoff."""
    if cutoff is None:
        return outcomes, []
    if np.isnat(resolved_at).all():
        text = "there are no times of resolution, so every outcome counts as known at the time of --as-of"
        return outcomes, [Note("as-of-outcomes", text)]
    later = (resolved_at > cutoff) & (outcomes != UNRESOLVED)
    if not later.any():
        return outcomes, []
    text = f"{counted(int(later.sum()), 'event')} resolved after the time of --as-of, taken as not resolved"
    return np.where(later, UNRESOLVED, outcomes), [Note("as-of-outcomes", text, int(later.sum()))]
