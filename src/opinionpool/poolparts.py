"""``opinionpool pool`` for a file that is too large for memory: gone through twice, answers written as they come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from opinionpool.errors import ArgumentError
from opinionpool.options import Chances, Pooling, Reading, Writing, chances
from opinionpool.render import write_json, write_listing
from opinionpool.steps import conclude
from opinionpool.streams import destination, progress

if TYPE_CHECKING:
    from opinionpool.answers import Pooled
    from opinionpool.errors import Note
    from opinionpool.learnparts import LearnedParts
    from opinionpool.logodds import Array
    from opinionpool.parts import Parts
    from opinionpool.trained import TrainedPool

__all__ = ["pool_in_parts"]


class _Answers:
    """The answers on one part after the other, and the notes on what was met on the way."""

    def __init__(self, parts: Parts, pool: str, learned: LearnedParts, prior: float | Array | None) -> None:
        from opinionpool.partnotes import PartNotes

        self._parts, self._pool, self._learned, self._prior = parts, pool, learned, prior
        self.read, self.told = PartNotes(), PartNotes()

    def each(self, rate: float | Array | None) -> Iterator[Pooled]:
        """The answers on each part, in order."""
        from opinionpool import answers

        for forecasts in self._parts.forecasts():
            pooled = answers.pool_events(forecasts, self._pool, self._learned.state, self._prior, rate)
            self.read.add(forecasts.notes)
            self.told.add(answers.answer_notes(pooled))
            yield pooled


def pool_in_parts(
    reading: Reading,
    pooling: Pooling,
    writing: Writing,
    base_rate: Chances,
    model: tuple[str, TrainedPool] | None = None,
) -> bool:
    """Pool a file in parts, if it is so large, having learned from it in parts; whether that was done.

    With a `model`, nothing is learned.
    """
    from opinionpool.labels import label_text
    from opinionpool.parts import is_large, open_parts
    from opinionpool.tables import Request
    from opinionpool.times import as_time

    if reading.outcomes is not None or not is_large(reading.file):
        return False
    try:
        request = Request.of(
            positive=reading.positive,
            classes=None if model is None else [label_text(label) for label in model[1].classes],
            columns={role: name or None for role, name in reading.column},
            options=reading.options,
            duplicates=reading.duplicates,
            as_of=None if reading.as_of is None else as_time(reading.as_of, "--as-of"),
            percent=reading.percent,
            decimal=reading.decimal,
            missing_values=reading.missing_value,
            include=reading.include,
            exclude=reading.exclude,
        )
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    with ExitStack() as stack:
        with progress(f"reading {reading.file}") as advance:
            parts = stack.enter_context(open_parts(reading.file, request, reading.encoding, advance))
        if parts is not None and model is not None:
            from opinionpool.keptparts import pool_kept_parts

            pool_kept_parts(parts, model, pooling, writing, base_rate)
        elif parts is not None:
            _pool(parts, pooling, writing, base_rate)
        return parts is not None


def _pool(parts: Parts, pooling: Pooling, writing: Writing, base_rate: Chances) -> None:
    """Learn from all parts, then write a probability for every event of each."""
    from opinionpool import answers, summary
    from opinionpool.learnparts import learn_parts

    told = pooling.told()
    first = next(parts.forecasts(threads=1))
    prior, rate = chances("--prior", pooling.prior, first), chances("--base-rate", base_rate, first)
    learned = learn_parts(pooling.pool, parts.forecasts(), prior, told.options)
    sample, state = learned.sample, learned.state
    found = _Answers(parts, pooling.pool, learned, prior)
    kind = writing.chosen()
    facts: dict[str, object] = {}

    def notes() -> tuple[Note, ...]:
        return (
            *found.read.all(unresolved=learned.totals.events, normalised=learned.totals.cells),
            *parts.standing_out(),
            *parts.notes,
            *learned.notes,
            *state.notes,
            *answers.one_outcome_notes(sample, pooling.pool),
            *found.told.all(**{"in-sample": learned.totals.events}),
            *summary.base_rate_notes(state, prior is not None, rate),
        )

    def records() -> Iterator[dict[str, object]]:
        for pooled in found.each(rate):
            yield from answers.event_records(pooled)
        # All that is to be said is known now, and what follows the events is written afterwards.
        facts.update(summary.pool_facts(sample, pooling.pool, state, rate, notes()))
        facts.update(summary.facts(learned.totals) | summary.belief_facts(told.beliefs))

    with destination(writing.output) as out:
        if kind == "json":
            write_json("events", records(), facts, out)
        else:
            for number, pooled in enumerate(found.each(rate)):
                write_listing(answers.event_columns(pooled), kind, out, headed=number == 0)
    conclude(
        kind,
        summary.size_line(learned.totals),
        summary.pool_line(sample, pooling.pool, state, prior is not None, rate),
        *summary.belief_lines(told.file, told.beliefs),
        *summary.note_lines(sample, notes()),
    )
