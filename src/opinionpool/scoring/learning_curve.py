"""Learning curve: a pool's score by the number of resolved events to which it was fitted.

Whether the pool beats the average is tested from the most events downwards, up to the first test that fails, so that
each test may have the full level (a fixed sequence); the test for all events is that of the comparison of pools.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, LearningError, OpinionPoolError
from opinionpool.estimation.sampling import event_contents
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.problem import Problem
from opinionpool.pools.fit import FitOptions, fit_from
from opinionpool.priors import with_priors
from opinionpool.progress import Progress, advancing
from opinionpool.scoring.compare import AVERAGE, Comparison
from opinionpool.scoring.cross_validation import answers_of
from opinionpool.scoring.intervals import LEVEL, difference_intervals
from opinionpool.scoring.scores import event_scores
from opinionpool.scoring.splits import Plan, Split, Splits, clusters_of, shuffled

# Numbers of events to learn from, as far as there are so many, and the most that there are.
SIZES = (0, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
# A curve of fewer points shows nothing.
FEWEST = 3


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Mean out-of-sample scores of a pool on fixed events, after fits to S increasing numbers of resolved events."""

    pool: str
    sizes: npt.NDArray[np.intp]  # (S,); number of resolved events in the fit
    # score, average: (S,); mean normalised log score (26) of the pool and of the simple average
    score: Array
    average: Array
    # low, high: (S,); limits of single intervals of the pool's score less the average's; NaN for too few events
    low: Array
    high: Array
    scored: int  # number of events that are scored
    rounds: int  # number of random divisions of events into folds
    level: float  # confidence level of `low` and `high`


def learning_curve(
    forecasts: Forecasts,
    pool: str = "gaussian",
    splits: Splits = Splits(),  # noqa: B008 - it does not change
    fit: FitOptions = FitOptions(),  # noqa: B008
    comparison: Comparison | None = None,
    progress: Progress = None,
) -> LearningCurve:
    """Score a pool after fits to none, some and all of the events in the other folds.

    Each fit has all events of the smaller fits. Forward in time the last block is scored, after fits to the latest
    outcomes known before its forecasts. There are `splits.repeats` divisions into folds, one if that is None. A
    `comparison` of this pool with the same folds provides the scores after fits to all other events.

    >>> rng = np.random.default_rng(5)
    >>> y = rng.random(60) < 0.5
    >>> q = 1 / (1 + np.exp(-(2 * y[:, None] - 1 + rng.normal(size=(60, 3)))))
    >>> found = learning_curve(Forecasts.from_array(q, y.astype(int)))
    >>> found.sizes.tolist(), bool(found.score[-1] > found.average[-1])
    ([0, 5, 10, 20, 48], True)
    """
    if pool == AVERAGE:
        raise ArgumentError("the simple average does not learn, so it has no learning curve")
    by, seed, rounds, beliefs = splits.by, splits.seed, splits.rounds or 1, fit.beliefs
    forecasts, prior = with_priors(forecasts, fit.prior)
    plan = Plan.of(forecasts, splits)
    sample = forecasts.select_events(plan.rows)
    dealt = [_tasks(sample, plan.splits(number), by, [seed, number, 1]) for number in range(rounds)]
    most = min(len(task.train) for tasks in dealt for task in tasks)
    sizes = np.array([*(size for size in SIZES if size < most / 1.2), most], dtype=np.intp)
    if len(sizes) < FEWEST:
        raise LearningError(
            f"a learning curve needs at least {round(SIZES[FEWEST - 2] * 1.5)} resolved events, and there are "
            f"{len(plan.rows)}"
        )
    fitted: dict[str, dict[str, Any]] = {pool: {} if beliefs is None else {"beliefs": beliefs}, AVERAGE: {}}
    totals = np.zeros((len(sizes), 2, len(plan.rows)))
    known = None if comparison is None or by == "time" or pool not in comparison.scores else comparison.scores
    fresh = sizes if known is None else sizes[:-1]
    done, work = 0, sum(len(tasks) for tasks in dealt) * int(fresh.sum())
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), advancing(progress, "learning curve") as advance:
        for tasks in dealt:
            scores = np.full_like(totals, np.nan)
            for task in tasks:
                for place, size in enumerate(fresh.tolist()):
                    for column, (name, own) in enumerate(fitted.items()):
                        scores[place, column, task.test] = _scored(sample, task, size, name, prior, own)
                    done += size
                    if advance is not None:
                        advance(done / work)
            totals += scores
    totals /= rounds
    if known is not None:
        totals[-1] = [known[name][plan.rows] for name in fitted]
    return _curve(totals, sizes, pool, sample, by, rounds)


def _tasks(sample: Forecasts, splits: list[Split], by: str | None, seed: list[int]) -> list[Split]:
    """Return splits whose training events are ordered: a fit to n events uses the first n of them."""
    if by == "time" and sample.times is not None:
        last = splits[-1]
        latest = np.argsort(sample.times[last.train], kind="stable")[::-1]
        return [Split(last.train[latest], last.test)]
    rng, keys = np.random.default_rng(seed), event_contents(sample)
    return [Split(split.train[shuffled(keys[split.train], rng)], split.test) for split in splits]


def _scored(
    sample: Forecasts, task: Split, size: int, name: str, prior: npt.ArrayLike | None, options: dict[str, Any]
) -> Array:
    """Return log scores on the test events of `task`, after a fit to the first `size` of its training events."""
    train = sample.select_events(np.sort(task.train[: max(size, 1)]))
    if size == 0:
        train = replace(train, outcomes=np.full_like(train.outcomes, UNRESOLVED))
    test = sample.select_events(task.test)
    try:
        state = fit_from(Problem.of(train, prior, None), name, answers_only=True, **options)
    except OpinionPoolError:
        if size == len(task.train):
            raise
        return np.full(len(task.test), np.nan)
    return event_scores(answers_of(state, test), test)


def _curve(
    totals: Array, sizes: npt.NDArray[np.intp], pool: str, sample: Forecasts, by: str | None, rounds: int
) -> LearningCurve:
    scored = ~np.isnan(totals[-1, 0])
    fitted = ~np.isnan(totals[:, 0, scored]).any(axis=1)
    totals, sizes = totals[fitted], sizes[fitted]
    member = clusters_of(sample, scored, by)[0]
    gain = difference_intervals((totals[:, 0] - totals[:, 1]).T, member, level=LEVEL, each=True)
    means = totals[:, :, scored].mean(axis=2)
    return LearningCurve(
        pool=pool,
        sizes=sizes,
        score=means[:, 0],
        average=means[:, 1],
        low=np.array([each.low for each in gain]),
        high=np.array([each.high for each in gain]),
        scored=int(scored.sum()),
        rounds=rounds,
        level=LEVEL,
    )
