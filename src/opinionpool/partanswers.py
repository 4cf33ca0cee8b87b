"""Answers for a file that is too large for memory: part after part, written as they come, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from opinionpool import answers, summary
from opinionpool.answers import Pooled
from opinionpool.arguments import Chances, Pooling, Writing, chances
from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.kept import Kept, keep, matched
from opinionpool.learnparts import learn_parts
from opinionpool.logodds import Array
from opinionpool.partnotes import PartNotes
from opinionpool.parts import Parts
from opinionpool.render import write_json, write_listing
from opinionpool.rules import Learned
from opinionpool.steps import conclude
from opinionpool.streams import destination
from opinionpool.totals import Totals
from opinionpool.trained import TrainedPool

__all__ = ["pool_parts"]


@dataclass(frozen=True, eq=False)
class _Pool:
    """The pool that answers.

    Attributes
    ----------
    name : str
    state : Learned
        With the prior that the answers start from.
    given : bool
        Whether the prior was given, and not estimated.
    some : Forecasts
        Some of those that it answers on.
    forecasts : iterator of Forecasts
        All of them, a part at a time.
    answer : callable
        From forecasts to the answers, and the notes on these.
    notes, rate_notes : sequence of Note
        On what was learned, and on the base rate.
    lines : list of str
        What was believed or where it is from, for people.
    facts : dict
        The same for JSON.
    """

    name: str
    state: Learned
    given: bool
    some: Forecasts
    forecasts: Iterator[Forecasts]
    answer: Callable[[Forecasts], tuple[Pooled, Sequence[Note]]]
    notes: Sequence[Note]
    rate_notes: Sequence[Note]
    lines: list[str]
    facts: dict[str, object]


def pool_parts(
    parts: Parts, pooling: Pooling, writing: Writing, base_rate: Chances, model: tuple[str, TrainedPool] | None
) -> None:
    """Write a probability for every event of each part, by a pool that is learned from all of them, or a saved one."""
    first = next(parts.forecasts(threads=1))
    if model is not None:
        first = matched(first, model[1], model[0])
    prior, rate = chances("--prior", pooling.prior, first), chances("--base-rate", base_rate, first)
    pool = _learned(parts, pooling, prior, rate) if model is None else _kept(parts, first, model, prior, rate)
    _write(parts, pool, rate, writing)


def _learned(parts: Parts, pooling: Pooling, prior: float | Array | None, rate: float | Array | None) -> _Pool:
    """A pool that has gone through all parts once, to learn."""
    told = pooling.told()
    learned = learn_parts(pooling.pool, parts.forecasts(), prior, told.options)
    state = learned.state

    def answer(forecasts: Forecasts) -> tuple[Pooled, Sequence[Note]]:
        pooled = answers.pool_events(forecasts, pooling.pool, state, prior, rate)
        return pooled, answers.answer_notes(pooled)

    return _Pool(
        name=pooling.pool,
        state=state,
        given=prior is not None,
        some=learned.sample,
        forecasts=parts.forecasts(),
        answer=answer,
        notes=(*learned.notes, *state.notes, *answers.one_outcome_notes(learned.sample, pooling.pool)),
        rate_notes=summary.base_rate_notes(state, prior is not None, rate),
        lines=summary.belief_lines(told.file, told.beliefs),
        facts=summary.belief_facts(told.beliefs),
    )


def _kept(
    parts: Parts,
    first: Forecasts,
    model: tuple[str, TrainedPool],
    prior: float | Array | None,
    rate: float | Array | None,
) -> _Pool:
    """A pool from a file, as it is."""
    file, trained = model

    def kept_for(forecasts: Forecasts) -> Kept:
        return keep(forecasts, trained.name, prior, {}, model, learning=False)

    def answer(forecasts: Forecasts) -> tuple[Pooled, Sequence[Note]]:
        kept = kept_for(forecasts)
        pooled = kept.pooled(rate)
        own = [note for note in kept.notes if note.code == "not-learned"]
        return pooled, [*own, *answers.answer_notes(pooled)]

    kept = kept_for(first)
    return _Pool(
        name=kept.name,
        state=kept.answered_with,
        given=kept.given,
        some=first,
        forecasts=(matched(part, trained, file) for part in parts.forecasts()),
        answer=answer,
        notes=trained.learned.notes,
        rate_notes=summary.base_rate_notes(kept.state, kept.given, rate),
        lines=kept.lines(None),
        facts=kept.facts(None),
    )


@dataclass(eq=False)
class _Answers:
    """The answers on one part after the other, and what was met on the way."""

    parts: Parts
    pool: _Pool
    totals: Totals | None = None
    read: PartNotes = field(default_factory=PartNotes)
    answered: PartNotes = field(default_factory=PartNotes)

    def each(self) -> Iterator[Pooled]:
        """The answers on each part, in order."""
        for forecasts in self.pool.forecasts:
            pooled, notes = self.pool.answer(forecasts)
            self.read.add(forecasts.notes)
            self.answered.add(notes)
            size = Totals.of(forecasts)
            self.totals = size if self.totals is None else self.totals + size
            yield pooled

    @property
    def size(self) -> Totals:
        """Counts of all parts, once they have been gone through."""
        return self.totals or Totals.of(self.pool.some)

    def notes(self) -> tuple[Note, ...]:
        """What is to be said then."""
        return (
            *self.read.all(unresolved=self.size.events, normalised=self.size.cells),
            *self.parts.standing_out(),
            *self.parts.notes,
            *self.pool.notes,
            *self.answered.all(**{"in-sample": self.size.events}),
            *self.pool.rate_notes,
        )


def _write(parts: Parts, pool: _Pool, rate: float | Array | None, writing: Writing) -> None:
    """Write the answers as they come, and conclude."""
    found, kind = _Answers(parts, pool), writing.chosen()
    facts: dict[str, object] = {}

    def records() -> Iterator[dict[str, object]]:
        for pooled in found.each():
            yield from answers.event_records(pooled)
        # All that is to be said is known now, and what follows the events is written afterwards.
        facts.update(summary.pool_facts(pool.some, pool.name, pool.state, rate, found.notes()))
        facts.update(summary.facts(found.size) | pool.facts)

    with destination(writing.output) as out:
        if kind == "json":
            write_json("events", records(), facts, out)
        else:
            for number, pooled in enumerate(found.each()):
                write_listing(answers.event_columns(pooled), kind, out, headed=number == 0)
    conclude(
        kind,
        summary.size_line(found.size),
        summary.pool_line(pool.some, pool.name, pool.state, pool.given, rate),
        *pool.lines,
        *summary.note_lines(pool.some, found.notes()),
    )
