"""What is believed of a panel before any outcome is known: of any panel, and as a decision maker gives it.

Believed of any panel:

* experts are about calibrated and strongly dependent, w = `CALIBRATION` / (1 + (N − 1) `CORRELATION`) each, which puts
  the answer near the average of their log-odds; they may also depend more or less on each other (`CORRELATIONS`, by
  evidence), and the sum of the weights may be off by a factor of 1 ± `SLOPE`;
* who agrees more with the others is more accurate (`opinionpool.learning.agreement`), how much more being learned
  (`GUIDE_SPREAD`), and evidence is nested;
* they are unbiased, give or take `BIAS` in log-odds;
* weights differ from each other by 0 to `SPREADS[-1]`, small differences being likelier;
* extreme statements are believed up to a contrast of about `LIMITS` (`opinionpool.model.contrasts`).

What a decision maker believes (`opinionpool.learning.beliefs`) takes the place of these centres, and its worth narrows
what is open about them: a belief worth n counts as n events on which the panel showed just that, of which each tells as
much about the logarithms of calibration and accuracy as its moments do (`_Open.features`). What then is open about
features is open about weights by Theorem 3.1, to first order (model.md, section 2.6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, Note
from opinionpool.estimation.posterior import WeightBeliefs
from opinionpool.learning.agreement import GUIDE, Agreement
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.model.features import Parts, believed_dependence
from opinionpool.model.nested import NestedCorrelation
from opinionpool.text import listed, suggestion

CALIBRATION = 0.95
SLOPE, BIAS = 0.35, 0.3
# Intervals allow for a sum of weights that is nothing like what is believed, off by a factor of 1 ± `UNLIKE`, with a
# probability of `UNLIKE_PROBABILITY` T² / (T² + `UNLIKE_WORTH`²): few events leave nothing to go by but beliefs.
UNLIKE, UNLIKE_PROBABILITY, UNLIKE_WORTH = 8.0, 0.5, 60.0
CORRELATION = 0.6
CORRELATIONS, CORRELATION_PROBABILITIES = (CORRELATION, 0.8, 0.3, 0.0), (0.4, 0.4, 0.15, 0.05)
SPREADS, SPREAD_PROBABILITIES = (0.0, 0.1, 0.25, 0.6), (0.3, 0.25, 0.25, 0.2)
LIMITS, LIMIT_PROBABILITIES = (2.5, 5.0, 12.0), (0.4, 0.4, 0.2)
# Without any outcome, a single expert is taken to have this accuracy: an area under the curve of 0.84.
ACCURACY = 1.0
# How far the exponent of agreement is open, about `GUIDE`: as if 0, 1/2 and 1 were believed at 1/4, 1/2 and 1/4.
GUIDE_SPREAD = 0.35
# What is believed of accuracies counts against agreement as if that were worth so many events.
ACCURACY_WORTH = 20.0
# A factor common to all is taken to move the answer by at least so much of the sum of the weights.
LEAST_MOVED = 0.3
# Worths that differ by no more are the same.
NO_WORTH = 1e-6
# Worths are finite numbers inside; so many events leave nothing open.
CERTAIN = 1e12
# Below this share of the largest, an eigenvalue of a covariance is rounding.
ROUNDING = 1e-11


def believed_slope(n: int, correlation: float = CORRELATION) -> float:
    """Sum of the weights of n experts of whom nothing is believed, before any outcome is known."""
    return CALIBRATION * n / (1.0 + (n - 1) * correlation)


@dataclass(frozen=True, eq=False)
class Feature:
    """What is believed of one feature of N experts.

    Attributes
    ----------
    value : ndarray, shape (N,)
    worth : ndarray, shape (N,)
        In events, beyond what is assumed of any panel; 0 where nothing is believed.
    named : ndarray of bool, shape (N,)
        Where it is believed of that expert by name.
    """

    value: Array
    worth: Array
    named: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, beliefs: list[Belief | None], common: Belief | None, default: float) -> Feature:
        """Beliefs about experts by name, else those about all, else the default."""
        found = [own or common for own in beliefs]
        return cls(
            np.array([default if own is None else own.value for own in found], dtype=np.float64),
            np.array([0.0 if own is None else min(own.worth, CERTAIN) for own in found], dtype=np.float64),
            np.array([own is not None for own in beliefs], dtype=bool),
        )

    @property
    def alike(self) -> bool:
        """Whether the same is believed of all, by name or not."""
        return not self.named.any() or (np.ptp(self.value) == 0 and bool(np.ptp(self.worth) <= NO_WORTH))

    @property
    def certain(self) -> bool:
        """Whether nothing is open."""
        return bool((self.worth >= CERTAIN).all())

    def merged(self, source: npt.NDArray[np.intp], groups: int, *, logs: bool) -> Feature:
        """For each distinct expert the mean of its duplicates, weighted by worth; that of logarithms if `logs`."""
        value, worth = np.log(self.value) if logs else self.value, np.zeros(groups)
        assigned = source >= 0
        np.maximum.at(worth, source[assigned], self.worth[assigned])
        # Who is worth nothing beside the others counts where all are.
        share = np.where(assigned, self.worth + 1e-9, 0.0)[assigned]
        total = np.bincount(source[assigned], share, groups)
        mean = np.bincount(source[assigned], share * value[assigned], groups) / total
        named = np.bincount(source[assigned], self.named[assigned], groups) > 0
        return Feature(np.exp(mean) if logs else mean, worth, named)


@dataclass(frozen=True, eq=False)
class Believed:
    """What is believed of N experts.

    Attributes
    ----------
    calibration, accuracy, bias : Feature
        Accuracies are absolute; those of experts without a belief are those of any panel.
    correlation : Belief or None
    limit : float or None
        How far extremes are believed, None if that is learned.
    given : bool
        Whether there are any beliefs.
    """

    calibration: Feature
    accuracy: Feature
    bias: Feature
    correlation: Belief | None = None
    limit: float | None = None
    given: bool = False
    agreement: Agreement | None = None

    @classmethod
    def of(cls, beliefs: Beliefs, experts: tuple[str, ...]) -> Believed:
        """Beliefs about experts of these names.

        Raises
        ------
        ArgumentError
            If so many experts cannot have the correlation that is believed.
        """
        nothing = ExpertBeliefs()
        own = [beliefs.experts.get(name, nothing) for name in experts]
        level = beliefs.absolute()
        base = ACCURACY if level is None else level.value
        each = [_accuracy(expert, base) for expert in own]
        extremes = beliefs.get("extremes")
        found = cls(
            Feature.of([expert.get("calibration") for expert in own], beliefs.get("calibration"), CALIBRATION),
            Feature.of(each, level or _accuracy(beliefs, base), base),
            Feature.of([expert.get("bias") for expert in own], beliefs.get("bias"), 0.0),
            beliefs.get("correlation"),
            None if extremes is None else extremes.value,
            not beliefs.any_panel,
        )
        found._check()
        return found

    def _check(self) -> None:
        n, rho = len(self), self.correlation
        if rho is None or n == 1:
            return
        if not (n - 1) * rho.value > -1.0:
            raise ArgumentError(
                f"correlation: that of {n} experts must lie above -1/(N-1) = {-1 / (n - 1):.4g}, and it is "
                f"{rho.value:g}"
            )
        if rho.value == 1.0 and not self.assessed:
            raise ArgumentError(
                "correlation: experts who are believed to be perfectly dependent leave nothing to learn; say less than "
                "1, or inf for the worth of every belief"
            )

    def __len__(self) -> int:
        return len(self.bias.value)

    @property
    def alike(self) -> bool:
        """Whether the same is believed of all, but for what agreement says."""
        return self.agreement is not None or (self.calibration.alike and self.accuracy.alike)

    @property
    def assessed(self) -> bool:
        """Whether nothing is left to learn."""
        return self.fixed and self.bias.certain

    @property
    def fixed(self) -> bool:
        """Whether nothing is left to learn about the weights."""
        known = self.correlation is not None and np.isinf(self.correlation.worth)
        return self.calibration.certain and (len(self) == 1 or (self.accuracy.certain and known))

    @property
    def rho(self) -> float:
        """The common correlation that is believed."""
        return CORRELATION if self.correlation is None else self.correlation.value

    @property
    def correlations(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The common correlations that it may be, and their probabilities."""
        if self.correlation is None:
            return CORRELATIONS, CORRELATION_PROBABILITIES
        return (self.rho,), (1.0,)

    @property
    def correlation_worth(self) -> float:
        """In events, beyond what is assumed of any panel."""
        return 0.0 if self.correlation is None else min(self.correlation.worth, CERTAIN)

    def biases(self, d: int) -> Array:
        """Biases as log-ratios, (N, K - 1), for d = K - 1.

        Raises
        ------
        ArgumentError
            If biases are believed that so many classes cannot have.
        """
        value = self.bias.value[:, None]
        if d > 1 and value.any():
            raise ArgumentError(
                f"bias: a bias in log-odds is that of two classes, and there are {d + 1}; leave it out, or say 0"
            )
        return np.tile(value, (1, d))

    def among(self, source: npt.NDArray[np.intp], groups: int) -> Believed:
        """The same for distinct experts; `source` is the one that each expert duplicates, below 0 for none."""
        if len(self) == groups and (source == np.arange(groups)).all():
            return self
        return replace(
            self,
            calibration=self.calibration.merged(source, groups, logs=True),
            accuracy=self.accuracy.merged(source, groups, logs=True),
            bias=self.bias.merged(source, groups, logs=False),
        )

    def agreeing(self, agreement: Agreement) -> Believed:
        """The same with accuracies by agreement, as far as nothing is believed about accuracies."""
        if self.fixed or not self.alike or not agreement.tells:
            return self
        share = ACCURACY_WORTH / (ACCURACY_WORTH + float(self.accuracy.worth.max()))
        accuracy = replace(self.accuracy, value=self.accuracy.value * agreement.accuracy**share)
        return replace(self, accuracy=accuracy, agreement=agreement)

    def parts(self, rho: float) -> Parts:
        """The panel with the features that are believed (model.md, section 2.1)."""
        return self._parts(rho)

    @cached_property
    def _parts(self) -> Callable[[float], Parts]:
        """The same, made once for each correlation."""
        return cache(self._made)

    def _made(self, rho: float) -> Parts:
        kappa, accuracy = self.calibration.value, self.accuracy.value
        parts = Parts(accuracy / kappa, np.sqrt(2.0 * accuracy) / kappa, believed_dependence(rho, accuracy))
        if self.agreement is None:
            return parts
        # Calibrations are such that a factor common to all moves the answer as it would if all were equal.
        weights = parts.weights_for(np.ones((1, len(self)), dtype=bool))[0]
        moved = max(float(weights @ self.agreement.loading), LEAST_MOVED * float(weights.sum()))
        scale = float(kappa.mean()) * len(self) / (1.0 + (len(self) - 1) * rho) / moved
        return replace(parts, contrast=parts.contrast / scale, spread=parts.spread / scale)

    def weights(self, rho: float) -> Array:
        """Weights of that panel, (N,)."""
        return np.asarray(self.parts(rho).weights_for(np.ones((1, len(self)), dtype=bool))[0])


def _accuracy(beliefs: ExpertBeliefs, base: float) -> Belief | None:
    """The accuracy that is believed, however it was given; relative ones are multiples of `base`."""
    relative = beliefs.get("relative_accuracy")
    return beliefs.absolute() if relative is None else Belief(base * relative.value, relative.worth)


def belief_notes(beliefs: Beliefs, experts: tuple[str, ...]) -> tuple[Note, ...]:
    """On names that are not among the experts, and on accuracies below what is assumed of the others."""
    notes = []
    unknown = [name for name in beliefs.experts if name not in set(experts)]
    if unknown:
        meant = suggestion(unknown[0], experts, "there are")
        text = f"something is believed of {listed(unknown, 3)}, who made no forecast; {meant}"
        notes.append(Note("believed-unknown", text, len(unknown), serious=True))
    named = {name: own.absolute() for name, own in beliefs.experts.items() if name in set(experts)}
    below = [name for name, accuracy in named.items() if accuracy is not None and accuracy.value < ACCURACY]
    if below and beliefs.absolute() is None and any(named.get(name) is None for name in experts):
        verb = "is" if len(below) == 1 else "are"
        text = (
            f"{listed(below, 3)} {verb} assessed as less accurate than what is assumed of the others, an AUC of 0.84; "
            "if that is not meant, assess the others too: a line such as auc = 0.7 above the first [experts.NAME]"
        )
        notes.append(Note("believed-below", text, len(below)))
    return tuple(notes)


Block = TypeVar("Block", float, Array)
# How far the logarithm of the experts' accuracy is open; weights do not depend on it, errors of calibration do.
LEVEL = 1.0


def weight_beliefs(believed: Believed, rho: float, d: int = 1, slope: float = SLOPE) -> WeightBeliefs:
    """Beliefs about weights and intercept if the common correlation is about `rho`, which is below 1.

    d = K - 1, and the sum of the weights may be off by a factor of 1 ± `slope`.
    """
    open_ = _Open(believed, rho, believed.weights(rho), d, slope)
    mean, intercept = open_.mean, open_.intercept_spread()
    if believed.alike:
        return WeightBeliefs(mean, open_.together(), intercept, open_.deviation_alike, open_.guide())
    return WeightBeliefs(mean, 0.0, intercept, cache(open_.deviation))


@dataclass(frozen=True, eq=False)
class _Open:
    """Beliefs about features at one correlation, and the weights that they mean."""

    believed: Believed
    rho: float
    mean: Array
    free: int
    slope: float

    @property
    def noise(self) -> float:
        """σ²/μ² of a typical expert."""
        return float((2.0 / self.believed.accuracy.value).mean())

    def features(self, noise: Block, squared: Block) -> tuple[tuple[Block, Block], tuple[Block, Block]]:
        """Covariance of errors of log κ and log m per event, from A and 2R²."""
        # K - 1 rows of the regression tell of variances, and all of them together of μ by its signature.
        noise, squared = noise * (self.free + 1) / (2 * self.free), squared / self.free
        both = 2.0 * noise + squared
        return (noise + squared, both), (both, 4.0 * noise + squared)

    def intercept_spread(self) -> float:
        """Of Σ w_i b_i, biases being off together."""
        n, spread = len(self.mean), self.believed.parts(self.rho).spread
        per_event = float((spread**2).mean()) * (1.0 + (n - 1) * self.rho) / n
        each = BIAS / np.sqrt(1.0 + BIAS**2 * self.believed.bias.worth / per_event)
        return float(np.abs(self.mean @ each))

    @property
    def worths(self) -> tuple[float, float, float]:
        """Of beliefs about calibration and accuracy of all experts, and about their correlation."""
        panel_beliefs = self.believed
        return (
            float(panel_beliefs.calibration.worth[0]),
            float(panel_beliefs.accuracy.worth[0]),
            panel_beliefs.correlation_worth,
        )

    def of_correlation(self) -> tuple[float, float, float]:
        """What is open about the correlation by itself, and the errors per event, by itself and with features.

        Nothing is open where nothing is believed, as `CORRELATIONS` are then averaged.
        """
        n, rho = len(self.mean), self.rho
        if self.believed.correlation is None or n == 1:
            return 0.0, 1.0, 0.0
        level = (1.0 - rho) * (1.0 + (n - 1) * rho)
        centre = float(np.dot(CORRELATION_PROBABILITIES, CORRELATIONS))
        assumed = float(np.dot(CORRELATION_PROBABILITIES, (np.array(CORRELATIONS) - centre) ** 2))
        return assumed, 2.0 * level**2 / (n * (n - 1)) / self.free, -2.0 * rho * level / n / self.free

    def together(self) -> float:
        """Spread of the sum of equal weights."""
        n, rho = len(self.mean), self.rho
        shared, squared = self.noise * (1.0 + (n - 1) * rho) / n, 2.0 * (1.0 + (n - 1) * rho**2) / n
        assumed, single, beside = self.of_correlation()
        per_event = np.full((3, 3), beside)
        per_event[:2, :2] = self.features(shared, squared)
        per_event[2, 2] = single
        left = _conditioned(np.diag([self.slope**2, LEVEL**2, assumed]), np.array(self.worths), per_event)
        change = np.array([1.0, 0.0, -(n - 1) / (1.0 + (n - 1) * rho)])
        return float(self.mean.sum() * np.sqrt(change @ left @ change))

    def guide(self) -> Array | None:
        """How weights move with how good a guide agreement is, for a standard deviation of that, (N,)."""
        if self.believed.agreement is None:
            return None
        equal = float(self.believed.calibration.value.mean()) / (1.0 + (len(self.mean) - 1) * self.rho)
        return GUIDE_SPREAD / GUIDE * (self.mean - equal)

    def slopes(self) -> tuple[float, float]:
        """How a typical weight changes with log calibration and log accuracy of its expert, beside the others."""
        n, rho, kappa = len(self.mean), self.rho, float(self.believed.calibration.value.mean())
        level = 1.0 + (n - 1) * rho
        return kappa / level, kappa * rho * n / (2.0 * (1.0 - rho) * level)

    def differing(self, deviation: float) -> float:
        """Variance of log calibration, and of log accuracy, that makes weights differ by `deviation`."""
        by_calibration, by_accuracy = self.slopes()
        return deviation**2 / (by_calibration**2 + by_accuracy**2)

    def deviation_alike(self, deviation: float) -> float:
        """How much equal weights differ once beliefs about all experts are counted, where it would be `deviation`."""
        worths, rho = self.worths[:2], self.rho
        if not any(worths):
            return deviation
        per_event = self.features(self.noise * (1.0 - rho), 2.0 * (1.0 - rho**2))
        left = _conditioned(self.differing(deviation) * np.eye(2), np.array(worths), np.array(per_event))
        change = np.array(self.slopes())
        return float(np.sqrt(change @ left @ change))

    def deviation(self, deviation: float) -> Array:
        """Root of the covariance of weights, (N, N), where they would differ by `deviation` without beliefs."""
        n, panel_beliefs, variance = len(self.mean), self.believed, self.differing(deviation)
        r, differing = panel_beliefs.parts(self.rho).dependence.matrix(), variance * (np.eye(n) - 1.0 / n)
        noise = 2.0 / np.sqrt(np.outer(panel_beliefs.accuracy.value, panel_beliefs.accuracy.value)) * r
        assumed, single, beside = self.of_correlation()
        prior, per_event = np.zeros((2 * n + 1, 2 * n + 1)), np.full((2 * n + 1, 2 * n + 1), beside)
        prior[:n, :n], prior[n:-1, n:-1], prior[-1, -1] = self.slope**2 + differing, LEVEL**2 + differing, assumed
        per_event[:-1, :-1] = np.block([list(row) for row in self.features(noise, 2.0 * r**2)])
        per_event[-1, -1] = single
        # What is believed of everybody is worth what the least is worth of anybody.
        worths = np.concatenate(
            [panel_beliefs.calibration.worth, panel_beliefs.accuracy.worth, [panel_beliefs.correlation_worth]]
        )
        common = np.repeat(
            [panel_beliefs.calibration.worth.min(), panel_beliefs.accuracy.worth.min(), worths[-1]], [n, n, 1]
        )
        left = _conditioned(prior, common, per_event)
        left[n:-1] -= left[n:-1].mean(axis=0)
        left[:, n:-1] -= left[:, n:-1].mean(axis=1, keepdims=True)
        own = 1.0 / np.sqrt(1.0 + np.diag(left) * (worths - common) / np.diag(per_event))
        change = np.concatenate([np.diag(self.mean), *self._jacobians()], axis=1) * own
        covariance = change @ left @ change.T
        value, vector = np.linalg.eigh((covariance + covariance.T) / 2.0)
        return np.asarray(vector * np.sqrt(np.where(value > ROUNDING * value[-1], value, 0.0)))

    def _jacobians(self) -> tuple[Array, Array]:
        """∂w/∂log m, (N, N), and ∂w/∂ρ, (N, 1), of w = κ/√m R⁻¹√m."""
        believed, n = self.believed, len(self.mean)
        size = np.sqrt(believed.accuracy.value)
        among = believed.parts(self.rho).dependence
        inverse = (believed.calibration.value / size)[:, None] * np.linalg.inv(among.matrix())
        solved = among.solve(size)
        shares, change = np.ones((n, n)), np.diag(size)
        if isinstance(among, NestedCorrelation):
            shares = among.shares()
            # R_ij = ρ e^(−|x_i − x_j|/2), x = log m: the stronger one's accuracy takes some off, the weaker one's adds.
            moved = self.rho * shares * np.sign(size[None, :] - size[:, None])
            change = change + np.diag(moved.T @ solved) + moved * solved
        by_accuracy = (inverse @ change - np.diag(self.mean)) / 2.0
        by_correlation = -inverse @ (shares @ solved - solved)
        return by_accuracy, by_correlation[:, None]


def _conditioned(covariance: Array, worth: Array, per_event: Array) -> Array:
    """What is open about quantities once those of some worth were seen where they are believed to be."""
    left, before = covariance.copy(), 0.0
    for level in np.unique(worth[worth > 0]).tolist():
        # Events on which all of so much worth are seen, beyond those on which the others are seen too.
        those = np.flatnonzero(worth >= level)
        seen = left[np.ix_(those, those)] + per_event[np.ix_(those, those)] / (level - before)
        size = np.sqrt(np.diag(seen))
        known = left[:, those] / size
        left -= known @ np.linalg.pinv(seen / np.outer(size, size), rcond=ROUNDING, hermitian=True) @ known.T
        before = level
    return np.asarray(np.where(np.abs(left) > ROUNDING * np.abs(covariance).max(), left, 0.0))
