"""Result of the command ``diff``, as sentences, as columns, and as a section of the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opinionpool.analysis.diff import STEPS, Diff, Move, Resolved
from opinionpool.report.answers import plain
from opinionpool.report.blocks import (
    Block,
    Html,
    Section,
    Table,
    joined,
    listing,
    markup,
    name,
    paragraph,
    sentence,
    words,
)
from opinionpool.report.listing import (
    Column,
    brief,
    finite,
    hundredths,
    percent,
    points,
    printable,
    records,
    two_signed,
    whole,
)
from opinionpool.report.view import View
from opinionpool.text import counted, listed

if TYPE_CHECKING:
    from opinionpool.report.findings import ReportData

# Events and experts that a table shows for people; CSV has all.
SHOWN, SHOWN_EXPERTS = 25, 10
# Outcomes that are listed one by one.
LISTED = 6
# Name of each step in tables and in sentences.
NAMES = dict(
    zip(
        STEPS,
        (
            ("corrected", "corrections and annulled events"), ("outcomes", "outcomes learned"),
            ("agreement", "agreement on open events"), ("forecasts", "new or revised forecasts"),
            ("beliefs", "beliefs and settings"), ("software", "another release of opinionpool"),
        ),
        strict=True,
    )
)  # fmt: skip


def move_columns(found: Diff, most: int | None = None) -> list[Column]:
    """Columns with a row for each of the `most` answers that moved most, or for each class of these."""
    moves = found.moves[:most]
    classes = any(move.label is not None for move in moves)
    parts = list(zip(*(move.parts for move in moves), strict=True)) or [()] * len(STEPS)
    labels = [plain(move.label) for move in moves]
    events = [move.event for move in moves]
    once = [event if event != other else None for event, other in zip(events, [None, *events], strict=False)]
    shown = {step: any(points(p) != "0.0" for p in part) for step, part in zip(STEPS, parts, strict=True)}
    return [
        Column("event", events, "event", table=once),
        *([Column("class", labels, "class")] if classes else []),
        Column("old", [move.old for move in moves], "before", percent),
        Column("new", [move.new for move in moves], "now", percent),
        Column("moved", [move.moved for move in moves], "moved", points),
        *(
            Column(step, part, NAMES[step][0] if shown[step] else None, points)
            for step, part in zip(STEPS, parts, strict=True)
        ),
    ]


def change_columns(found: Diff, most: int | None = None) -> list[Column]:
    """Return columns with a row for each of the `most` experts whose weights changed most."""
    experts = found.experts[:most]
    columns = [Column("expert", [each.expert for each in experts], "expert")]
    for number, feature in enumerate(("weight", "calibration", "accuracy", "bias")):
        show = hundredths if feature in {"calibration", "accuracy"} else two_signed
        rows = [(each.old[feature], each.new[feature], each.change(feature)) for each in experts]
        was, now, moved = ([finite(x) for x in values] for values in zip(*rows, strict=True))
        there = any(value is not None for value in (*was, *now))
        columns += [
            Column(f"{feature}_old", was, "before" if number == 0 and there else None, show, spare=number),
            Column(feature, now, feature if there else None, show, spare=number),
            Column(f"{feature}_change", moved, "change" if there else None, two_signed, spare=number),
        ]
    return columns


def weighed(found: Diff) -> bool:
    """Return True if at least one expert has a weight in the old pool or in the new pool."""
    return any(not math.isnan(value) for each in found.experts for value in (each.old["weight"], each.new["weight"]))


def change_lines(found: Diff) -> list[str]:
    """Return sentences on outcomes learned or corrected, events gone or opened, and the answer that changed most."""
    was, now = found.events
    old, new = found.prior
    lines = [f"{whole(round(was, 6))} resolved events before, {whole(round(now, 6))} now"]
    if old is not None and new is not None and len(old) == 2:
        lines[0] = f"prior {percent(float(old[1]))} before, {percent(float(new[1]))} now; {lines[0]}"
    if found.resolved:
        lines.append(
            "outcomes learned, with the earlier answers: "
            + ", ".join([*map(happened_words, found.resolved[:LISTED]), *_more(len(found.resolved) - LISTED)])
        )
    answered = {each.event for each in found.resolved}
    for what, events in (
        (
            "further outcomes learned" if answered else "outcomes learned",
            [event for event in found.outcomes if event not in answered],
        ),
        ("outcomes, dates, topics or learned forecasts corrected", found.corrections),
        ("events annulled or no longer there", found.gone),
        ("events opened", found.opened),
    ):
        if events:
            lines.append(printable(f"{what}: {listed(list(events), 6)}"))
    for move in found.moves[:1]:
        about = move.event if move.label is None else f"{move.event} ({move.label})"
        still = points(move.moved) == "0.0"
        lines.append("no answer moved" if still else printable(f"{about} moved most, {causes_of(move)}"))
    return lines


def _more(left: int) -> list[str]:
    return [f"and {counted(left, 'more outcome')}"] if left > 0 else []


def happened_words(each: Resolved) -> str:
    """Return as text an event's outcome and the probability that the old pool gave this outcome.

    >>> happened_words(Resolved("rain", 0, 0.37)), happened_words(Resolved("race", "red", 0.2))
    ('rain did not happen (63%)', 'race: red (20%)')
    """
    outcome = str(each.outcome)
    verb = {"0": " did not happen", "1": " happened"}.get(outcome, f": {printable(outcome)}")
    return f"{printable(each.event)}{verb} ({brief(1.0 - each.probability if outcome == '0' else each.probability)})"


def causes_of(move: Move) -> str:
    """Return the clause with the answer before and now, and by how much each cause moved it, the largest first."""
    order = sorted(range(len(STEPS)), key=lambda i: -abs(move.parts[i]))
    causes = [f"{points(move.parts[i])} by {NAMES[STEPS[i]][1]}" for i in order if points(move.parts[i]) != "0.0"]
    return f"from {percent(move.old)} to {percent(move.new)}: {', '.join(causes)}"


def meaning_lines(found: Diff) -> list[str]:
    """Return sentences that explain the columns of the tables of changes."""
    lines = []
    if found.moves:
        shown = [column for column in move_columns(found) if column.key in STEPS and column.title is not None]
        order = ", then ".join(NAMES[column.key][1] for column in shown)
        lines.append(f"in percentage points, adding up to moved: {order}" if shown else "in percentage points")
    if weighed(found):
        lines.append("change: of the weight, and of the calibration, accuracy and bias beside it")
    return lines


def change_view(found: Diff, *, table: bool) -> View:
    """Return the view of the differences between two pools; a `table` shows only the largest moves and changes."""
    moves, events, experts = move_columns(found), len(found.moves), change_columns(found)
    below: list[Sequence[Column] | str] = []
    if events > SHOWN:
        below.append(f"({counted(events - SHOWN, 'smaller move')} in CSV and JSON)")
    if weighed(found):
        below.append(change_columns(found, SHOWN_EXPERTS))
        left = len(found.experts) - SHOWN_EXPERTS
        below += [f"({counted(left, 'expert')} with smaller changes in JSON)"] if left > 0 else []
    below += ["", *change_lines(found), "", *meaning_lines(found)]
    facts = change_facts(found) | {"experts": list(records(experts))}
    shown = move_columns(found, SHOWN) if events else []
    return View("moves", moves, facts, [] if table else change_lines(found), below=below, table=shown)


def change_facts(found: Diff) -> dict[str, object]:
    """Return facts for JSON on what changed between two pools, without the moves of single answers."""
    old, new = (None if p is None else [float(x) for x in p] for p in found.prior)
    return {
        "prior_old": old,
        "prior": new,
        "learned_events_old": found.events[0],
        "learned_events": found.events[1],
        "outcomes_learned": list(found.outcomes),
        "happened": [
            {"event": each.event, "outcome": plain(each.outcome), "probability": each.probability}
            for each in found.resolved
        ],
        "corrected": list(found.corrections),
        "gone": list(found.gone),
        "opened": list(found.opened),
        "steps": list(STEPS),
    }


def changes_section(f: ReportData) -> Section | None:
    """Return the section on answers that changed since a pool was saved, and why; None if no such pool is given."""
    if f.options.since is None:
        return None
    title, (file, found) = "What changed", f.options.since
    answered = {each.event for each in found.resolved}
    others = replace(found, resolved=(), outcomes=tuple(event for event in found.outcomes if event not in answered))
    lines = change_lines(others)[: -1 if found.moves else None]
    since: list[Block] = [paragraph(markup("Since {} was saved: {}", name(file), f"{'; '.join(lines)}."))]
    if found.resolved:
        items = [happened_words(each._replace(event=_question(f, each.event))) for each in found.resolved[:LISTED]]
        since.append("What happened, with what the pool had answered:")
        since.append(listing([sentence(each) for each in [*items, *_more(len(found.resolved) - LISTED)]]))
    if not found.moves:
        return Section("changes", title, [*since, "No event was open before and is open now."])
    first = found.moves[0]
    lead = "No answer moved."
    if points(first.moved) != "0.0":
        about = joined([_event(f, first.event), "" if first.label is None else f" ({first.label})"])
        lead = markup("{} moved most, {}.", about, causes_of(first))
    shows: dict[str, Callable[[Any], str]] = {"event": lambda event: _event(f, event), "old": brief, "new": brief}
    columns = [replace(column, page=shows.get(column.key)) for column in move_columns(found, SHOWN)]
    notes = [sentence(meaning_lines(found)[0])]
    more = len(found.moves) - SHOWN
    if more > 0:
        notes.append(f"{whole(more)} smaller moves are left out; opinionpool diff has them.")
    return Section(
        "changes", title, [*since, paragraph(lead, "lead"), Table(columns, kind="stack"), words(*notes, kind="note")]
    )


def _question(f: ReportData, event: str) -> str:
    """Return the question of an event if the file has the event, else the event's id."""
    return f.question(f.forecasts.events.index(event)) if event in f.forecasts.events else event


def _event(f: ReportData, event: str) -> Html:
    """Return an event's name as markup; the event may be missing from the file."""
    events = f.forecasts.events
    return f.event_name(events.index(event)) if event in events else name(event)
