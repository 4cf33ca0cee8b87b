"""The command ``pool``, and the pool of other commands: fitted to a file, whole or in parts, or loaded from one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from opinionpool.arrays import Array
from opinionpool.cli.options import Answering, Listing, Pooling, Writing, prior_option
from opinionpool.cli.output import conclude, destination
from opinionpool.cli.reading import InputFiles, read, read_parts
from opinionpool.errors import ArgumentError, ExpertError, Note
from opinionpool.findings import added_up, finding
from opinionpool.forecasts import Forecasts
from opinionpool.learning.parts import PartsSource
from opinionpool.logodds import class_probabilities, public_probabilities
from opinionpool.names import unknown_names
from opinionpool.pools.fit import fit_from, fit_pool, in_sample
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.priors import event_priors
from opinionpool.report import answers
from opinionpool.report.answers import Pooled, open_rows, ordered, pool_events
from opinionpool.report.listing import printable, whole, write_json, write_listing
from opinionpool.report.view import (
    Totals,
    base_rate_notes,
    belief_facts,
    belief_lines,
    facts,
    note_lines,
    note_records,
    pool_facts,
    pool_line,
    size_line,
)
from opinionpool.tables.parts import Parts
from opinionpool.text import are, counted, listed

if TYPE_CHECKING:
    from opinionpool.learning.beliefs import Beliefs

    # Loaded where a pool is saved or was.
    from opinionpool.streams.trained import TrainedPool
    from opinionpool.tables.options import ReadOptions


@dataclass(frozen=True, eq=False)
class CommandPool:
    """Fitted or loaded pool with which a command answers, with the forecasts that it answers."""

    name: str
    state: Fitted
    forecasts: Forecasts  # by the experts of the pool, in its order
    prior: float | Array | None  # the prior for the answers; None for the pool's own
    given: bool  # whether the prior was given, and not estimated
    trained: TrainedPool | None  # the pool in the form that can be saved
    loaded: str | None  # the file from which the pool was loaded
    notes: tuple[Note, ...]

    @property
    def reference(self) -> float | Array | None:
        """Prior of events without their own: the given one; else, if other events have their own, a loaded pool's."""
        if self.loaded is None or self.prior is not None:
            return self.prior
        if self.forecasts.prior is None or self.state.prior is None:
            return None
        fill = public_probabilities(self.state.prior)
        return float(fill) if len(self.forecasts.classes) == 2 else fill

    @property
    def answered_with(self) -> Fitted:
        """The fitted state, with the prior used for the answers in place of the prior used in the fit."""
        if self.loaded is not None and event_priors(self.forecasts, self.reference) is not None:
            return replace(self.state, prior=None)
        if self.loaded is None or self.prior is None:
            return self.state
        return replace(self.state, prior=class_probabilities(self.prior, len(self.forecasts.classes)))

    def pooled(self, base_rate: float | Array | None) -> Pooled:
        """Pooled probabilities of all events in `forecasts`, shifted to `base_rate` if it is given."""
        pooled = pool_events(self.forecasts, self.name, self.state, self.reference, base_rate)
        if self.loaded is None:
            return pooled
        inside, stream = np.zeros(len(self.forecasts.events), np.bool_), getattr(self.trained, "stream", None)
        if stream is not None:
            known = np.array([stream.knows(event) for event in self.forecasts.events], dtype=np.bool_)
            prior = self.prior if stream.prior is None else stream.prior
            inside = in_sample(known, self.forecasts, self.name, self.state, prior)
        return replace(pooled, in_sample=inside)

    def lines(self, saved: str | None) -> list[str]:
        """Return lines for people: the file from which the pool was loaded, and the file in which it is `saved`."""
        lines = []
        if self.loaded is not None:
            lines.append(f"pool from {printable(self.loaded)}: {self._size() if saved is None else 'goes on learning'}")
        if saved is not None:
            lines.append(f"saved in {printable(saved)}: {self._size()}")
        return lines

    def facts(self, saved: str | None) -> dict[str, object]:
        """Facts for JSON on a loaded or saved pool: its files, number of resolved events, fingerprint; else empty."""
        if self.trained is None:
            return {}
        stream = self.trained.stream
        return {
            "model": self.loaded,
            "saved": saved,
            "learned_events": float(self.state.events.sum()),
            "fingerprint": None if stream is None else stream.fingerprint,
        }

    def _size(self) -> str:
        events = self.state.events.sum()
        learned = f"{whole(round(float(events)))} resolved event{'' if events == 1 else 's'}"
        stream = None if self.trained is None else self.trained.stream
        mark = "" if stream is None else f", fingerprint {stream.fingerprint[:12]}"
        return f"{self.name} pool, {counted(len(self.state.experts), 'expert')}, {learned}{mark}"


@dataclass(frozen=True, eq=False)
class PooledFile:
    """Forecasts of a file, with the pool that answers its events, whole or part by part."""

    forecasts: Forecasts  # some of them, if the file is answered in parts
    kept: CommandPool
    panel: str | None  # the file of beliefs
    beliefs: Beliefs | None
    rate: float | Array | None = None  # the base rate
    saved: str | None = None  # the file in which the pool is saved

    @classmethod
    def of(cls, reading: InputFiles, pooling: Pooling, writing: Writing, *, topics: bool = True) -> PooledFile:
        """Read the file of forecasts, and return it with a pool that is fitted to the file, or with a saved pool.

        `reading`, `pooling` and `writing` are the command's options for input, the pool and output. If `topics` is
        False, the pool ignores the topics of events. Raises a UsageError if the output cannot be written.
        """
        writing.check([*reading.inputs, *pooling.inputs])
        beliefs, model = pooling.begin()
        forecasts = read(reading, model)
        rate = prior_option("--base-rate", pooling.base_rate, forecasts) if isinstance(pooling, Answering) else None
        some = forecasts if topics else replace(forecasts, topics=None)
        return cls(forecasts, PoolRequest.of(pooling, forecasts, beliefs, model).on(some), pooling.panel, beliefs, rate)

    def facts(self) -> dict[str, object]:
        """Return facts for JSON on the forecasts, the pool with its prior, and the beliefs."""
        kept = self.kept
        facts = pool_facts(self.forecasts, kept.name, kept.answered_with, self.rate)
        return facts | belief_facts(self.beliefs) | kept.facts(self.saved)

    def lines(self) -> list[str]:
        """Return lines for people on the pool, its prior, its files and the beliefs."""
        kept = self.kept
        used = pool_line(self.forecasts, kept.name, kept.answered_with, kept.given, self.rate)
        return [used, *kept.lines(self.saved), *belief_lines(self.panel, self.beliefs)]


def pool_files(reading: InputFiles, listing: Listing, writing: Writing) -> None:
    """Write a probability for every event in the files of `reading`; a large file is answered part by part."""
    inputs = [*reading.inputs, *listing.inputs]
    writing.check(inputs)
    listing.check(inputs, writing)
    beliefs, model = listing.begin()
    with ExitStack() as stack:
        parts = read_parts(stack, reading, model, divided=listing.save is None)
        if parts.only is None and listing.sort != "file":
            raise click.UsageError("--sort needs all answers at once, and a file this large is answered in parts")
        first = next(parts.forecasts(threads=1))
        if model is not None:
            from opinionpool.streams.trained import matched

            first = matched(first, model[1], model[0])
            model = (model[0], model[1].named(first.classes)) if listing.save is None else model
        asked, rate = (
            PoolRequest.of(listing, first, beliefs, model),
            prior_option("--base-rate", listing.base_rate, first),
        )
        kept, every = _for_parts(parts, first, asked, listing.save is not None, reading.options)
        some = kept.forecasts if model is None else first
        file = PooledFile(some, kept, listing.panel, beliefs, rate, listing.save)
        _write(_Answers(file, parts, every, listing), writing)


def _for_parts(
    parts: Parts, first: Forecasts, asked: PoolRequest, learning: bool, how: ReadOptions
) -> tuple[CommandPool, Iterable[CommandPool]]:
    """Pool fitted to all `parts` (or loaded and, if `learning`, updated), and this pool with each part's forecasts.

    `first` is the first part, with the classes of the pool.
    """
    if parts.only is not None:
        kept = asked.on(first, learning=learning, how=how)
        return kept, [kept]
    if asked.model is None:
        source = PartsSource.of(parts.forecasts(), asked.prior)
        kept = asked.fitted(fit_from(source, asked.name, **asked.options), source.forecasts)
        return kept, (replace(kept, forecasts=part) for part in parts.forecasts())
    from opinionpool.streams.trained import matched

    file, trained = asked.model
    return asked.on(first), (asked.on(matched(part, trained, file)) for part in parts.forecasts())


@dataclass(eq=False)
class _Answers:
    """Answers about a file, part by part, and what is counted on the way: sizes, notes and void events."""

    file: PooledFile
    parts: Parts
    every: Iterable[CommandPool]  # the pool for each part
    listing: Listing
    sizes: list[Totals] = field(default_factory=list)  # of the parts
    answered: list[Note] = field(default_factory=list)  # notes on the answers about each part
    void: dict[str, int] = field(default_factory=dict)  # void events, and how many forecast each

    def each(self) -> Iterator[Pooled]:
        """Yield, for each part of the file in order, the pool's answers that are to be listed."""
        for kept in self.every:
            forecasts = kept.forecasts
            if forecasts.void is not None and not self.listing.only_open:
                self.void |= zip(forecasts.void.events, forecasts.void.crowd.tolist(), strict=True)
            pooled, unlisted = self._chosen(kept.pooled(self.file.rate))
            own = kept.notes[len(kept.state.notes) :]
            self.answered += [*own, *answers.answer_notes(pooled), *unlisted]
            self.sizes.append(Totals.of(forecasts))
            yield pooled

    def _chosen(self, pooled: Pooled) -> tuple[Pooled, list[Note]]:
        """Answers to be listed, as --open and --sort say, and a note on open events without a forecast."""
        if self.listing.only_open:
            unresolved = ~pooled.forecasts.resolved
            blank = int((unresolved & (pooled.forecasts.crowd == 0)).sum())
            notes: list[Note] = [finding("not-listed", count=blank)] if blank else []
            return pooled.select(open_rows(pooled, self.listing.sort)), notes
        if self.listing.sort == "file":
            return pooled, []
        return pooled.select(ordered(pooled, range(len(pooled.in_sample)), self.listing.sort)), []

    @property
    def size(self) -> Totals:
        """Numbers of events, experts and forecasts in the parts answered so far."""
        return reduce(add, self.sizes or [Totals.of(self.file.forecasts)])

    def notes(self) -> tuple[Note, ...]:
        """Return all notes on reading the file, fitting the pool and answering."""
        kept, size = self.file.kept, self.size
        rate = base_rate_notes(kept.state, kept.given, self.file.rate)
        answered = added_up(self.answered, **{"in-sample": size.events})
        return (*self.parts.notes(size.events, size.cells), *kept.state.notes, *answered, *rate)


def _write(found: _Answers, writing: Writing) -> None:
    """Write the answers part by part, then save the pool if a file is named, and write the summary."""
    file, kind, summary = found.file, writing.kind(), dict[str, object]()

    def records() -> Iterator[dict[str, object]]:
        for pooled in found.each():
            yield from answers.event_records(pooled)
        yield from answers.void_records(found.void)
        # All notes are known now, and what follows the events is written afterwards.
        summary.update(file.facts() | facts(found.size) | {"notes": note_records(found.notes())})

    with destination(writing.output) as out:
        if kind == "json":
            write_json("events", records(), summary, out)
        else:
            for number, pooled in enumerate(found.each()):
                columns = answers.event_columns(pooled, only_open=found.listing.only_open)
                write_listing(columns, kind, out, headed=number == 0)
            if found.void and kind == "csv":
                write_listing(answers.void_columns(columns, found.void), kind, out, headed=False)
    if file.saved is not None:
        from opinionpool.estimators.files import save

        save(file.kept.trained, file.saved)
    notes = note_lines(found.notes(), file.forecasts, writing.most_notes)
    conclude(kind, size_line(found.size), *file.lines(), *notes)


@dataclass(frozen=True, eq=False)
class PoolRequest:
    """The pool that options of a command ask for: by name, prior and options, or by a file that has it."""

    name: str
    prior: float | Array | None
    options: dict[str, Any]
    model: tuple[str, TrainedPool] | None

    @classmethod
    def of(
        cls, pooling: Pooling, forecasts: Forecasts, beliefs: Beliefs | None, model: tuple[str, TrainedPool] | None
    ) -> PoolRequest:
        """The request that the options in `pooling` make, with a prior for the classes of `forecasts`."""
        prior = prior_option("--prior", pooling.prior, forecasts)
        return cls(pooling.pool, prior, pooling.options(beliefs), model)

    def fitted(self, state: Fitted, forecasts: Forecasts, trained: TrainedPool | None = None) -> CommandPool:
        """The command's pool from `state`, the result of fitting the requested pool to `forecasts`."""
        return CommandPool(self.name, state, forecasts, self.prior, self.prior is not None, trained, None, state.notes)

    def on(self, forecasts: Forecasts, *, learning: bool = False, how: ReadOptions | None = None) -> CommandPool:
        """Return the pool fitted to `forecasts`, or the loaded pool, which learns from `forecasts` if `learning`."""
        if learning and forecasts.options is not None:
            raise ArgumentError(
                "--save keeps pools of events that share their classes, and these have options of their own; leave it "
                "out"
            )
        if self.model is not None:
            return self._from_file(forecasts, *self.model, learning=learning, how=how)
        if not learning:
            return self.fitted(fit_pool(self.name, forecasts, prior=self.prior, **self.options), forecasts)
        # What a pool needs to go on learning is loaded where it is to be saved.
        from opinionpool.streams.trained import TrainedPool

        trained = TrainedPool.fit(self.name, forecasts, prior=self.prior, **self.options)
        if how is not None:
            trained = replace(trained, duplicates=how.duplicates, at_least=how.at_least)
        return self.fitted(trained.learned, forecasts, trained)

    def _from_file(
        self, forecasts: Forecasts, file: str, trained: TrainedPool, *, learning: bool, how: ReadOptions | None
    ) -> CommandPool:
        trained = trained if learning else trained.named(forecasts.classes)
        if learning:
            before, now = trained.duplicates, None if how is None else how.duplicates
            trained, new = trained.updated(forecasts)
            trained = replace(trained, duplicates=before or now)
            other = before is not None and now is not None and before != now
            mixture = [finding("other-duplicates", before=before, now=now)] if other else []
            notes = (*trained.learned.notes, *new, *mixture)
        else:
            strange = unknown_names(forecasts.experts, trained.experts)
            if strange and len(strange) == len(forecasts.experts):
                raise ExpertError(
                    f"no expert is known to the pool in {file}, which is of {listed(trained.experts, 4)}: there are "
                    f"{listed(strange, 4)} here. Was it made with another --column expert=NAME?"
                )
            if strange:
                raise ExpertError(
                    f"{listed(strange)} {are(len(strange))} unknown to the pool in {file}: leave out with --exclude, "
                    "or say --save NEW to go on learning"
                )
            notes = (*trained.learned.notes, *answers.unlearned(forecasts, trained))
        given = self.prior is not None or (trained.stream is not None and trained.stream.prior is not None)
        aligned = forecasts.by_experts(trained.experts)
        return CommandPool(trained.name, trained.learned, aligned, self.prior, given, trained, file, notes)
