"""Forecasts from files and data frames: what is opened, and with which options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from os import PathLike
from typing import Any

from opinionpool.errors import LayoutError, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.progress import Progress, advancing
from opinionpool.tables.options import ReadOptions, documented, in_python, options_given
from opinionpool.tables.parse import read_table
from opinionpool.tables.roles import BETWEEN, KEYED, UserRoles, position
from opinionpool.tables.table import Table


@documented
def read_forecasts(
    source: object,
    *,
    outcomes: object = None,
    progress: Progress = None,
    **options: Any,  # noqa: ANN401 - the fields of ReadOptions, each with its type there
) -> Forecasts:
    """Read forecasts from a table.

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
    {options}
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

    Errors and notes name options as the command line has them, and errors end with what these are in Python (a note of
    the exception): ``--column ROLE=NAME`` is ``columns={"ROLE": "NAME"}``, ``--column ROLE=`` is
    ``columns={"ROLE": None}``, and ``--missing-value V`` is ``missing_values=["V"]``.

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
    return read_with(source, outcomes, options_given(options), progress)


def read_with(source: object, outcomes: object, options: ReadOptions, progress: Progress = None) -> Forecasts:
    """Return the forecasts in `source`; errors get a note that names their options in Python."""
    try:
        with ExitStack() as stack:
            advance = stack.enter_context(advancing(progress, "reading forecasts"))
            table, other = stack.enter_context(open_tables(source, outcomes, options, advance))
            return read_table(table, other, options)
    except OpinionPoolError as error:
        if python := in_python(str(error)):
            error.add_note(python)
        raise


@contextmanager
def open_tables(
    source: object,
    outcomes: object,
    options: ReadOptions,
    progress: Callable[[float], None] | None = None,
    on_disk: bool = False,
) -> Iterator[tuple[Table, Table | None]]:
    """Open the tables of forecasts and outcomes; a condition of --where applies to the first with all its columns.

    Only what is needed for it is imported; `on_disk` is as for `open_file`.
    """
    from opinionpool.tables.where import conjuncts

    with ExitStack() as stack:
        table, other = stack.enter_context(_open(source, options, progress, on_disk)), None
        wheres, others = [] if options.where is None else conjuncts(options.where), list[str]()
        if outcomes is not None:
            other = stack.enter_context(_open(outcomes, ReadOptions(encoding=options.encoding), None, False))
            others = [where for where in wheres if _applies(where, other) and not _applies(where, table)]
            other = _keyed(_matching(other, others), options, table, optional=True)
        wheres = [where for where in wheres if where not in others]
        yield _keyed(_matching(table, wheres), options, other), other


def _applies(where: str, table: Table) -> bool:
    """Whether a table has all columns that the condition `where` names."""
    from opinionpool.tables.where import parse_where

    try:
        return bool(parse_where(where, table.name, table.names, table.text))
    except LayoutError:
        return False


def _matching(table: Table, wheres: Sequence[str]) -> Table:
    """Return the rows of a table that meet all conditions in `wheres`."""
    from opinionpool.tables.loading import matching

    return matching(table, " and ".join(wheres)) if wheres else table


@contextmanager
def _open(
    source: object, options: ReadOptions, progress: Callable[[float], None] | None, on_disk: bool
) -> Iterator[Table]:
    paths = isinstance(source, list | tuple) and all(isinstance(each, str | PathLike) for each in source)
    if paths or isinstance(source, str | PathLike) or hasattr(source, "read"):
        from opinionpool.tables.loading import open_file

        roles = UserRoles(options.keys, options.parts)
        with open_file(source, options.encoding, progress, on_disk, options.expert_from_name or None, roles) as table:
            yield table
    else:
        from opinionpool.tables.table import read_frame

        table = read_frame(source)
        try:
            yield table
        finally:
            table.connection.close()


def _keyed(table: Table, options: ReadOptions, other: Table | None = None, optional: bool = False) -> Table:
    """Return the table with one column for each key of several columns, parts of which may be in the table `other`.

    If `optional`, a key is left out where some of its columns are in neither table.
    """
    for role, parts in options.columns.items():
        if isinstance(parts, tuple) and role in KEYED:
            own = [name for name in parts if name in table.names]
            rest = set() if other is None else {name for name in parts if name in other.names}
            split = bool(own) and rest == {*parts} - {*own}
            if split or not optional or len(own) == len(parts):
                places = [position(table.name, table.names, name) for name in (own if split else parts)]
                table = table.with_key(places, BETWEEN.join(parts))
    return table
