"""The beta-transformed linear pool, p = I_{a,b}(Σ_i w_i q_i) (Ranjan & Gneiting 2010), for two classes.

I is the regularised incomplete beta function, the distribution function of a beta distribution. A linear pool of
calibrated forecasts is underconfident, and a = b > 1 sharpens it away from ½; a ≠ b moves it towards a class;
a = b = 1 leaves it unchanged. The prior has no influence. Where forecasts are missing, weights are rescaled to sum to 1
over the experts present. SciPy is imported when a function is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import number
from opinionpool.arrays import Array, Mask
from opinionpool.errors import ArgumentError, Note
from opinionpool.logodds import check_probabilities
from opinionpool.model.contrasts import Contrasts
from opinionpool.pools.rule import SOME_WEIGHTS, Option, Parameters, Pool, check_shares, weighted_sums
from opinionpool.pools.training import TrainingEvents, Weights

# Beliefs worth one event: log a and log b have variance 1, and the weights, equal ones preferred, a Dirichlet
# density with parameters 1 + 1/N.
PENALTY = 1.0
# Weights are learned from this many events of the rarer outcome for each parameter (Peduzzi et al. 1996).
EVENTS_PER_PARAMETER = 10
TOLERANCE = 1e-6

# The largest |log a| and |log b| that are tried.
_FARTHEST = 12.0
# The step of the derivatives by log a and log b, where truncation and rounding are about alike.
_STEP = 1e-5
_TINY = np.finfo(np.float64).tiny


class BetaLinear(Pool):
    """Linear pool of two classes whose answers are sharpened or softened by a beta distribution function."""

    title = "Beta-transformed linear pool"
    options = MappingProxyType(
        {
            "weights": SOME_WEIGHTS,
            "penalty": Option(PENALTY, "how firmly a = b = 1, which is the linear pool, is believed, in events"),
        }
    )
    learns = True

    def check(self, classes: int, weights: npt.ArrayLike | None = None, a: float = 1.0, b: float = 1.0) -> Parameters:
        """The parameters a, b and weights (None: equal), checked; an `ArgumentError` for more than two classes."""
        if classes != 2:
            raise ArgumentError(f"the beta-linear pool is for two classes, and there are {classes}")
        return {"weights": None if weights is None else check_shares(weights), "a": a, "b": b}

    def combine(self, contrast: Contrasts, weights: Array | None, a: float, b: float) -> Array:
        """Log-odds of the transformed weighted means, (T, 1), accurate for means near 0 and near 1."""
        p = weighted_sums(contrast.shares(weights), contrast.probabilities)
        tails = np.stack([beta_transform(p[:, 0], b, a), beta_transform(p[:, 1], a, b)], axis=-1)
        return logodds.prior_log_ratios(np.maximum(tails, _TINY))

    def fit(self, sample: TrainingEvents, weights: Weights | None, penalty: float) -> Parameters:
        """Return a, b and weights by penalised maximum likelihood; equal weights if there are too few events."""
        n = len(sample.experts)
        sample.check_binary("beta-linear")
        penalty = number(penalty, "penalty", 0)
        shares = None if weights is None else check_shares(sample.given_weights(weights))
        if sample.nothing("the probabilities are averaged" if shares is None else "the linear pool is taken as it is"):
            return {"weights": np.full(n, 1.0 / n) if shares is None else shares, "a": 1.0, "b": 1.0}
        q = sample.collect(lambda contrast, _: np.where(contrast.present, contrast.probabilities[..., 1], np.nan), n)
        used = sample.answered & ~sample.constant if shares is None else np.ones(n, dtype=bool)
        if not used.any():
            sample.note_constant("as all who answered did, so the probabilities are averaged")
            return {"weights": np.full(n, 1.0 / n), "a": 1.0, "b": 1.0}
        fit = beta_fit(
            q[:, used],
            sample.outcomes,
            sample_weight=sample.weight,
            weights="auto" if shares is None else shares,
            penalty=penalty,
        )
        if not fit.converged:
            text = f"the beta-linear pool's likelihood may still rise, with a derivative of {fit.gradient_norm:.2g}"
            sample.notes.append(Note("not-converged", text, serious=True))
        if fit.learned:
            sample.note_unused("got a weight that nothing speaks for or against")
        if shares is not None:
            return {"weights": fit.weights, "a": fit.a, "b": fit.b}
        sample.note_constant("and got weight 0")
        found = np.full(n, fit.weights.mean())
        found[used], found[sample.constant] = fit.weights, 0.0
        return {"weights": found / found.sum(), "a": fit.a, "b": fit.b}


@dataclass(frozen=True, eq=False)
class BetaFit:
    """Parameters of a fitted beta-transformed linear pool, and the convergence of the fit."""

    weights: Array  # (N,); at least 0, with sum 1; above 0 if learned
    # a, b: parameters of the beta distribution
    a: float
    b: float
    learned: bool  # whether the weights were learned; if not, they were given or are equal
    # largest absolute derivative of the penalised mean log-likelihood by log a, log b and log weights
    gradient_norm: float
    # whether `gradient_norm` is within the tolerance. The likelihood may have further stationary points.
    converged: bool


def beta_transform(p: npt.ArrayLike, a: float, b: float) -> Array:
    """Return the regularised incomplete beta function I_{a,b}(p) of probabilities, NaN where missing; a, b above 0."""
    from scipy.special import betainc

    for name, value in (("a", a), ("b", b)):
        if not 0 < value < np.inf:
            raise ArgumentError(f"parameter {name} of the beta transform must be above 0 and finite, not {value!r}")
    return np.asarray(betainc(a, b, check_probabilities(p)))


def beta_fit(
    q: npt.ArrayLike,
    s: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | Literal["auto", "learned"] = "auto",
    penalty: float = PENALTY,
) -> BetaFit:
    """Fit the beta-transformed linear pool to forecasts (T, N) and outcomes 0 or 1 by penalised maximum likelihood.

    The loss is −Σ_t v_t log p_t(Y_t) + λ (½ (log a)² + ½ (log b)² − (1/N) Σ_i log w_i), v_t = `sample_weight`, and
    λ = `penalty`. It is not convex: as in Ranjan & Gneiting, weights are learned together with a and b, starting from
    the best a and b for equal weights. `weights` "auto" learns them if the rarer outcome happened at least 10 times for
    each of the N + 1 parameters, else they are equal; given weights stay. a and b stay within exp(±12).
    """
    forecasts, happened = np.asarray(q, dtype=np.float64), np.asarray(s) == 1
    frequency = np.ones(len(forecasts)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    kept = ~np.isnan(forecasts).all(axis=1) & (frequency > 0)
    forecasts, happened, frequency = forecasts[kept], happened[kept], frequency[kept]
    experts, total = forecasts.shape[1], float(frequency.sum()) or 1.0
    automatic = isinstance(weights, str)
    given = np.full(experts, 1.0 / experts) if automatic else np.asarray(weights, dtype=np.float64)
    present = ~np.isnan(forecasts)
    loss = _Loss(
        np.where(present, forecasts, 0.0), present.astype(np.float64), happened, frequency / total, penalty / total,
        given / given.sum(),
    )  # fmt: skip
    x = _minimum(loss, np.zeros(2))
    rarer = min(frequency[happened].sum(), frequency[~happened].sum())
    enough = bool(rarer >= EVENTS_PER_PARAMETER * (experts + 1))
    learned = automatic and experts > 1 and (weights == "learned" or enough)
    if learned:
        x = _minimum(loss, np.concatenate([x, np.zeros(experts)]))
    norm = float(np.abs(loss(x)[1]).max())
    a, b = np.exp(x[:2]).tolist()
    return BetaFit(loss.weights(x), a, b, learned, norm, norm <= TOLERANCE)


@dataclass(frozen=True, eq=False)
class _Loss:
    """Penalised mean loss of the pool as a function of log a, log b and, if they are learned, log weights."""

    q: Array  # (T, N), 0 where missing
    present: Array  # (T, N), 1 where a forecast is present, else 0
    happened: Mask  # (T,), whether the event happened
    share: Array  # (T,), frequencies that sum to 1
    penalty: float  # λ over the sum of frequencies
    given: Array  # (N,), weights where they are not learned

    def weights(self, x: Array) -> Array:
        """Return the experts' weights, (N,), at the point `x` = (log a, log b and, if learned, log weights)."""
        if len(x) == 2:
            return self.given
        raised = np.exp(x[2:] - x[2:].max())
        return np.asarray(raised / raised.sum())

    def log_p(self, logs: Array, z: Array) -> Array:
        """Log-probability of each outcome, (T,), from `logs` = (log a, log b) and the linear pool's answers `z`."""
        from scipy.special import betainc

        a, b = np.exp(logs)
        reached = np.where(self.happened, z, 1.0 - z)
        p = betainc(np.where(self.happened, a, b), np.where(self.happened, b, a), reached)
        return np.asarray(np.log(np.maximum(p, _TINY)))

    def linear(self, weights: Array) -> tuple[Array, Array, Mask]:
        """Linear pool's answers in (0, 1); sums of the weights of experts present; True where a sum is > 0; (T,)."""
        total = self.present @ weights
        some, total = total > _TINY, np.maximum(total, _TINY)
        mean = self.q.sum(axis=1) / self.present.sum(axis=1)
        z = np.clip(np.where(some, self.q @ weights / total, mean), _TINY, 1.0 - np.finfo(np.float64).eps)
        return z, total, some

    def by_logs(self, logs: Array, z: Array) -> Array:
        """Derivatives (2,) of the loss by `logs` = (log a, log b), if the linear pool's answers are `z`."""
        sides = _STEP * np.eye(2)
        risen = [self.share @ (self.log_p(logs - side, z) - self.log_p(logs + side, z)) for side in sides]
        return np.array(risen) / (2 * _STEP) + self.penalty * logs

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the loss at the point `x` = (log a, log b and, if learned, log weights), and its gradient."""
        from scipy.special import betaln

        logs, weights, share = x[:2], self.weights(x), self.share
        z, total, some = self.linear(weights)
        here, by_logs = self.log_p(logs, z), self.by_logs(logs, z)
        loss = float(-share @ here) + 0.5 * self.penalty * float(logs @ logs)
        if len(x) == 2:
            return loss, by_logs
        a, b = np.exp(logs)
        density = (a - 1) * np.log(z) + (b - 1) * np.log1p(-z) - betaln(a, b)
        by_z = np.where(self.happened, -share, share) * np.exp(np.minimum(density - here, 700.0))
        pull = np.where(some, by_z / total, 0.0)
        by_weights = weights * (pull @ self.q - (pull * z) @ self.present) + self.penalty * (weights - 1 / len(weights))
        loss -= self.penalty * float(np.log(np.maximum(weights, _TINY)).mean())
        return loss, np.concatenate([by_logs, by_weights])


def _minimum(loss: _Loss, start: Array) -> Array:
    """Return a point (log a, log b, ...) of a local minimum of `loss`, found by L-BFGS-B from `start`."""
    from scipy.optimize import minimize

    bounds = [(-_FARTHEST, _FARTHEST)] * 2 + [(None, None)] * (len(start) - 2)
    options = {"ftol": 0.0, "gtol": 0.1 * TOLERANCE, "maxcor": 30, "maxiter": 1000, "maxfun": 2000}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(found.x, dtype=np.float64)
