"""Computation of all that a report shows: the pool, its answers and scores, and what it learned about experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from opinionpool.analysis.checks import Check, check_model
from opinionpool.analysis.diff import Diff
from opinionpool.analysis.residuals import SharedErrors, shared_errors
from opinionpool.analysis.sensitivity import Effect, sensitivity
from opinionpool.arguments import expect_function, expect_type, one_of
from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, Note, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn
from opinionpool.logodds import all_classes
from opinionpool.pools.fit import Configured, FitOptions, PoolLike, configured, fit_pool
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.priors import event_priors
from opinionpool.progress import Progress, advancing
from opinionpool.report import SORTS
from opinionpool.report.answers import Pooled, open_rows, pool_events
from opinionpool.report.blocks import Html, event_name
from opinionpool.scoring.compare import AVERAGE, DEFAULT, Comparison, ExpertScore, PoolScore, compare
from opinionpool.scoring.learning_curve import LearningCurve, learning_curve
from opinionpool.scoring.splits import Splits

# Learning curves average so many rounds, fewer for so many forecasts that this many are learned from once; an expert
# counts for so many forecasts at least.
ROUNDS, FORECASTS, FEW = 10, 50_000, 50
# Number of forecasts from which one round of folds suffices for a comparison.
MANY = 200_000
# The best expert is sought among those with at least this share of the most forecasts on scored events.
BUSY = 0.5
# Codes of notes that belong beside the scores.
CAVEATS = ("random-folds", "rare-outcome", "one-outcome", "few-clusters", "leakage", "not-scored", "outcome-dates")

# Largest number of forecasts for which beliefs are varied: each variation needs a fit.
VARIED = 20_000
Found = TypeVar("Found")


@dataclass(frozen=True)
class Missing:
    """Reason why a part of the report cannot be computed; it is shown in place of that part."""

    reason: str


@dataclass(frozen=True)
class Source:
    """What a report says about its origin: title, date, command line and digests of the files."""

    title: str = "forecasts"  # what the report is called
    date: str = ""  # when it was made; empty to leave it out
    command: str = ""  # the command line that made the report; empty if there is none
    digests: tuple[tuple[str, str], ...] = ()  # names of files and their SHA-256


SOURCE = Source()


@dataclass(frozen=True, eq=False)
class Saved:
    """Pool loaded from a file, which answers in a report instead of a pool fitted to the forecasts."""

    file: str
    state: Fitted
    pooled: Pooled  # its answers
    given: bool  # whether its prior was given, and not estimated


@dataclass(frozen=True, eq=False)
class ReportOptions:
    """Options of a report: its source, the order of open events, and a saved pool that answers, if there is one."""

    source: Source = SOURCE
    sort: str = "probability"  # a name in `SORTS`
    # The pool that answers; if None, a pool is fitted to the forecasts. Scores are always those of pools fitted to
    # parts of the forecasts.
    saved: Saved | None = None
    since: tuple[str, Diff] | None = None  # the file of a pool that was saved earlier, and what changed since

    def __post_init__(self) -> None:
        one_of(self.sort, "sort", SORTS)
        expect_type(self.source, Source, "source")


FITTED, SPLITS, OPTIONS = FitOptions(), Splits(), ReportOptions()


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything that a report shows, computed from the forecasts."""

    forecasts: Forecasts
    pool: str
    state: Fitted  # what the pool learned from all resolved events
    learned: FittedPanel  # what the default pool learned: the features of experts
    pooled: Pooled  # its answers
    comparison: Comparison | Missing  # out of sample, beside the simple average and the experts
    curve: LearningCurve | Missing
    errors: SharedErrors | Missing
    checks: list[Check] | Missing
    own_priors: Array | None  # (T, K); class probabilities of each event's own prior
    effects: list[Effect]  # how the first open answer depends on beliefs, where it rests on them
    fit: FitOptions  # the prior and beliefs as they were given
    options: ReportOptions
    weighted: bool  # whether weights were given, and not learned

    @property
    def given(self) -> bool:
        """Whether the user gave the prior; otherwise it is estimated from outcomes."""
        saved = self.options.saved
        return self.fit.prior is not None if saved is None else saved.given

    @property
    def open_rows(self) -> list[int]:
        """Positions of the open events that have a forecast, in the order of the report."""
        return open_rows(self.pooled, self.options.sort)

    @property
    def measured(self) -> bool:
        """Whether at least one forecast is on a resolved event, so that scores can be computed."""
        return bool(self.learned.counts.any())

    def score_of(self, found: Comparison) -> PoolScore:
        """Return the scores of the report's pool in a comparison."""
        return next(pool for pool in found.pools if pool.pool == self.pool)

    def question(self, t: int) -> str:
        """Return the question of event `t`, or its id if it has none."""
        return self.forecasts.question(t)

    def event_name(self, t: int) -> Html:
        """Return the question of event `t` with its id, as markup."""
        return event_name(self.forecasts.events[t], self.question(t))

    @property
    def binary(self) -> bool:
        """Whether all events have the same two classes, none having options of its own."""
        return len(self.forecasts.classes) == 2 and self.forecasts.options is None

    @property
    def timid(self) -> bool:
        """Whether experts are too cautious on average: their mean calibration is above 1.05."""
        features = self.learned.features
        return float(np.mean(features.calibration)) > 1.05

    def options_of(self, p: Array) -> Array:
        """Return probabilities `p` (T, K) with NaN in the positions that are no options of the event."""
        even = self.forecasts.even
        if even is None:
            return p
        table = all_classes(p, even.shape[1])
        return np.where(even == 0, np.nan, table)

    @property
    def caveats(self) -> tuple[Note, ...]:
        """Notes on why scores may be too optimistic, or differences of scores less certain than they look."""
        notes = () if isinstance(self.comparison, Missing) else self.comparison.notes
        return tuple(note for note in notes if note.code in CAVEATS)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on reading, learning and comparing, each once."""
        compared = () if isinstance(self.comparison, Missing) else self.comparison.notes
        all_notes = (*self.forecasts.notes, *self.state.notes, *compared)
        return tuple({(note.code, note.text): note for note in all_notes}.values())


def find(
    forecasts: Forecasts,
    pool: PoolLike = DEFAULT,
    *,
    fit: FitOptions = FITTED,
    splits: Splits = SPLITS,
    options: ReportOptions = OPTIONS,
    progress: Progress = None,
) -> ReportData:
    """Return everything that a report shows; a part for which there are too few data is `Missing`."""
    if fit.beliefs is not None:
        expect_type(fit.beliefs, Beliefs, "beliefs")
    if isinstance(progress, bool):
        with advancing(progress, "computing the report") as advance:
            return find(forecasts, pool, fit=fit, splits=splits, options=options, progress=advance)
    expect_function(progress, "progress")
    tell = progress or (lambda _: None)
    chosen, prior, saved = configured(pool, fit.beliefs), fit.prior, options.saved
    name, own = chosen.rule, chosen.settings()
    state = fit_pool(name, forecasts, prior=prior, **own) if saved is None else saved.state
    learned = state if isinstance(state, FittedPanel) else learn(forecasts, prior=prior)
    weighted = own.get("weights") is not None
    comparison, curve = _scores(forecasts, chosen, fit, splits, tell, learns=not weighted)
    pooled = pool_events(forecasts, name, state, prior, None) if saved is None else saved.pooled  # type: ignore[arg-type]
    first = open_rows(pooled, options.sort)[:1] if name == DEFAULT and saved is None else []
    effects = [effect for t in first for effect in _effects(forecasts, t, learned, fit)]
    found = ReportData(
        forecasts=forecasts,
        pool=name,
        state=state,
        learned=learned,
        pooled=pooled,
        comparison=comparison,
        curve=curve,
        errors=_tried(lambda: shared_errors(forecasts, learned, prior)),
        checks=_tried(lambda: check_model(forecasts, learned, prior)),
        own_priors=event_priors(forecasts, prior),
        effects=effects,
        fit=fit,
        options=options,
        weighted=weighted,
    )
    tell(1.0)
    return found


def _scores(
    forecasts: Forecasts,
    pool: Configured,
    fit: FitOptions,
    splits: Splits,
    tell: Callable[[float], None],
    *,
    learns: bool,
) -> tuple[Comparison | Missing, LearningCurve | Missing]:
    """Cross-validated comparison of the pool with others, and its learning curve if it `learns`; or `Missing`."""
    cells = int(forecasts.resolved[forecasts.event_index].sum())
    # Many experts take long, however few their forecasts.
    most = ROUNDS if splits.repeats is None else min(ROUNDS, splits.repeats)
    rounds = max(1, min(most, FORECASTS // max(cells, FEW * len(forecasts.experts))))
    if splits.repeats is None and cells > MANY:
        splits = replace(splits, repeats=1)
    name, plain = pool.rule, FitOptions(fit.prior)
    comparison = _tried(lambda: compare(forecasts, {name: pool}, splits, plain, lambda share: tell(0.5 * share)))
    if name == AVERAGE or not learns:
        what = "the simple average" if name == AVERAGE else "a pool with given weights"
        return comparison, Missing(f"{what} does not learn")
    known = None if isinstance(comparison, Missing) else comparison
    # No more often than the comparison needed, until luck in dealing hardly mattered.
    rounds = rounds if known is None else min(rounds, known.rounds)
    dealt, advance = replace(splits, repeats=rounds), lambda share: tell(0.5 + 0.45 * share)
    return comparison, _tried(lambda: learning_curve(forecasts, name, dealt, fit, known, advance))


def _effects(forecasts: Forecasts, event: int, learned: FittedPanel, fit: FitOptions) -> list[Effect]:
    """Effects of each belief on the answer about an event; empty if the answer rests on outcomes, or if K > 2."""
    resting = not learned.counts.any() or (fit.beliefs is not None and len(forecasts.event_index) <= VARIED)
    if not (resting and len(forecasts.classes) == 2 and forecasts.options is None):
        return []
    effects = _tried(lambda: sensitivity(forecasts, event, fit.beliefs, fit.prior))
    return [] if isinstance(effects, Missing) else effects


def _tried(compute: Callable[[], Found]) -> Found | Missing:
    """Return the result of `compute()`, or `Missing` if the data do not allow it; errors in arguments are raised."""
    try:
        return compute()
    except ArgumentError:
        raise
    except OpinionPoolError as error:
        return Missing(str(error))


def best_expert(comparison: Comparison) -> ExpertScore | None:
    """Expert with the largest gain over the pool among experts with many scored events; None without experts."""
    most = max((expert.events for expert in comparison.experts), default=0)
    busy = [expert for expert in comparison.experts if expert.events >= BUSY * most]
    return max(busy, key=lambda expert: expert.over_pool.mean, default=None)
