"""``opinionpool pool``: a probability for every event, of a file in memory or a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from opinionpool.arrays import Array
from opinionpool.cli.arguments import BeliefFile, Keeping, Listing, Pooling, PriorOption, Reading, Writing, prior_option
from opinionpool.cli.inputs import options_for, read
from opinionpool.cli.kept import Kept, keep
from opinionpool.cli.output import conclude, destination, progress
from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.learning.parts import PartsSource
from opinionpool.pools.fit import fit_from
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
    """The pool of one command, with the forecasts that it answers."""

    kept: Kept
    some: Forecasts  # some of the forecasts
    forecasts: Iterator[Forecasts]  # all of them, a part at a time
    on: Callable[[Forecasts], Kept]  # the same pool for a part
    notes: Sequence[Note]  # on what was learned
    rate: float | Array | None  # the base rate
    saved: str | None  # the file that it goes to
    believed: BeliefFile
    parts: Parts | None  # None where `some` is all

    @property
    def lines(self) -> list[str]:
        """Return lines on the pool, its file and its beliefs, for people."""
        kept, believed = self.kept, self.believed
        used = summary.pool_line(self.some, kept.name, kept.answered_with, kept.given, self.rate)
        return [used, *kept.lines(self.saved), *summary.belief_lines(believed.file, believed.beliefs)]

    def facts(self, size: Totals) -> dict[str, object]:
        """Return facts on the pool, its file and its beliefs, for JSON; `size` is the total over all parts."""
        kept = self.kept
        facts = summary.pool_facts(self.some, kept.name, kept.answered_with, self.rate)
        facts |= {} if self.parts is None else summary.facts(size)
        return facts | summary.belief_facts(self.believed.beliefs) | kept.facts(self.saved)


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
        believed = pooling.belief_file()
        options = pooling.options(believed.beliefs)
        if parts is None:
            learning, rule = keeping.save is not None, reading.options.duplicates
            kept = keep(first, pooling.pool, prior, options, model, learning=learning, duplicates=rule)
            pool = _Pool(kept, first, iter([first]), lambda _: kept, kept.notes, rate, keeping.save, believed, None)
        else:
            pool = _in_parts(parts, first, pooling.pool, prior, options, model, rate, believed)
        _write(pool, listing, writing)


def _in_parts(
    parts: Parts,
    first: Forecasts,
    name: str,
    prior: float | Array | None,
    options: dict[str, Any],
    model: tuple[str, TrainedPool] | None,
    rate: float | Array | None,
    believed: BeliefFile,
) -> _Pool:
    """A pool fitted in one pass over all parts, or a pool from a file without further learning."""
    if model is None:
        source = PartsSource.of(parts.forecasts(), prior)
        state = fit_from(source, name, **options)
        kept = Kept(name, state, source.sample, prior, prior is not None, None, None, state.notes)
        every, some = parts.forecasts(), source.sample
    else:
        from opinionpool.streams.trained import matched

        file, trained = model
        kept, some = keep(first, trained.name, prior, {}, model, learning=False), first
        every = (matched(part, trained, file) for part in parts.forecasts())

    def on(part: Forecasts) -> Kept:
        if model is None:
            return replace(kept, forecasts=part)
        return keep(part, kept.name, prior, {}, model, learning=False)

    return _Pool(kept, some, every, on, kept.state.notes, rate, None, believed, parts)


@dataclass(eq=False)
class _Answers:
    """Answers on one part after the other, with the totals, notes and void events met so far."""

    pool: _Pool
    listing: Listing
    totals: Totals | None = None
    read: PartNotes = field(default_factory=PartNotes)
    answered: PartNotes = field(default_factory=PartNotes)
    one_part: tuple[Sequence[Note], Sequence[Note]] | None = None
    void: dict[str, int] = field(default_factory=dict)  # void events, and how many forecast each

    def each(self) -> Iterator[Pooled]:
        """Yield the pooled answers of each part of the file, in order."""
        for forecasts in self.pool.forecasts:
            if forecasts.void is not None and not self.listing.only_open:
                self.void |= zip(forecasts.void.events, forecasts.void.crowd.tolist(), strict=True)
            kept = self.pool.on(forecasts)
            pooled, unlisted = self._chosen(kept.pooled(self.pool.rate))
            # Those of a single part stand among what was learned.
            own = [] if self.pool.parts is None else [note for note in kept.notes if note.code == "not-learned"]
            notes = [*own, *answers.answer_notes(pooled), *unlisted]
            self.one_part = (forecasts.notes, notes) if self.totals is None else None
            self.read.add(forecasts.notes)
            self.answered.add(notes)
            size = Totals.of(forecasts)
            self.totals = size if self.totals is None else self.totals + size
            yield pooled

    def _chosen(self, pooled: Pooled) -> tuple[Pooled, list[Note]]:
        """The answers to list, in their order, and a note on open events left out."""
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
        """Return all notes from reading, learning and answering."""
        read: Sequence[Note] = self.read.all(unresolved=self.size.events, normalised=self.size.cells)
        answered: Sequence[Note] = self.answered.all(**{"in-sample": self.size.events})
        if self.one_part is not None:
            read, answered = self.one_part
        pool, parts = self.pool, self.pool.parts
        over = () if parts is None else (*parts.standing_out(), *parts.notes)
        rate = summary.base_rate_notes(pool.kept.state, pool.kept.given, pool.rate)
        return (*read, *over, *pool.notes, *answered, *rate)


def _write(pool: _Pool, listing: Listing, writing: Writing) -> None:
    """Write the answers as they come, and conclude."""
    found, kind = _Answers(pool, listing), writing.chosen()
    facts: dict[str, object] = {}

    def records() -> Iterator[dict[str, object]]:
        for pooled in found.each():
            yield from answers.event_records(pooled)
        yield from answers.void_records(found.void)
        # All notes are known now, and what follows the events is written afterwards.
        facts.update(pool.facts(found.size) | {"notes": note_records(found.notes())})

    with destination(writing.output) as out:
        if kind == "json":
            write_json("events", records(), facts, out)
        else:
            for number, pooled in enumerate(found.each()):
                columns = answers.event_columns(pooled, only_open=listing.only_open)
                write_listing(columns, kind, out, headed=number == 0)
            if found.void and kind == "csv":
                write_listing(answers.void_columns(columns, found.void), kind, out, headed=False)
    if pool.saved is not None:
        from opinionpool.estimators.files import save

        save(pool.kept.trained, pool.saved)
    notes = note_lines(found.notes(), pool.some, writing.most_notes)
    conclude(kind, summary.size_line(found.size), *pool.lines, *notes)
