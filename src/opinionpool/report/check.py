"""What ``check`` reports: what is in a file, and what stands in the way of pooling it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from opinionpool.analysis.checks import Check, check_model
from opinionpool.errors import Note, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn
from opinionpool.names import unknown_names
from opinionpool.priors import one_outcome_notes
from opinionpool.report.listing import Column, percent, printable, whole
from opinionpool.report.view import (
    Totals,
    View,
    agreement_facts,
    agreement_line,
    facts,
    missing,
    option_counts,
    remarkable,
    size_line,
)
from opinionpool.streams.trained import TrainedPool, matched
from opinionpool.tables.diagnosis import Diagnosis, Fault
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.times import span
from opinionpool.text import counted, listed

# Forecasts on which the model is checked, about.
_CHECKED = 200_000
# What each check looks for, where it finds nothing.
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
    """Lines on model checks: one per serious code, then the codes passed and the codes not testable."""
    lines = []
    codes = list(dict.fromkeys(check.code for check in checks))
    alarming = {check.code for check in checks if check.serious}
    for code in codes:
        found = [check for check in checks if check.code == code and check.serious]
        if found:
            more = f" (the same of {len(found) - 1:,} more)" if len(found) > 1 else ""
            lines.append(printable(found[0].text + more))
    fine = [LOOKED_FOR[check.code] for check in checks if not check.serious and check.statistic is not None]
    if fine:
        lines.append(f"looked for and not found: {', '.join(fine)}")
    tried = {check.code for check in checks if check.statistic is not None}
    idle = [LOOKED_FOR[code] for code in codes if code not in tried | alarming]
    if idle:
        lines.append(f"too little to look for: {', '.join(idle)}")
    return lines


@dataclass(frozen=True, eq=False)
class Findings:
    """Result of examining a file: forecasts, notes, obstacles, model checks and the commands that read it."""

    forecasts: Forecasts | None  # as the first of `commands` reads them; None if they could not be read
    notes: tuple[Note, ...] = ()  # what was coerced or dropped in reading, and what learning from it would say
    obstacles: tuple[str, ...] = ()  # what keeps it from being pooled, the most harmful first
    checks: tuple[Check, ...] = ()  # whether forecasts are as the model takes them to be
    faults: tuple[Fault, ...] = ()  # obstacles of reading, and what is proposed, each with the options that remedy it
    commands: tuple[str, ...] = ()  # the command lines that read it, one for each way in which it can be meant
    options: ReadOptions | None = None  # those of the first


def examine(
    diagnosis: Diagnosis,
    commands: Sequence[str] = (),
    beliefs: Beliefs | None = None,
    model: tuple[str, TrainedPool] | None = None,
) -> Findings:
    """Examine a file: fit the default pool to its forecasts and beliefs, or apply a saved one, and collect findings."""
    faults = diagnosis.faults
    obstacles = [fault.text for fault in faults if not fault.proposed]
    if not diagnosis.readable:
        return Findings(None, obstacles=tuple(obstacles), faults=faults)
    forecasts = diagnosis.readable[0].forecasts
    assert forecasts is not None
    notes = tuple(note for note in forecasts.notes if note.code not in {"duplicates"} or not obstacles)
    checks: list[Check] = []
    try:
        whole = forecasts
        if model is not None:
            model = model[0], model[1].named(forecasts.classes)
            whole, new = _beside(forecasts, *model)
            notes += new
        if model is not None and isinstance(model[1].learned, FittedPanel):
            state = model[1].learned
        else:
            state = learn(whole, beliefs=beliefs or Beliefs())
            # The checks of the model look for leakage themselves, and outcomes are looked at below, pool or not.
            notes += tuple(note for note in state.notes if note.code not in {"leakage", "one-outcome"})
        # Evenly spread events, where there are very many.
        every = len(whole.event_index) // _CHECKED
        some = whole if every < 2 else whole.select_events(np.arange(len(whole.events)) % every == 0)
        checks = check_model(some, state)
        if some is not whole:
            total = counted(len(forecasts.events), "event")
            text = f"the model is checked on {len(some.events):,} of {total}, evenly spread"
            notes += (Note("checked-sample", text, len(some.events)),)
    except OpinionPoolError as error:
        obstacles.append(str(error))
    notes += _shortcomings(forecasts)
    return Findings(
        forecasts, notes, tuple(obstacles), tuple(checks), faults, tuple(commands), diagnosis.readable[0].options
    )


def _beside(forecasts: Forecasts, file: str, trained: TrainedPool) -> tuple[Forecasts, tuple[Note, ...]]:
    """Forecasts matched to the experts and classes of a saved pool, with notes on how the pool would use them."""
    forecasts = matched(forecasts, trained, file)
    events = float(trained.learned.events.sum())
    text = f"beside the {trained.name} pool in {file}, which has learned from {whole(round(events, 6))} resolved events"
    notes = [Note("saved-pool", text)]
    strangers = unknown_names(forecasts.experts, trained.experts)
    if strangers:
        verb = "is" if len(strangers) == 1 else "are"
        text = f"{listed(strangers, 6)} {verb} unknown to the pool: --save NEW lets it learn, --exclude leaves out"
        notes.append(Note("unknown-to-pool", text, len(strangers)))
    if trained.stream is not None:
        stream = trained.stream.copy()
        fresh = sum(
            known and not stream.knows(event)
            for event, known in zip(forecasts.events, forecasts.resolved.tolist(), strict=True)
        )
        if fresh:
            text = f"{counted(fresh, 'resolved event')} that the pool has not learned from; --save NEW goes on learning"
            notes.append(Note("not-learned", text, fresh))
        notes += stream.add(forecasts, whole=True)
    known = unknown_names(forecasts.experts, strangers)
    return forecasts.select_experts(known).by_experts(trained.experts), tuple(notes)


def _shortcomings(forecasts: Forecasts) -> tuple[Note, ...]:
    """Notes on data missing from forecasts that can be pooled nevertheless."""
    notes = []
    resolved = forecasts.resolved
    if not resolved.any():
        text = (
            "outcomes would show whom to believe: in a column outcome, or any that --column outcome=NAME names, or in "
            "a file of their own with --outcomes"
        )
        notes.append(Note("no-outcomes", text))
    if forecasts.options is None:
        notes += one_outcome_notes(forecasts.classes, np.array(Totals.of(forecasts).outcomes))
    blank = int((forecasts.crowd == 0).sum())
    if blank:
        text = f"{counted(blank, 'event')} without a forecast will get the prior"
        notes.append(Note("no-forecast", text, blank))
    answered = int(np.count_nonzero(forecasts.resolved_counts))
    unknown = len(forecasts.experts) - answered
    if unknown and answered:
        text = f"{counted(unknown, 'expert')} without a forecast on a resolved event, about whom nothing is learned"
        notes.append(Note("unknown-experts", text, unknown))
    return tuple(notes)


def topics(findings: Findings, name: str) -> list[tuple[str, str]]:
    """The findings for people, as topics and texts."""
    forecasts = findings.forecasts
    if forecasts is None:
        return [("file", name), *_in_the_way(findings)]
    shown = {note.code: note.text for note in findings.notes}
    t, n = forecasts.shape
    cells = len(forecasts.event_index)
    resolved = int(forecasts.resolved.sum())
    void = "" if forecasts.void is None else f", and {whole(len(forecasts.void.events))} void"
    rows = [
        ("file", name + (f": {shown['format']}" if "format" in shown else "")),
        ("layout", shown.get("layout", "")),
        ("events", f"{whole(t)}, {'all' if resolved == t else whole(resolved)} resolved{void}"),
        ("outcomes", _outcomes(forecasts)),
        ("experts", whole(n)),
        ("forecasts", f"{whole(cells)}, {missing(forecasts)}"),
        ("agreement", agreement_line(forecasts)),
        ("prior", _priors(forecasts)),
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


def _in_the_way(findings: Findings) -> list[tuple[str, str]]:
    if not findings.obstacles:
        return [("in the way", "nothing: these forecasts can be pooled")]
    lines = [(i, line) for text in findings.obstacles for i, line in enumerate(text.split("\n"))]
    return [("" if i else "in the way", line) for i, line in lines]


def _outcomes(forecasts: Forecasts) -> str:
    if forecasts.options is not None:
        shown = ", ".join(f"{counted(count, 'event')} with {size}" for size, count in option_counts(forecasts))
        return f"options that are the event's own: {shown}"
    counts = Totals.of(forecasts).outcomes
    shown = ", ".join(
        f"{str(label)!r} {counted(count, 'time')}" for label, count in zip(forecasts.classes, counts, strict=True)
    )
    shown = shown if any(counts) else "none known"
    if len(forecasts.classes) == 2:
        shown += f"; forecasts are probabilities of {str(forecasts.classes[1])!r}"
    return shown


def _priors(forecasts: Forecasts) -> str:
    if forecasts.prior is None:
        return ""
    prior = forecasts.prior.reshape(len(forecasts.events), -1)
    blank = int(np.isnan(prior).any(axis=1).sum())
    if blank == len(prior):
        return ""
    return f"given for each event, from {percent(float(np.nanmin(prior)))} to {percent(float(np.nanmax(prior)))}" + (
        f"; blank for {counted(blank, 'event')}" if blank else ""
    )


def duplicate_columns(forecasts: Forecasts) -> list[Column]:
    """How many forecasts each expert made, and how many of them are exactly 0, a half and 1."""
    p, who, n = forecasts.probabilities, forecasts.expert_index, len(forecasts.experts)
    binary = p.ndim == 1
    # An event with fewer classes leaves the last positions at 0.
    own = True if binary else np.arange(p.shape[1]) < forecasts.sizes[forecasts.event_index, None]

    def exactly(value: float) -> list[int]:
        cells = (p == value) & own
        return [int(x) for x in np.bincount(who[cells if binary else cells.any(axis=1)], minlength=n)]

    columns = [
        Column("expert", forecasts.experts, "expert"),
        Column("forecasts", forecasts.counts.tolist(), "forecasts", whole),
        Column("resolved", forecasts.resolved_counts.tolist(), "resolved", whole),
        Column("zeros", exactly(0), "at 0%", whole),
    ]
    if binary:
        columns.append(Column("halves", exactly(0.5), "at 50%", whole))
    return [*columns, Column("ones", exactly(1), "at 100%", whole)]


def check_view(findings: Findings, name: str) -> View:
    """View of an examined file: contents and obstacles, a table of the experts, and the commands that read it."""
    columns = [] if findings.forecasts is None else duplicate_columns(findings.forecasts)
    choice = "To read it, type one of these:" if len(findings.commands) > 1 else "To read it, type"
    below = ["", choice, *(f"  {command}" for command in findings.commands)] if findings.commands else []
    size = [] if findings.forecasts is None else [size_line(findings.forecasts)]
    return View("experts", columns, finding_facts(findings), size, findings.notes, below, above=topics(findings, name))


def finding_facts(findings: Findings) -> dict[str, object]:
    """The findings for JSON."""
    forecasts, known = findings.forecasts, dict[str, object]()
    faults = [
        {"text": fault.text, "count": fault.count, "options": fault.options(), "proposed": fault.proposed}
        for fault in findings.faults
    ]
    if forecasts is not None:
        first, last = (None if forecasts.times is None else span(forecasts.times)) or (None, None)
        checks = [asdict(check) for check in findings.checks]
        known = facts(forecasts) | agreement_facts(forecasts)
        known |= {"first_time": first, "last_time": last, "checks": checks}
    return known | {
        "obstacles": list(findings.obstacles), "faults": faults, "commands": list(findings.commands)
    }  # fmt: skip
