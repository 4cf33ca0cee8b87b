"""Pools that the command line keeps in files: used as they are, or going on to learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from opinionpool.arrays import Array
from opinionpool.cli.arguments import Keeping, Listing, Pooling, PriorOption, Reading, Writing, prior_option
from opinionpool.cli.streams import conclude, destination, progress, read_for
from opinionpool.errors import ArgumentError, ExpertError, Note
from opinionpool.forecasts import Forecasts, Totals
from opinionpool.labels import label_text
from opinionpool.logodds import class_probabilities, public_probabilities
from opinionpool.pools import registry as rules
from opinionpool.pools.registry import POOLS, Fitted, learn_parts
from opinionpool.priors import event_priors
from opinionpool.report import answers, summary
from opinionpool.report.answers import Pooled, pool_events
from opinionpool.report.listing import printable, whole, write_json, write_listing
from opinionpool.report.order import open_rows, ordered
from opinionpool.tables.parts import PartNotes, Parts
from opinionpool.text import counted, listed

if TYPE_CHECKING:
    # Loaded where a pool is saved or was.
    from opinionpool.streams.trained import TrainedPool


@dataclass(frozen=True, eq=False)
class Kept:
    """The pool that answers, and how it came about."""

    name: str
    state: Fitted
    forecasts: Forecasts  # by the experts of the pool, in its order
    prior: float | Array | None  # what the answers are given with, where it is not what the pool has
    given: bool  # whether the prior was given, and not estimated
    trained: TrainedPool | None  # what can be saved
    loaded: str | None  # the file that the pool is from
    notes: tuple[Note, ...]

    @property
    def reference(self) -> float | Array | None:
        """The prior given, or what fills the blanks among the events' own."""
        if self.loaded is None or self.prior is not None:
            return self.prior
        if self.forecasts.prior is None or self.state.prior is None:
            return None
        fill = public_probabilities(self.state.prior)
        return float(fill) if len(self.forecasts.classes) == 2 else fill

    @property
    def answered_with(self) -> Fitted:
        """What was learned, with the prior that the answers start from instead of the one that it was learned with."""
        if self.loaded is None or self.trained is None:
            return self.state
        if event_priors(self.forecasts, self.reference) is not None:
            return replace(self.trained.learned, prior=None)
        if self.prior is None:
            return self.state
        return replace(self.trained.learned, prior=class_probabilities(self.prior, len(self.forecasts.classes)))

    def pooled(self, base_rate: float | Array | None) -> Pooled:
        """The answers for every event."""
        if self.loaded is None:
            return pool_events(self.forecasts, self.name, self.state, self.prior, base_rate)
        each = self.reference
        t, k = len(self.forecasts.events), len(self.forecasts.classes)
        if self.prior is not None:
            each = np.broadcast_to(self.prior, (t,) if k == 2 else (t, k))
        pooled = pool_events(self.forecasts, self.name, self.state, each, base_rate)
        return replace(pooled, in_sample=self._learned_from())

    def _learned_from(self) -> Any:  # noqa: ANN401 - an array of truth values
        """Events that had a part in the answers."""
        stream = None if self.trained is None else self.trained.stream
        none = np.zeros(len(self.forecasts.events), dtype=bool)
        if stream is None:
            return none
        known = np.array([stream.knows(event) for event in self.forecasts.events], dtype=bool)
        answered = self.forecasts.crowd > 0
        taught = answered if self.state.learned else none
        if stream.prior is None and self.prior is None and self.forecasts.prior is None:
            taught = taught | ~answered | POOLS[self.name].uses_prior
        return known & taught

    def lines(self, saved: str | None) -> list[str]:
        """Where the pool is from and where it went, for people."""
        lines = []
        if self.loaded is not None:
            lines.append(f"pool from {printable(self.loaded)}: {self._size() if saved is None else 'goes on learning'}")
        if saved is not None:
            lines.append(f"saved in {printable(saved)}: {self._size()}")
        return lines

    def facts(self, saved: str | None) -> dict[str, object]:
        """The same for JSON."""
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


def keep(
    forecasts: Forecasts,
    name: str,
    prior: float | Array | None,
    options: dict[str, Any],
    model: tuple[str, TrainedPool] | None,
    *,
    learning: bool,
) -> Kept:
    """The pool that answers: fitted to these forecasts, one from a file as it is, or one that goes on learning.

    Parameters
    ----------
    forecasts : Forecasts
        About the classes of the pool.
    name : str
        Of the pool to be fitted.
    prior : float or ndarray, optional
    options : dict
        Those of the pool to be fitted.
    model : pair of str and TrainedPool, optional
        A file, and what is in it.
    learning : bool
        Whether what it learns is to be saved.

    Raises
    ------
    ArgumentError
        If a pool is to learn from events with options of their own.
    ExpertError
        If a pool that does not learn does not know an expert.
    """
    if learning and forecasts.options is not None:
        raise ArgumentError(
            "--save keeps pools of events that share their classes, and these have options of their own; leave it out"
        )
    if model is None:
        if not learning:
            state = rules.fit_pool(name, forecasts, prior=prior, **options)
            return Kept(name, state, forecasts, prior, prior is not None, None, None, state.notes)
        # What a pool needs to go on learning is loaded where it is to be saved.
        from opinionpool.streams.trained import TrainedPool

        trained = TrainedPool.fit(name, forecasts, prior=prior, **options)
        learned = trained.learned
        return Kept(name, learned, forecasts, prior, prior is not None, trained, None, learned.notes)
    file, trained = model
    if learning:
        trained, new = trained.updated(forecasts)
        notes = (*trained.learned.notes, *new)
    else:
        strange = [expert for expert in forecasts.experts if expert not in set(trained.experts)]
        if strange:
            verb = "is" if len(strange) == 1 else "are"
            raise ExpertError(
                f"{listed(strange)} {verb} unknown to the pool in {file}: leave out with --exclude, or say "
                "--save NEW to go on learning"
            )
        notes = (*trained.learned.notes, *_unlearned(forecasts, trained))
    given = prior is not None or (trained.stream is not None and trained.stream.prior is not None)
    aligned = forecasts.by_experts(trained.experts)
    return Kept(trained.name, trained.learned, aligned, prior, given, trained, file, notes)


def _unlearned(forecasts: Forecasts, trained: TrainedPool) -> tuple[Note, ...]:
    stream = trained.stream
    fresh = [e for e, known in zip(forecasts.events, forecasts.resolved, strict=True) if known]
    fresh = [event for event in fresh if stream is None or not stream.knows(event)]
    if not fresh:
        return ()
    way = "; --save NEW goes on learning" if stream is not None else ""
    template = "{count:resolved event} not learned from: the saved pool is used as it is" + way
    return (Note.of("not-learned", template, len(fresh)),)


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
    from opinionpool.tables.parts import is_large, open_parts

    model = keeping.read(pooling)
    large = reading.outcomes is None and len(reading.files) == 1 and is_large(reading.files[0])
    with ExitStack() as stack:
        parts = None
        if large and keeping.save is None:
            if listing.sort != "file":
                raise click.UsageError("--sort needs all answers at once, and a file this large is answered in parts")
            options = reading.options
            if model is not None:
                options = replace(options, classes=[label_text(label) for label in model[1].classes])
            with progress(f"reading {reading.name}") as advance:
                parts = stack.enter_context(open_parts(reading.source, options, advance))
        first = read_for(reading, model) if parts is None else next(parts.forecasts(threads=1))
        if parts is not None and model is not None:
            from opinionpool.streams.trained import matched

            first = matched(first, model[1], model[0])
        prior, rate = prior_option("--prior", pooling.prior, first), prior_option("--base-rate", base_rate, first)
        if parts is None:
            pool = _whole(first, pooling, keeping, model, prior, rate)
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
) -> _Pool:
    """A pool for forecasts that are in memory, and may be saved."""
    belief_file = pooling.belief_file()
    kept = keep(
        forecasts, pooling.pool, prior, pooling.options(belief_file.beliefs), model, learning=keeping.save is not None
    )

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
    learned = learn_parts(pooling.pool, parts.forecasts(), prior, pooling.options(belief_file.beliefs))
    state = learned.state

    def answer(forecasts: Forecasts) -> tuple[Pooled, Sequence[Note]]:
        return answers.pool_events(forecasts, pooling.pool, state, prior, rate), ()

    return _Pool(
        name=pooling.pool,
        state=state,
        given=prior is not None,
        some=learned.sample,
        forecasts=parts.forecasts(),
        answer=answer,
        notes=(*learned.notes, *state.notes),
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
        facts.update(summary.pool_facts(pool.some, pool.name, pool.state, rate, found.notes()))
        facts.update({} if pool.all_of_it else summary.facts(found.size))
        facts.update(pool.facts)

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
        *summary.note_lines(pool.some, found.notes()),
    )
