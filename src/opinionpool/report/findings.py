"""What a report tells, computed: the pool and its answers, how well it does, and what was learned about whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.checks import Check, check_model
from opinionpool.analysis.residuals import SharedErrors, shared_errors
from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, Note, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn
from opinionpool.pools.registry import Fitted, fit_pool
from opinionpool.priors import event_priors
from opinionpool.report.answers import Pooled, one_outcome_notes, pool_events
from opinionpool.scoring.comparison import AVERAGE, Comparison, ExpertScore, compare_pools
from opinionpool.scoring.learning_curve import LearningCurve, learning_curve

# Learning curves average so many rounds, fewer for so many forecasts that this many are learned from once; an expert
# counts for so many forecasts at least.
ROUNDS, FORECASTS, FEW = 10, 50_000, 50
# From so many forecasts on, a single round of folds settles what is compared.
MANY = 200_000
# The best expert is sought among those with at least this share of the most forecasts on scored events.
BUSY = 0.5
# Codes of notes that belong beside the scores.
CAVEATS = ("random-folds", "rare-outcome", "one-outcome", "few-clusters", "leakage", "not-scored")

Found = TypeVar("Found")


@dataclass(frozen=True)
class Missing:
    """What cannot be computed, and why."""

    reason: str


@dataclass(frozen=True)
class Source:
    """Where forecasts come from.

    Attributes
    ----------
    title : str
        What they are called.
    command : str
        The command line that made the report; empty if there is none.
    digests : tuple of (str, str)
        Names of files and their SHA-256.
    """

    title: str = "forecasts"
    command: str = ""
    digests: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Findings:
    """All that a report tells.

    Attributes
    ----------
    forecasts : Forecasts
    pool : str
    state : Fitted
        What the pool learned from all resolved events.
    learned : FittedPanel
        The same for the default pool, from which features of experts are.
    given : bool
        Whether a prior was given.
    pooled : Pooled
        Its answers.
    comparison : Comparison or Missing
        Out of sample, beside the simple average and the experts.
    curve : LearningCurve or Missing
    errors : SharedErrors or Missing
    checks : list of Check or Missing
    own_priors : ndarray or None, shape (T, K)
        Class probabilities of each event's own prior.
    beliefs : Beliefs or None
    source : Source
    """

    forecasts: Forecasts
    pool: str
    state: Fitted
    learned: FittedPanel
    given: bool
    pooled: Pooled
    comparison: Comparison | Missing
    curve: LearningCurve | Missing
    errors: SharedErrors | Missing
    checks: list[Check] | Missing
    own_priors: Array | None
    beliefs: Beliefs | None
    source: Source

    @property
    def binary(self) -> bool:
        """Whether there are two classes, the same for all events."""
        return len(self.forecasts.classes) == 2 and self.forecasts.options is None

    def options_of(self, p: Array) -> Array:
        """Probabilities, NaN where a position is no option of its event."""
        even = self.forecasts.even
        if even is None:
            return p
        table = np.stack([1.0 - p, p], axis=-1) if p.ndim == 1 else p
        return np.where(even == 0, np.nan, table)

    @property
    def caveats(self) -> tuple[Note, ...]:
        """What may make scores look better, or differences more certain, than they are."""
        notes = () if isinstance(self.comparison, Missing) else self.comparison.notes
        return tuple(note for note in notes if note.code in CAVEATS)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes from reading, learning and comparing, each once."""
        compared = () if isinstance(self.comparison, Missing) else self.comparison.notes
        all_notes = (*self.forecasts.notes, *self.state.notes, *one_outcome_notes(self.forecasts, self.pool), *compared)
        return tuple({(note.code, note.text): note for note in all_notes}.values())


def find(
    forecasts: Forecasts,
    pool: str = "gaussian",
    *,
    prior: npt.ArrayLike | None = None,
    beliefs: Beliefs | None = None,
    by: str | None = None,
    repeats: int | None = None,
    source: Source | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Findings:
    """Compute what a report tells.

    Parameters
    ----------
    forecasts : Forecasts
    pool : str, default "gaussian"
    prior, beliefs, by, repeats, seed, progress
        As for `opinionpool.scoring.comparison.compare_pools`.
    source : Source, optional

    Raises
    ------
    OpinionPoolError
        If the forecasts cannot be pooled; parts that cannot be computed for want of data are `Missing`.
    """
    tell = progress or (lambda _: None)
    options: dict[str, Any] = {} if beliefs is None else {"beliefs": beliefs}
    state = fit_pool(pool, forecasts, prior=prior, **options)
    learned = state if isinstance(state, FittedPanel) else learn(forecasts, prior=prior)
    own = event_priors(forecasts, prior)
    cells = int(forecasts.resolved[forecasts.event_index].sum())
    # Many experts take long, however few their forecasts.
    rounds = max(1, min(ROUNDS, FORECASTS // max(cells, FEW * len(forecasts.experts))))
    repeats = 1 if repeats is None and cells > MANY else repeats
    comparison = _tried(
        lambda: compare_pools(
            forecasts, [AVERAGE, pool], by=by, repeats=repeats, prior=prior, beliefs=beliefs, seed=seed,
            progress=lambda share: tell(0.5 * share),
        )
    )  # fmt: skip
    still = Missing("the simple average does not learn from outcomes")
    curve = still if pool == AVERAGE else _tried(
        lambda: learning_curve(
            forecasts, pool, by=by, rounds=rounds, prior=prior, beliefs=beliefs, seed=seed,
            comparison=None if isinstance(comparison, Missing) else comparison,
            progress=lambda share: tell(0.5 + 0.45 * share),
        )
    )  # fmt: skip
    found = Findings(
        forecasts=forecasts,
        pool=pool,
        state=state,
        learned=learned,
        given=prior is not None,
        pooled=pool_events(forecasts, pool, state, prior, None),  # type: ignore[arg-type]
        comparison=comparison,
        curve=curve,
        errors=_tried(lambda: shared_errors(forecasts, learned, prior)),
        checks=_tried(lambda: check_model(forecasts, learned, prior)),
        own_priors=own,
        beliefs=beliefs,
        source=source or Source(),
    )
    tell(1.0)
    return found


def _tried(compute: Callable[[], Found]) -> Found | Missing:
    """What can be computed, or why it cannot; wrong arguments are errors all the same."""
    try:
        return compute()
    except ArgumentError:
        raise
    except OpinionPoolError as error:
        return Missing(str(error))


def best_expert(comparison: Comparison) -> ExpertScore | None:
    """The expert with the best score less the pool's on the same events, among those with many of them."""
    most = max((expert.events for expert in comparison.experts), default=0)
    busy = [expert for expert in comparison.experts if expert.events >= BUSY * most]
    return max(busy, key=lambda expert: expert.over_pool.mean, default=None)
