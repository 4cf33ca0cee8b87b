"""Result of a comparison of pools: scores out of sample, and intervals of their differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.display import Tabular
from opinionpool.errors import Note
from opinionpool.scoring.intervals import Difference

LEVEL = 0.95
AVERAGE, DEFAULT = "average", "gaussian"
# Pools that are printed.
SHOWN = 20


@dataclass(frozen=True)
class PoolScore:
    """Scores of a pool out of sample.

    Attributes
    ----------
    pool : str
    score, standard_error : float
        Mean normalised log score (26), higher is better; its error is that of clusters of events.
    log_loss, brier : float
        In nats; and from 0 to 1 (K > 2: summed over the classes, 0 to 2). Lower is better.
    auc : float
        Area under the curve; NaN for K > 2.
    in_sample : float
        The normalised log score on events that the pool has learned from; NaN for pools that do not learn.
    over_average, over_best : Difference
        From the simple average, and from the pool that is best on these events.
    skill : float
        How much of the log loss of the base rate alone the pool saves: 0 is the base rate, 1 is perfect.
    """

    pool: str
    score: float
    standard_error: float
    log_loss: float
    brier: float
    auc: float
    in_sample: float
    over_average: Difference
    over_best: Difference
    skill: float = float("nan")


@dataclass(frozen=True)
class BaseRate:
    """The base rate alone, scored as a `PoolScore`: the prior that pools start from, without any forecast."""

    score: float
    standard_error: float
    log_loss: float
    brier: float


@dataclass(frozen=True)
class ExpertScore:
    """Scores of an expert, and of a pool on the scored events that the expert answered.

    Attributes
    ----------
    expert : str
    events : int
    score, pool_score : float
        Normalised log score of the expert, and of the pool on the same events.
    at_floor : int
        On how many of them the expert left the outcome no more than the floor for experts.
    over_pool : Difference
    coverage : float
        Its part of the scored events; or of their lives, on average.
    """

    expert: str
    events: int
    score: float
    pool_score: float
    at_floor: int
    over_pool: Difference
    coverage: float = float("nan")


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """Pools and experts, compared.

    Attributes
    ----------
    pools : tuple of PoolScore
        The best first.
    experts : tuple of ExpertScore
        The largest difference from `reference` first.
    reference : str
        The pool that experts are compared with: the Gaussian one, or if it is not there the last that was named.
    events, scored : int
        Resolved events, and those that were scored.
    scores : dict of str to ndarray, shape (T,)
        Normalised log scores of each pool, NaN where not scored.
    answers : dict of str to ndarray, shape (T,), or (T, K) when K > 2
        Each pool's probabilities out of sample in the first round, NaN where not scored.
    by : str
        How events were split: "random", "time" or "group".
    folds, rounds : int
        How many fits a round took, and how many rounds.
    unit, units
        What the intervals take to be independent, "event", "date" or "group", and how many of them were scored.
    notes : tuple of Note
    topics : ndarray of str or None, shape (T,)
        What each event is about.
    base : BaseRate or None
        What the base rate alone has on the same events.
    time_averaged : bool
        Whether scores are averages over each event's life, and not of the forecasts that stood last.
    single : Difference or None
        The score of `reference` less that of the average, with an interval for this one comparison, as in reports; None
        where no other pool was compared. The intervals of `pools` hold for all of them at once.
    """

    pools: tuple[PoolScore, ...]
    experts: tuple[ExpertScore, ...]
    reference: str
    events: int
    scored: int
    scores: dict[str, Array] = field(repr=False)
    answers: dict[str, Array] = field(repr=False)
    by: str
    folds: int
    rounds: int
    unit: str
    units: int
    notes: tuple[Note, ...]
    topics: npt.NDArray[np.str_] | None = None
    base: BaseRate | None = None
    time_averaged: bool = False
    single: Difference | None = None

    def __str__(self) -> str:
        """A table of the pools, the best first, and who of the experts is better than the reference, in 25 lines."""
        rows = [f"{'pool':24}{'score':>8}{'skill':>8}{'gain':>8}  {'from … to':18}verdict"]
        for pool in self.pools[:SHOWN]:
            gain = pool.over_average
            span = "" if np.isnan(gain.low) else f"{gain.low:+.3f} to {gain.high:+.3f}"
            verdict = "reference" if pool.pool == AVERAGE else gain.verdict
            rows.append(f"{pool.pool[:23]:24}{pool.score:8.3f}{pool.skill:8.3f}{gain.mean:+8.3f}  {span:18}{verdict}")
        if len(self.pools) > SHOWN:
            rows.append(f"({len(self.pools) - SHOWN} more in pools)")
        better = sum(expert.over_pool.verdict == "better" for expert in self.experts)
        split = {"time": "forward in time", "group": "by groups"}.get(self.by, "at random")
        return "\n".join(
            [
                *rows,
                f"{self.scored} events scored out of sample, split {split}; gain: score less that of the average",
                f"{better} of {len(self.experts)} experts better than {self.reference} on the events they answered",
            ]
        )

    def _table(self) -> dict[str, list[Any]]:
        names = ("pool", "score", "skill", "standard_error", "log_loss", "brier", "auc", "in_sample")
        table = {name: [getattr(pool, name) for pool in self.pools] for name in names}
        gains = [pool.over_average for pool in self.pools]
        more = {"gain": "mean", "gain_low": "low", "gain_high": "high", "verdict": "verdict"}
        return table | {name: [getattr(gain, field) for gain in gains] for name, field in more.items()}

    @property
    def best(self) -> PoolScore:
        """The pool with the best mean score on these events."""
        return self.pools[0]

    @property
    def average(self) -> PoolScore:
        """The simple average."""
        return next(pool for pool in self.pools if pool.pool == AVERAGE)
