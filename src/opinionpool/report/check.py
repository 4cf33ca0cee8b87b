"""Result of the command ``check``: the contents of a file, and obstacles to pooling it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from opinionpool.analysis.checks import Check, check_model
from opinionpool.arrays import Array, Index
from opinionpool.errors import Note, OpinionPoolError
from opinionpool.findings import finding
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn
from opinionpool.names import unknown_names
from opinionpool.priors import one_outcome_notes
from opinionpool.report.answers import unlearned
from opinionpool.report.listing import Column, percent, printable, whole
from opinionpool.report.view import (
    Totals,
    View,
    agreement_facts,
    agreement_line,
    facts,
    missing,
    remarkable,
    size_line,
)
from opinionpool.streams.trained import TrainedPool, matched
from opinionpool.tables.diagnosis import Diagnosis, Fault, Way
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.times import Times, span
from opinionpool.text import counted

if TYPE_CHECKING:
    from opinionpool.tables.parts import Parts

# Forecasts on which the model is checked, on events with an outcome and on others, at most; events, at least.
_CHECKED, _LEAST = 200_000, 1_000
# What each check looks for, as named if it finds nothing.
LOOKED_FOR = {
    "normality": "long tails",
    "spreads": "unequal spreads",
    "correlations": "unequal correlations",
    "drift": "change over time",
    "leakage": "leaked outcomes",
    "placeholders": "placeholders",
    "clones": "clones",
    "complements": "complements",
}


def check_lines(checks: Sequence[Check]) -> list[str]:
    """Lines on model checks: the first serious result of each kind, the kinds passed, and those with too few data."""
    by_code: dict[str, list[Check]] = {}
    for check in checks:
        by_code.setdefault(check.code, []).append(check)
    lines, fine, idle = list[str](), list[str](), list[str]()
    for code, same in by_code.items():
        found = [check for check in same if check.serious]
        if found:
            more = f" (the same of {len(found) - 1:,} more)" if len(found) > 1 else ""
            lines.append(printable(found[0].text + more))
        else:
            (fine if any(check.statistic is not None for check in same) else idle).append(LOOKED_FOR[code])
    lines += [f"looked for and not found: {', '.join(fine)}"] if fine else []
    return [*lines, f"too little to look for: {', '.join(idle)}"] if idle else lines


class Contents:
    """Counts over all parts of a file (forecasts, void events, ...), and its forecasts or a random sample of them."""

    def __init__(self, parts: Iterable[Forecasts]) -> None:
        self.void = self.blank = 0  # events that are void, or without a forecast
        # forecasts of each expert, those on resolved events, and those of exactly 0, a half and 1, (N,) each
        self.counts: dict[str, Index] = {}
        # priors, times: (T,) or (T, K); by part, where it has some
        self.priors: list[Array] = []
        self.times: list[Times] = []
        self._drawn: list[tuple[Forecasts, Array]] = []
        self._share = np.ones(2)  # of events without and with an outcome
        sizes, random = list[Totals](), np.random.default_rng(0)
        for part in parts:
            sizes.append(Totals.of(part))
            self._count(part)
            self._drawn.append((part, random.random(len(part.events))))
            self._thin()
        self.totals = reduce(add, sizes)
        drawn = [part for part, _ in self._drawn]
        self.some = drawn[0] if len(drawn) == 1 else Forecasts.joined(drawn)

    def _count(self, part: Forecasts) -> None:
        self.void += 0 if part.void is None else len(part.void.events)
        self.blank += int((part.crowd == 0).sum())
        self.priors += [] if part.prior is None else [part.prior]
        self.times += [] if part.times is None else [part.times]
        p, who, n = part.probabilities, part.expert_index, len(part.experts)
        binary = p.ndim == 1
        # An event with fewer classes leaves the last positions at 0.
        own = True if binary else np.arange(p.shape[1]) < part.sizes[part.event_index, None]
        found = {"forecasts": part.counts, "resolved": part.resolved_counts}
        for key, value in (("zeros", 0), ("halves", 0.5), ("ones", 1)):
            if binary or value != 0.5:
                cells = (p == value) & own
                found[key] = np.bincount(who[cells if binary else cells.any(axis=1)], minlength=n)
        self.counts = {key: self.counts.get(key, 0) + count for key, count in found.items()}

    def _thin(self) -> None:
        """Halve the sampling rates of resolved and of open events until the sample is small enough."""
        for known in (0, 1):
            while self._too_many(known):
                self._share[known] /= 2
        for i, (part, drawn) in enumerate(self._drawn):
            kept = drawn < self._share[part.resolved.astype(np.intp)]
            if not kept.all():
                self._drawn[i] = part.select_events(kept), drawn[kept]

    def _too_many(self, known: int) -> bool:
        share = self._share[known]
        sizes = [part.crowd[(part.resolved == known) & (drawn < share)] for part, drawn in self._drawn]
        return sum(int(size.sum()) for size in sizes) > _CHECKED and sum(map(len, sizes)) > _LEAST


@dataclass(frozen=True, eq=False)
class Examination:
    """Result of examining a file: its contents, notes, obstacles to pooling, model checks, and commands to read it."""

    contents: Contents | None  # as the first of `commands` reads it; None if it could not be read
    forecasts: Forecasts | None = None  # all forecasts of the file, or a sample
    notes: tuple[Note, ...] = ()  # on cells converted or dropped in reading, and notes of the fit
    obstacles: tuple[str, ...] = ()  # reasons why the file cannot be pooled, the most harmful first
    checks: tuple[Check, ...] = ()  # tests of the model's assumptions
    faults: tuple[Fault, ...] = ()  # obstacles of reading, and what is proposed, each with the options that remedy it
    commands: tuple[str, ...] = ()  # command lines that read the file, one for each possible meaning
    options: ReadOptions | None = None  # options of the first command


def examine(
    diagnosis: Diagnosis,
    commands: Sequence[str] = (),
    beliefs: Beliefs | None = None,
    model: tuple[str, TrainedPool] | None = None,
    contents: Contents | None = None,
) -> Examination:
    """Return what is found in a file: contents, faults, and model checks of the default pool, or of the saved `model`.

    `contents` are given for a file read in parts, as its diagnosis has only a sample of the forecasts.
    """
    faults = diagnosis.faults
    obstacles = [fault.text for fault in faults if not fault.proposed]
    if not diagnosis.readable:
        return Examination(None, obstacles=tuple(obstacles), faults=faults)
    forecasts = diagnosis.readable[0].forecasts
    assert forecasts is not None
    notes = tuple(note for note in forecasts.notes if note.code not in {"duplicates"} or not obstacles)
    checks: list[Check] = []
    contents = contents or Contents([forecasts])
    some, every = contents.some, contents.totals.events
    try:
        if model is not None:
            model = model[0], model[1].named(forecasts.classes)
            beside, new = _beside(forecasts, *model)
            some, notes = Contents([beside]).some, notes + new
        if model is not None and isinstance(model[1].learned, FittedPanel):
            state = model[1].learned
        else:
            state = learn(some, beliefs=beliefs or Beliefs())
            # The checks of the model look for leakage themselves, and outcomes are looked at below, pool or not.
            notes += tuple(note for note in state.notes if note.code not in {"leakage", "one-outcome"})
        checks = check_model(some, state)
        if len(some.events) < every:
            notes += (finding("checked-sample", count=len(some.events), total=every),)
    except OpinionPoolError as error:
        obstacles.append(str(error))
    notes += _shortcomings(contents, forecasts)
    options = diagnosis.readable[0].options
    return Examination(contents, forecasts, notes, tuple(obstacles), tuple(checks), faults, tuple(commands), options)


def examined_in_parts(parts: Parts, options: ReadOptions) -> tuple[Diagnosis, Contents] | None:
    """Return the diagnosis of a file read in parts, with a sample of its forecasts, and the file's contents.

    None if experts have similar names, as only a file read as a whole shows how to treat these.
    """
    contents = Contents(parts.forecasts())
    notes = parts.notes(contents.totals.events, contents.totals.cells)
    if any(note.code == "similar-names" for note in notes):
        return None
    return Diagnosis((Way(options, (), replace(contents.some, notes=notes)),)), contents


def _beside(forecasts: Forecasts, file: str, trained: TrainedPool) -> tuple[Forecasts, tuple[Note, ...]]:
    """Return the forecasts with the experts and classes of a saved pool, and notes on how the pool would use them."""
    forecasts = matched(forecasts, trained, file)
    events = whole(round(float(trained.learned.events.sum()), 6))
    notes: list[Note] = [finding("saved-pool", name=trained.name, file=file, events=events)]
    strangers = unknown_names(forecasts.experts, trained.experts)
    notes += [finding("unknown-to-pool", names=strangers)] if strangers else []
    if trained.stream is not None:
        notes += unlearned(forecasts, trained, ahead=False)
        notes += trained.stream.copy().add(forecasts, whole=True)
    known = unknown_names(forecasts.experts, strangers)
    return forecasts.select_experts(known).by_experts(trained.experts), tuple(notes)


def _shortcomings(contents: Contents, forecasts: Forecasts) -> tuple[Note, ...]:
    """Return notes on missing outcomes and forecasts, without which a file can be pooled all the same."""
    notes: list[Note] = [] if contents.totals.resolved else [finding("no-outcomes")]
    if forecasts.options is None:
        notes += one_outcome_notes(forecasts.classes, np.array(contents.totals.outcomes))
    notes += [finding("no-forecast", count=contents.blank, gets="will get")] if contents.blank else []
    answered = int(np.count_nonzero(contents.counts["resolved"]))
    unknown = len(forecasts.experts) - answered
    notes += [finding("unknown-experts", count=unknown)] if unknown and answered else []
    return tuple(notes)


def topics(findings: Examination, name: str) -> list[tuple[str, str]]:
    """Return the findings about the file `name`, for people, as pairs of a topic and a text."""
    forecasts, contents = findings.forecasts, findings.contents
    if forecasts is None or contents is None:
        return [("file", name), *_in_the_way(findings)]
    shown = {note.code: note.text for note in findings.notes}
    size = contents.totals
    resolved = "all" if size.resolved == size.events else whole(size.resolved)
    void = f", and {whole(contents.void)} void" if contents.void else ""
    rows = [
        ("file", name + (f": {shown['format']}" if "format" in shown else "")),
        ("layout", shown.get("layout", "")),
        ("events", f"{whole(size.events)}, {resolved} resolved{void}"),
        ("outcomes", _outcomes(size)),
        ("experts", whole(size.experts)),
        ("forecasts", f"{whole(size.cells)}, {missing(size)}"),
        ("agreement", agreement_line(forecasts)),
        ("prior", _priors(contents)),
        ("time", shown.get("times", "")),
    ]
    notes = [note for note in findings.notes if note.code != "layout" and remarkable(forecasts, note)]
    rows += [("note", note.text) for note in notes]
    # Notes name clones already.
    named = "clones" in shown
    checks = [each for each in findings.checks if not (named and each.code == "clones" and each.statistic == 1.0)]
    rows += [("model", line) for line in check_lines(checks)]
    rows += _in_the_way(findings)
    rows += [("proposed", fault.text) for fault in findings.faults if fault.proposed]
    return [(topic, printable(text)) for topic, text in rows if text]


def _in_the_way(findings: Examination) -> list[tuple[str, str]]:
    obstacles = findings.obstacles or ("nothing: these forecasts can be pooled",)
    return [("" if i else "in the way", line) for text in obstacles for i, line in enumerate(text.split("\n"))]


def _outcomes(size: Totals) -> str:
    if size.options:
        sizes = [f"{counted(count, 'event')} with {k}" for k, count in sorted(size.options.items())]
        return f"options that are the event's own: {', '.join(sizes)}"
    each = zip(size.classes, size.outcomes, strict=True)
    happened = ", ".join(f"{str(label)!r} {counted(count, 'time')}" for label, count in each)
    binary = f"; forecasts are probabilities of {str(size.classes[1])!r}" if len(size.classes) == 2 else ""
    return (happened if size.resolved else "none known") + binary


def _priors(contents: Contents) -> str:
    if not contents.priors:
        return ""
    prior = np.concatenate(contents.priors)
    given = ~np.isnan(prior.reshape(len(prior), -1)).any(axis=1)
    blank = contents.totals.events - int(given.sum())
    if not given.any():
        return ""
    without = f"; blank for {counted(blank, 'event')}" if blank else ""
    return (
        f"given for each event, from {percent(float(np.nanmin(prior)))} to {percent(float(np.nanmax(prior)))}{without}"
    )


_TITLES = {"forecasts": "forecasts", "resolved": "resolved", "zeros": "at 0%", "halves": "at 50%", "ones": "at 100%"}


def check_view(findings: Examination, name: str) -> View:
    """Return the view of an examined file: contents, obstacles, table of experts, and commands that read the file."""
    contents, forecasts, columns, size = findings.contents, findings.forecasts, list[Column](), list[str]()
    if contents is not None and forecasts is not None:
        counts = [Column(key, count.tolist(), _TITLES[key], whole) for key, count in contents.counts.items()]
        columns, size = [Column("expert", forecasts.experts, "expert"), *counts], [size_line(contents.totals)]
    choice = "To read it, type one of these:" if len(findings.commands) > 1 else "To read it, type"
    below = ["", choice, *(f"  {command}" for command in findings.commands)] if findings.commands else []
    return View("experts", columns, finding_facts(findings), size, findings.notes, below, above=topics(findings, name))


def finding_facts(findings: Examination) -> dict[str, object]:
    """Return the findings about a file as a dict for JSON."""
    forecasts, contents, known = findings.forecasts, findings.contents, dict[str, object]()
    faults = [
        {"text": fault.text, "count": fault.count, "options": fault.options(), "proposed": fault.proposed}
        for fault in findings.faults
    ]
    if forecasts is not None and contents is not None:
        first, last = (span(np.concatenate(contents.times)) if contents.times else None) or (None, None)
        checks = [asdict(check) for check in findings.checks]
        known = facts(contents.totals) | agreement_facts(forecasts)
        known |= {"first_time": first, "last_time": last, "checks": checks}
    return known | {
        "obstacles": list(findings.obstacles), "faults": faults, "commands": list(findings.commands)
    }  # fmt: skip
