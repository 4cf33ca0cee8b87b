"""Result of a command as a view that every output format shows: columns, facts, sentences and notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from opinionpool.errors import Note
from opinionpool.findings import finding
from opinionpool.forecasts import Forecasts
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.report.answers import about, plain
from opinionpool.report.listing import (
    Column,
    finite,
    hundredths,
    percent,
    printable,
    records,
    whole,
    write_csv,
    write_json,
    write_table,
    write_text,
    write_topics,
)
from opinionpool.scoring.leaderboard import rater_agreement
from opinionpool.text import counted

if TYPE_CHECKING:
    from opinionpool.arrays import Array
    from opinionpool.learning.beliefs import Beliefs


@dataclass(frozen=True)
class Totals:
    """Numbers of events, experts, forecasts and outcomes; totals of parts of a file can be added.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.9, 0.7], [0.2, float("nan")]], [1, None])
    >>> Totals.of(f) + Totals.of(f)
    Totals(classes=(0, 1), events=4, experts=2, cells=6, outcomes=(0, 2), options=Counter())
    """

    classes: tuple[object, ...]
    events: int
    experts: int
    cells: int
    outcomes: tuple[int, ...]  # number of resolved events by class
    options: Counter[int] = field(default_factory=Counter)  # number of events by their number of options

    @classmethod
    def of(cls, forecasts: Forecasts | Totals) -> Totals:
        """Numbers of events, experts, forecasts and outcomes of `forecasts`; given `Totals`, return these."""
        if isinstance(forecasts, Totals):
            return forecasts
        t, n = forecasts.shape
        known = forecasts.outcomes[forecasts.resolved]
        counts = np.bincount(known, minlength=len(forecasts.classes)).tolist()
        options = Counter[int]() if forecasts.options is None else Counter(forecasts.sizes.tolist())
        return cls(forecasts.classes, t, n, len(forecasts.event_index), tuple(counts), options)

    def __add__(self, other: Totals) -> Totals:
        """Return the totals of two parts of a file together, which share experts and have different events."""
        counts = tuple(a + b for a, b in zip(self.outcomes, other.outcomes, strict=True))
        events, cells = self.events + other.events, self.cells + other.cells
        return Totals(self.classes, events, self.experts, cells, counts, self.options + other.options)

    @property
    def resolved(self) -> int:
        """Number of resolved events."""
        return sum(self.outcomes)


def facts(forecasts: Forecasts | Totals) -> dict[str, object]:
    """Return numbers of events, outcomes, experts and forecasts, and the share of missing forecasts, for JSON."""
    size = Totals.of(forecasts)
    most = size.events * size.experts
    labels = [plain(label) for label in size.classes]
    classes: dict[str, object] = {
        "outcomes": dict(zip(map(str, labels), size.outcomes, strict=True)),
        "classes": labels,
    }
    if len(labels) == 2:
        classes["positive"] = labels[1]
    if size.options:
        classes = {"options": {str(k): count for k, count in sorted(size.options.items())}}
    return {
        "events": size.events,
        "resolved": size.resolved,
        **classes,
        "experts": size.experts,
        "forecasts": size.cells,
        "missing": 1.0 - size.cells / most if most else None,
    }


def pool_facts(forecasts: Forecasts, pool: str, state: Fitted, base_rate: float | Array | None) -> dict[str, object]:
    """Return facts on the forecasts (as `facts` does), and the pool's name, prior and base rate, for JSON."""
    prior = state.prior if state.prior is None or len(state.prior) > 2 else float(state.prior[1])
    both = {
        key: p
        if p is None or isinstance(p, float)
        else dict(zip(map(str, forecasts.classes), map(float, p), strict=True))
        for key, p in (("prior", prior), ("base_rate", base_rate))
    }
    return facts(forecasts) | {"pool": pool} | both


def missing(forecasts: Forecasts | Totals) -> str:
    """Return, as text, the share of pairs of expert and event for which there is no forecast."""
    size = Totals.of(forecasts)
    most = size.events * size.experts
    return "none missing" if size.cells == most else f"{percent((most - size.cells) / most)} missing"


def size_line(forecasts: Forecasts | Totals) -> str:
    """Return the line on the numbers of events, experts and forecasts, and the share of missing forecasts."""
    size = Totals.of(forecasts)
    events = f"{counted(size.events, 'event')}, {whole(size.resolved)} resolved"
    return f"{events}; {counted(size.experts, 'expert')}, {counted(size.cells, 'forecast')}, {missing(size)}"


def pool_line(forecasts: Forecasts, pool: str, state: Fitted, given: bool, base_rate: float | Array | None) -> str:
    """Return the line with the pool's name, its prior, whether the prior is `given`, and the base rate."""
    event = about(forecasts)
    labels = [printable(str(label)) for label in forecasts.classes]

    def show(p: float | Array) -> str:
        if isinstance(p, float):
            return percent(p) + (f" for {event}" if event else "")
        return ", ".join(f"{label} {percent(float(x))}" for label, x in zip(labels, p, strict=True))

    if state.prior is None:
        own = forecasts.options is not None and forecasts.prior is None
        prior = "prior: all options of an event equally probable" if own else "prior: each event's own"
    else:
        value = float(state.prior[1]) if len(labels) == 2 else state.prior
        source = "as given" if given else "estimated from the resolved events"
        if assumed_prior(state, given):
            source = "assumed, as no event is resolved; give --prior"
        prior = f"prior {show(value)} ({source})"
    rate = "" if base_rate is None else f"; base rate {show(base_rate)}"
    return f"{pool} pool; {prior}{rate}"


def belief_lines(file: str | None, beliefs: Beliefs | None) -> list[str]:
    """Return the line that summarises the beliefs in the panel file `file`; empty without beliefs."""
    return [] if beliefs is None else [f"beliefs in {printable(str(file))}: {printable(str(beliefs) or 'none')}"]


def belief_facts(beliefs: Beliefs | None) -> dict[str, object]:
    """Return beliefs as dicts for JSON; the worth of a certain belief, which is infinite, is "inf"."""
    if beliefs is None:
        return {}

    def plain_values(values: dict[str, Any]) -> dict[str, Any]:
        return {
            key: plain_values(value) if isinstance(value, dict) else "inf" if math.isinf(value) else value
            for key, value in values.items()
        }

    return {"beliefs": plain_values(beliefs.to_dict())}


def assumed_prior(state: Fitted, given: bool) -> bool:
    """Return True if the prior is uniform by assumption: none is given, and no outcome is known to estimate it."""
    return state.prior is not None and not given and not state.events.any()


def base_rate_notes(state: Fitted, given: bool, base_rate: float | Array | None) -> list[Note]:
    """Return a note that the prior is taken as uniform, if a base rate but neither prior nor outcome is given."""
    if base_rate is None or not assumed_prior(state, given):
        return []
    return [finding("assumed-prior", prior=percent(1.0 / len(state.events)))]


def agreement_line(forecasts: Forecasts) -> str:
    """Return the line on how far two or more judges, who rate on one scale, agree; "" if there are no such judges."""
    found = rater_agreement(forecasts)
    if found is None:
        return ""
    named = (("Krippendorff's alpha", found.alpha), ("kappa", found.kappa))
    parts = [f"{name} {hundredths(value)}" for name, value in named if finite(value) is not None]
    shown = f"{', '.join(parts)} (1 = always, 0 = as by chance)" if parts else "all levels are the same"
    return f"{shown}, on {counted(found.events, 'event')}"


def levels_by_outcome(forecasts: Forecasts) -> dict[str, tuple[str, str]]:
    """Return, by expert, the mean levels on the expert's scale where the event happened and where it did not."""
    if len(forecasts.classes) > 2 or not forecasts.scales:
        return {}
    n, happened = len(forecasts.experts), forecasts.outcomes[forecasts.event_index]
    place = forecasts.expert_index * 3 + happened + 1
    count = np.bincount(place, minlength=3 * n)
    mean = (np.bincount(place, forecasts.probabilities, 3 * n) / np.maximum(count, 1)).reshape(n, 3)
    both, scales = (count.reshape(n, 3)[:, 1:].min(axis=1) > 0).tolist(), forecasts.scales
    return {
        name: (scales[name].typical(mean[i, 2]), scales[name].typical(mean[i, 1]))
        for i, name in enumerate(forecasts.experts)
        if both[i] and name in scales
    }


def levels_words(forecasts: Forecasts, experts: Sequence[str]) -> list[str]:
    """Return sentences on the mean levels that experts on scales give where events happen, and where not."""
    levels, found = levels_by_outcome(forecasts), []
    for name in experts:
        if name in levels:
            yes, no = levels[name]
            last = forecasts.scales[name].levels[-1]
            of = f" of {last}" if last.isdigit() and len(forecasts.scales[name].levels) > 2 else ""
            found.append(f"{printable(name)} says {yes}{of} where it happens, {no} where not.")
    return found


def agreement_facts(forecasts: Forecasts) -> dict[str, object]:
    """Return judges' agreement (alpha, kappa, number of events) for JSON; empty if fewer than two rate on one scale."""
    found = rater_agreement(forecasts)
    if found is None:
        return {}
    return {"agreement": {"alpha": finite(found.alpha), "kappa": finite(found.kappa), "events": found.events}}


# Notes on what is in a file rather than on what was done to it; `check` has a place of its own for them.
DESCRIPTIVE = ("format", "layout", "positive", "times", "unresolved")
# Codes of notes on how answers came about, which change nothing that one would do: they come last.
EXPLAINING = (
    "recency", "topics", "shared-days", "shared-events", "crowd", "sample", "sampled", "class-model", "in-sample",
    "at-floor", "no-forecast", "normalised", "checked-sample", "closing-days", "texts", "sorted", "sheet", "encoding",
    "negative-weights", "believed-below", "undated", "hyperparameters",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class View:
    """Result of a command in a form that all output formats (table, CSV, JSON) can show."""

    rows: str  # name of the rows in JSON
    columns: Sequence[Column]  # the rows, for CSV and the table
    facts: Mapping[str, object] = field(default_factory=dict)  # what JSON has beside the rows
    lines: Sequence[str] = ()  # sentences for people, written to standard error
    notes: Sequence[Note] = ()  # notes on cells converted or dropped, assumptions and warnings
    # further tables and sentences of the table format; a line that begins with two spaces is never folded
    below: Sequence[Sequence[Column] | str] = ()
    table: Sequence[Column] | None = None  # the columns as the table format shows them, where it leaves out rows
    # the rows for JSON, if a record has numbers by class where CSV has columns
    nested: Iterable[Mapping[str, object]] | None = None
    forecasts: Forecasts | None = None  # what the notes are about
    above: Sequence[tuple[str, str]] = ()  # pairs of a topic and a text, over the table format's table


def write_view(view: View, kind: str, out: TextIO) -> None:
    """Write a view as ``"json"``, ``"csv"`` or ``"table"``."""
    if kind == "json":
        rows = records(view.columns) if view.nested is None else view.nested
        write_json(view.rows, rows, dict(view.facts) | {"notes": note_records(view.notes)}, out)
    elif kind == "csv":
        write_csv(view.columns, out)
    else:
        if view.above:
            write_topics(view.above, out)
        columns = view.columns if view.table is None else view.table
        if columns:
            out.write("\n" if view.above else "")
            write_table(columns, out)
        for part in view.below:
            if isinstance(part, str) and part.startswith("  "):
                # What is typed is one line, however long.
                out.write(f"{printable(part)}\n")
            elif isinstance(part, str):
                write_text(part, out)
            elif part:
                out.write("\n")
                write_table(part, out)


def note_records(notes: Iterable[Note]) -> list[dict[str, object]]:
    """Return notes as records for JSON."""
    return [{"code": note.code, "text": note.text, "count": int(note.count)} for note in notes]


def remarkable(forecasts: Forecasts | None, note: Note) -> bool:
    """Return True if a note should be shown to people, as it does more than describe the file."""
    if note.code == "positive":
        return forecasts is not None and about(forecasts) is not None
    if note.code == "layout":
        # What was recognised by its name is no surprise.
        return "by what it holds" in note.text
    if note.code == "unresolved":
        # Blank outcomes are no surprise; words that were read as "not resolved" may be.
        return "marked" in note.text
    return note.code not in DESCRIPTIVE


def note_lines(notes: Iterable[Note], forecasts: Forecasts | None, most: int | None) -> list[str]:
    """Return lines for people: the `most` most important notes, and the number of other notes."""
    first, rest = ranked(notes, forecasts, most)
    more = [f"{counted(len(rest), 'more note')}: -v"] if rest and most else []
    return [f"note: {printable(each.text)}" for each in first] + more


def ranked(notes: Iterable[Note], forecasts: Forecasts | None, most: int | None) -> tuple[list[Note], list[Note]]:
    """Return the `most` most important notes, and the other notes; if `most` is None, all notes and no others."""
    notes = [each for each in notes if remarkable(forecasts, each)]
    if most is None or len(notes) <= most:
        return notes, []
    notes.sort(key=lambda each: (not each.serious, each.code in EXPLAINING))
    return notes[:most], notes[most:]
