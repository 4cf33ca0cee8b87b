"""All faults that prevent reading a table, found in one go: after each, an option remedies it, and reading goes on.

Reading goes on with the first stage that the option affects; results of earlier stages are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from opinionpool.errors import ArgumentError, OpinionPoolError, Remedy, TableError
from opinionpool.forecasts import Forecasts
from opinionpool.tables.options import OPTIONS, ReadOptions, first_stage
from opinionpool.tables.parse import TableReader
from opinionpool.tables.read import open_tables
from opinionpool.tables.units import looks_numeric

# Most faults that are remedied one after the other, and most ways to read a table that are tried.
_FAULTS, _WAYS = 40, 4


@dataclass(frozen=True)
class Fault:
    """A fault that prevents reading a table, or an improvement that is proposed, with remedies (sets of options)."""

    text: str  # what is wrong and where, for messages
    count: int  # number of cells, rows or forecasts that are concerned
    # options that remedy it, any of which would do; the first was taken. Empty if none does.
    remedies: tuple[Remedy, ...]
    proposed: bool = False  # whether the table could be read without it

    @property
    def rank(self) -> tuple[bool, int]:
        """Key by which faults are sorted: improvements last; else by the harm that the first remedy may do, if any."""
        order = {name: harm for harm, name in enumerate(OPTIONS)}
        return self.proposed, min((order[name] for remedy in self.remedies[:1] for name in remedy), default=-1)

    def options(self) -> list[list[str]]:
        """Return, for each remedy, its command-line options as a list of words."""
        return [ReadOptions().revised(remedy).arguments() for remedy in self.remedies]


@dataclass(frozen=True)
class Way:
    """A way to read a table: the options, the faults that they remedy, and the forecasts (None if reading fails)."""

    options: ReadOptions
    faults: tuple[Fault, ...]
    forecasts: Forecasts | None


@dataclass(frozen=True)
class Diagnosis:
    """The ways to read a table that were tried: what is wrong with it, and with which options it can be read."""

    ways: tuple[Way, ...]

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Faults that every way to read the table meets, the most harmful first; proposed improvements come last."""
        each = [{fault.text: fault for fault in way.faults} for way in self.ways]
        shared = [each[0][text] for text in each[-1] if all(text in faults for faults in each)]
        return tuple(sorted(shared, key=lambda fault: fault.rank))

    @property
    def readable(self) -> tuple[Way, ...]:
        """Ways to read the table that lead to forecasts, one for each set of options."""
        found: dict[tuple[str, ...], Way] = {}
        for way in self.ways:
            if way.forecasts is not None:
                found.setdefault(tuple(way.options.arguments()), way)
        return tuple(found.values())


def diagnose(
    source: object,
    outcomes: object = None,
    options: ReadOptions | None = None,
    progress: Callable[[float], None] | None = None,
) -> Diagnosis:
    """Return the faults that prevent reading the table `source`, and the options with which it can be read.

    >>> table = {"event": ["q1", "q1"], "expert": ["ann", "ann"], "probability": [70, 80]}
    >>> found = diagnose(table)
    >>> [fault.options() for fault in found.faults]
    [[['--percent']], [['--duplicates', 'last'], ['--duplicates', 'mean']]]
    """
    asked = options or ReadOptions()
    with ExitStack() as stack:
        ways = _Search(source, outcomes, asked, progress, stack).ways(None, asked, ())
        return Diagnosis(tuple(islice(ways, _WAYS)))


@dataclass(frozen=True)
class _Search:
    """Search for ways to read a table: after each fault, every remedy is tried in turn."""

    source: object
    outcomes: object
    asked: ReadOptions  # the user's options
    progress: Callable[[float], None] | None
    stack: ExitStack  # closes the files that were opened

    def ways(self, reader: TableReader | None, options: ReadOptions, faults: tuple[Fault, ...]) -> Iterator[Way]:
        """Yield the ways to read the table with `options`, which remedy `faults`; it is opened if `reader` is None."""
        forecasts, fault, past = None, None, dict[str, object]()
        try:
            if reader is None:
                opened = open_tables(self.source, self.outcomes, options, self.progress)
                reader = TableReader(*self.stack.enter_context(opened), options)
            forecasts = reader.forecasts
            for note in forecasts.notes:
                if note.code == "similar-names":
                    fault = Fault(note.text, note.count, ({"merge_names": True},), proposed=True)
        except TableError as error:
            remedies = tuple(each for each in error.remedies if self._is_safe(reader, each))
            fault = Fault(str(error), error.count, remedies)
            past = {} if error.finding is None else error.finding.params.get("past", past)
        except ArgumentError:
            # What an error proposed leads nowhere.
            if not faults:
                raise
        if fault is None:
            # What leaves no forecast is no way to read a table.
            none = faults and forecasts is not None and not len(forecasts.event_index)
            yield Way(options, faults, None if none else forecasts)
            return
        # A stream cannot be opened once more.
        once = self.source == "-" or hasattr(self.source, "read")
        able = [each for each in fault.remedies if not (once and first_stage(each) == 0)]
        # Options that are no remedy show the faults behind this one.
        followed = able or [past] * bool(past)
        if any(fault.text == before.text for before in faults) or len(faults) == _FAULTS:
            followed = []
        if not followed:
            yield Way(options, (*faults, fault), None)
        for remedy in followed:
            going_on = None if reader is None else reader.revised(remedy)
            for way in self.ways(going_on, options.revised(remedy), (*faults, fault)):
                yield way if able else replace(way, forecasts=None)

    def _is_safe(self, reader: TableReader | None, remedy: Remedy) -> bool:
        """Return False if `remedy` guesses a number that only the user knows, or takes outcomes or forecasts away."""
        columns: Any = remedy.get("columns", {})
        known = {} if reader is None else reader.__dict__
        # Without a layout yet, whether there is an outcome is what is asked.
        if "at_least" in remedy or ("layout" in known and columns.get("outcome", "") is None):
            return False
        if reader is None or "melted" not in known or not ("missing_values" in remedy or "void_values" in remedy):
            return True
        after = reader.asked.revised(remedy)
        new = _words_of_none(after) - _words_of_none(self.asked)
        outcomes = {word.lower() for each in reader.observed for word in each.words.values}
        lost = outcomes & new
        if len(lost) > 1 or any(map(looks_numeric, lost)) or (lost and outcomes <= new | after.no_outcome.every):
            return False
        revised = reader.revised(remedy)
        try:
            return revised is None or len(revised.melted.long_rows.value) >= len(reader.melted.long_rows.value)
        except OpinionPoolError:
            return True


def _words_of_none(options: ReadOptions) -> set[str]:
    """Words that the user's options name for no answer or no outcome, in lower case."""
    return {word.lower() for word in (*options.missing_values, *options.void_values)}
