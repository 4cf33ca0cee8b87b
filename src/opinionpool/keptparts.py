"""``opinionpool pool --model`` for a file that is too large for memory: answers written as it is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opinionpool.kept import keep, matched
from opinionpool.options import Chances, Pooling, Writing, chances
from opinionpool.partnotes import PartNotes
from opinionpool.render import write_json, write_listing
from opinionpool.steps import conclude
from opinionpool.streams import destination
from opinionpool.totals import Totals

if TYPE_CHECKING:
    from opinionpool.answers import Pooled
    from opinionpool.errors import Note
    from opinionpool.logodds import Array
    from opinionpool.parts import Parts
    from opinionpool.trained import TrainedPool

__all__ = ["pool_kept_parts"]


class _Answers:
    """The answers of a saved pool on one part after the other, and what was met on the way."""

    def __init__(self, parts: Parts, model: tuple[str, TrainedPool], prior: float | Array | None) -> None:
        self._parts, self._model, self._prior = parts, model, prior
        self.read, self.told = PartNotes(), PartNotes()
        self.totals: Totals | None = None

    def each(self, rate: float | Array | None) -> Iterator[Pooled]:
        """The answers on each part, in order."""
        from opinionpool import answers

        file, trained = self._model
        for part in self._parts.forecasts():
            forecasts = matched(part, trained, file)
            kept = keep(forecasts, trained.name, self._prior, {}, self._model, learning=False)
            pooled = kept.pooled(rate)
            own = [note for note in kept.notes if note.code == "not-learned"]
            self.read.add(forecasts.notes)
            self.told.add([*own, *answers.answer_notes(pooled)])
            size = Totals.of(forecasts)
            self.totals = size if self.totals is None else self.totals + size
            yield pooled


def pool_kept_parts(
    parts: Parts, model: tuple[str, TrainedPool], pooling: Pooling, writing: Writing, base_rate: Chances
) -> None:
    """Write a probability for every event of each part, by a pool that was saved."""
    from opinionpool import answers, summary

    file, trained = model
    first = matched(next(parts.forecasts(threads=1)), trained, file)
    prior, rate = chances("--prior", pooling.prior, first), chances("--base-rate", base_rate, first)
    kept = keep(first, trained.name, prior, {}, model, learning=False)
    found = _Answers(parts, model, prior)
    kind = writing.chosen()
    facts: dict[str, object] = {}

    def notes() -> tuple[Note, ...]:
        totals = found.totals or Totals.of(first)
        return (
            *found.read.all(unresolved=totals.events, normalised=totals.cells),
            *parts.standing_out(),
            *parts.notes,
            *trained.learned.notes,
            *found.told.all(**{"in-sample": totals.events}),
            *summary.base_rate_notes(kept.state, kept.given, rate),
        )

    def records() -> Iterator[dict[str, object]]:
        for pooled in found.each(rate):
            yield from answers.event_records(pooled)
        # All that is to be said is known now, and what follows the events is written afterwards.
        facts.update(summary.pool_facts(first, kept.name, kept.answered_with, rate, notes()))
        facts.update(summary.facts(found.totals or Totals.of(first)) | kept.facts(None))

    with destination(writing.output) as out:
        if kind == "json":
            write_json("events", records(), facts, out)
        else:
            for number, pooled in enumerate(found.each(rate)):
                write_listing(answers.event_columns(pooled), kind, out, headed=number == 0)
    conclude(
        kind,
        summary.size_line(found.totals or Totals.of(first)),
        summary.pool_line(first, kept.name, kept.answered_with, kept.given, rate),
        *kept.lines(None),
        *summary.note_lines(first, notes()),
    )
