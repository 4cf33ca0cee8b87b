"""Pools that add contrasts: logarithmic, independent, extremised, recalibrated and geometric (model.md, section 6).

Modules that maximise a likelihood are imported by the fits that need them, as most commands fit another pool.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import number
from opinionpool.arrays import Array, distinct_rows
from opinionpool.errors import Note
from opinionpool.estimation.rows import ForecastRows
from opinionpool.model.contrasts import Contrasts
from opinionpool.pools.rule import (
    EQUAL_WEIGHTS,
    LEARNED_WEIGHTS,
    LogOddsPool,
    Option,
    Parameters,
    check_weights,
    intercept_ratios,
)
from opinionpool.pools.training import TrainingEvents, Weights

if TYPE_CHECKING:
    from opinionpool.estimation.logistic import LogisticFit

FACTOR = 3.0**0.5
# The recalibrated pool is shrunken towards the identity as by one event: intercept and slope have prior variance 1.
PENALTY = 1.0


class Geometric(LogOddsPool):
    """Geometric mean of odds: the weighted mean of the log-odds of the experts present.

    For K > 2 it is the geometric mean of probabilities, rescaled to sum to 1. Its answers for an event and for the
    event's complement add up to 1, unlike geometric means of probabilities without rescaling.
    """

    title = "Geometric mean of odds"
    options = MappingProxyType({"weights": EQUAL_WEIGHTS})
    uses_prior = False

    def weights(self, contrast: Contrasts, weights: Array | None = None) -> Array:
        """Each expert's share of the weight, (T, N): `weights` rescaled to a sum of 1 over the experts present."""
        return contrast.shares(weights)


class Log(LogOddsPool):
    """Logarithmic pool (paper, equation 2): log-odds of prior + intercept + weighted sum of log-odds less the prior's.

    L* = L° + a + Σ w_i (L_i − L°) = w₀ + Σ w_i L_i with w₀ = a + (1 − Σ w_i) L°. An expert without a forecast
    contributes 0, as if its forecast were the prior; the other experts' weights do not change.
    """

    title = "Logarithmic pool"
    options = MappingProxyType({"weights": LEARNED_WEIGHTS})
    learns = weighs = True
    fixed_by = "weights"

    def check(self, classes: int, weights: npt.ArrayLike | None = None, intercept: npt.ArrayLike = 0.0) -> Parameters:
        """Return the parameters: `weights`, checked, or None, and the intercept as log-ratios, (K - 1,)."""
        w = None if weights is None else check_weights(weights)
        return {"weights": w, "intercept": intercept_ratios(intercept, classes)}

    def weights(self, contrast: Contrasts, weights: Array | None = None) -> Array:
        """Return the weight of each expert present, (T, N), 0 where absent; 1/N each if `weights` is None."""
        return np.where(contrast.present, 1.0 / contrast.present.shape[1] if weights is None else weights, 0.0)

    def fit(self, sample: TrainingEvents, weights: Weights | None) -> Parameters:
        """Weights and intercept by logistic regression on log-odds less the prior's, with the prior's as offset."""
        n, free = len(sample.experts), sample.classes - 1
        if weights is not None:
            return {"weights": check_weights(sample.given_weights(weights)), "intercept": 0.0}
        averaged = "the experts' log-odds are averaged"
        if sample.nothing(averaged) or not (used := sample.informative(averaged)).any():
            return {"weights": np.full(n, 1.0 / n), "intercept": 0.0}
        from opinionpool.estimation.logistic import logistic_fit

        contrasts = sample.collect(lambda contrast, _: contrast.contrasts, n, free)[:, used]
        m = contrasts.shape[1]
        fit = logistic_fit(
            contrasts, sample.outcomes, sample.offset, sample_weight=sample.weight, intercept=sample.has_intercept
        )
        _check_logistic(sample, fit)
        if fit.separated:
            text = (
                "outcomes perfectly separated; maximum-likelihood weights are infinite, and these are the most "
                f"probable ones instead under normal beliefs: each weight {1 / m:.3g} ± {m**-0.5:.3g}"
            )
            text += ", the intercept 0 ± 1" if sample.has_intercept else ""
            sample.notes.append(Note("separated", text, serious=True))
            sample.note_unused("kept the believed weight")
        else:
            sample.note_unused("got weight 0")
        sample.note_constant("and got weight 0")
        # Who never answered is believed to be like those who did, where weights are believed.
        found = np.full(n, 1.0 / m if fit.separated else 0.0)
        found[used], found[sample.constant] = fit.weights, 0.0
        return {"weights": found, "intercept": _intercept(fit) if sample.has_intercept else 0.0}


class Independent(LogOddsPool):
    """Pool of experts who are independent given the outcome (paper, equation 23): L* = L° + Σ (L_i − L°).

    In log-odds, L_i are forecasts and L° the prior. The sum is over the experts present, so the prior enters once for
    any number of experts.
    """

    title = "Independent pool"

    def weights(self, contrast: Contrasts) -> Array:
        """Return weight 1 for each expert present, (T, N), 0 elsewhere."""
        return contrast.present.astype(np.float64)

    def fit(self, sample: TrainingEvents) -> Parameters:
        """Return no parameters, as nothing is learned; add notes on equal forecasts and on correlated errors."""
        _note_equal(sample)
        r, error = _shared_errors(sample)
        if r > max(CORRELATED, 3.0 * error):
            text = (
                f"the errors of the experts correlate at {r:.2f} on average, and this pool takes them to be "
                "independent: it counts what they share several times, so its answers are too extreme; the gaussian "
                "pool allows for it"
            )
            sample.notes.append(Note("correlated-errors", text))
        return {}


# Errors that correlate by less are no matter; from fewer events it is not known.
CORRELATED, FEWEST = 0.1, 10
# Fewer forecasts may be equal by chance.
REPEATED = 5


def _note_equal(sample: TrainingEvents) -> None:
    """Add a note on the largest group of experts with equal forecasts, if at least `REPEATED` forecasts are repeats."""
    x, n = sample.forecasts.X, len(sample.experts)
    given = x.swapaxes(0, 1).reshape(n, x.size // n)
    _, group = distinct_rows(np.where(np.isnan(given), -1.0, given + 0.0).view(np.int64))
    size = np.bincount(group)
    counts = (~np.isnan(given)).sum(axis=1) // (1 if sample.classes == 2 else sample.classes)
    repeated = (size[group] - 1) * counts
    most = int(repeated.argmax())
    if repeated[most] >= REPEATED:
        names = [sample.experts[i] for i in np.flatnonzero(group == group[most])]
        text = (
            f"{len(names)} experts say the same on every event ({', '.join(map(repr, names[:3]))}"
            f"{', ...' if len(names) > 3 else ''}), and this pool counts each of them as evidence of its own, so its "
            "answers are too extreme; the gaussian pool allows for it"
        )
        sample.notes.append(Note("equal-experts", text, len(names)))


def _shared_errors(sample: TrainingEvents) -> tuple[float, float]:
    """Mean correlation of two experts' errors (log-odds less their mean given the outcome), and its standard error."""
    n, d, y = len(sample.experts), sample.classes - 1, sample.outcomes
    if n < 2 or len(np.unique(y)) < 2 or sample.forecasts.options is not None:
        return 0.0, 0.0
    values = sample.collect(lambda c, _: np.where(c.present[..., None], c.contrasts, np.nan), n, d)
    rows = ForecastRows.of_array(values, y, np.ones(len(y)))
    count = np.maximum(rows.marginals.count[:-1].sum(axis=0), 1)
    shared, pairs = rows.products(rows.marginals.mean[:-1], np.sqrt(rows.marginals.square[0] / (count * d)))
    used = pairs > 0
    if used.sum() < FEWEST:
        return 0.0, 0.0
    each = shared[used] / (d * pairs[used].mean())
    return float(each.mean()), float(each.std() / np.sqrt(used.sum()))


class Recalibrated(LogOddsPool):
    """Recalibrated mean log-odds of the experts present: prior L° + a + b · mean(L_i − L°), with a and b learned."""

    title = "Recalibrated log-odds"
    options = MappingProxyType(
        {"penalty": Option(PENALTY, "how firmly intercept 0 and slope 1 are believed, in events")}
    )
    learns = True

    def check(self, classes: int, intercept: npt.ArrayLike = 0.0, slope: float = 1.0) -> Parameters:
        """Return the parameters: the slope, checked, and the intercept as log-ratios, (K - 1,)."""
        slope = number(slope, "the slope of a recalibration")
        return {"slope": slope, "intercept": intercept_ratios(intercept, classes)}

    def weights(self, contrast: Contrasts, slope: float = 1.0) -> Array:
        """Return the weight of each expert present, (T, N): the slope divided equally among them."""
        return slope * contrast.shares(None)

    def means(self, contrast: Contrasts) -> Array:
        """The mean over the experts present of log-ratios less the prior's, L − L°, (T, K - 1), to recalibrate."""
        return contrast.mean_contrast

    def fit(self, sample: TrainingEvents, penalty: float) -> Parameters:
        """Slope and intercept by logistic regression on mean log-odds less the prior's, shrunken towards 1 and 0."""
        penalty = number(penalty, "penalty", 0)
        if sample.nothing("the mean log-odds are taken as they are"):
            return {"intercept": 0.0, "slope": 1.0}
        from opinionpool.estimation.logistic import logistic_fit

        means = sample.collect(lambda contrast, _: self.means(contrast)[:, None, :], 1, sample.classes - 1)
        fit = logistic_fit(
            means, sample.outcomes, sample.offset, sample_weight=sample.weight, penalty=penalty, center=1.0,
            intercept_penalty=penalty, intercept=sample.has_intercept,
        )  # fmt: skip
        _check_logistic(sample, fit)
        if fit.separated:
            text = (
                "outcomes perfectly separated; the maximum-likelihood recalibration is infinite, and this is the one "
                "with penalty 1 instead"
            )
            sample.notes.append(Note("separated", text, serious=True))
        return {"intercept": _intercept(fit) if sample.has_intercept else 0.0, "slope": float(fit.weights[0])}


class Extremized(LogOddsPool):
    """Mean log-odds of the experts present, moved away from the prior: L* = L° + factor · mean(L_i − L°).

    The default √3 is the limit of the factor for many forecasters in Neyman & Roughgarden (2021), "Are you smarter than
    a random expert?"; Satopää et al. (2014), "Combining multiple probability predictions using a simple logit model",
    Int. J. Forecasting 30, estimated 1.16 to 3.92.
    """

    title = "Extremised log-odds"
    options = MappingProxyType({"factor": Option(FACTOR, "multiplies the mean log-odds beyond the prior's")})

    def check(self, classes: int, factor: float = FACTOR) -> Parameters:  # noqa: ARG002
        """Return the parameters of the pool: the factor, checked to be finite and not negative."""
        return {"factor": number(factor, "factor", 0)}

    def weights(self, contrast: Contrasts, factor: float = FACTOR) -> Array:
        """Return the weight of each expert present, (T, N): the factor divided equally among them."""
        return factor * contrast.shares(None)


def _intercept(fit: LogisticFit) -> float | Array:
    """Return a logistic fit's intercept for users: a number for two classes, else centred log-probabilities (K,)."""
    intercept = logodds.public_log_odds(fit.intercept)
    return intercept if intercept.ndim else float(intercept)


def _check_logistic(sample: TrainingEvents, fit: LogisticFit) -> None:
    if not fit.converged:
        text = "logistic regression stopped before its coefficients were found"
        sample.notes.append(Note("not-converged", text, serious=True))
