"""Comparison of pools and experts out of sample.

All pools are scored on the same events, by fits to other events. An expert is compared with a pool on the events for
which the expert has a forecast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import expect_type
from opinionpool.arrays import Array, Index
from opinionpool.display import Tabular
from opinionpool.errors import ArgumentError, LearningError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.leakage import leakage_notes, leaked_experts
from opinionpool.learning.learn import is_crowd
from opinionpool.learning.prior import Believed
from opinionpool.logodds import FLOOR
from opinionpool.pools.fit import Configured, FitOptions, PoolLike, configured
from opinionpool.pools.registry import POOLS
from opinionpool.priors import with_priors
from opinionpool.progress import Progress, advancing
from opinionpool.scoring.cross_validation import Occasions, Rival, Trial, run_trial
from opinionpool.scoring.intervals import LEVEL, ClusterSums, Difference, difference_intervals
from opinionpool.scoring.leaderboard import own_scores
from opinionpool.scoring.scores import at_floor
from opinionpool.scoring.splits import Plan, Splits, clusters_of
from opinionpool.text import counted

AVERAGE, DEFAULT = "average", "gaussian"
# Pools that are printed.
SHOWN = 20


@dataclass(frozen=True)
class PoolScore:
    """Out-of-sample scores of a pool: means over the events to which it was not fitted.

    Attributes
    ----------
    pool : str
        Label of the pool.
    score, standard_error : float
        Mean normalised log score (equation 26), higher is better, and its error when clusters are independent.
    log_loss, brier : float
        Log loss in nats; Brier score, 0 to 1 (K > 2: summed over classes, 0 to 2). Lower is better.
    auc : float
        Area under the ROC curve; NaN for K > 2.
    in_sample : float
        Mean normalised log score on the events of the fit; NaN for pools that do not learn.
    over_average, over_best : Difference
        Score less that of the simple average, and less that of the best pool on these events.
    skill : float
        1 - log loss / log loss of the base rate: 0 as good as the base rate, 1 perfect.
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
    """Mean scores, as in `PoolScore`, of answers that are the base rate: the prior from which pools start."""

    score: float
    standard_error: float
    log_loss: float
    brier: float


@dataclass(frozen=True)
class ExpertScore:
    """Scores of an expert, and of a pool on the events with a forecast by the expert.

    Attributes
    ----------
    expert : str
    events : int
        Number of scored events with a forecast by the expert.
    score, pool_score : float
        Mean normalised log score of the expert, and of the pool, on these events.
    at_floor : int
        Number of events whose outcome the expert gave at most the least probability for experts.
    over_pool : Difference
        Score less that of the pool.
    coverage : float
        Share of the scored events with a forecast by the expert; with a history, share of their time.
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
    """Result of `compare_pools`: scores of pools and experts.

    Attributes
    ----------
    pools : tuple of PoolScore
        Best pool first.
    experts : tuple of ExpertScore
        Expert with the largest difference from `reference` first.
    reference : str
        Pool that experts are compared with: the Gaussian one, or if it is not compared the last one.
    events, scored : int
        Numbers of resolved events and of scored events.
    scores : dict of str to ndarray, shape (T,)
        Normalised log scores of each pool, NaN where not scored.
    answers : dict of str to ndarray, shape (T,), or (T, K) when K > 2
        Each pool's probabilities out of sample in the first round, NaN where not scored.
    by : str
        How events were split: "random", "time" or "group".
    folds, rounds : int
        Number of fits of a pool in each round, and number of rounds.
    unit, units
        Unit that intervals treat as independent, "event", "date" or "group", and the number of units scored.
    notes : tuple of Note
    topics : ndarray of str or None, shape (T,)
        Topic of each event.
    base : BaseRate or None
        Scores of the base rate on the same events.
    time_averaged : bool
        Whether scores are averages over the time that each event was open, not those of the last forecasts.
    single : Difference or None
        Score of `reference` less that of the average, with an interval for this difference only, as in reports; None
        if no other pool was compared. The intervals in `pools` hold simultaneously for all pools.
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
        """Table of pools, best first, and of experts who are better than the reference, in at most 25 lines."""
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
        """Scores of the pool with the best mean score on these events."""
        return self.pools[0]

    @property
    def average(self) -> PoolScore:
        """Scores of the simple average."""
        return next(pool for pool in self.pools if pool.pool == AVERAGE)


# Names of pools, pools of `opinionpool.estimators` with their options, or either by what they are to be called.
Contenders: TypeAlias = PoolLike | list[PoolLike] | tuple[PoolLike, ...] | Mapping[str, PoolLike]


def compare_pools(  # noqa: PLR0913 - what is compared, and how
    forecasts: Forecasts,
    pools: Contenders | None = None,
    *,
    folds: int = 5,
    repeats: int | None = None,
    by: str | None = None,
    gap: Any = 0,  # noqa: ANN401 - a number, a text or a span of time
    prior: npt.ArrayLike | None = None,
    beliefs: Beliefs | None = None,
    rivals: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> Comparison:
    """Score pools, and the experts themselves, on resolved events that the pools have not learned from.

    This says whether pooling pays on these forecasts: each pool is fitted to some of the resolved events and scored on
    the others, in turn (cross-validation), and its scores are compared with those of the simple average, with
    intervals. `print` of the result is a table, the best pool first; ``found.best`` is that pool's `PoolScore`, and
    ``found.best.over_average`` its gain: mean, limits and verdict. A score is 0 for saying 50% every time, 1 at most.

    Parameters
    ----------
    forecasts : Forecasts
        From `read_forecasts` or `Forecasts.from_array`; at least two events have to be resolved, and ten for a verdict.
        With a history (`read_forecasts` with ``history=True``), scores are averages over the time from an event's
        first forecast until it closed; pools are still fitted to the last forecasts.
    pools : sequence of str or pools, or mapping from names to these, optional
        Names, such as "gaussian" (the default pool), "linear" or "median", of those in
        `opinionpool.pools.registry.POOLS`, or unfitted pools with options, as ``op.LinearPool(weights=...)``.
        If not given, all names, without those that learn one weight for each expert if the experts are a crowd (see
        `opinionpool.learning.learn.is_crowd`). The average is always compared.
    folds : int, default 5
        Number of parts of the events; fewer if there are not as many events, dates or groups.
    repeats : int, optional
        Number of rounds with new random parts, up to 1,000; if not given, until scores hardly change, up to 20.
    by : {None, "time", "group"}
        How events are split. None: random parts with similar outcomes, independent of the order of events. "time":
        forward in time, with fits to outcomes known before the first forecast of the scored events, for which events
        need times of closing or resolving. "group": parts of whole groups.
    gap : number of days, str or timedelta, default 0
        With ``by="time"``: least time between an outcome and the forecasts that a fit to it is scored on.
    prior : float or array_like, shape (K,), (T,) or (T, K), optional
        Prior from which all experts start; estimated from the outcomes that a fit knows if not given.
    beliefs : Beliefs, optional
        Beliefs about experts for the "gaussian" pool; the default beliefs if not given.
    rivals : mapping of names to classifiers or arrays, optional
        A classifier has scikit-learn's ``fit`` and ``predict_proba``; its features are the experts' log-odds, (T, N),
        or if K > 2 those of every class, (T, N K), NaN where missing. An array has a probability for each event, (T,)
        or (T, K), such as a platform's own aggregate; events without one are neither learned from nor scored.
    seed : int, default 0
    progress : callable or bool, optional
        Function called with the share of work done; True shows a bar on standard error if the work takes long.

    Returns
    -------
    Comparison
        Scores of pools and experts. Verdicts are "better" or "worse" if the interval of the difference excludes 0,
        "unclear" if not, and "too few events" if fewer than ten are independent.

    Raises
    ------
    ArgumentError, LearningError, ProbabilityError
        If an argument breaks a rule, or there are too few events.

    Examples
    --------
    >>> import numpy as np
    >>> import opinionpool as op
    >>> rng = np.random.default_rng(5)
    >>> y = rng.random(60) < 0.5
    >>> q = 1 / (1 + np.exp(-(2 * y[:, None] - 1 + rng.normal(size=(60, 3)))))
    >>> forecasts = op.Forecasts.from_array(q, y.astype(int))
    >>> found = op.compare_pools(forecasts, ["gaussian", "extremized"])
    >>> found.best.pool, found.best.over_average.verdict, found.scored
    ('gaussian', 'better', 60)
    >>> found = op.compare_pools(forecasts, {"gaussian": "gaussian", "mine": op.LinearPool(weights=[2, 1, 1])})
    >>> [pool.pool for pool in found.pools]
    ['gaussian', 'average', 'mine']
    """
    splits = Splits.of(by, folds, repeats, gap, seed)
    return compare(forecasts, pools, splits, FitOptions(prior, beliefs), progress, rivals)


def compare(
    forecasts: Forecasts,
    pools: Contenders | None,
    splits: Splits,
    fit: FitOptions,
    progress: Progress = None,
    rivals: Mapping[str, Any] | None = None,
) -> Comparison:
    """Return the result of `compare_pools`, whose other arguments are fields of `splits` and `fit`."""
    expect_type(forecasts, Forecasts, "forecasts")
    beliefs, by, seed = fit.beliefs, splits.by, splits.seed
    chosen = _contenders(pools, beliefs, timed=forecasts.made is not None, levels=bool(forecasts.scales))
    forecasts, prior = with_priors(forecasts, fit.prior)
    resolved = int(forecasts.ended.sum())
    others = _rivals(rivals, forecasts, chosen)
    forecasts, unanswered = _answered_by(forecasts, others)
    plan = Plan.of(forecasts, splits)
    sample = forecasts.select_events(plan.rows)
    crowded = _without_weights(chosen, sample) if pools is None else []
    if beliefs is not None:
        expect_type(beliefs, Beliefs, "beliefs")
        Believed.of(beliefs, forecasts.experts)
    contest = chosen | {rival.name: rival.among(plan.rows) for rival in others}
    trial = _scores_of(sample, contest, plan, splits.rounds, prior, progress)
    scored = ~np.isnan(trial.outside.log_score[:, 0])
    clusters, unit, notes = clusters_of(sample, scored, by)
    fitted = [name for name in trial.pools if name in chosen]
    reference = next((name for name in fitted if chosen[name].rule == DEFAULT), fitted[-1])
    own = trial.by_occasion[:, trial.pools.index(reference)]
    occasions = Occasions.of(sample)

    def of_all(columns: Iterable[Array]) -> dict[str, Array]:
        """Return `columns`, an array for each pool, by pool name and over all events; NaN for events not compared."""
        pairs = zip(trial.pools, columns, strict=True)
        return {name: _placed(column, plan.rows, forecasts) for name, column in pairs}

    return Comparison(
        pools=_pool_scores(trial, contest, clusters, seed),
        experts=_expert_scores(occasions, own, clusters, seed),
        reference=reference,
        events=resolved,
        scored=int(scored.sum()),
        scores=of_all(trial.outside.log_score.T),
        answers=of_all(trial.answers),
        by=by or "random",
        folds=len(plan.splits(0)),
        rounds=trial.rounds,
        unit=unit,
        units=len(np.unique(clusters[scored])),
        notes=(
            *unanswered,
            *plan.notes,
            *_unscored_note(occasions),
            *notes,
            *leakage_notes(sample.experts, leaked_experts(sample)),
            *crowded,
            *trial.notes,
        ),
        topics=forecasts.topics,
        base=_base(trial, clusters),
        time_averaged=occasions.over_life,
        single=_single(trial, reference, clusters),
    )


def _single(trial: Trial, pool: str, clusters: Index) -> Difference | None:
    """Score of `pool` less that of the average, with an interval for it only; None if no third pool is compared."""
    if len(trial.pools) < 3 or pool == AVERAGE:
        return None
    own, average = (trial.outside.log_score[:, [trial.pools.index(name)]] for name in (pool, AVERAGE))
    return difference_intervals(own - average, clusters, level=LEVEL, each=True)[0]


def _scores_of(
    sample: Forecasts,
    pools: Mapping[str, Configured | Rival],
    plan: Plan,
    rounds: int | None,
    prior: npt.ArrayLike | None,
    progress: Progress,
) -> Trial:
    """Return in-sample and out-of-sample scores of all pools; a `LearningError` if the average cannot be fitted."""
    from threadpoolctl import threadpool_limits

    # Many small fits: threads that share one would mostly wait for each other.
    with threadpool_limits(1), advancing(progress, "comparing pools") as advance:
        trial = run_trial(sample, pools, plan.splits, rounds, prior, advance)
    if AVERAGE not in trial.pools:
        raise LearningError("; ".join(note.text for note in trial.notes))
    return trial


def _unscored_note(occasions: Occasions) -> list[Note]:
    """Return a note on resolved events left unscored, as it is unknown when they closed or were forecast."""
    count = int(occasions.without.sum())
    if not count:
        return []
    text = f"{counted(count, 'resolved event')} not scored, since it is unknown when they closed or were forecast"
    return [Note("no-life", text, count)]


def _base(trial: Trial, clusters: Index) -> BaseRate:
    sums = ClusterSums.of(trial.base.log_score, clusters)
    loss, brier = np.nanmean(trial.base.log_loss), np.nanmean(trial.base.brier)
    return BaseRate(float(sums.mean[0]), float(sums.error[0]), float(loss), float(brier))


def _placed(values: Array, rows: Index, forecasts: Forecasts) -> Array:
    """Return scores or answers `values` of the events `rows` as an array over all events; NaN for other events."""
    placed = np.full((len(forecasts.events), *values.shape[1:]), np.nan)
    placed[rows] = values
    return placed


def _contenders(
    pools: Contenders | None, beliefs: Beliefs | None, *, timed: bool, levels: bool
) -> dict[str, Configured]:
    """Unfitted pools to compare, by label; if `pools` is None all, those for ages or levels if `timed` or `levels`."""
    if isinstance(pools, Mapping):
        each: list[tuple[str | None, PoolLike]] = list(pools.items())
    elif pools is None:
        # What looks at times is like another pool where there are none, and what is for levels has rivals enough.
        usual = (name for name, pool in POOLS.items() if timed >= pool.timed and levels >= pool.of_levels)
        each = [(None, name) for name in usual]
    else:
        each = [(None, pool) for pool in (pools if isinstance(pools, list | tuple) else [pools])]
    found = {AVERAGE: Configured(AVERAGE)}
    for label, pool in each:
        own = configured(pool, beliefs)
        name = _label(pool) if label is None else str(label)
        if name in found and own != found[name]:
            raise ArgumentError(f"two pools are called {name!r}; give them names: pools={{'one': ..., 'other': ...}}")
        found[name] = own
    return found


def _rivals(given: Mapping[str, Any] | None, forecasts: Forecasts, pools: Mapping[str, Configured]) -> list[Rival]:
    """The rivals in `given`, classifiers or arrays, checked; an `ArgumentError` if one has the name of a pool."""
    expect_type(given or {}, Mapping, "rivals")
    twice = [name for name in given or {} if name in pools]
    if twice:
        raise ArgumentError(f"a rival is called {twice[0]!r} like a pool that is compared; give it another name")
    return [Rival.of(str(name), each, forecasts) for name, each in (given or {}).items()]


def _answered_by(forecasts: Forecasts, rivals: Sequence[Rival]) -> tuple[Forecasts, list[Note]]:
    """Return `forecasts` without outcomes of events that some rival did not answer, and a note on their number."""
    missing = np.zeros(len(forecasts.events), dtype=bool)
    for rival in rivals:
        missing |= rival.missing
    count = int((missing & forecasts.ended).sum())
    if not count:
        return forecasts, []
    text = f"{counted(count, 'resolved event')} neither learned from nor scored, since a rival has no answer"
    outcomes = np.where(missing, UNRESOLVED, forecasts.outcomes)
    ties = None if forecasts.ties is None else forecasts.ties & ~missing
    return replace(forecasts, outcomes=outcomes, ties=ties), [Note("no-rival", text, count)]


def _label(pool: PoolLike) -> str:
    """Return the label of a pool: its name if all options are default, else its repr."""
    if isinstance(pool, str):
        return pool
    written = repr(pool)
    return pool.rule if written.endswith("()") else written


def _without_weights(pools: dict[str, Configured], sample: Forecasts) -> list[Note]:
    """Remove pools that learn a weight for each expert from `pools`, if experts are a crowd; return a note on them."""
    if not is_crowd(sample, np.ones(len(sample.events))):
        return []
    each = len(sample.probabilities) / np.count_nonzero(sample.counts)
    weighing = [name for name in pools if POOLS[pools[name].rule].weighs]
    for name in weighing:
        del pools[name]
    text = (
        f"{' and '.join(weighing)} are left out: they would learn a weight for each of {len(sample.experts):,} experts "
        f"from {each:.3g} forecasts, which takes long and says little; --pools (in Python pools=) takes them by name"
    )
    return [Note("left-out", text, len(weighing))]


def _pool_scores(
    trial: Trial, pools: Mapping[str, Configured | Rival], clusters: Index, seed: int
) -> tuple[PoolScore, ...]:
    outside, names = trial.outside, trial.pools
    sums = ClusterSums.of(outside.log_score, clusters)
    score, error = sums.mean, sums.error
    order = np.argsort(-score, kind="stable")
    p, best, average = len(names), int(order[0]), names.index(AVERAGE)
    beside = np.delete(outside.log_score, average, axis=1) - outside.log_score[:, [average]]
    over_average = difference_intervals(beside, clusters, level=LEVEL, seed=seed)
    over_average.insert(average, Difference(0.0, 0.0, 0.0))
    # The best is known in hindsight only, so these hold for every pair of pools at once.
    first, second = np.triu_indices(p, 1)
    between = outside.log_score[:, first] - outside.log_score[:, second]
    pairs = difference_intervals(between, clusters, level=LEVEL, seed=seed)
    over_best = [Difference(0.0, 0.0, 0.0)] * p
    for i, j, pair in zip(first.tolist(), second.tolist(), pairs, strict=True):
        if j == best:
            over_best[i] = pair
        elif i == best:
            over_best[j] = Difference(0.0 - pair.mean, 0.0 - pair.high, 0.0 - pair.low)
    loss, brier = np.nanmean(outside.log_loss, axis=0), np.nanmean(outside.brier, axis=0)
    skill = 1.0 - loss / np.nanmean(trial.base.log_loss)
    return tuple(
        PoolScore(
            names[i],
            float(score[i]),
            float(error[i]),
            float(loss[i]),
            float(brier[i]),
            float(outside.auc[i]),
            float(trial.inside[i]) if pools[names[i]].learns else float("nan"),
            over_average[i],
            over_best[i],
            float(skill[i]),
        )
        for i in order.tolist()
    )


def _expert_scores(occasions: Occasions, own: Array, clusters: Index, seed: int) -> tuple[ExpertScore, ...]:
    """Return scores of each expert with a scored forecast, beside those of a pool, `own` (S,) on S scored occasions."""
    sample, n = occasions.forecasts, len(occasions.forecasts.experts)
    scores, lost, scored = own_scores(sample), np.zeros(n, dtype=np.intp), ~np.isnan(own)
    for i in range(n):
        at = at_floor(sample.X[:, i], sample.outcomes, FLOOR) & scored
        lost[i] = len(np.unique(occasions.event[at]))
    scores[~scored] = np.nan
    answered = ~np.isnan(scores)
    beside = np.where(answered, own[:, None], np.nan)
    if not occasions.single:
        # On each event over the time for which the expert's forecast stood.
        covered = occasions.sums(answered.astype(np.float64))
        time = np.where(covered > 0, covered, np.nan)
        scores, beside = (occasions.sums(np.where(answered, x, 0.0)) / time for x in (scores, beside))
    else:
        covered = answered.astype(np.float64)
    differences = difference_intervals(scores - beside, clusters, level=LEVEL, seed=seed)
    number = (~np.isnan(scores)).sum(axis=0)
    mean, pool = (np.nansum(x, axis=0) / np.maximum(number, 1) for x in (scores, beside))
    coverage = np.nansum(covered, axis=0) / max(len(np.unique(occasions.event[scored])), 1)
    found = [
        ExpertScore(
            sample.experts[i],
            int(number[i]),
            float(mean[i]),
            float(pool[i]),
            int(lost[i]),
            differences[i],
            float(coverage[i]),
        )
        for i in np.flatnonzero(number).tolist()
    ]
    return tuple(sorted(found, key=lambda expert: -expert.over_pool.mean))
