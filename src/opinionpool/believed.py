"""What is believed of a panel before any outcome is known: of any panel, and as a decision maker says.

Believed of any panel:

* experts are about calibrated and strongly dependent, w = `CALIBRATION` / (1 + (N − 1) `CORRELATION`) each, which puts
  the answer near the average of their log-odds; they may also depend less on each other (`CORRELATIONS`, by evidence),
  and the sum of the weights may be off by a factor of 1 ± `SLOPE`;
* they are unbiased, give or take `BIAS` in log-odds;
* weights differ from each other by 0 to `SPREADS[-1]`, small differences being likelier;
* extreme statements are believed up to a contrast of about `LIMITS` (`opinionpool.extremes`).

What is said (`opinionpool.beliefs`) takes the place of these centres, and its worth narrows what is open about them: a
belief worth n counts as n events on which the panel showed just that, of which each tells as much about the logarithms
of calibration and accuracy as its moments do (`_per_event`). What then is open about features is open about weights by
Theorem 3.1, to first order (model.md, section 2.6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.dependence import CommonCorrelation
from opinionpool.errors import ArgumentError, Note
from opinionpool.features import Parts
from opinionpool.gaussian import weights_for
from opinionpool.logodds import Array
from opinionpool.wording import listed, suggestion

CALIBRATION = 0.95
SLOPE, BIAS = 0.35, 0.3
CORRELATION = 0.6
CORRELATIONS, CORRELATION_CHANCES = (CORRELATION, 0.2, 0.05, 0.0), (0.85, 0.1, 0.03, 0.02)
SPREADS, SPREAD_CHANCES = (0.0, 0.05, 0.15, 0.4, 1.0), (0.6, 0.2, 0.12, 0.06, 0.02)
LIMITS, LIMIT_CHANCES = (2.5, 5.0, 20.0), (0.25, 0.5, 0.25)
# Without any outcome, an expert alone is taken to have this accuracy: an area under the curve of 0.84.
ACCURACY = 1.0
# Worths are finite numbers inside; so many events leave nothing open.
CERTAIN = 1e12
# Below this share of the largest, an eigenvalue of a covariance is rounding.
ROUNDING = 1e-11


def believed_slope(n: int, correlation: float = CORRELATION) -> float:
    """Sum of the weights of n experts of whom nothing was said, before any outcome is known."""
    return CALIBRATION * n / (1.0 + (n - 1) * correlation)


@dataclass(frozen=True, eq=False)
class Feature:
    """What is said of one feature of N experts.

    Attributes
    ----------
    value : ndarray, shape (N,)
    worth : ndarray, shape (N,)
        In events, beyond what is assumed of any panel; 0 where nothing was said.
    named : ndarray of bool, shape (N,)
        Where it was said of that expert by name.
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
    def certain(self) -> bool:
        """Whether nothing is open."""
        return bool((self.worth >= CERTAIN).all())

    def merged(self, source: npt.NDArray[np.intp], voices: int, *, logs: bool) -> Feature:
        """For each voice the mean of those who have it, by what their beliefs are worth; that of `logs` if so said."""
        value, worth = np.log(self.value) if logs else self.value, np.zeros(voices)
        heard = source >= 0
        np.maximum.at(worth, source[heard], self.worth[heard])
        # Who is worth nothing beside the others counts where all are.
        share = np.where(heard, self.worth + 1e-9, 0.0)[heard]
        total = np.bincount(source[heard], share, voices)
        mean = np.bincount(source[heard], share * value[heard], voices) / total
        named = np.bincount(source[heard], self.named[heard], voices) > 0
        return Feature(np.exp(mean) if logs else mean, worth, named)


@dataclass(frozen=True, eq=False)
class Believed:
    """What is believed of N experts.

    Attributes
    ----------
    calibration, accuracy, bias : Feature
        Accuracies are absolute; those of experts of whom none was said are those of any panel.
    correlation : Belief or None
    limit : float or None
        How far extremes are believed, None if that is learned.
    stated : bool
        Whether anything was said.
    """

    calibration: Feature
    accuracy: Feature
    bias: Feature
    correlation: Belief | None = None
    limit: float | None = None
    stated: bool = False

    @classmethod
    def of(cls, beliefs: Beliefs, experts: tuple[str, ...]) -> Believed:
        """Beliefs about experts of these names.

        Raises
        ------
        ArgumentError
            If so many experts cannot have the correlation that is believed.
        """
        own = [beliefs.experts.get(name, ExpertBeliefs()) for name in experts]
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
        """Whether all have the same weight and no worth of their own."""
        return not (self.calibration.named.any() or self.accuracy.named.any())

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

    def among(self, source: npt.NDArray[np.intp], voices: int) -> Believed:
        """The same for voices; `source` is the voice of each expert, below 0 for those who have none."""
        if len(self) == voices and (source == np.arange(voices)).all():
            return self
        return replace(
            self,
            calibration=self.calibration.merged(source, voices, logs=True),
            accuracy=self.accuracy.merged(source, voices, logs=True),
            bias=self.bias.merged(source, voices, logs=False),
        )

    def parts(self, rho: float) -> Parts:
        """The panel with the features that are believed (model.md, section 2.1)."""
        kappa, accuracy, n = self.calibration.value, self.accuracy.value, len(self)
        return Parts(accuracy / kappa, np.sqrt(2.0 * accuracy) / kappa, CommonCorrelation(n, rho if n > 1 else 0.0))

    def weights(self, rho: float) -> Array:
        """Weights of that panel, (N,)."""
        return np.asarray(weights_for(self.parts(rho), np.ones((1, len(self)), dtype=bool))[0])


def _accuracy(beliefs: ExpertBeliefs, base: float) -> Belief | None:
    """The accuracy that is believed, however it was said; relative ones are multiples of `base`."""
    relative = beliefs.get("relative_accuracy")
    return beliefs.absolute() if relative is None else Belief(base * relative.value, relative.worth)


def strangers(beliefs: Beliefs, experts: tuple[str, ...]) -> tuple[Note, ...]:
    """A note on those of whom something is believed and who are not among the experts."""
    unknown = [name for name in beliefs.experts if name not in set(experts)]
    if not unknown:
        return ()
    meant = suggestion(unknown[0], experts, "there are")
    text = f"something is believed of {listed(unknown, 3)}, who made no forecast; {meant}"
    return (Note("believed-unknown", text, len(unknown), serious=True),)
