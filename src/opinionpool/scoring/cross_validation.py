"""Cross-validation: scores of pools on events that they were not fitted to.

In every round each event is scored at most once, by pools fitted to other events. An event's score is the mean over
rounds, each with another random division into folds, so that it depends less on one division.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import ArgumentError, LearningError, Note, OpinionPoolError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.problem import Problem
from opinionpool.logodds import FLOOR, all_classes, logit, public_probabilities
from opinionpool.pools.fit import Configured, fit_from
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.priors import own_priors
from opinionpool.scoring.reliability import auc
from opinionpool.scoring.scores import brier, checked, event_scores, log_loss
from opinionpool.scoring.splits import Split


@dataclass(frozen=True, eq=False)
class Rival:
    """Competitor of the pools: a classifier to fit to experts' log-odds, or an array of probabilities of T events."""

    name: str
    classifier: Any = None  # with `fit` and `predict_proba`; None if probabilities are given
    probabilities: Array | None = None  # (T,) or (T, K)

    @classmethod
    def of(cls, name: str, given: object, forecasts: Forecasts) -> Rival:
        """Return the checked rival from `given`, a classifier or probabilities."""
        if forecasts.options is not None:
            raise ArgumentError(f"the rival {name!r} needs classes that all events share, and events have options here")
        if callable(getattr(given, "predict_proba", None)) and not isinstance(given, type):
            return cls(name, classifier=given)
        if callable(given) or isinstance(given, str):
            raise ArgumentError(
                f"the rival {name!r} must be a classifier with fit and predict_proba, or a probability for each event"
            )
        p: npt.ArrayLike = given  # type: ignore[assignment]
        found, _ = checked(p, np.where(forecasts.resolved, forecasts.outcomes, np.nan))
        if found.shape != (len(forecasts.events), *forecasts.probabilities.shape[1:]):
            raise ShapeError(f"the rival {name!r} needs a probability of each of {len(forecasts.classes)} classes")
        return cls(name, probabilities=found)

    @property
    def learns(self) -> bool:
        """Return True if the rival's answers depend on outcomes."""
        return self.probabilities is None

    @property
    def missing(self) -> Mask:
        """True for events that the rival did not answer, (T,); a single False for a classifier, which answers all."""
        if self.probabilities is None:
            return np.zeros(1, dtype=bool)
        return np.asarray(np.isnan(self.probabilities.reshape(len(self.probabilities), -1)).any(axis=1))

    def among(self, rows: Index) -> Rival:
        """Return the rival restricted to the events `rows`."""
        return self if self.probabilities is None else replace(self, probabilities=self.probabilities[rows])

    def answers(self, train: Forecasts, test: Forecasts, events: Index) -> Array:
        """Probabilities of the `test` events, (S,) or (S, K), after a fit to `train`; `events` are their positions."""
        if self.probabilities is not None:
            return self.probabilities[events]
        try:
            fitted = deepcopy(self.classifier).fit(_log_odds(train), train.outcomes)
            found = np.zeros((len(test.events), len(test.classes)))
            found[:, np.asarray(fitted.classes_, dtype=np.intp)] = fitted.predict_proba(_log_odds(test))
        except ValueError as error:
            raise LearningError(f"{self.name} cannot be fitted: {error}") from error
        return np.asarray(public_probabilities(found))


def _log_odds(forecasts: Forecasts) -> Array:
    """The inputs of a classifier: experts' log-odds after floors, (T, N), or (T, N K) if K > 2; NaN where missing."""
    p = np.clip(all_classes(forecasts.X, 2)[..., 1:] if forecasts.X.ndim == 2 else forecasts.X, FLOOR, 1.0 - FLOOR)
    return logit(p).reshape(len(p), -1)


# Rounds go on until luck in dealing adds less than this share of the error that the events themselves leave.
LUCK = 0.3
FEWEST_ROUNDS, MOST_ROUNDS = 3, 20

Rounds = Callable[[int], Sequence[Split]]


@dataclass(frozen=True, eq=False)
class Occasions:
    """S occasions on which answers about T events are scored: events, both outcomes of a tie, or intervals of time."""

    forecasts: Forecasts  # the latest forecasts on each occasion; its "events" are the S occasions
    event: Index  # (S,); position of each occasion's event, increasing
    share: Array  # (S,); weight of each occasion in its event's score
    events: int  # T
    over_life: bool  # whether occasions are intervals of the time that an event was open

    @classmethod
    def of(cls, sample: Forecasts) -> Occasions:
        """One occasion for each event, two for a tie; with a history, one for each time between changed forecasts."""
        t, history = len(sample.events), sample.history
        if history is None:
            return cls(*sample.halved(), t, over_life=False)
        # Blanks among the events' own priors have been filled since they were read.
        prior = None if sample.prior is None else sample.prior[history.event]
        return cls(replace(history.forecasts, prior=prior), history.event, history.share, t, over_life=True)

    def among(self, rows: Index) -> Index:
        """Return the positions of the occasions of the events `rows`."""
        chosen = np.zeros(self.events, dtype=bool)
        chosen[rows] = True
        return np.flatnonzero(chosen[self.event])

    def mean(self, values: Array) -> Array:
        """Weighted means by event, (T, ...), of `values` by occasion, (S, ...); NaN for events without occasions."""
        if self.single:
            return values
        return self.sums(values) / self.sums(np.ones(len(values))).reshape(-1, *[1] * (values.ndim - 1))

    def sums(self, values: Array) -> Array:
        """By event, (T, ...), sums of `values` (S, ...) times the occasions' weights; NaN for events without any."""
        total = np.zeros((self.events, *values.shape[1:]))
        np.add.at(total, self.event, values * self.share.reshape(-1, *[1] * (values.ndim - 1)))
        total[self.without] = np.nan
        return total

    @property
    def single(self) -> bool:
        """True if each event is exactly one occasion."""
        return not self.over_life and len(self.event) == self.events

    @property
    def without(self) -> Mask:
        """True for events without an occasion, (T,)."""
        return np.asarray(np.bincount(self.event, minlength=self.events) == 0)


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of P pools on T events, or on S occasions such as intervals of time; NaN where not scored."""

    # log_score, log_loss, brier: (T, P)
    log_score: Array
    log_loss: Array
    brier: Array
    auc: Array  # (P,); NaN unless there are two classes and both happened

    @classmethod
    def of(cls, answers: Sequence[Array], sample: Forecasts) -> Scores:
        """Return the scores of each pool's `answers`, (T,) or (T, K) each, about the events in `sample`."""
        outcomes = sample.outcomes
        score = np.stack([event_scores(p, sample) for p in answers], axis=1)
        if sample.options is None:
            loss = np.stack([log_loss(p, outcomes) for p in answers], axis=1)
            area = np.array([_area(p, outcomes) for p in answers])
        else:
            # The floor holds only for the options, and no option is the same in all events.
            loss = (1.0 - score) * np.log(sample.sizes)[:, None]
            area = np.full(len(answers), np.nan)
        return cls(score, loss, np.stack([brier(p, outcomes) for p in answers], axis=1), area)

    def by_event(self, occasions: Occasions) -> Scores:
        """Return scores by event: means over the event's occasions; AUC is NaN if occasions are intervals of time."""
        mean = occasions.mean
        area = np.full_like(self.auc, np.nan) if occasions.over_life else self.auc
        return Scores(mean(self.log_score), mean(self.log_loss), mean(self.brier), area)


def _area(p: Array, outcomes: npt.NDArray[np.intp]) -> float:
    if p.ndim > 1 or len(np.unique(outcomes[~np.isnan(p)])) < 2:
        return np.nan
    return auc(p, outcomes).area


@dataclass(eq=False)
class _Mean:
    """Sums of pools' scores over the rounds of cross-validation so far, and the mean log scores in each round."""

    total: list[Array] = field(default_factory=list)  # sums over rounds: log score, log loss, Brier, area
    by_round: list[Array] = field(default_factory=list)  # (P,) for each round

    def add(self, scores: Scores) -> None:
        parts = [scores.log_score, scores.log_loss, scores.brier, scores.auc]
        self.total = parts if not self.total else [a + b for a, b in zip(self.total, parts, strict=True)]
        self.by_round.append(np.asarray(np.nanmean(scores.log_score, axis=0)))

    @property
    def scores(self) -> Scores:
        return Scores(*(part / len(self.by_round) for part in self.total))

    def settled(self) -> bool:
        """True if score differences between pools vary less between rounds than their standard errors over events."""
        if len(self.by_round) < FEWEST_ROUNDS:
            return False
        each = self.total[0] / len(self.by_round)
        events = each[~np.isnan(each[:, 0])]
        error = (events - events[:, :1]).std(axis=0) / np.sqrt(len(events))
        rounds = np.stack(self.by_round)
        luck = (rounds - rounds[:, :1]).std(axis=0, ddof=1) / np.sqrt(len(rounds))
        return bool((luck <= LUCK * error + 1e-9).all())


@dataclass(frozen=True, eq=False)
class Trial:
    """Scores of P pools in cross-validation, in-sample and out of sample, and their answers."""

    pools: tuple[str, ...]  # names of the P pools that could be fitted
    inside: Array  # (P,); mean log score in-sample, by fits to all events
    outside: Scores  # out of sample, by event, means over the rounds
    base: Scores  # out of sample, of the base rate alone
    # (T,) or (T, K) for each pool; out-of-sample probabilities in the first round, means over occasions
    answers: tuple[Array, ...]
    by_occasion: Array  # (S, P); out-of-sample log scores by occasion, means over the rounds
    rounds: int  # number of rounds
    notes: tuple[Note, ...]


def run_trial(
    sample: Forecasts,
    pools: Mapping[str, Configured | Rival],
    rounds: Rounds,
    repeats: int | None,
    prior: npt.ArrayLike | None,
    progress: Callable[[float], None] | None = None,
) -> Trial:
    """Score pools in-sample and out of sample, for `repeats` rounds, or if None until score differences hardly change.

    The differences are those of other pools from the first one. Events' own priors in `sample` have no blanks. A pool
    that cannot be fitted is left out; a LearningError if no pool can be fitted.
    """
    occasions = Occasions.of(sample)
    run = _Run(replace(sample, history=None), occasions, pools, prior, progress)
    inside = run.all_events()
    means, base, most = _Mean(), _Mean(), repeats or MOST_ROUNDS
    first: list[Array] = []
    by_occasion: Array | float = 0.0
    for number in range(most):
        splits = rounds(number)
        *answers, rates = run.round(list(inside), splits, number / most, 1.0 / most)
        first = first or answers
        scores = Scores.of(answers, occasions.forecasts)
        by_occasion = by_occasion + scores.log_score
        means.add(scores.by_event(occasions))
        base.add(Scores.of([rates], occasions.forecasts).by_event(occasions))
        if repeats is None and means.settled():
            break
    inner = np.stack([occasions.mean(event_scores(p, occasions.forecasts)) for p in inside.values()])
    done = len(means.by_round)
    shown = tuple(map(occasions.mean, first))
    every = np.asarray(by_occasion) / done
    return Trial(
        tuple(inside), np.nanmean(inner, axis=1), means.scores, base.scores, shown, every, done, run.all_notes()
    )


def answers_of(state: Fitted, events: Forecasts) -> Array:
    """Return the pooled probabilities of `events`, (T,) or (T, K), by the fit `state`."""
    prior = events.prior if events.options is None else own_priors(events, None)
    return state.pool_forecasts(events, prior)


def base_rates(prior: Array | None, events: Forecasts) -> Array:
    """Base rate of each event, (T,) or (T, K): the event's own prior, or `prior` (K,) if events have none."""
    own = own_priors(events, None) if events.options is not None else events.prior
    if own is not None:
        return own
    assert prior is not None
    rate = np.asarray(public_probabilities(prior))
    return np.broadcast_to(rate, (len(events.events), *rate.shape))


@dataclass(eq=False)
class _Run:
    """A cross-validation: the sample, the pools, and the notes that fits of the pools to parts of the sample make."""

    sample: Forecasts  # events for the fits
    occasions: Occasions  # occasions for the scores
    pools: Mapping[str, Configured | Rival]
    prior: npt.ArrayLike | None  # prior for the fits
    progress: Callable[[float], None] | None  # called with the share of work done
    notes: list[Note] = field(default_factory=list)
    counts: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)  # (pool, code): (fits, text)
    fits: int = 0  # number of fits of each pool so far

    def all_events(self) -> dict[str, Array]:
        """Return in-sample answers of the pools that can be fitted, by name; add a note on each pool that cannot."""
        answers, failed, problem = {}, [], Problem.of(self.sample, self.prior, None)
        for name in self.pools:
            try:
                answers[name], _ = self._answers(name, problem, np.arange(len(self.occasions.event)))
            except OpinionPoolError as error:
                failed.append(f"{name} is left out: {error}")
        if not answers:
            raise LearningError("; ".join(failed))
        self.notes += [Note("left-out", text) for text in failed]
        return answers

    def round(self, pools: Sequence[str], splits: Sequence[Split], done: float, share: float) -> list[Array]:
        """Each pool's answers, and last the base rates, on the occasions that `splits` test; NaN on all others."""
        scored = self.occasions.forecasts
        shape = len(scored.events), *scored.probabilities.shape[1:]
        answers = [np.full(shape, np.nan) for _ in (*pools, "base rate")]
        for fold, split in enumerate(splits):
            at = self.occasions.among(split.test)
            problem = Problem.of(self.sample.select_events(split.train), self.prior, None)
            test = scored.select_events(at)
            answers[-1][at] = base_rates(problem.shared, test)
            self.fits += 1
            for place, name in enumerate(pools):
                answers[place][at], notes = self._answers(name, problem, at)
                self._remember(name, notes)
                if self.progress is not None:
                    self.progress(done + share * (fold + (place + 1) / len(pools)) / len(splits))
        return answers

    def _answers(self, name: str, problem: Problem, at: Index) -> tuple[Array, tuple[Note, ...]]:
        """Return the answers of a pool, fitted to `problem`, on the occasions `at`, and the notes of the fit."""
        pool, test = self.pools[name], self.occasions.forecasts.select_events(at)
        if isinstance(pool, Rival):
            return pool.answers(problem.forecasts, test, self.occasions.event[at]), ()
        state = fit_from(problem, pool.rule, answers_only=True, **pool.settings())
        return answers_of(state, test), state.notes

    def _remember(self, name: str, notes: Sequence[Note]) -> None:
        for note in notes:
            # Leakage is reported once for all events.
            if note.serious and note.code != "leakage":
                count, text = self.counts.get((name, note.code), (0, note.text))
                self.counts[name, note.code] = count + 1, text

    def all_notes(self) -> tuple[Note, ...]:
        """Return the notes that the fits made; a note made by several fits comes once, with the number of fits."""
        forecast = [
            Note(code, f"{name}, in {count} of {self.fits} fits: {text}", count)
            for (name, code), (count, text) in self.counts.items()
        ]
        return (*self.notes, *forecast)
