"""Beliefs about a panel before any outcome: the defaults for any panel, and those that a decision maker gives.

The defaults are those of docs/model.md, section 10, with the values of `opinionpool.learning.constants`. A decision
maker's beliefs (`opinionpool.learning.beliefs`) replace the default means, and their worth narrows the prior: a belief
worth n counts as n events on which the panel was found to be as believed (model.md, section 2.6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Mask
from opinionpool.errors import ArgumentError, Note
from opinionpool.learning.agreement import Agreement
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.learning.constants import (
    ACCURACY,
    CALIBRATION,
    CORRELATION,
    CORRELATION_PROBABILITIES,
    CORRELATIONS,
    GUIDE,
    LIMIT_PROBABILITIES,
    LIMITS,
    WORTH,
    Dependent,
)
from opinionpool.model.features import Parts, believed_dependence
from opinionpool.names import name_key, unknown_names
from opinionpool.text import listed, shown, suggestion

# A probability by a sample of events up to which an alternative is not looked at again by all.
OPEN = 1e-3
# Worths that differ by no more are the same.
NO_WORTH = 1e-6
# Worths are finite numbers inside; so many events leave nothing open.
CERTAIN = 1e12
Number = TypeVar("Number", float, Array)


def believed_slope(n: Number, correlation: float = CORRELATION) -> Number:
    """Return the sum of the weights of n >= 1 equal experts (paper, equation 24), by the defaults for any panel."""
    return CALIBRATION * n / (1.0 + (n - 1.0) * correlation)


def harmonic_mean(values: npt.ArrayLike, probability: npt.ArrayLike) -> float:
    """Return the harmonic mean of positive `values` weighted by `probability`; infinite if all values are infinite."""
    inverse = float(np.asarray(probability) @ (1.0 / np.asarray(values, dtype=np.float64)))
    return 1.0 / inverse if inverse > 0 else np.inf


# The limit of extremes before any outcome.
USUAL_LIMIT = harmonic_mean(LIMITS, LIMIT_PROBABILITIES)


@dataclass(frozen=True, eq=False)
class Feature:
    """Beliefs about one feature (such as the calibration) of N experts: values, and how many events each counts as."""

    value: Array  # (N,)
    worth: Array  # (N,); worth in events beyond the default's, 0 for experts without a belief
    named: npt.NDArray[np.bool_]  # (N,); whether the belief is about that expert by name

    @classmethod
    def of(cls, beliefs: list[Belief | None], common: Belief | None, default: float) -> Feature:
        """Return the beliefs about each expert: by name if any, else the `common` belief, else the `default`."""
        found = [own or common for own in beliefs]
        return cls(
            np.array([default if own is None else own.value for own in found], dtype=np.float64),
            np.array([0.0 if own is None else min(own.worth, CERTAIN) for own in found], dtype=np.float64),
            np.array([own is not None for own in beliefs], dtype=bool),
        )

    @property
    def alike(self) -> bool:
        """True if the beliefs about all experts are equal."""
        return not self.named.any() or (np.ptp(self.value) == 0 and bool(np.ptp(self.worth) <= NO_WORTH))

    @property
    def certain(self) -> bool:
        """True if all beliefs are certain, so that this feature (such as the calibration) is not learned."""
        return bool((self.worth >= CERTAIN).all())

    def merged(self, source: npt.NDArray[np.intp], groups: int, *, logs: bool) -> Feature:
        """Beliefs about distinct experts: means over duplicates, weighted by worth; geometric means if `logs`."""
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
    """Beliefs about N experts as arrays: calibration, accuracy, bias, and their common correlation."""

    calibration: Feature
    accuracy: Feature
    bias: Feature
    correlation: Belief | None = None
    limit: float | None = None  # to which extreme contrasts are moderated; None if that is learned
    given: bool = False  # whether there are any beliefs
    agreement: Agreement | None = None

    @classmethod
    def of(cls, beliefs: Beliefs, experts: tuple[str, ...]) -> Believed:
        """Return the beliefs about the experts with these names as arrays.

        Raises
        ------
        ArgumentError
            If N experts cannot have the believed correlation, or a name differs from an expert's only in spelling.
        """
        nothing = ExpertBeliefs()
        _check_spelling(beliefs, experts)
        own = [beliefs.experts.get(name, nothing) for name in experts]
        level = beliefs.absolute()
        base = ACCURACY if level is None else level.value
        extremes = beliefs.get("extremes")

        def each(belief: Callable[[ExpertBeliefs], Belief | None]) -> list[Belief | None]:
            # There may be thousands of experts of whom nothing is believed by name.
            return [None if expert is nothing else belief(expert) for expert in own]

        found = cls(
            Feature.of(each(lambda expert: expert.get("calibration")), beliefs.get("calibration"), CALIBRATION),
            Feature.of(each(lambda expert: _accuracy(expert, base)), level or _accuracy(beliefs, base), base),
            Feature.of(each(lambda expert: expert.get("bias")), beliefs.get("bias"), 0.0),
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
        """True if all experts have equal calibrations and accuracies, except for what agreement implies."""
        return self.agreement is not None or (self.calibration.alike and self.accuracy.alike)

    @property
    def named(self) -> Mask:
        """Mask of experts of whom something is believed by name, (N,)."""
        return np.asarray(self.calibration.named | self.accuracy.named | self.bias.named)

    @property
    def assessed(self) -> bool:
        """True if weights and biases are known beforehand, by beliefs of infinite worth."""
        return self.fixed and self.bias.certain

    @property
    def fixed(self) -> bool:
        """True if the weights are known beforehand, by beliefs of infinite worth."""
        known = self.correlation is not None and np.isinf(self.correlation.worth)
        return self.calibration.certain and (len(self) == 1 or (self.accuracy.certain and known))

    @property
    def rho(self) -> float:
        """Believed correlation of two experts' errors."""
        return CORRELATION if self.correlation is None else self.correlation.value

    @property
    def correlations(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Alternative correlations that all experts share, and their probabilities."""
        if self.correlation is None:
            least = 0.0 if self.agreement is None else self.agreement.least
            return tuple(max(each, least) for each in CORRELATIONS), CORRELATION_PROBABILITIES
        return (self.rho,), (1.0,)

    @property
    def correlation_worth(self) -> float:
        """Number of events that the user's belief about the correlation counts as; 0 without such a belief."""
        return 0.0 if self.correlation is None else min(self.correlation.worth, CERTAIN)

    @property
    def unassessed(self) -> bool:
        """True if the user believes nothing of these experts, so that only the defaults hold."""
        worths = (self.calibration.worth, self.accuracy.worth, self.bias.worth)
        return self.correlation is None and self.limit is None and not np.concatenate(worths).any()

    def biases(self, d: int) -> Array:
        """Biases as log-ratios, (N, K - 1), for d = K - 1.

        Raises
        ------
        ArgumentError
            If a bias other than 0 is believed and there are more than two classes.
        """
        value = self.bias.value[:, None]
        if d > 1 and value.any():
            raise ArgumentError(
                f"bias: a bias in log-odds is that of two classes, and there are {d + 1}; leave it out, or say 0"
            )
        return np.tile(value, (1, d))

    def among(self, source: npt.NDArray[np.intp], groups: int) -> Believed:
        """The beliefs about experts without duplicates; `source` (N,) says whom each repeats, below 0 for none."""
        if len(self) == groups and (source == np.arange(groups)).all():
            return self
        return replace(
            self,
            calibration=self.calibration.merged(source, groups, logs=True),
            accuracy=self.accuracy.merged(source, groups, logs=True),
            bias=self.bias.merged(source, groups, logs=False),
        )

    def agreeing(self, agreement: Agreement) -> Believed:
        """The beliefs with accuracies that `agreement` implies; less so, the more events users' beliefs count as."""
        if self.fixed or not self.alike or not agreement.tells:
            return self
        accuracy = replace(self.accuracy, value=self.accuracy.value * agreement.accuracy**self._guided)
        return replace(self, accuracy=accuracy, agreement=agreement)

    def accuracy_by(self, kind: Dependent) -> Array:
        """Accuracies, (N,), as the indicator (agreement or sharpness) and the exponent in `kind` imply them."""
        if self.agreement is None:
            return self.accuracy.value
        own = self.accuracy.value / self.agreement.accuracy**self._guided
        if kind.guide == "sharpness":
            return np.asarray(own * self.agreement.sharpness ** (self._guided * kind.exponent))
        return np.asarray(own * self.agreement.accuracy ** (self._guided * kind.exponent / GUIDE))

    @property
    def _guided(self) -> float:
        """Exponent of accuracies implied by agreement: 1 without beliefs about accuracy, near 0 if they count much."""
        return WORTH / (WORTH + float(self.accuracy.worth.max()))

    def parts(self, rho: float) -> Parts:
        """Return the parameters of the panel that is believed, with the correlation `rho` (model.md, section 2.1)."""
        return self._panels(rho)[0]

    def weights(self, rho: float) -> Array:
        """Return the weights of the believed panel with the correlation `rho`, (N,)."""
        return self._panels(rho)[1]

    @cached_property
    def _panels(self) -> Callable[[float], tuple[Parts, Array]]:
        """Function that returns the believed panel's parameters and weights at a correlation, and remembers them."""
        return cache(self._made)

    def _made(self, rho: float) -> tuple[Parts, Array]:
        kappa, accuracy = self.calibration.value, self.accuracy.value
        parts = Parts(accuracy / kappa, np.sqrt(2.0 * accuracy) / kappa, believed_dependence(rho, accuracy))
        weights = np.asarray(parts.weights_for(np.ones((1, len(self)), dtype=bool))[0])
        return parts, weights


def _accuracy(beliefs: ExpertBeliefs, base: float) -> Belief | None:
    """Return the belief about the accuracy mu* by the measure given; a relative accuracy is multiplied by `base`."""
    relative = beliefs.get("relative_accuracy")
    return beliefs.absolute() if relative is None else Belief(base * relative.value, relative.worth)


def _check_spelling(beliefs: Beliefs, experts: tuple[str, ...]) -> None:
    """Raise an ArgumentError if a name in `beliefs` differs from an expert's only in case, spaces or letter forms."""
    unknown = {name_key(name): name for name in beliefs.experts if name not in set(experts)}
    meant = next((name for name in experts if name_key(name) in unknown), None) if unknown else None
    if meant is not None and meant not in beliefs.experts:
        raise ArgumentError(
            f"something is believed of {shown(unknown[name_key(meant)])}, who made no forecast; {shown(meant)} did: "
            "write the name as it is there"
        )


def belief_notes(beliefs: Beliefs, experts: tuple[str, ...]) -> tuple[Note, ...]:
    """Notes on beliefs about unknown experts, and on accuracies below the default of the other experts."""
    notes = []
    unknown = unknown_names(beliefs.experts, experts)
    if unknown:
        meant = suggestion(unknown[0], experts, "there are")
        text = f"something is believed of {listed(unknown, 3)}, who made no forecast; {meant}"
        notes.append(Note("believed-unknown", text, len(unknown), serious=True))
    named = {name: own.absolute() for name, own in beliefs.experts.items() if name not in unknown}
    below = [name for name, accuracy in named.items() if accuracy is not None and accuracy.value < ACCURACY]
    if below and beliefs.absolute() is None and any(named.get(name) is None for name in experts):
        verb = "is" if len(below) == 1 else "are"
        text = (
            f"{listed(below, 3)} {verb} assessed as less accurate than what is assumed of the others, an AUC of 0.84; "
            "if that is not meant, assess the others too: a line such as auc = 0.7 above the first [experts.NAME]"
        )
        notes.append(Note("believed-below", text, len(below)))
    return tuple(notes)
