"""Posterior of a pool's intercept and weights as a mixture of normals, and quantiles of the answers under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import number
from opinionpool.arrays import Array, Index
from opinionpool.blocks import blocks
from opinionpool.display import Tabular
from opinionpool.learning.duplicates import Duplicates
from opinionpool.learning.laplace import Fit
from opinionpool.learning.members import NAMES, Members
from opinionpool.learning.nodes import Nodes
from opinionpool.learning.topics import TopicShift
from opinionpool.model.contrasts import Batch
from opinionpool.model.panel import Panel, PoolingPanel

# Steps of the search for quantiles: it halves where Newton's method leaves the bracket.
STEPS = 80
# Normals that are less probable together than this have no part in an interval.
LEAST = 1e-3
# A standard deviation of log-odds below which they are known.
KNOWN = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Tabular):
    """Posterior of intercept and weights as a mixture of M normals, and of the hyperparameters behind it.

    Of the pool L* = L° + a + Σ w_i u_i, in log-odds, L° is the prior, a the intercept, w are the weights and u the
    experts' moderated log-odds less the prior's.

    Attributes
    ----------
    probability : ndarray, shape (M,)
        Of each normal: one for each value of the weights' sum (or node of the prior), the last for all improbable ones.
    mean : ndarray, shape (M, K - 1 + N)
        Means of intercept and weights.
    covariance : ndarray, shape (M, K - 1 + N, K - 1 + N)
    hyperparameter, value : tuple of str, length H
        Name of a hyperparameter, and one of its values.
    prior, posterior : ndarray, shape (H,)
        Probability of each such value before and after the outcomes.

    Examples
    --------
    >>> import numpy as np
    >>> one = Posterior(np.ones(1), np.array([[0.0, 1.0]]), np.eye(2)[None])
    >>> [each.round(2).tolist() for each in one.weight_interval(1)]
    [[-1.64], [1.64]]
    """

    probability: Array
    mean: Array
    covariance: Array
    hyperparameter: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    prior: Array = field(default_factory=lambda: np.zeros(0))
    posterior: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, fit: Fit, nodes: Nodes, more: Sequence[tuple[str, str, float, float]] = ()) -> Self:
        """Return the posterior from `fit` under the prior `nodes`; `more` are rows on further hyperparameters."""
        return cls.with_rows(fit, [*_hyperparameters(fit, nodes), *more])

    @classmethod
    def with_rows(cls, fit: Fit, rows: list[tuple[str, str, float, float]], **about: Any) -> Self:  # noqa: ANN401
        """Return the posterior from `fit`; `rows` are hyperparameters: name, value, prior, posterior probability."""
        assert fit.normals is not None
        names, values, *probabilities = zip(*rows, strict=True)
        prior, posterior = np.array(probabilities, dtype=np.float64)
        return cls(*fit.normals, hyperparameter=names, value=values, prior=prior, posterior=posterior, **about)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.probability)} normals of {self.mean.shape[1]} coefficients)"

    def _table(self) -> dict[str, list[Any]]:
        return {
            "hyperparameter": list(self.hyperparameter),
            "value": list(self.value),
            "prior": self.prior.tolist(),
            "posterior": self.posterior.tolist(),
        }

    def mixed_with(self, members: Members | None) -> Self:
        """Return the posterior with a row of hyperparameters for each answer in the mixture `members`."""
        if members is None:
            return self
        n = sum(name != "member" for name in self.hyperparameter)
        names = (*self.hyperparameter[:n], *("member",) * len(NAMES))
        prior, posterior = np.append(self.prior[:n], members.before), np.append(self.posterior[:n], members.shares)
        return replace(self, hyperparameter=names, value=(*self.value[:n], *NAMES), prior=prior, posterior=posterior)

    @property
    def shares_(self) -> dict[str, float]:
        """Posterior probability (share of the answer) of each part of the mixture, by name; {} if there is none."""
        rows = zip(self.hyperparameter, self.value, self.posterior.tolist(), strict=True)
        return {value: share for name, value, share in rows if name == "member"}

    def weight_interval(self, experts: int, level: float = 0.9) -> tuple[Array, Array]:
        """Bounds of the credible interval of each of N = `experts` weights less the weight's mean, (N,) each."""
        mean = (self.mean - self.probability @ self.mean)[:, -experts:]
        sd = np.sqrt(np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2)[:, -experts:], 0.0))
        low, high = (quantile(self.probability, mean, sd, q) for q in ((1.0 - level) / 2.0, (1.0 + level) / 2.0))
        return low, high

    def weight_sd(self, experts: int) -> Array:
        """Return the posterior standard deviation of each weight, (N,)."""
        return np.sqrt(np.maximum(np.diag(self.whole_covariance)[-experts:], 0.0))

    @property
    def whole_covariance(self) -> Array:
        """Covariance of intercept and weights, (K - 1 + N, K - 1 + N): within normals and between their means."""
        away = self.mean - self.probability @ self.mean
        within = np.einsum("m,mij->ij", self.probability, self.covariance)
        return np.asarray(within + (away.T * self.probability) @ away)

    def with_duplicates(self, duplicates: Duplicates) -> Self:
        """Return a posterior for all experts; in this one, each group of duplicates is a single expert."""
        column, part = coefficients_of_all(duplicates.source, self.mean.shape[1])
        covariance = self.covariance.take(column, 1).take(column, 2) * np.outer(part, part)
        return replace(self, mean=self.mean.take(column, 1) * part, covariance=covariance)

    def interval(
        self,
        panel: PoolingPanel,
        batch: Batch,
        level: float = 0.9,
        shift: TopicShift | None = None,
        beside: tuple[Array, Array, Array] | None = None,
    ) -> tuple[Array, Array]:
        """Return the credible interval of each pooled probability of a batch; of each class separately if K > 2.

        `shift` has the topic effects on these answers; `beside` has shares of the log pool and of M other normals,
        (1 + M,), and the other normals' means and standard deviations of log-odds, (M, T, K) each.

        Returns
        -------
        low, high : ndarray, shape (...), or (..., K) when K > 2
            Quantiles of the mixture, inside the floors.

        Raises
        ------
        ArgumentError
            For a level outside (0, 1).
        """
        level = number(level, "level", 0, 1, between=True)
        k = len(panel.classes)
        p = answer_rows(panel.answers(batch), k)
        p = p if shift is None else shift.moved(p, batch.prior, panel.settings.pool_floor)
        # Of two classes, the first is what the second is not.
        asked = slice(k == 2, None)
        ends = np.empty((2, *p.shape))
        for rows in batch.blocks():
            others = p[rows] @ (1.0 - np.eye(k))
            with np.errstate(divide="ignore"):
                odds = (np.log(p[rows]) - np.log(others))[:, asked]
            floors = logodds.class_floors(panel.settings.pool_floor, batch.prior[rows], 1.0)
            most = 1.0 - floors @ (1.0 - np.eye(k))
            probability, away, sd = self._beyond(panel, batch, rows, p[rows], shift)
            if beside is not None:
                shares, mean, spread = beside
                other = np.where(np.isfinite(odds), mean[:, rows, asked] - odds, 0.0)
                probability = np.concatenate([shares[0] * probability, shares[1:]])
                away, sd = np.concatenate([away, other]), np.concatenate([sd, spread[:, rows, asked]])
            for end, q in zip(ends, ((1.0 - level) / 2.0, (1.0 + level) / 2.0), strict=True):
                found = logodds.expit(odds + quantile(probability, away, sd, q))
                end[rows] = np.clip(found, floors[:, asked], most[:, asked])
        low, high = (batch.as_asked(logodds.public_probabilities(end)) for end in ends)
        return low, high

    def gradient(self, panel: PoolingPanel, batch: Batch) -> Array:
        """Derivatives of the pooled log-ratios of T events by intercept and weights, (T, K - 1 + N, K - 1)."""
        symmetric = self._symmetric(panel)
        return np.concatenate([self._gradient(symmetric, batch, rows) for rows in batch.blocks()])

    def _beyond(
        self, panel: PoolingPanel, batch: Batch, rows: slice, p: Array, shift: TopicShift | None
    ) -> tuple[Array, Array, Array]:
        """Posterior of pooled log-odds less those of the answers `p`, as M normals: probabilities, means and sds.

        The probabilities are (M,), means and standard deviations (M, T, C); C is K or, for two classes, 1: the second.
        """
        symmetric, d = self._symmetric(panel), p.shape[1] - 1
        mean, factor = self.probability @ self.mean, 1.0 if shift is None else shift.factors(rows)[:, None]
        slope = _slopes(p, p @ (1.0 - np.eye(d + 1)))
        more = self._differences(panel, batch, rows)
        if shift is not None:
            more = shift.spread(rows, np.zeros((len(p), d, d)) if more is None else more)
        beside = 0.0 if more is None else np.einsum("tca,tab,tcb->tc", slope, more, slope)
        # How log-odds of classes go with intercept and weights, (T C, Q).
        gradient = np.einsum("tca,tqa->tcq", slope, self._gradient(symmetric, batch, rows)).reshape(-1, len(mean))
        away = ((self.mean - mean) @ gradient.T).reshape(-1, *slope.shape[:2])
        variance = np.einsum("mxq,xq->mx", gradient @ self.covariance, gradient).reshape(away.shape) * factor**2
        return self.probability, away * factor, np.sqrt(np.maximum(variance + beside, 0.0))

    def _symmetric(self, panel: PoolingPanel) -> Panel:
        """Return the panel that this posterior is about, in which each expert has one weight."""
        assert isinstance(panel, Panel)
        return panel

    def _differences(self, panel: PoolingPanel, batch: Batch, rows: slice) -> Array | None:  # noqa: ARG002
        """Return what subclasses add to the covariance of the answers' log-ratios, (T, K - 1, K - 1); None here."""
        return None

    def _gradient(self, panel: Panel, batch: Batch, rows: slice) -> Array:
        """Derivatives of pooled log-ratios by intercept and weights, (T, K - 1 + N, K - 1); 0 if nobody answered."""
        d, full = batch.classes - 1, debiased(panel, batch, rows)
        intercept = np.broadcast_to(np.eye(d)[:, None, :], (d, len(full), d)).swapaxes(0, 1)
        answered = batch.some(rows).answered_by(panel.informative)
        return np.where(answered[:, None, None], np.concatenate([intercept, full], axis=1), 0.0)


def coefficients_of_all(source: Index, size: int) -> tuple[Index, Array]:
    """For all experts' coefficients: positions among distinct experts' coefficients, and shares (1/m of duplicates)."""
    copies = np.bincount(source[source >= 0], minlength=int(source.max(initial=-1)) + 1)
    d = size - len(copies)
    column = np.concatenate([np.arange(d), np.where(source < 0, 0, d + source)])
    return column, np.concatenate([np.ones(d), np.where(source < 0, 0.0, 1.0 / copies[np.maximum(source, 0)])])


def _hyperparameters(fit: Fit, nodes: Nodes) -> list[tuple[str, str, float, float]]:
    """Return name, value, prior and posterior probability of each hyperparameter behind the prior's nodes."""
    before, after = nodes.probability, fit.joint.sum(axis=1)
    kinds = [
        "equal" if kind.exponent == 0 and kind.kind == "common" else f"{kind.kind}, correlation {kind.correlation:g}"
        for kind in nodes.dependence
    ]
    guides = [f"{kind.guide}, power {kind.exponent:g}" if kind.exponent else "nothing" for kind in nodes.dependence]
    return [
        *probability_rows("dependence", kinds, before, after),
        *probability_rows("guide to accuracy", guides, before, after),
        *probability_rows("sd of weights", [f"{each:g}" for each in nodes.relative_sd.tolist()], before, after),
        *sum_rows(fit, nodes),
    ]


def sum_rows(fit: Fit, nodes: Nodes) -> list[tuple[str, str, float, float]]:
    """Return rows (name, value, prior, posterior probability) on the sum of the weights."""
    sums = [f"{each:.3g}" for each in nodes.sums.value.tolist()]
    return probability_rows("sum of weights", sums, nodes.sums.probability, fit.joint.sum(axis=0))


def probability_rows(
    name: str, labels: list[str], prior: Array, posterior: Array
) -> list[tuple[str, str, float, float]]:
    """Return a row (name, label, prior, posterior probability) for each different label, after adding equal ones up."""
    found = [(label, np.array([each == label for each in labels])) for label in dict.fromkeys(labels)]
    return [(name, label, float(prior[same].sum()), float(posterior[same].sum())) for label, same in found]


def quantile(probability: Array, mean: Array, sd: Array, q: float) -> Array:
    """Return the quantiles `q`, (...), of mixtures of normals with means and standard deviations (M, ...).

    Examples
    --------
    >>> quantile(np.ones(1), np.zeros((1, 1)), np.ones((1, 1)), 0.95).round(3)
    array([1.645])
    """
    shape, m = mean.shape[1:], len(mean)
    order = np.argsort(-probability, kind="stable")
    kept = order[: int(np.searchsorted(np.cumsum(probability[order]), 1.0 - LEAST)) + 1]
    weight = probability[kept] / probability[kept].sum()
    mean, sd, found = mean.reshape(m, -1), sd.reshape(m, -1), np.empty(mean[0].size)
    for part in blocks(len(found), len(kept)):
        found[part] = _quantiles(weight, mean[kept, part], np.maximum(sd[kept, part], KNOWN), q)
    return found.reshape(shape)


def _quantiles(weight: Array, mean: Array, sd: Array, q: float) -> Array:
    """The quantiles `q`, (T,), of mixtures of normals (M, T), by Halley's method, with bisection where it fails."""
    z = NormalDist().inv_cdf(q)
    each, centre = mean + z * sd, weight @ mean
    low, high = each.min(axis=0), each.max(axis=0)
    found = np.clip(centre + z * np.sqrt(weight @ (sd**2 + (mean - centre) ** 2)), low, high)
    x, last, rows, narrow = found, high - low, np.arange(len(found)), 1.0 / sd
    weight = weight[:, None]
    for _ in range(STEPS):
        away = (x - mean) * narrow
        bell = np.exp(-0.5 * away**2)
        off = (weight * below(away, bell)).sum(axis=0) - q
        low, high = np.where(off < 0, x, low), np.where(off < 0, high, x)
        bell *= weight / np.sqrt(2.0 * np.pi) * narrow
        away *= narrow
        density, slope = bell.sum(axis=0), -(bell * away).sum(axis=0)
        with np.errstate(all="ignore"):
            step = off / density
            step /= np.clip(1.0 - 0.5 * step * slope / density, 0.5, 1.5)
            # By a bound of the third derivative, what is left after a step.
            left = np.abs(step) ** 3 * (bell * (away**2 + narrow**2)).sum(axis=0) / density
        good = (x - step >= low) & (x - step <= high) & (np.abs(step) <= last / 2.0)
        before, x = x, np.where(good, x - step, (low + high) / 2.0)
        last = np.abs(x - before)
        found[rows] = x
        still = np.where(good, left, last) > 1e-14 * (1.0 + np.abs(x))
        if not still.any():
            break
        x, low, high, last = (part[still] for part in (x, low, high, last))
        mean, narrow, rows = mean[:, still], narrow[:, still], rows[still]
    return found


# From here on the tail is a continued fraction; before, a rational function with these coefficients, from the highest
# power (Hart 1968, in West, Wilmott magazine, May 2005).
_TOP = (3.52624965998911e-02, 0.700383064443688, 6.37396220353165, 33.912866078383, 112.079291497871, 221.213596169931,
        220.206867912376)  # fmt: skip
_BOTTOM = (8.83883476483184e-02, 1.75566716318264, 16.064177579207, 86.7807322029461, 296.564248779674,
           637.333633378831, 793.826512519948, 440.413735824752)  # fmt: skip
FAR = 7.07106781186547


def below(x: Array, bell: Array) -> Array:
    """Return the standard normal distribution function at x to 15 digits; `bell` is exp(−x²/2).

    Examples
    --------
    >>> x = np.array([-1.0, 0.0, 1.959963984540054])
    >>> below(x, np.exp(-x * x / 2.0)).round(12).tolist()
    [0.158655253931, 0.5, 0.975]
    """
    z = np.abs(x)
    near = np.minimum(z, FAR)
    tail = bell * np.polyval(_TOP, near) / np.polyval(_BOTTOM, near)
    far = z > FAR
    if far.any():
        z = z[far]
        tail[far] = bell[far] / (2.506628274631 * (z + 1.0 / (z + 2.0 / (z + 3.0 / (z + 4.0 / (z + 0.65))))))
    return np.asarray(np.where(x > 0, 1.0 - tail, tail))


def debiased(panel: Panel, batch: Batch, rows: slice) -> Array:
    """Return moderated log-ratios less the prior's and less biases, (T, N, K - 1), missing ones imputed."""
    some = batch.some(rows)
    return panel.parts.fill(panel.settings.extremes.deviation(some.contrasts(), some.base.absent))


def answer_rows(answers: npt.ArrayLike, k: int) -> Array:
    """Return pooled probabilities of events, in any shape, as rows of all classes, (T, K)."""
    return logodds.all_classes(np.asarray(answers).reshape((-1,) if k == 2 else (-1, k)), k)


def _slopes(p: Array, others: Array) -> Array:
    """Derivatives of each class's log-odds by log-ratios, (T, K, K - 1), or (T, 1, 1) if K = 2; `others` is 1 − `p`."""
    if p.shape[1] == 2:
        return np.ones((len(p), 1, 1))
    # Entry c, j: how the log-odds of class c against the others go with the log-probability of class j.
    return np.where(np.eye(p.shape[1], dtype=bool), 1.0, -p[:, None, :] / others[:, :, None])[:, :, 1:]
