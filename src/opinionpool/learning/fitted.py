"""What learning leaves: a panel, the prior that it was learned with, and what is known about both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import number
from opinionpool.arrays import Array
from opinionpool.display import Tabular
from opinionpool.errors import LearningError, Note, ProbabilityError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.duplicates import Duplicates
from opinionpool.learning.recency import Recency
from opinionpool.learning.shrinkage import MarginalFeatures
from opinionpool.learning.topics import TopicEffects, TopicShift, learn_topics, left_out, weights_looked_at
from opinionpool.model.contrasts import AnswerParts, Batch, blocks, read_batch
from opinionpool.model.full_panel import FullPanel
from opinionpool.model.panel import Panel
from opinionpool.model.pooling import fill_as_expected
from opinionpool.model.pooling_panel import PoolingPanel
from opinionpool.model.sparse import for_options, pool_cells
from opinionpool.priors import own_priors, spread_prior


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """What is not known of L* = L° + a + Σ w_i u_i, u_i the contrasts as far as they are believed."""

    covariance: Array  # (K - 1 + N, K - 1 + N); of the intercept a and the weights w, given the outcomes

    def weight_errors(self, experts: int) -> Array:
        """Standard errors of the weights, (N,)."""
        return np.sqrt(np.diag(self.covariance)[-experts:])

    def spread_over(self, source: npt.NDArray[np.intp]) -> Uncertainty:
        """The same for duplicates; `source` is the distinct expert behind each, -1 for uninformative ones."""
        copies = np.bincount(source[source >= 0], minlength=int(source.max(initial=-1)) + 1)
        d = len(self.covariance) - len(copies)
        share = np.zeros((d + len(source), d + len(copies)))
        share[:d, :d] = np.eye(d)
        for i in np.flatnonzero(source >= 0):
            share[d + i, d + source[i]] = 1.0 / copies[source[i]]
        return Uncertainty(share @ self.covariance @ share.T)

    def interval(
        self,
        panel: PoolingPanel,
        probabilities: npt.ArrayLike,
        prior: npt.ArrayLike = 0.5,
        base_rate: npt.ArrayLike | None = None,
        level: float = 0.9,
        shift: TopicShift | None = None,
    ) -> tuple[Array, Array]:
        """Interval for each pooled probability, as `Panel.pool`; of each class by itself when K > 2.

        `shift` is what topics do to these answers.

        Returns
        -------
        low, high : ndarray, shape (...), or (..., K) when K > 2
            Symmetric around the answer in log-odds of the class against the others, inside the floors.

        Raises
        ------
        ArgumentError
            For a level outside (0, 1).
        """
        level = number(level, "level", 0, 1, between=True)
        k = len(panel.classes)
        batch = read_batch(probabilities, prior, len(panel), k)
        p, error = self._errors(panel, batch, panel.pool(probabilities, prior, base_rate), shift)
        width = NormalDist().inv_cdf((1.0 + level) / 2.0)
        ends = np.empty((2, *p.shape))
        for rows in blocks(batch):
            with np.errstate(divide="ignore"):
                odds = np.log(p[rows]) - np.log(p[rows] @ (1.0 - np.eye(k)))
            floors = logodds.class_floors(panel.settings.pool_floor, batch.prior[rows], 1.0)
            most = 1.0 - floors @ (1.0 - np.eye(k))
            for end, sign in zip(ends, (-1.0, 1.0), strict=True):
                end[rows] = np.clip(logodds.expit(odds + sign * width * error[rows]), floors, most)
        return batch.shape_answers(ends[0]), batch.shape_answers(ends[1])

    def errors(self, panel: PoolingPanel, probabilities: npt.ArrayLike, prior: npt.ArrayLike) -> Array:
        """Standard errors of the log-odds of each class against the others, (T, K); 0 where nobody answered."""
        batch = read_batch(probabilities, prior, len(panel), len(panel.classes))
        return self._errors(panel, batch, panel.pool(probabilities, prior))[1]

    @property
    def given(self) -> Uncertainty:
        """The posterior's own, without what other models leave open."""
        return self

    def at_least(self, other: Uncertainty) -> Uncertainty:
        """No combination of intercept and weights is less uncertain than here or there."""
        values, vectors = np.linalg.eigh(other.covariance - self.covariance)
        return Uncertainty(self.covariance + (vectors * np.maximum(values, 0.0)) @ vectors.T)

    def ratios_covariance(self, panel: PoolingPanel, probabilities: npt.ArrayLike, prior: npt.ArrayLike) -> Array:
        """Covariance of the pooled log-ratios, (T, K - 1, K - 1); 0 where nobody answered."""
        batch = read_batch(probabilities, prior, len(panel), len(panel.classes))
        return np.concatenate([self._covariance(panel, batch, rows) for rows in blocks(batch)])

    def _errors(
        self, panel: PoolingPanel, batch: Batch, answers: npt.ArrayLike, shift: TopicShift | None = None
    ) -> tuple[Array, Array]:
        """Pooled probabilities of all classes, and the errors of their log-odds, (T, K) both."""
        k = batch.classes
        p = _all_classes(answers, k)
        p = p if shift is None else shift.moved(p, batch.prior, panel.settings.pool_floor)
        error = np.empty(p.shape)
        for rows in blocks(batch):
            others = p[rows] @ (1.0 - np.eye(k))
            covariance = self._covariance(panel, batch, rows)
            covariance = covariance if shift is None else shift.spread(rows, covariance)
            error[rows] = _class_errors(p[rows], others, covariance)
        return p, error

    def _covariance(self, panel: PoolingPanel, batch: Batch, rows: slice) -> Array:
        """Covariance of the pooled log-ratios of some events, (T, K - 1, K - 1); 0 where nobody answered."""
        assert isinstance(panel, Panel)
        d, full = batch.classes - 1, debiased(panel, batch, rows)
        answered = batch.answered[rows]
        intercept = np.broadcast_to(np.eye(d)[:, None, :], (d, len(full), d)).swapaxes(0, 1)
        gradient = np.where(answered[:, None, None], np.concatenate([intercept, full], axis=1), 0.0)
        return np.asarray(np.einsum("tia,ij,tjb->tab", gradient, self.covariance, gradient, optimize=True))


@dataclass(frozen=True, eq=False)
class OpenUncertainty(Uncertainty):
    """Uncertainty to which other models than the one that was fitted contribute, while a fit is being made.

    What an answer would have been without its own outcome follows from the posterior alone.
    """

    posterior: Uncertainty

    @property
    def given(self) -> Uncertainty:
        """The posterior's own."""
        return self.posterior

    def spread_over(self, source: npt.NDArray[np.intp]) -> Uncertainty:
        """The same for duplicates, as `Uncertainty.spread_over`."""
        return OpenUncertainty(super().spread_over(source).covariance, self.posterior.spread_over(source))


def whole(uncertainty: Uncertainty | None) -> Uncertainty | None:
    """What is kept once a fit is made: all that is open together."""
    return Uncertainty(uncertainty.covariance) if isinstance(uncertainty, OpenUncertainty) else uncertainty


def debiased(panel: Panel, batch: Batch, rows: slice) -> Array:
    """Debiased contrasts of some events, as far as extremes are believed, those missing as expected, (T, N, K - 1)."""
    absent = logodds.no_options(batch.prior[rows][:, None, :])
    deviation = panel.settings.extremes.deviation(batch.contrasts(rows, panel.settings.floor), absent)
    return fill_as_expected(deviation, panel.parts)


def _all_classes(answers: npt.ArrayLike, k: int) -> Array:
    """Pooled probabilities of all classes, (T, K)."""
    p = np.asarray(answers).reshape((-1,) if k == 2 else (-1, k))
    return np.stack([1.0 - p, p], axis=-1) if k == 2 else p


def _class_errors(p: Array, others: Array, covariance: Array) -> Array:
    """Standard errors of each class's log-odds against the others, (T, K), from those of the log-ratios."""
    # Entry c, j: how the log-odds of class c against the others go with the log-probability of class j.
    slope = np.where(np.eye(p.shape[1], dtype=bool), 1.0, -p[:, None, :] / others[:, :, None])[:, :, 1:]
    variance = np.einsum("tca,tab,tcb->tc", slope, covariance, slope, optimize=True)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


@dataclass(frozen=True, eq=False)
class FittedPanel(Tabular):
    """What a fit learned.

    Attributes
    ----------
    panel : PoolingPanel
        A `Panel`, or a `FullPanel` where the classes differ.
    prior : ndarray or None, shape (K,)
        The reference used, as class probabilities; None if each event had its own.
    structure : str
        What was learned: one of `STRUCTURES` but "auto", "default", "crowd", or "assumed" (nothing).
    events : ndarray, shape (K,)
        Weight of the resolved events by outcome.
    counts : ndarray, shape (N,)
        Weight of each expert's forecasts on resolved events.
    present : ndarray of bool, shape (N,)
        Who made a forecast, on whatever event.
    notes : tuple of Note
    marginal : MarginalFeatures or None
        What the data say of each expert by itself, where the panel's own features follow from its weights.
    uncertainty : Uncertainty or None
        What is open about the weights, where it is known.
    topics : TopicEffects or None
        Intercepts and slopes by topic, where events have topics.
    recency : Recency or None
        How fast forecasts go stale, where their times are known.
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
    uncertainty: Uncertainty | None = None
    topics: TopicEffects | None = None
    recency: Recency | None = None

    def _table(self) -> dict[str, list[Any]]:
        low, high = self.weight_interval()
        features = self.panel if self.marginal is None else self.marginal
        return {
            "expert": list(self.experts),
            "weight": self.panel.weights.tolist(),
            "weight_low": low.tolist(),
            "weight_high": high.tolist(),
            "calibration": features.calibration.tolist(),
            "accuracy": features.accuracy.tolist(),
            "resolved": self.counts.tolist(),
        }

    def weight_interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """The credible interval of each weight by itself, (N,) twice; NaN where that is not known."""
        weight = self.panel.weights
        error = np.full(len(weight), np.nan)
        if self.uncertainty is not None:
            known = self.present & self.panel.informative
            error = np.where(known, self.uncertainty.weight_errors(len(weight)), np.nan)
        half = NormalDist().inv_cdf((1.0 + level) / 2.0) * error
        return weight - half, weight + half

    @property
    def experts(self) -> tuple[str, ...]:
        """N names."""
        return self.panel.names

    @property
    def classes(self) -> tuple[object, ...]:
        """K labels."""
        return self.panel.classes

    @property
    def class_model(self) -> str:
        """Whether experts' weights differ between classes, "full", or not, "symmetric"."""
        return "full" if isinstance(self.panel, FullPanel) else "symmetric"

    @property
    def weights(self) -> Array:
        """Weights when everybody who made a forecast is present, (N,); 0 for the others."""
        return np.asarray(self.panel.weights_for(self.present[None])[0])

    def pool(
        self,
        q: npt.ArrayLike,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        topics: npt.ArrayLike | None = None,
    ) -> Array:
        """Pooled probability, as `Panel.pool`, with the prior of the fit unless another is given.

        `topics` is the topic of all events or one for each; where none is given, or "", topics are not looked at.

        Raises
        ------
        ProbabilityError
            If each event had its own prior in the fit and none is given now.
        """
        prior = self.reference(prior)
        p = self.panel.pool(q, prior, base_rate)
        if topics is None or self.topics is None:
            return p
        batch = read_batch(q, prior, len(self.panel), len(self.classes))
        both = _all_classes(p, batch.classes)
        shift = self.topic_shift(both, batch, base_rate, topics)
        return batch.shape_answers(shift.moved(both, batch.prior, self.panel.settings.pool_floor))

    def topic_shift(self, p: Array, batch: Batch, base_rate: npt.ArrayLike | None, topics: npt.ArrayLike) -> TopicShift:
        """What topics do to the common answers on T events, (T, K); nothing where nobody answered."""
        assert self.topics is not None
        start = batch.prior if base_rate is None else spread_prior(base_rate, (len(p),), p.shape[1], "base rate")
        beyond = logodds.prior_log_ratios(p) - logodds.prior_log_ratios(start)
        labels = np.broadcast_to(np.ravel(np.asarray(topics, dtype=object)), len(p))
        labels = np.where(batch.answered, labels, "")
        if self.topics.weights is None or not isinstance(self.panel, Panel):
            return self.topics.shift(labels, beyond)
        full = np.empty((len(p), len(self.panel), p.shape[1] - 1))
        for rows in blocks(batch):
            full[rows] = debiased(self.panel, batch, rows)
        return self.topics.shift(labels, beyond, full)

    def pool_forecasts(
        self, forecasts: Forecasts, prior: npt.ArrayLike | None = None, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """The same for every event of some forecasts, (T,) or (T, K), without an array of events x experts.

        Forecasts may be by some of the experts, in any order. Their own priors are looked at only where events have
        options of their own, equally probable beforehand if there is no prior.

        Raises
        ------
        ExpertError
            If an expert is not among those who were learned.
        ArgumentError
            If events have options of their own, and what was learned holds for classes that all share.
        """
        if prior is None and forecasts.options is not None:
            prior = own_priors(forecasts, None)
        prior = self.reference(prior)
        forecasts = self.aged(forecasts, prior)
        p = pool_cells(self.panel, forecasts, prior, base_rate)
        if self.topics is None or forecasts.topics is None:
            return p
        both, found = _all_classes(p, len(self.classes)), np.empty_like(p)
        for rows, q, (own, rate) in forecasts.dense_blocks(self.experts, prior, base_rate):
            assert own is not None
            batch = read_batch(q, own, len(self.panel), len(self.classes))
            shift = self.topic_shift(both[rows], batch, rate, forecasts.topics[rows])
            found[rows] = batch.shape_answers(shift.moved(both[rows], batch.prior, self.panel.settings.pool_floor))
        return found

    def interval(
        self,
        q: npt.ArrayLike,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        level: float = 0.9,
        topics: npt.ArrayLike | None = None,
    ) -> tuple[Array, Array]:
        """Interval for the pooled probability, from what the outcomes left open about the weights and topics.

        Returns
        -------
        low, high : ndarray, shape (...), or (..., K) when K > 2

        Raises
        ------
        LearningError
            If this panel was learned in a way that does not say how sure it is.
        """
        if self.uncertainty is None:
            raise LearningError(
                f"a panel learned as {self.structure!r} does not say how sure it is; the default pool does"
            )
        prior, shift = self.reference(prior), None
        if self.topics is not None and topics is not None:
            batch = read_batch(q, prior, len(self.panel), len(self.classes))
            both = _all_classes(self.panel.pool(q, prior, base_rate), batch.classes)
            shift = self.topic_shift(both, batch, base_rate, topics)
        return self.uncertainty.interval(self.panel, q, prior, base_rate, level, shift)

    def forecast_intervals(
        self,
        forecasts: Forecasts,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        level: float = 0.9,
    ) -> tuple[Array, Array] | None:
        """The intervals of every event of some forecasts, without an array of all events x experts; None if unknown."""
        if self.uncertainty is None:
            return None
        t, k = len(forecasts.events), len(self.classes)
        forecasts = self.aged(forecasts, self.reference(prior))
        ends = np.empty((2, t) if k == 2 else (2, t, k))
        for rows, q, (own, rate) in forecasts.dense_blocks(self.experts, self.reference(prior), base_rate):
            ends[:, rows] = self.interval(
                q, own, rate, level, None if forecasts.topics is None else forecasts.topics[rows]
            )
        return ends[0], ends[1]

    def at_least_as_uncertain_as(self, other: FittedPanel, forecasts: Forecasts, prior: npt.ArrayLike) -> FittedPanel:
        """The same with weights and answers that are at least as uncertain as those of another fit.

        Of the answers, in log-odds, this holds for every event of some forecasts with the given prior.
        """
        mine, its = self.uncertainty, other.uncertainty
        if mine is None or its is None or not isinstance(self.panel, Panel):
            return self
        both, most = mine.at_least(its), 1.0
        # What is believed of extremes and of missing forecasts differs a little between fits.
        for _, q, (own,) in forecasts.dense_blocks(self.experts, prior):
            assert own is not None
            error = both.errors(self.panel, q, own)
            ratio = np.divide(its.errors(other.panel, q, own), error, out=np.ones_like(error), where=error > 0)
            most = max(most, float(ratio.max(initial=1.0)))
        both = Uncertainty(both.covariance * most**2)
        return replace(self, uncertainty=OpenUncertainty(both.covariance, mine.given))

    def aged(self, forecasts: Forecasts, prior: npt.ArrayLike) -> Forecasts:
        """Some forecasts as they count by their ages, without these."""
        if self.recency is None or forecasts.made is None or forecasts.options is not None:
            return forecasts
        reference = spread_prior(prior, (len(forecasts.events),), len(self.classes))
        return self.recency.forecasts(forecasts, reference, self.panel.settings.floor)

    def with_topics(self, forecasts: Forecasts, reference: Array, weight: Array) -> FittedPanel:
        """The same with what resolved events say of their topics, if they have different ones.

        Parameters
        ----------
        forecasts : Forecasts
            What the panel was learned from.
        reference : ndarray, shape (T, K)
            The prior of each event.
        weight : ndarray, shape (T,)
            Frequencies.
        """
        if forecasts.topics is None or forecasts.options is not None or self.structure == "assumed":
            return self
        used = np.flatnonzero(forecasts.resolved & (forecasts.crowd > 0) & (weight > 0))
        topics = forecasts.topics[used]
        if len(np.unique(topics)) < 2:
            return self
        used = used[topics != ""]
        some, prior = forecasts.select_events(used), reference[used]
        public = logodds.public_probabilities(prior)
        common = _all_classes(
            replace(self, topics=None).pool_forecasts(replace(some, topics=None), public), prior.shape[1]
        )
        ratios = logodds.prior_log_ratios(common)
        full, shares = None, None
        if self.uncertainty is not None and isinstance(self.panel, Panel):
            n, d = len(self.panel), ratios.shape[1]
            covariance = np.empty((*ratios.shape, d))
            several = weights_looked_at(n, len(np.unique(topics)), d)
            plain = np.empty((len(used), n, d)) if several else None
            full = None if plain is None else np.empty_like(plain)
            for rows, q, (own,) in some.dense_blocks(self.experts, public):
                assert own is not None
                covariance[rows] = self.uncertainty.given.ratios_covariance(self.panel, q, own)
                if plain is not None and full is not None:
                    batch = read_batch(q, own, n, d + 1)
                    plain[rows] = batch.contrasts(slice(None), self.panel.settings.floor)
                    full[rows] = debiased(self.panel, batch, slice(None))
            ratios = left_out(ratios, some.outcomes, covariance)
            shares = None if plain is None else Duplicates.among(plain, self.experts).shares
        effects = learn_topics(
            forecasts.topics[used],
            ratios,
            logodds.prior_log_ratios(prior),
            some.outcomes,
            weight[used],
            full,
            shares,
        )
        return replace(self, topics=effects, notes=(*self.notes, effects.note()))

    def answer_parts(self, batch: Batch) -> AnswerParts:
        """The answer about one event as a sum, see `AnswerParts`."""
        return self.panel.answer_parts(batch)

    def for_options(self, options: tuple[object, ...]) -> FittedPanel:
        """The same, learned from events with options of their own, for events with these options."""
        # The uncertainty of its weights is known for as many options as it was learned from.
        uncertainty = self.uncertainty if len(options) == len(self.classes) else None
        return replace(self, panel=for_options(self.panel, options), uncertainty=uncertainty)

    def reference(self, prior: npt.ArrayLike | None = None) -> npt.ArrayLike:
        """The prior to use: the one given, or the one of the fit, in the form that `Panel.pool` takes."""
        if prior is not None:
            return prior
        if self.prior is None:
            raise ProbabilityError("these experts were learned with a prior for each event, so pooling needs one too")
        return logodds.public_probabilities(self.prior)
