"""What a report tells, computed: the pool and its answers, how well it does, and what was learned about whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.checks import Check, check_model
from opinionpool.analysis.diff import Diff
from opinionpool.analysis.residuals import SharedErrors, shared_errors
from opinionpool.analysis.sensitivity import Effect, sensitivity
from opinionpool.arguments import expect_function, expect_type, one_of, whole_number
from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, Note, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn
from opinionpool.pools.fit import PoolLike, configured, fit_pool
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.priors import event_priors
from opinionpool.progress import Progress, advancing
from opinionpool.report.answers import Pooled, pool_events
from opinionpool.report.html import Html, event_name
from opinionpool.report.order import SORTS, open_rows
from opinionpool.scoring.comparison import AVERAGE, DEFAULT, MOST_REPEATS, Comparison, ExpertScore, compare_pools
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

# Of more forecasts, what the answer rests on is not varied: each variation is a fit.
VARIED = 20_000
Found = TypeVar("Found")


@dataclass(frozen=True)
class Missing:
    """What cannot be computed, and why."""

    reason: str


@dataclass(frozen=True)
class Source:
    """Where forecasts come from."""

    title: str = "forecasts"  # what the report is called
    date: str = ""  # when it was made; empty to leave it out
    command: str = ""  # the command line that made the report; empty if there is none
    digests: tuple[tuple[str, str], ...] = ()  # names of files and their SHA-256


@dataclass(frozen=True, eq=False)
class Saved:
    """A pool from a file, which answers as it is."""

    file: str
    state: Fitted
    pooled: Pooled  # its answers
    given: bool  # whether its prior was given, and not estimated


@dataclass(frozen=True, eq=False)
class Since:
    """What changed since a pool was saved."""

    file: str
    changes: Diff


@dataclass(frozen=True, eq=False)
class Findings:
    """All that a report tells."""

    forecasts: Forecasts
    pool: str
    state: Fitted  # what the pool learned from all resolved events
    learned: FittedPanel  # the same for the default pool, from which features of experts are
    given: bool  # whether a prior was given
    pooled: Pooled  # its answers
    comparison: Comparison | Missing  # out of sample, beside the simple average and the experts
    curve: LearningCurve | Missing
    errors: SharedErrors | Missing
    checks: list[Check] | Missing
    own_priors: Array | None  # (T, K); class probabilities of each event's own prior
    beliefs: Beliefs | None
    source: Source
    effects: list[Effect]  # how the first open answer depends on beliefs, where it rests on them
    prior: npt.ArrayLike | None = None  # as it was given
    sort: str = "probability"  # a name in `SORTS`: the order of open events
    saved: str | None = None  # the file that the pool is from
    since: Since | None = None
    weighted: bool = False  # whether weights were given, and not learned

    @property
    def open_rows(self) -> list[int]:
        """Positions of open events that somebody forecast, in the order of the report."""
        return open_rows(self.pooled, self.sort)

    @property
    def measured(self) -> bool:
        """Whether any forecast is of a resolved event."""
        return bool(self.learned.counts.any())

    def question(self, t: int) -> str:
        """What an event is called for people."""
        return self.forecasts.question(t)

    def event_name(self, t: int) -> Html:
        """The same with the event's id, for a page."""
        return event_name(self.forecasts.events[t], self.question(t))

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
        all_notes = (*self.forecasts.notes, *self.state.notes, *compared)
        return tuple({(note.code, note.text): note for note in all_notes}.values())


def find(
    forecasts: Forecasts,
    pool: PoolLike = DEFAULT,
    *,
    prior: npt.ArrayLike | None = None,
    beliefs: Beliefs | None = None,
    by: str | None = None,
    repeats: int | None = None,
    source: Source | None = None,
    sort: str = "probability",
    saved: Saved | None = None,
    progress: Progress = None,
) -> Findings:
    """Compute what a report tells.

    Parameters
    ----------
    forecasts : Forecasts
    pool : str or pool, default "gaussian"
    prior, beliefs, by, repeats, progress
        As for `opinionpool.scoring.comparison.compare_pools`.
    source : Source, optional
    sort : str, default "probability"
        The order of open events, a name in `SORTS`.
    saved : Saved, optional
        The pool that answers; one that is fitted to the forecasts, if not given. Scores are of fits to parts of the
        forecasts all the same.

    Raises
    ------
    OpinionPoolError
        If the forecasts cannot be pooled; parts that cannot be computed for want of data are `Missing`.
    """
    one_of(sort, "sort", SORTS)
    if source is not None:
        expect_type(source, Source, "source")
    if beliefs is not None:
        expect_type(beliefs, Beliefs, "beliefs")
    if repeats is not None:
        repeats = whole_number(repeats, "repeats", 1, MOST_REPEATS)
    if by is not None:
        one_of(by, "by", ("time", "group"))
    if isinstance(progress, bool):
        with advancing(progress, "computing the report") as advance:
            return find(
                forecasts, pool, prior=prior, beliefs=beliefs, by=by, repeats=repeats, source=source, sort=sort,
                saved=saved, progress=advance,
            )  # fmt: skip
    expect_function(progress, "progress")
    tell = progress or (lambda _: None)
    chosen = configured(pool, beliefs)
    pool, options = chosen.rule, chosen.settings()
    weighted = options.get("weights") is not None
    state = fit_pool(pool, forecasts, prior=prior, **options) if saved is None else saved.state
    learned = state if isinstance(state, FittedPanel) else learn(forecasts, prior=prior)
    own = event_priors(forecasts, prior)
    cells = int(forecasts.resolved[forecasts.event_index].sum())
    # Many experts take long, however few their forecasts.
    most = ROUNDS if repeats is None else min(ROUNDS, repeats)
    rounds = max(1, min(most, FORECASTS // max(cells, FEW * len(forecasts.experts))))
    repeats = 1 if repeats is None and cells > MANY else repeats
    comparison = _tried(
        lambda: compare_pools(
            forecasts, {pool: chosen}, by=by, repeats=repeats, prior=prior,
            progress=lambda share: tell(0.5 * share),
        )
    )  # fmt: skip
    still = Missing(f"{'the simple average' if pool == AVERAGE else 'a pool with given weights'} does not learn")
    curve = still if pool == AVERAGE or weighted else _tried(
        lambda: learning_curve(
            forecasts, pool, by=by, rounds=rounds, prior=prior, beliefs=beliefs,
            comparison=None if isinstance(comparison, Missing) else comparison,
            progress=lambda share: tell(0.5 + 0.45 * share),
        )
    )  # fmt: skip
    pooled = pool_events(forecasts, pool, state, prior, None) if saved is None else saved.pooled  # type: ignore[arg-type]
    first = open_rows(pooled, sort)[:1]
    resting = not learned.counts.any() or (beliefs is not None and len(forecasts.event_index) <= VARIED)
    resting = (
        resting and saved is None and pool == DEFAULT and len(forecasts.classes) == 2 and forecasts.options is None
    )
    effects = _tried(lambda: sensitivity(forecasts, first[0], beliefs, prior)) if first and resting else []
    found = Findings(
        forecasts=forecasts,
        pool=pool,
        state=state,
        learned=learned,
        given=prior is not None if saved is None else saved.given,
        pooled=pooled,
        comparison=comparison,
        curve=curve,
        errors=_tried(lambda: shared_errors(forecasts, learned, prior)),
        checks=_tried(lambda: check_model(forecasts, learned, prior)),
        own_priors=own,
        beliefs=beliefs,
        source=source or Source(),
        effects=[] if isinstance(effects, Missing) else effects,
        prior=prior,
        sort=sort,
        saved=None if saved is None else saved.file,
        weighted=weighted,
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
