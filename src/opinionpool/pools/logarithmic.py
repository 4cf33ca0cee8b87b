"""What the resolved events say about the parameters of a pool (model.md, section 6).

Each ``fit_...`` gives keyword arguments of a function of `opinionpool.pools.averages`, and leaves with the sample's
notes what a user should know about them. What maximises a likelihood is loaded by the fit that needs it, as most
commands fit another pool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Mask, frequencies
from opinionpool.errors import ArgumentError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.model.contrasts import Contrasts, contrasts_in, read_batch
from opinionpool.pools.averages import Weights, check_shares, check_weights, matched_weights
from opinionpool.pools.beta_linear import beta_fit
from opinionpool.priors import event_priors, laplace_prior, outcome_counts
from opinionpool.text import listed

if TYPE_CHECKING:
    from opinionpool.estimation.logistic import LogisticFit

# The recalibrated pool is held to the identity as by one event: intercept and slope have prior variance 1.
PENALTY = 1.0

Parameters: TypeAlias = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Sample:
    """The resolved events that somebody forecast, to learn from.

    Attributes
    ----------
    forecasts : Forecasts
    rows : ndarray of int, shape (T,)
        Their positions among all events.
    weight : ndarray, shape (T,)
        Frequencies, all positive.
    prior : ndarray or None, shape (K,)
        The reference that all events share, as class probabilities; None if each has its own.
    priors : ndarray, shape (K,), or (T, K)
        The reference that all share, or that of each event.
    floor : float
    events : ndarray, shape (K,)
        Weight of the resolved events by outcome.
    counts : ndarray, shape (N,)
        Weight of each expert's forecasts on resolved events.
    notes : list of Note
    """

    forecasts: Forecasts
    rows: npt.NDArray[np.intp]
    weight: Array
    prior: Array | None
    priors: Array
    floor: float
    events: Array
    counts: Array
    notes: list[Note] = field(default_factory=list)

    @classmethod
    def of(
        cls, forecasts: Forecasts, prior: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None, floor: float
    ) -> Sample:
        """The sample among some forecasts; arguments as for `opinionpool.pools.registry.fit_pool`."""
        (t, n), k = forecasts.shape, len(forecasts.classes)
        weight = np.where(forecasts.resolved, frequencies(sample_weight, t), 0.0)
        events = outcome_counts(forecasts, weight)
        cells = weight[forecasts.event_index]
        counts = np.bincount(forecasts.expert_index, weights=cells, minlength=n).astype(np.float64)
        rows = np.flatnonzero((weight > 0) & (forecasts.crowd > 0))
        each = event_priors(forecasts, prior)
        if each is not None:
            return cls(forecasts, rows, weight[rows], None, each[rows], floor, events, counts)
        shared = laplace_prior(events) if prior is None else logodds.class_probabilities(prior, k)
        return cls(forecasts, rows, weight[rows], shared, shared, floor, events, counts)

    @property
    def classes(self) -> int:
        """K."""
        return len(self.forecasts.classes)

    @property
    def leaning(self) -> bool:
        """Whether an intercept makes sense: classes mean the same in all events."""
        return self.forecasts.options is None

    @property
    def experts(self) -> tuple[str, ...]:
        """N names."""
        return self.forecasts.experts

    @property
    def outcomes(self) -> npt.NDArray[np.intp]:
        """What happened, (T,)."""
        return self.forecasts.outcomes[self.rows]

    def collect(self, part: Callable[[Contrasts, npt.NDArray[np.intp]], Array], *shape: int) -> Array:
        """What `part` makes of blocks of events and their outcomes, put together, (T, *shape)."""
        prior = logodds.public_probabilities(self.priors)
        batch = read_batch(self.forecasts.X[self.rows], prior, len(self.experts), self.classes)
        result = np.empty((len(self.rows), *shape))
        for rows, contrast in contrasts_in(batch, self.floor):
            result[rows] = part(contrast, self.outcomes[rows])
        return result

    @property
    def present(self) -> Mask:
        """Who answered, (T, N)."""
        x = self.forecasts.X[self.rows]
        return np.asarray(~np.isnan(x if self.classes == 2 else x[..., 0]))

    @property
    def offset(self) -> Array:
        """L°, (T, K - 1)."""
        return np.broadcast_to(logodds.prior_log_ratios(self.priors), (len(self.rows), self.classes - 1))

    def nothing(self, assumed: str) -> bool:
        """Whether there is nothing to learn from, noting what is assumed; notes a single outcome too."""
        if len(self.rows) == 0:
            what = "resolved event has forecasts" if self.forecasts.resolved.any() else "event is resolved"
            self.notes.append(Note("nothing-learned", f"no {what}, so nothing was learned: {assumed}"))
            return True
        seen = np.unique(self.outcomes)
        if len(seen) == 1 and self.leaning:
            label = self.forecasts.classes[seen[0]]
            text = f"every resolved event has outcome {label!r}, which says little about whom to believe"
            self.notes.append(Note("one-outcome", text))
        return False

    def unheard(self, what: str) -> None:
        """Note the experts about whom nothing can be learned."""
        silent = [self.experts[i] for i in np.flatnonzero(~self.present.any(axis=0))]
        if silent:
            text = f"{listed(silent, 3)} had no forecast on a resolved event and {what}"
            self.notes.append(Note("no-forecasts", text, len(silent)))


def _given_weights(sample: Sample, weights: Weights) -> Array:
    matched, unused = matched_weights(weights, sample.experts)
    if unused:
        text = f"weights for {', '.join(map(repr, unused[:3]))} are not used: no such expert is here"
        sample.notes.append(Note("unused-weights", text, len(unused)))
    return matched


def fit_linear(sample: Sample, weights: Weights | None) -> Parameters:
    """Weights by maximum likelihood on the simplex, renormalised over those present on each event."""
    n = len(sample.experts)
    if weights is not None:
        return {"weights": check_shares(_given_weights(sample, weights))}
    if sample.nothing("the experts count equally"):
        return {"weights": np.full(n, 1.0 / n)}
    from opinionpool.estimation.simplex import simplex_weights

    happened = sample.collect(lambda contrast, y: contrast.probabilities[np.arange(len(y)), :, y], n)
    fit = simplex_weights(happened, sample.weight, sample.present)
    sample.unheard(f"got weight 1/{n}, as nothing speaks for or against")
    if not fit.converged:
        text = f"the weights of the linear pool may fall short of the best log score by {fit.gap:.2g} an event"
        sample.notes.append(Note("not-converged", text, serious=True))
    return {"weights": fit.weights}


def fit_log(sample: Sample, weights: Weights | None) -> Parameters:
    """Maximum likelihood with an intercept: logistic regression on contrasts, offset L°."""
    n, free = len(sample.experts), sample.classes - 1
    if weights is not None:
        return {"weights": check_weights(_given_weights(sample, weights)), "intercept": 0.0}
    if sample.nothing("the experts' log-odds are averaged"):
        return {"weights": np.full(n, 1.0 / n), "intercept": 0.0}
    from opinionpool.estimation.logistic import logistic_fit

    contrasts = sample.collect(lambda contrast, _: contrast.contrasts, n, free)
    fit = logistic_fit(contrasts, sample.outcomes, sample.offset, sample_weight=sample.weight, intercept=sample.leaning)
    _check_logistic(sample, fit)
    if fit.separated:
        text = (
            "outcomes perfectly separated; maximum-likelihood weights are infinite, and these are the most probable "
            f"ones instead under normal beliefs: each weight {1 / n:.3g} ± {n**-0.5:.3g}"
        )
        text += ", the intercept 0 ± 1" if sample.leaning else ""
        sample.notes.append(Note("separated", text, serious=True))
        sample.unheard("kept the believed weight")
    else:
        sample.unheard("got weight 0")
    return {"weights": fit.weights, "intercept": _intercept(fit) if sample.leaning else 0.0}


def fit_recalibrated(sample: Sample, penalty: float) -> Parameters:
    """Logistic recalibration of the mean contrast, held to the identity."""
    if not 0 <= penalty < np.inf:
        raise ArgumentError(f"the recalibration penalty must be a finite number, at least 0, and it is {penalty!r}")
    if sample.nothing("the mean log-odds are taken as they are"):
        return {"intercept": 0.0, "slope": 1.0}
    from opinionpool.estimation.logistic import logistic_fit

    means = sample.collect(lambda contrast, _: contrast.mean_contrast[:, None, :], 1, sample.classes - 1)
    fit = logistic_fit(
        means, sample.outcomes, sample.offset,
        sample_weight=sample.weight, penalty=penalty, center=1.0, intercept_penalty=penalty, intercept=sample.leaning,
    )  # fmt: skip
    _check_logistic(sample, fit)
    if fit.separated:
        text = (
            "outcomes perfectly separated; the maximum-likelihood recalibration is infinite, and this is the one with "
            "penalty 1 instead"
        )
        sample.notes.append(Note("separated", text, serious=True))
    return {"intercept": _intercept(fit) if sample.leaning else 0.0, "slope": float(fit.weights[0])}


def fit_beta_linear(sample: Sample, weights: Weights | None, penalty: float) -> Parameters:
    """Weights and transform by penalised maximum likelihood; equal weights where the events are too few."""
    n = len(sample.experts)
    if sample.classes != 2 or not sample.leaning:
        have = f"have {sample.classes}" if sample.leaning else "are of events with options of their own"
        raise ArgumentError(f"the beta-linear pool is for two classes, and these forecasts {have}")
    shares = None if weights is None else check_shares(_given_weights(sample, weights))
    if sample.nothing("the probabilities are averaged" if shares is None else "the linear pool is taken as it is"):
        return {"weights": np.full(n, 1.0 / n) if shares is None else shares, "a": 1.0, "b": 1.0}
    q = sample.collect(lambda contrast, _: np.where(contrast.present, contrast.probabilities[..., 1], np.nan), n)
    fit = beta_fit(
        q, sample.outcomes, sample_weight=sample.weight, weights="auto" if shares is None else shares, penalty=penalty
    )
    if not fit.converged:
        text = f"the beta-linear pool's likelihood may still rise, with a derivative of {fit.gradient_norm:.2g}"
        sample.notes.append(Note("not-converged", text, serious=True))
    if fit.learned:
        sample.unheard("got a weight that nothing speaks for or against")
    return {"weights": fit.weights, "a": fit.a, "b": fit.b}


def _intercept(fit: LogisticFit) -> float | Array:
    """As the functions of `opinionpool.pools.averages` take it."""
    intercept = logodds.public_log_odds(fit.intercept)
    return intercept if intercept.ndim else float(intercept)


def _check_logistic(sample: Sample, fit: LogisticFit) -> None:
    if not fit.converged:
        text = f"logistic regression stopped after {fit.iterations} passes with a gradient of {fit.gradient_norm:.2g}"
        sample.notes.append(Note("not-converged", text, serious=True))


def fit_given(sample: Sample, **options: Any) -> Parameters:  # noqa: ANN401
    """Nothing to learn: the options are the parameters."""
    if options.get("weights") is not None:
        options["weights"] = check_shares(_given_weights(sample, options["weights"]))
    return options
