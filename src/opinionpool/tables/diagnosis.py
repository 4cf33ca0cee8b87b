"""All faults that prevent reading a table, found in one go: after each, an option remedies it, and reading goes on.

Reading goes on with the first stage that the option affects; results of earlier stages are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from opinionpool.errors import ArgumentError, OpinionPoolError, Remedy, TableError
from opinionpool.forecasts import Forecasts
from opinionpool.tables.options import OPTIONS, STAGES, ReadOptions
from opinionpool.tables.parse import TableReader
from opinionpool.tables.read import open_tables
from opinionpool.tables.roles import KEYED
from opinionpool.tables.table import Table
from opinionpool.tables.units import looks_numeric

# Most faults that are remedied one after the other, and most ways to read a table that are tried.
_FAULTS, _WAYS = 40, 4
# Options that name words for no answer, or no outcome.
_NONE = ("missing_values", "void_values")
# Options that affect how a file is opened; and all options by the harm of a wrong value, most harmful first.
_OPENING = {name for name, option in OPTIONS.items() if option.stage == STAGES[0]}
_ORDER = list(OPTIONS)


@dataclass(frozen=True)
class Fault:
    """A fault that prevents reading a table, or an improvement that is proposed, with remedies (sets of options)."""

    text: str  # what is wrong and where, for messages
    count: int  # number of cells, rows or forecasts that are concerned
    # options that remedy it, any of which would do; the first was taken. Empty if none does.
    remedies: tuple[Remedy, ...]
    proposed: bool = False  # whether the table could be read without it
    past: Remedy = field(default_factory=dict)  # options that are no remedy, but show the faults behind it

    @property
    def harm(self) -> int:
        """Rank of the option in the first remedy: 0 if a wrong value of it would harm most; -1 without a remedy."""
        names = [name for remedy in self.remedies[:1] for name in remedy]
        return min(map(_ORDER.index, names), default=-1)

    def options(self) -> list[list[str]]:
        """Return, for each remedy, its command-line options as a list of words."""
        return [ReadOptions().revised(remedy).arguments() for remedy in self.remedies]


@dataclass(frozen=True)
class Way:
    """A way to read a table: the options, the faults that they remedy, and the forecasts (None if reading fails)."""

    options: ReadOptions
    faults: tuple[Fault, ...]
    forecasts: Forecasts | None

    @property
    def texts(self) -> set[str]:
        """Texts of the faults that were found."""
        return {fault.text for fault in self.faults}


@dataclass(frozen=True)
class Diagnosis:
    """The ways to read a table that were tried: what is wrong with it, and with which options it can be read."""

    ways: tuple[Way, ...]

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Faults that every way to read the table meets, the most harmful first; proposed improvements come last."""
        found = {fault.text: fault for way in reversed(self.ways) for fault in way.faults}
        found = {text: of for text, of in found.items() if all(text in way.texts for way in self.ways)}
        return tuple(sorted(found.values(), key=lambda fault: (fault.proposed, fault.harm)))

    @property
    def readable(self) -> tuple[Way, ...]:
        """Ways to read the table that lead to forecasts, one for each set of options."""
        found = [way for way in self.ways if way.forecasts is not None]
        return tuple({tuple(way.options.arguments()): way for way in reversed(found)}.values())[::-1]


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
    search = _Search(source, outcomes, options or ReadOptions(), progress)
    with search.stack:
        search.go(None, search.asked, ())
    return Diagnosis(tuple(search.ways))


class _Search:
    """Search for ways to read a table: each remedy of a fault is tried in turn, up to `_WAYS` ways."""

    def __init__(
        self, source: object, outcomes: object, options: ReadOptions, progress: Callable[[float], None] | None
    ) -> None:
        self.source, self.outcomes, self.asked, self.progress = source, outcomes, options, progress
        self.ways: list[Way] = []
        self.stack = ExitStack()
        self._open: dict[str, tuple[Table, Table | None]] = {}

    def go(self, reader: TableReader | None, options: ReadOptions, faults: tuple[Fault, ...]) -> None:
        """Read the table, opened first if `reader` is None; after a fault, read it again with each of its remedies."""
        try:
            reader = reader or TableReader(*self._tables(options), options)
            forecasts = reader.forecasts
        except TableError as error:
            past = {} if error.finding is None else error.finding.params.get("past", {})
            self._meet(reader, options, faults, Fault(str(error), error.count, error.remedies, past=past))
            return
        except ArgumentError:
            if not faults:
                raise
            # What an error proposed leads nowhere.
            self.ways.append(Way(options, faults, None))
            return
        alike = next((note for note in forecasts.notes if note.code == "similar-names"), None)
        if alike is not None:
            fault = Fault(alike.text, alike.count, ({"merge_names": True},), proposed=True)
            self._meet(reader, options, faults, fault)
            return
        # What leaves no forecast is no way to read a table.
        self.ways.append(Way(options, faults, forecasts if len(forecasts.event_index) or not faults else None))

    def _meet(self, reader: TableReader | None, options: ReadOptions, faults: tuple[Fault, ...], fault: Fault) -> None:
        fault = replace(fault, remedies=tuple(remedy for remedy in fault.remedies if self._is_safe(reader, remedy)))
        known = {before.text for before in faults}
        # A stream cannot be opened once more.
        once = self.source == "-" or hasattr(self.source, "read")
        able = [remedy for remedy in fault.remedies if not (once and _opens(remedy))]
        beyond = [fault.past] if fault.past and not able else []
        found, able = len(self.ways), [] if fault.text in known or len(faults) >= _FAULTS else [*able, *beyond]
        for remedy in able:
            if remedy is able[0] or len(self.ways) < _WAYS:
                going_on = None if reader is None or _opens(remedy) else reader.revised(remedy)
                self.go(going_on, options.revised(remedy), (*faults, fault))
        if not able:
            self.ways.append(Way(options, (*faults, fault), None))
        if beyond:
            self.ways[found:] = [replace(way, forecasts=None) for way in self.ways[found:]]

    def _is_safe(self, reader: TableReader | None, remedy: Remedy) -> bool:
        """Return False if `remedy` guesses a number that only the user knows, or takes outcomes or forecasts away."""
        columns = remedy.get("columns", {})
        no_outcome = isinstance(columns, Mapping) and "outcome" in columns and columns["outcome"] is None
        # Without a layout yet, whether there is an outcome is what is asked.
        if (no_outcome and reader is not None and "layout" in reader.__dict__) or "at_least" in remedy:
            return False
        if reader is None or remedy.keys().isdisjoint(_NONE) or "melted" not in reader.__dict__:
            return True
        after = reader.asked.revised(remedy)
        new = {word.lower() for name in _NONE for word in {*getattr(after, name)} - {*getattr(self.asked, name)}}
        outcomes = {word.lower() for each in reader.observed for word in each.words.values}
        if len(outcomes & new) > 1 or (outcomes & new and outcomes <= new | after.no_outcome.every):
            return False
        if any(map(looks_numeric, outcomes & new)):
            return False
        try:
            return len(reader.revised(remedy).melted.long_rows.value) >= len(reader.melted.long_rows.value)
        except OpinionPoolError:
            return True

    def _tables(self, options: ReadOptions) -> tuple[Table, Table | None]:
        state = repr([options.several, *(getattr(options, name) for name in sorted(_OPENING))])
        if state not in self._open:
            found = self.stack.enter_context(open_tables(self.source, self.outcomes, options, self.progress))
            self._open[state] = found
        return self._open[state]


def _opens(remedy: Remedy) -> bool:
    """Return True if a remedy takes effect when the file is opened, so that the file must be opened again."""
    columns = remedy.get("columns", {})
    several = isinstance(columns, Mapping) and any(isinstance(columns.get(role), tuple) for role in KEYED)
    return several or not _OPENING.isdisjoint(remedy)
