"""A pool that answers whole files: fitted now or loaded, and gone on with where it is to be saved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionpool.arrays import Array, Mask
from opinionpool.cli.arguments import BeliefFile, Keeping, Pooling, Reading, Writing, prior_option
from opinionpool.cli.inputs import read
from opinionpool.errors import ArgumentError, ExpertError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import class_probabilities, public_probabilities
from opinionpool.names import unknown_names
from opinionpool.pools.fit import fit_pool, in_sample
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.priors import event_priors
from opinionpool.report.answers import Pooled, pool_events
from opinionpool.report.listing import printable
from opinionpool.report.numbers import whole
from opinionpool.report.summary import belief_facts, belief_lines, pool_facts, pool_line
from opinionpool.text import counted, listed

if TYPE_CHECKING:
    # Loaded where a pool is saved or was.
    from opinionpool.streams.trained import TrainedPool


@dataclass(frozen=True, eq=False)
class Kept:
    """The pool that gives the answers, with its prior, its file and its notes."""

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
        """Return the given prior, or the prior that fills blanks among the events' own priors."""
        if self.loaded is None or self.prior is not None:
            return self.prior
        if self.forecasts.prior is None or self.state.prior is None:
            return None
        fill = public_probabilities(self.state.prior)
        return float(fill) if len(self.forecasts.classes) == 2 else fill

    @property
    def answered_with(self) -> Fitted:
        """Return the fitted state, with the prior of the answers in place of the prior that it was learned with."""
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
        return replace(pooled, in_sample=self._in_sample())

    def _in_sample(self) -> Mask:
        """Mask of events whose outcome had a part in their answer, (T,)."""
        stream = None if self.trained is None else self.trained.stream
        if stream is None:
            return np.zeros(len(self.forecasts.events), dtype=bool)
        known = np.array([stream.knows(event) for event in self.forecasts.events], dtype=bool)
        prior = self.prior if stream.prior is None else stream.prior
        return in_sample(known, self.forecasts, self.name, self.state, prior)

    def lines(self, saved: str | None) -> list[str]:
        """Where the pool is from and where it went, for people."""
        lines = []
        if self.loaded is not None:
            lines.append(f"pool from {printable(self.loaded)}: {self._size() if saved is None else 'goes on learning'}")
        if saved is not None:
            lines.append(f"saved in {printable(saved)}: {self._size()}")
        return lines

    def facts(self, saved: str | None) -> dict[str, object]:
        """Return facts on the pool's file, its resolved events and its fingerprint, for JSON."""
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
    """A file of forecasts, and the pool that answers it: what commands about one of its answers begin with."""

    forecasts: Forecasts
    kept: Kept
    believed: BeliefFile

    @classmethod
    def of(
        cls, reading: Reading, pooling: Pooling, writing: Writing, model: str | None, *, topics: bool = True
    ) -> PooledFile:
        """Read a file and fit or load its pool, once options fit together and results can be written."""
        believed, trained = Keeping(model, None).begin(reading, pooling, writing)
        forecasts = read(reading, trained)
        prior, options = prior_option("--prior", pooling.prior, forecasts), pooling.options(believed.beliefs)
        some = forecasts if topics else replace(forecasts, topics=None)
        return cls(forecasts, keep(some, pooling.pool, prior, options, trained, learning=False), believed)

    def facts(self, rate: float | Array | None = None) -> dict[str, object]:
        """Return facts on the forecasts, the pool and its beliefs, for JSON."""
        kept = self.kept
        facts = pool_facts(self.forecasts, kept.name, kept.answered_with, rate)
        return facts | belief_facts(self.believed.beliefs) | kept.facts(None)

    def lines(self, rate: float | Array | None = None) -> list[str]:
        """Return lines on the forecasts, the pool and its beliefs, for people, without the size of the file."""
        kept, believed = self.kept, self.believed
        used = pool_line(self.forecasts, kept.name, kept.answered_with, kept.given, rate)
        return [used, *kept.lines(None), *belief_lines(believed.file, believed.beliefs)]


def keep(
    forecasts: Forecasts,
    name: str,
    prior: float | Array | None,
    options: dict[str, Any],
    model: tuple[str, TrainedPool] | None,
    *,
    learning: bool,
    duplicates: str | None = None,
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
    duplicates : str, optional
        By which rule one of several forecasts was chosen in these.

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
            state = fit_pool(name, forecasts, prior=prior, **options)
            return Kept(name, state, forecasts, prior, prior is not None, None, None, state.notes)
        # What a pool needs to go on learning is loaded where it is to be saved.
        from opinionpool.streams.trained import TrainedPool

        trained = replace(TrainedPool.fit(name, forecasts, prior=prior, **options), duplicates=duplicates)
        learned = trained.learned
        return Kept(name, learned, forecasts, prior, prior is not None, trained, None, learned.notes)
    file, trained = model[0], model[1] if learning else model[1].named(forecasts.classes)
    if learning:
        before = trained.duplicates
        trained, new = trained.updated(forecasts)
        trained = replace(trained, duplicates=before or duplicates)
        notes = (*trained.learned.notes, *new, *_other_rule(before, duplicates))
    else:
        strange = unknown_names(forecasts.experts, trained.experts)
        if strange and len(strange) == len(forecasts.experts):
            raise ExpertError(
                f"no expert is known to the pool in {file}, which is of {listed(trained.experts, 4)}: there are "
                f"{listed(strange, 4)} here. Was it made with another --column expert=NAME?"
            )
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


def _other_rule(before: str | None, now: str | None) -> tuple[Note, ...]:
    """Note that the duplicates rule differs from the one the pool learned with; empty if it does not."""
    if before is None or now is None or before == now:
        return ()
    text = (
        f"the pool was made with --duplicates {before}, and this table is read with {now}: what it learned before "
        f"stays by the former rule, so it is a mixture; say --duplicates {before}, or make it anew, --save without "
        "--model"
    )
    return (Note("other-duplicates", text, serious=True),)


def _unlearned(forecasts: Forecasts, trained: TrainedPool) -> tuple[Note, ...]:
    stream = trained.stream
    notes = []
    pairs = list(zip(forecasts.events, forecasts.resolved.tolist(), strict=True))
    ahead = [] if stream is None else [event for event, known in pairs if not known and stream.knows(event)]
    if ahead:
        template = (
            "{count:event} open here whose outcome the pool has learned: answers rest on what this table does not know "
            "yet; --save NEW takes such outcomes back"
        )
        notes.append(Note.of("looks-ahead", template, len(ahead)))
    fresh = [event for event, known in pairs if known and (stream is None or not stream.knows(event))]
    if fresh:
        way = "; --save NEW goes on learning" if stream is not None else ""
        template = "{count:resolved event} not learned from: the saved pool is used as it is" + way
        notes.append(Note.of("not-learned", template, len(fresh)))
    if getattr(trained.learned, "topics", None) is not None and forecasts.topics is None:
        text = (
            "the pool learned by topic, and this table has no column of topics, so what all topics have in common "
            "counts; --topic COLUMN names one"
        )
        notes.append(Note("topics-not-used", text))
    return tuple(notes)
