"""Result of learning: a panel, the prior that it was learned with, its posterior, members, topics and notes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, distinct_rows
from opinionpool.display import Tabular
from opinionpool.errors import LearningError, Note
from opinionpool.estimation.sampling import Draw, event_keys
from opinionpool.forecasts import Forecasts
from opinionpool.learning.hierarchy import MarginalFeatures
from opinionpool.learning.levels import Coding
from opinionpool.learning.members import Members
from opinionpool.learning.posterior import Posterior, answer_rows, debiased
from opinionpool.learning.prior import believed_slope
from opinionpool.learning.problem import Problem
from opinionpool.learning.recency import Recency
from opinionpool.learning.topics import TopicEffects, TopicShift
from opinionpool.logodds import log_ratios, prior_log_ratios, public_probabilities
from opinionpool.model.contrasts import AnswerParts, Batch
from opinionpool.model.full_panel import FullPanel
from opinionpool.model.panel import Panel, PoolingPanel
from opinionpool.priors import own_priors, prior_or_learned, spread_prior

# Numbers about the events that are looked at together, many of which may be alike.
_ALIKE = 1 << 18
# Of leave-one-out answers: events that are kept, the largest leverage of one, the log-odds to which extremes are
# clipped, and bounds of slopes.
MANY, LEVERAGE, EXTREME, SLOPES = 1000, 0.9, 4.0, (0.1, 10.0)


class LeftOut(NamedTuple):
    """Leave-one-out answers about R resolved events: log-ratios less the prior's, by a fit without the event."""

    ratios: Array  # (R, K - 1); of the log pool's answers without the prior
    outcomes: Index  # (R,)
    weight: Array  # (R,); frequencies
    null: Array  # (K - 1,); the ratios if every expert repeats the prior, or the uniform one if the prior is estimated
    slope: float  # regression slope, on `ratios`, of log-likelihood ratios by the weights assumed for any panel


@dataclass(frozen=True, eq=False)
class FittedPanel(Tabular):
    """Fitted panel, with its prior, counts, posterior and notes.

    Attributes
    ----------
    panel : PoolingPanel
        A `Panel`, or a `FullPanel` where the classes differ.
    prior : ndarray or None, shape (K,)
        The reference used, as class probabilities; None if each event had its own.
    structure : str
        One of `STRUCTURES` but "auto", "default", "crowd", or "assumed" if nothing was learned.
    events : ndarray, shape (K,)
        Weight of the resolved events by outcome.
    counts : ndarray, shape (N,)
        Weight of each expert's forecasts on resolved events.
    present : ndarray of bool, shape (N,)
        Which experts made a forecast on any event, resolved or not.
    notes : tuple of Note
    marginal : MarginalFeatures or None
        Features of each expert from its own forecasts, if the panel's features follow from its weights.
    posterior : Posterior or None
        Posterior of intercept and weights, if it is known.
    topics : TopicEffects or None
        Intercepts and slopes by topic, if events have topics.
    members : Members or None
        The mixture of the panel's answers with other pools, if there is one.
    recency : Recency or None
        How fast forecasts go stale, if their times are known.
    coding : Coding or None
        Probabilities that levels, votes and rounded zeros stand for.
    known : Problem, LeftOut or None
        Resolved events from which the panel was learned, or `left_out` for these, if the posterior is known.
    """

    rule: ClassVar[str] = "gaussian"
    learned: ClassVar[bool] = True

    panel: PoolingPanel
    prior: Array | None
    structure: str
    events: Array
    counts: Array
    present: npt.NDArray[np.bool_]
    notes: tuple[Note, ...] = ()
    marginal: MarginalFeatures | None = None
    posterior: Posterior | None = None
    topics: TopicEffects | None = None
    recency: Recency | None = None
    coding: Coding | None = None
    members: Members | None = None
    known: Problem | LeftOut | None = field(default=None, repr=False)

    @cached_property
    def left_out(self) -> LeftOut | None:
        """Answers about resolved events by fits without the event (leave-one-out); None if the posterior is unknown."""
        if isinstance(self.known, Problem):
            return None if self.posterior is None else left_out(self.panel, self.posterior, self.known)
        return self.known

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to be copied or saved, with leave-one-out results in place of resolved events."""
        return self.__dict__ | {"known": self.left_out}

    def _table(self) -> dict[str, list[Any]]:
        low, high = self.weight_interval()
        features = self.features
        return {
            "expert": list(self.experts),
            "weight": self.weights.tolist(),
            "weight_low": low.tolist(),
            "weight_high": high.tolist(),
            "calibration": features.calibration.tolist(),
            "accuracy": features.accuracy.tolist(),
            "resolved": self.counts.tolist(),
        }

    def weight_interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Bounds of each weight's marginal credible interval, (N,) each; NaN where unknown."""
        low, high = np.full((2, len(self.experts)), np.nan)
        if self.posterior is not None:
            known = self.present & self.panel.informative
            low, high = np.where(known, self.weights + self.posterior.weight_interval(len(known), level), np.nan)
        return low, high

    @property
    def features(self) -> PoolingPanel | MarginalFeatures:
        """Bias, calibration and accuracy of each expert: from the expert's own forecasts if known, or by `panel`."""
        return self.panel if self.marginal is None else self.marginal

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the N experts."""
        return self.panel.names

    @property
    def classes(self) -> tuple[object, ...]:
        """Labels of the K classes."""
        return self.panel.classes

    @property
    def class_model(self) -> str:
        """Kind of weights: "full" if they differ between classes, else "symmetric"."""
        return "full" if isinstance(self.panel, FullPanel) else "symmetric"

    @property
    def weights(self) -> Array:
        """Weights if all experts with a forecast in the fit answer, (N,); 0 for the other experts."""
        return np.asarray(self.panel.weights_for(self.present[None])[0])

    def pool(
        self,
        q: npt.ArrayLike,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        topics: npt.ArrayLike | None = None,
    ) -> Array:
        """Pooled probability, as `Panel.pool`, with the prior of the fit unless another is given.

        `topics` is the topic of all events, or one for each event; without a topic, or with "", no effect is added.

        Raises
        ------
        ProbabilityError
            If each event had its own prior in the fit and none is given now.
        """
        batch = self.read(q, self.reference(prior), base_rate)
        if self.members is None and (topics is None or self.topics is None):
            return batch.as_asked(self.panel.answers(batch))
        return batch.as_asked(logodds.public_probabilities(self._answers(batch, topics)))

    def _answers(self, batch: Batch, topics: npt.ArrayLike | None, p: Array | None = None) -> Array:
        """Answers (T, K) with topic effects and the other pools of the mixture; `p` are the log pool's, if known."""
        # The base rate moves what the members say together.
        within, floor = batch if self.members is None else batch.at_prior, self.panel.settings.pool_floor
        p = answer_rows(self.panel.answers(within), batch.classes) if p is None else p
        if topics is not None and self.topics is not None:
            p = self.topic_shift(p, within, topics).moved(p, batch.prior, floor)
        if self.members is None:
            return p
        both = logodds.raise_to_floors(self.members.mixed(p, batch), logodds.class_floors(floor, batch.prior, 1.0))
        if not batch.shift.any():
            return both
        return logodds.pooled_probabilities(logodds.prior_log_ratios(both) + batch.shift, batch.prior, floor)

    def topic_shift(self, p: Array, batch: Batch, topics: npt.ArrayLike, *, uncertain: bool = False) -> TopicShift:
        """Topic effects on the answers `p` (T, K), 0 where nobody answered; if `uncertain`, ready for intervals."""
        assert self.topics is not None
        common = logodds.prior_log_ratios(p) - batch.start
        labels = np.broadcast_to(np.ravel(np.asarray(topics, dtype=object)), len(p))
        labels = np.where(batch.answered_by(self.panel.informative), labels, "")
        needed = self.topics.needs_contrasts or (uncertain and self.topics.cross is not None)
        if not needed or not isinstance(self.panel, Panel):
            return self.topics.shift(labels, common)
        full = np.empty((len(p), len(self.panel), p.shape[1] - 1))
        for rows in batch.blocks():
            full[rows] = debiased(self.panel, batch, rows)
        return self.topics.shift(labels, common, full)

    def pool_forecasts(
        self, forecasts: Forecasts, prior: npt.ArrayLike | None = None, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """Pooled probability of every event of some forecasts, (T,) or (T, K), without an array of events x experts.

        Forecasts may be by some of the experts, in any order. Events' own priors are used only if events have options
        of their own; options of an event without a prior are equally probable.

        Raises
        ------
        ExpertError
            If an expert is not one of the panel's.
        ArgumentError
            If events have options of their own, but the panel was learned from events with shared classes.
        """
        if prior is None and forecasts.options is not None:
            prior = own_priors(forecasts, None)
        prior = self.reference(prior)
        forecasts = self.aged(forecasts, prior)
        p = self.panel.pool_forecasts(forecasts, prior, base_rate if self.members is None else None)
        return self.completed(p, forecasts, prior, base_rate)

    def completed(
        self, p: Array, forecasts: Forecasts, prior: npt.ArrayLike, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """Return the log pool's answers `p` with topic effects and other pools; `forecasts` are discounted by age."""
        topics = None if self.topics is None else forecasts.topics
        if topics is None and self.members is None:
            return p
        both, found = answer_rows(p, len(self.classes)), np.empty_like(p)
        for rows, q, (own, rate) in forecasts.dense_blocks(self.experts, prior, base_rate):
            assert own is not None
            answers = self._answers(self.panel.read(q, own, rate), None if topics is None else topics[rows], both[rows])
            found[rows] = logodds.public_probabilities(answers)
        return found

    def interval(
        self,
        q: npt.ArrayLike,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        level: float = 0.9,
        topics: npt.ArrayLike | None = None,
    ) -> tuple[Array, Array]:
        """Interval for the pooled probability, from the posterior of weights and topics.

        Returns
        -------
        low, high : ndarray, shape (...), or (..., K) when K > 2

        Raises
        ------
        LearningError
            If this panel was learned in a way that gives no posterior.
        """
        if self.posterior is None:
            raise LearningError(
                f"a panel learned as {self.structure!r} does not say how sure it is; the default pool does"
            )
        batch = self.read(q, self.reference(prior), base_rate)
        shift, beside = None, None if self.members is None else self.members.normals(batch)
        if topics is not None and self.topics is not None:
            answers = answer_rows(self.panel.answers(batch), batch.classes)
            shift = self.topic_shift(answers, batch, topics, uncertain=True)
        return self.posterior.interval(self.panel, batch, level, shift, beside)

    def forecast_intervals(
        self,
        forecasts: Forecasts,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        level: float = 0.9,
    ) -> tuple[Array, Array] | None:
        """Intervals of the answers, low and high, (T,) or (T, K) each; None if the posterior is unknown."""
        if self.posterior is None:
            return None
        t, k = len(forecasts.events), len(self.classes)
        forecasts, counted = self.aged(forecasts, self.reference(prior)), replace(self, coding=None)
        ends = np.empty((2, t) if k == 2 else (2, t, k))
        values = self.reference(prior), base_rate
        for rows, q, (own, rate) in forecasts.dense_blocks(self.experts, *values, numbers=_ALIKE):
            topics = None if forecasts.topics is None else forecasts.topics[rows]
            axes = [0 if value is None else np.ndim(value) for value in (own, rate)]
            once = each = np.arange(len(q))
            if topics is None and max(axes) < forecasts.probabilities.ndim:
                # Events with the same forecasts have one interval.
                once, each = distinct_rows(q.reshape(len(q), -1))
            ends[:, rows] = np.stack(counted.interval(q[once], own, rate, level, topics))[:, each]
        return ends[0], ends[1]

    def aged(self, forecasts: Forecasts, prior: npt.ArrayLike) -> Forecasts:
        """Return the forecasts as probabilities instead of levels of a scale, and discounted by age."""
        if self.coding is not None:
            forecasts = self.coding.forecasts(forecasts)
        if self.recency is None or forecasts.made is None or forecasts.options is not None:
            return forecasts
        reference = spread_prior(prior, (len(forecasts.events),), len(self.classes))
        return self.recency.forecasts(forecasts, reference, self.panel.settings.floor)

    def read(self, q: npt.ArrayLike, prior: npt.ArrayLike, base_rate: npt.ArrayLike | None = None) -> Batch:
        """Return forecasts by all experts as the `Batch` that `pool` reads; the arguments are those of `pool`."""
        return self.panel.read(self.taken(q), prior, base_rate)

    def taken(self, q: npt.ArrayLike) -> npt.ArrayLike:
        """Return forecasts by all experts, (..., N), with probabilities in place of the levels of scales."""
        return q if self.coding is None else self.coding.array(logodds.check_probabilities(q))

    def answer_parts(self, batch: Batch) -> AnswerParts:
        """Return the answer about the one event of `batch` as a sum over experts, see `AnswerParts`."""
        return self.panel.answer_parts(batch)

    def for_options(self, options: tuple[object, ...]) -> FittedPanel:
        """Return the panel with the classes `options`, if it was learned from events with options of their own."""
        # The uncertainty of its weights is known for as many options as it was learned from.
        posterior = self.posterior if len(options) == len(self.classes) else None
        return replace(self, panel=self.panel.for_options(options), posterior=posterior)

    def reference(self, prior: npt.ArrayLike | None = None) -> npt.ArrayLike:
        """Return the prior to use, `prior` or if None that of the fit, in the form that `pool` takes."""
        return prior_or_learned(prior, self.prior)


def left_out(panel: PoolingPanel, posterior: Posterior, problem: Problem) -> LeftOut | None:
    """Approximate leave-one-out answers about resolved events or a sample (Rad & Maleki 2020); None if there are none.

    An event has probabilities p, an outcome y of 0s and a 1, and log-ratios with posterior covariance A. Without this
    event, its log-ratios change by −A(y − p)/(1 − tr WA), where W = diag(p) − pp'.
    """
    k, d = len(problem.classes), len(problem.classes) - 1
    problem = problem.select(problem.forecasts.resolved & (problem.weight > 0) & (problem.forecasts.crowd > 0))
    if problem.has_options or not len(problem.weight):
        return None
    if len(problem.weight) > MANY:
        room = np.array([*[MANY // k] * k, 1])
        sample = Draw.of(event_keys(problem.forecasts), problem.outcomes, problem.weight, room)
        problem = replace(problem.select(sample.positions), weight=sample.frequencies(problem.weight))
    found, believed = np.empty((2, len(problem.weight), d))
    for rows, q, (prior,) in problem.forecasts.dense_blocks(panel.names, public_probabilities(problem.reference)):
        assert prior is not None
        batch = panel.read(q, prior)
        gradient, p = posterior.gradient(panel, batch), answer_rows(panel.answers(batch), k)
        variance = np.einsum("tqa,qr,trb->tab", gradient, posterior.whole_covariance, gradient, optimize=True)
        curvature = p[:, 1:, None] * (np.eye(d) - p[:, None, 1:])
        leverage = np.minimum(np.einsum("tab,tba->t", curvature, variance), LEVERAGE)
        beyond = np.eye(k)[problem.outcomes[rows], 1:] - p[:, 1:]
        change = np.einsum("tab,tb->ta", variance, beyond) / (1.0 - leverage)[:, None]
        once = np.minimum(problem.weight[rows], 1.0)[:, None]
        clipped = np.clip(log_ratios(q, problem.reference[rows, None]), -EXTREME, EXTREME)
        count = np.count_nonzero(~np.isnan(clipped[..., 0]), axis=1)
        believed[rows] = np.nanmean(clipped, axis=1) * believed_slope(count.astype(np.float64))[:, None]
        found[rows] = prior_log_ratios(p) - prior_log_ratios(problem.reference[rows]) - once * change
    null = np.zeros(d)
    if problem.estimated and problem.shared is not None:
        even = public_probabilities(np.full((1, len(panel), k), 1.0 / k))
        prior = public_probabilities(problem.shared)
        null = (prior_log_ratios(answer_rows(panel.pool(even, prior), k)) - prior_log_ratios(problem.shared[None]))[0]
    away = found - problem.weight @ found / problem.weight.sum()
    slope = float(np.sum(problem.weight @ (away * believed)) / max(np.sum(problem.weight @ away**2), 1e-300))
    return LeftOut(found, problem.outcomes, problem.weight, null, float(np.clip(slope, *SLOPES)))
