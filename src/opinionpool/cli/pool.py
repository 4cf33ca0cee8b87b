"""``opinionpool pool``: a probability for every event, of a file in memory or a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from opinionpool.arrays import Array
from opinionpool.cli.arguments import Keeping, Listing, Pooling, PriorOption, Reading, Writing, prior_option
from opinionpool.cli.inputs import options_for, read
from opinionpool.cli.kept import Kept, keep
from opinionpool.cli.output import conclude, destination, progress
from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.learning.parts import PartsSource
from opinionpool.pools.fit import fit_from
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.report import answers, summary
from opinionpool.report.answers import Pooled, open_rows, ordered
from opinionpool.report.listing import write_json, write_listing
from opinionpool.report.summary import Totals
from opinionpool.report.view import note_lines, note_records
from opinionpool.tables.parts import PartNotes, Parts

if TYPE_CHECKING:
    # Loaded where a pool is saved or was.
    from opinionpool.streams.trained import TrainedPool


@dataclass(frozen=True, eq=False)
class _Pool:
    """The pool that answers."""

    name: str
    state: Fitted  # with the prior that the answers start from
    given: bool  # whether the prior was given, and not estimated
    some: Forecasts  # some of those that it answers on
    forecasts: Iterator[Forecasts]  # all of them, a part at a time
    # from forecasts to the answers, and the notes on how these came about
    answer: Callable[[Forecasts], tuple[Pooled, Sequence[Note]]]
    # notes, rate_notes: on what was learned, and on the base rate
    notes: Sequence[Note]
    rate_notes: Sequence[Note]
    lines: list[str]  # what was believed or where it is from, for people
    facts: dict[str, object]  # the same for JSON
    over: Callable[[], Sequence[Note]] = tuple  # the notes on all parts together, when they have been gone through
    all_of_it: bool = False  # whether `some` is all
    finish: Callable[[], None] = lambda: None  # what is left to do when the answers are written


def pool_files(
    reading: Reading,
    pooling: Pooling,
    keeping: Keeping,
    listing: Listing,
    writing: Writing,
    base_rate: PriorOption,
) -> None:
    """Write a probability for every event of some files: a large one is gone through in parts, others are one part."""
    from opinionpool.tables.parts import open_parts, wants_parts
    from opinionpool.tables.sources import is_large

    model = keeping.read(pooling)
    single = reading.outcomes is None and len(reading.files) == 1 and keeping.save is None
    if single and listing.sort != "file" and is_large(reading.files[0]):
        raise click.UsageError("--sort needs all answers at once, and a file this large is answered in parts")
    with ExitStack() as stack:
        parts = None
        if single and listing.sort == "file" and wants_parts(reading.files[0], options_for(reading, model)):
            with progress(f"reading {reading.name}") as advance:
                parts = stack.enter_context(open_parts(reading.source, options_for(reading, model), advance))
        first = read(reading, model) if parts is None else next(parts.forecasts(threads=1))
        if parts is not None and model is not None:
            from opinionpool.streams.trained import matched

            first = matched(first, model[1], model[0])
            model = model[0], model[1].named(first.classes)
        prior, rate = prior_option("--prior", pooling.prior, first), prior_option("--base-rate", base_rate, first)
        if parts is None:
            pool = _whole(first, pooling, keeping, model, prior, rate, reading.options.duplicates)
        else:
            pool = _learned(parts, pooling, prior, rate) if model is None else _kept(parts, first, model, prior, rate)
        _write(pool, rate, listing, writing)


def _whole(
    forecasts: Forecasts,
    pooling: Pooling,
    keeping: Keeping,
    model: tuple[str, TrainedPool] | None,
    prior: float | Array | None,
    rate: float | Array | None,
    duplicates: str | None,
) -> _Pool:
    """A pool for forecasts that are in memory, and may be saved."""
    belief_file = pooling.belief_file()
    options = pooling.options(belief_file.beliefs)
    learning = keeping.save is not None
    kept = keep(forecasts, pooling.pool, prior, options, model, learning=learning, duplicates=duplicates)

    def answer(_: Forecasts) -> tuple[Pooled, Sequence[Note]]:
        return kept.pooled(rate), ()

    def finish() -> None:
        if keeping.save is not None:
            from opinionpool.estimators.files import save

            save(kept.trained, keeping.save)

    return _Pool(
        name=kept.name,
        state=kept.answered_with,
        given=kept.given,
        some=forecasts,
        forecasts=iter([forecasts]),
        answer=answer,
        notes=kept.notes,
        rate_notes=summary.base_rate_notes(kept.state, kept.given, rate),
        lines=[*kept.lines(keeping.save), *summary.belief_lines(belief_file.file, belief_file.beliefs)],
        facts=summary.belief_facts(belief_file.beliefs) | kept.facts(keeping.save),
        finish=finish,
        all_of_it=True,
    )


def _learned(parts: Parts, pooling: Pooling, prior: float | Array | None, rate: float | Array | None) -> _Pool:
    """A pool that has gone through all parts once, to learn."""
    belief_file = pooling.belief_file()
    source = PartsSource.of(parts.forecasts(), prior)
    state = fit_from(source, pooling.pool, **pooling.options(belief_file.beliefs))

    def answer(forecasts: Forecasts) -> tuple[Pooled, Sequence[Note]]:
        return answers.pool_events(forecasts, pooling.pool, state, prior, rate), ()

    return _Pool(
        name=pooling.pool,
        state=state,
        given=prior is not None,
        some=source.sample,
        forecasts=parts.forecasts(),
        answer=answer,
        notes=state.notes,
        rate_notes=summary.base_rate_notes(state, prior is not None, rate),
        lines=summary.belief_lines(belief_file.file, belief_file.beliefs),
        facts=summary.belief_facts(belief_file.beliefs),
        over=lambda: (*parts.standing_out(), *parts.notes),
    )


def _kept(
    parts: Parts,
    first: Forecasts,
    model: tuple[str, TrainedPool],
    prior: float | Array | None,
    rate: float | Array | None,
) -> _Pool:
    """A pool from a file, as it is."""
    from opinionpool.streams.trained import matched

    file, trained = model

    def kept_for(forecasts: Forecasts) -> Kept:
        return keep(forecasts, trained.name, prior, {}, model, learning=False)

    def answer(forecasts: Forecasts) -> tuple[Pooled, Sequence[Note]]:
        kept = kept_for(forecasts)
        return kept.pooled(rate), [note for note in kept.notes if note.code == "not-learned"]

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
        over=lambda: (*parts.standing_out(), *parts.notes),
    )


@dataclass(eq=False)
class _Answers:
    """The answers on one part after the other, and what was met on the way."""

    pool: _Pool
    listing: Listing
    totals: Totals | None = None
    read: PartNotes = field(default_factory=PartNotes)
    answered: PartNotes = field(default_factory=PartNotes)
    one_part: tuple[Sequence[Note], Sequence[Note]] | None = None

    def each(self) -> Iterator[Pooled]:
        """The answers on each part, in order."""
        for forecasts in self.pool.forecasts:
            pooled, notes = self.pool.answer(forecasts)
            pooled, unlisted = self._chosen(pooled)
            notes = [*notes, *answers.answer_notes(pooled), *unlisted]
            self.one_part = (forecasts.notes, notes) if self.totals is None else None
            self.read.add(forecasts.notes)
            self.answered.add(notes)
            size = Totals.of(forecasts)
            self.totals = size if self.totals is None else self.totals + size
            yield pooled

    def _chosen(self, pooled: Pooled) -> tuple[Pooled, list[Note]]:
        """The answers that are listed, in their order, and a note on those that are not."""
        if self.listing.only_open:
            unresolved = ~pooled.forecasts.resolved
            blank = int((unresolved & (pooled.forecasts.crowd == 0)).sum())
            notes = [Note.of("not-listed", "{count:open event} without a forecast not listed", blank)] if blank else []
            return pooled.select(open_rows(pooled, self.listing.sort)), notes
        if self.listing.sort == "file":
            return pooled, []
        return pooled.select(ordered(pooled, range(len(pooled.in_sample)), self.listing.sort)), []

    @property
    def size(self) -> Totals:
        """Counts of all parts, once they have been gone through."""
        return self.totals or Totals.of(self.pool.some)

    def notes(self) -> tuple[Note, ...]:
        """The notes that follow."""
        read: Sequence[Note] = self.read.all(unresolved=self.size.events, normalised=self.size.cells)
        answered: Sequence[Note] = self.answered.all(**{"in-sample": self.size.events})
        if self.one_part is not None:
            read, answered = self.one_part
        return (
            *read,
            *self.pool.over(),
            *self.pool.notes,
            *answered,
            *self.pool.rate_notes,
        )


def _write(pool: _Pool, rate: float | Array | None, listing: Listing, writing: Writing) -> None:
    """Write the answers as they come, and conclude."""
    found, kind = _Answers(pool, listing), writing.chosen()
    facts: dict[str, object] = {}

    def records() -> Iterator[dict[str, object]]:
        for pooled in found.each():
            yield from answers.event_records(pooled)
        # All notes are known now, and what follows the events is written afterwards.
        facts.update(summary.pool_facts(pool.some, pool.name, pool.state, rate))
        facts.update({} if pool.all_of_it else summary.facts(found.size))
        facts.update(pool.facts | {"notes": note_records(found.notes())})

    with destination(writing.output) as out:
        if kind == "json":
            write_json("events", records(), facts, out)
        else:
            for number, pooled in enumerate(found.each()):
                columns = answers.event_columns(pooled, only_open=listing.only_open)
                write_listing(columns, kind, out, headed=number == 0)
    pool.finish()
    conclude(
        kind,
        summary.size_line(found.size),
        summary.pool_line(pool.some, pool.name, pool.state, pool.given, rate),
        *pool.lines,
        *note_lines(found.notes(), pool.some, writing.most_notes),
    )
