"""Features and parameters of a panel: two views of one thing (model.md, section 2.1; Theorem 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import one_of
from opinionpool.arrays import Array, Index, Mask, as_numbers, axes
from opinionpool.errors import AccuracyUnknownError, PanelError, ShapeError
from opinionpool.logodds import signature, uncentred
from opinionpool.model.copied import CopiedCorrelation
from opinionpool.model.correlation import CellWise, CommonCorrelation, Dependence, matrix_correlation
from opinionpool.model.mixed import MixedCorrelation
from opinionpool.model.nested import NestedCorrelation

# Contrasts and their spreads beyond this are a mistake, and their squares would overflow.
LARGEST = 1e100
DEPENDENCES = ("common", "nested")


@dataclass(frozen=True, eq=False)
class Parts:
    """What a panel is made of."""

    contrast: Array  # (N,); contrast means mu
    # (N,); standard deviations sigma of the contrasts; 0 for an expert who never moves, NaN for one whose calibration
    # was assessed as 0. Neither says anything.
    spread: Array
    dependence: Dependence  # correlation R
    absolute: bool = True  # whether the scale of `contrast` and `spread` is known; if not, only ratios mean something

    @property
    def informative(self) -> Mask:
        """False for experts who say nothing: calibration assessed as 0, or forecasts that never move, (N,)."""
        return np.asarray(self.spread > 0)

    @property
    def scale(self) -> Array:
        """Sigma, 1 for experts who say nothing, (N,)."""
        return np.where(self.informative, self.spread, 1.0)

    @property
    def signal(self) -> Array:
        """Mu / sigma, 0 for experts who say nothing, (N,)."""
        return np.asarray(self.contrast / self.scale)

    def weights_for(self, present: Mask) -> Array:
        """W = 2 Sigma_SS^-1 mu_S for the experts S present in each row, 0 elsewhere, (T, N)."""
        solved = self.dependence.solve_present(self.signal, present & self.informative)
        return np.asarray(2.0 * solved / self.scale)

    def cell_weights(self, event: Index, expert: Index, events: int) -> Array | None:
        """The same, forecast by forecast of experts who say something, (M,); None where these take a matrix."""
        among = self.dependence
        if not _is_cell_wise(among):
            return None
        return cell_weights(event, expert, self.contrast[expert], self.spread[expert], among, events)

    def added(self, debiased: Array) -> Array:
        """w_i C_i for contrasts C (T, N, K - 1), NaN where missing; 0 there."""
        present = ~np.isnan(debiased[..., 0])
        if present.all():
            # One pattern needs one solution.
            return np.asarray(self.weights_for(present[:1])[:, :, None] * debiased)
        return self.weights_for(present)[..., None] * np.where(present[..., None], debiased, 0.0)

    def drawn(self, outcomes: Index, classes: int, rng: np.random.Generator) -> Array:
        """Contrasts (T, N, K - 1) without bias.

        Noise is drawn for each class and differenced, so that it does not depend on the reference class.
        """
        normal = rng.standard_normal((len(outcomes), classes, len(self.contrast)))
        noise = self.dependence.correlate(normal) * (self.spread / np.sqrt(2.0))
        expected = self.contrast[:, None] * signature(classes)[outcomes][:, None, :]
        return np.asarray(expected + np.swapaxes(noise[:, 1:] - noise[:, :1], 1, 2))

    def subset(self, positions: Index) -> Parts:
        """The parts of some of the experts."""
        return Parts(self.contrast[positions], self.spread[positions], self.dependence.subset(positions), self.absolute)

    def check_scale(self, what: str) -> None:
        """Raise an `AccuracyUnknownError` where accuracies are known relative to each other only."""
        if not self.absolute:
            raise AccuracyUnknownError(
                f"{what} needs an absolute accuracy, and this panel knows relative ones only; "
                "give accuracy= (of the first expert, or of each)"
            )

    def check_spread(self, names: Sequence[str]) -> None:
        """Raise an `AccuracyUnknownError` where the spread of an expert's log-odds is unknown."""
        unknown = np.flatnonzero(np.isnan(self.spread))
        if len(unknown):
            raise AccuracyUnknownError(
                f"expert {names[unknown[0]]!r} was assessed with calibration 0, so the spread of its log-odds is "
                "unknown; leave it out with subset()"
            )


def _is_cell_wise(among: Dependence) -> TypeGuard[CellWise]:
    """Whether weights take no matrix."""
    if isinstance(among, CommonCorrelation | NestedCorrelation):
        return among.rho < 1.0
    if isinstance(among, MixedCorrelation):
        return all(_is_cell_wise(each) for each in among.models)
    return isinstance(among, CopiedCorrelation) and _is_cell_wise(among.distinct)


def cell_weights(
    event: Index, expert: Index, contrast: Array, spread: Array, dependence: CellWise, events: int
) -> Array:
    """Weights as `Parts.weights_for`, cell by cell, where correlations need no matrix; in time linear in M, (M,).

    Parameters
    ----------
    event, expert : ndarray of int, shape (M,)
    contrast, spread : ndarray, shape (M,)
        Of the expert of each forecast.
    dependence : CellWise
        Correlations below 1.
    events : int

    Examples
    --------
    Two experts on the first event, one on the second:

    >>> event, expert = np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> cell_weights(event, expert, np.ones(3), np.full(3, 2**0.5), CommonCorrelation(2, 0.5), 2).round(4)
    array([0.6667, 0.6667, 1.    ])
    """
    return np.asarray(2.0 * dependence.solve_cells(event, expert, contrast / spread, events) / spread)


def numbers(values: npt.ArrayLike, what: str) -> Array:
    """A new array of float64.

    Raises
    ------
    PanelError
        If these are not numbers, or rows of several lengths.
    """
    return np.array(as_numbers(values, what, PanelError))


def vector(values: npt.ArrayLike, n: int | None, what: str) -> Array:
    """`values` as n finite numbers; one number stands for n equal ones.

    Raises
    ------
    ShapeError
        If there are not n values.
    PanelError
        If one is not finite.
    """
    array = numbers(values, what)
    if array.ndim == 0 and n is not None:
        array = np.full(n, float(array))
    if array.ndim != 1 or len(array) == 0 or (n is not None and len(array) != n):
        wanted = f"one value or {n} values" if n is not None else "one value per expert"
        raise ShapeError(f"{what} needs {wanted}, and its shape is {array.shape}")
    if not np.isfinite(array).all():
        raise PanelError(f"each {what} must be finite, and one is {array[~np.isfinite(array)][0]}")
    if (np.abs(array) > LARGEST).any():
        raise PanelError(f"each {what} must be at most {LARGEST:g}, and one is {array[np.abs(array) > LARGEST][0]:g}")
    return array


def bias_ratios(bias: npt.ArrayLike, n: int, classes: int) -> Array:
    """Bias in log-odds, or in log-probabilities (N, K) when K > 2, as log-ratios (N, K - 1)."""
    if classes == 2:
        return vector(bias, n, "bias")[:, None]
    full = numbers(bias, "bias")
    if full.shape not in ((), (n, classes)) or not np.isfinite(full).all():
        raise ShapeError(f"the bias of {n} experts on {classes} classes must be finite and of shape {(n, classes)}")
    return uncentred(np.broadcast_to(full, (n, classes)))


def parts_of_parameters(contrast: npt.ArrayLike, covariance: npt.ArrayLike) -> Parts:
    """Contrast means and covariance, checked."""
    mean = vector(contrast, None, "contrast")
    sigma = numbers(covariance, "covariance")
    if sigma.shape != (len(mean), len(mean)):
        raise ShapeError(f"{len(mean)} contrasts need a covariance of shape {(len(mean),) * 2}, not {sigma.shape}")
    variance = np.diag(sigma)
    if not np.isfinite(sigma).all() or (variance < 0).any():
        raise PanelError(f"a covariance must be finite, with variances above 0, and the variances are {variance}")
    still = variance == 0
    if (mean[still] != 0).any() or (sigma[still] != 0).any():
        raise PanelError("a covariance must be positive definite; an expert without variance must have contrast 0")
    sizes = variance[~still]
    if ((sizes > LARGEST) | (sizes < 1.0 / LARGEST)).any():
        raise PanelError(f"variances must lie between {1 / LARGEST:g} and {LARGEST:g}, and they are {variance}")
    spread = np.sqrt(variance)
    scale = np.where(still, 1.0, spread)
    r = sigma / np.outer(scale, scale)
    r[still, still] = 1.0
    return Parts(mean, spread, matrix_correlation(r, "covariance, scaled to correlations,"))


def parts_of_features(
    calibration: npt.ArrayLike,
    correlation: npt.ArrayLike,
    relative_accuracy: npt.ArrayLike,
    accuracy: npt.ArrayLike | None,
    n: int,
    dependence: str = "common",
) -> Parts:
    """Contrast mean mu*/kappa and spread sqrt(2 mu*)/kappa, on an arbitrary scale if no accuracy is given."""
    kappa = vector(calibration, n, "calibration")
    if (kappa < 0).any():
        raise PanelError(f"a calibration must be at least 0, and one is {kappa[kappa < 0][0]:.15g}")
    absolute = accuracies(relative_accuracy, accuracy, n)
    informative = kappa > 0
    safe = np.where(informative, kappa, 1.0)
    with np.errstate(over="ignore"):
        spread = np.where(informative, np.sqrt(2.0 * absolute) / safe, np.nan)
        contrast = np.where(informative, absolute / safe, 0.0)
    if np.isinf(spread).any() or np.isinf(contrast).any():
        raise PanelError(f"a calibration must be 0 or not so close to it, and one is {kappa[informative].min():.3g}")
    one_of(dependence, "dependence", DEPENDENCES, PanelError)
    among = nested_of(correlation, absolute) if dependence == "nested" else dependence_of(correlation, n)
    return Parts(contrast, spread, among, absolute=accuracy is not None)


def accuracies(relative_accuracy: npt.ArrayLike, accuracy: npt.ArrayLike | None, n: int) -> Array:
    """mu* of each expert; relative to a first expert of 1 if no accuracy is given."""
    m = vector(relative_accuracy, n, "relative accuracy")
    if (m <= 0).any():
        raise PanelError(f"a relative accuracy must be above 0, and one is {m[m <= 0][0]:.15g}")
    with np.errstate(over="ignore"):
        relative = np.asarray(m / m[0])
    if np.isinf(relative).any():
        raise PanelError(f"relative accuracies differ by too much: {m.min():g} to {m.max():g}")
    if accuracy is None:
        return relative
    absolute = vector(accuracy, n, "accuracy")
    if (absolute <= 0).any():
        raise PanelError(f"an accuracy must be above 0, and one is {absolute[absolute <= 0][0]:.15g}")
    if np.ndim(accuracy) == 0:
        return np.asarray(absolute * relative)
    if not (relative == 1).all():
        raise PanelError("give relative accuracies, or an accuracy for each expert, not both")
    return absolute


def dependence_of(correlation: npt.ArrayLike, n: int) -> Dependence:
    """One number as a common correlation, a matrix as itself."""
    r = numbers(correlation, "correlation")
    if r.ndim == 0:
        if not np.isfinite(r):
            raise PanelError(f"a correlation must be finite, and it is {r}")
        return CommonCorrelation(n, float(r))
    if r.shape != (n, n):
        raise ShapeError(f"{n} experts need one correlation or a matrix of shape {(n, n)}, not {r.shape}")
    return matrix_correlation(r)


def nested_of(correlation: npt.ArrayLike, accuracy: Array) -> Dependence:
    """Nested evidence of experts of these accuracies (N,), of whom equal ones have this correlation."""
    rho = numbers(correlation, "correlation")
    if rho.ndim > 0:
        raise PanelError("nested evidence has one correlation, that of two experts who are equally accurate")
    return NestedCorrelation(np.sqrt(accuracy), float(rho))


def believed_dependence(rho: float, accuracy: Array) -> Dependence:
    """What is meant where one correlation is believed of experts of these accuracies, (N,) (model.md, section 8).

    Nested evidence, unless they are equally accurate, when it is a common correlation, or the correlation is negative.
    """
    if rho < 0 or (accuracy == accuracy[0]).all():
        return CommonCorrelation(len(accuracy), rho if len(accuracy) > 1 else 0.0)
    return NestedCorrelation(np.sqrt(accuracy), rho)


def number_of_experts(**given: object) -> int:
    """N, from whichever argument has one value per expert.

    Raises
    ------
    ShapeError
        If none has, or if they disagree.
    """
    sizes = {name: len(np.asarray(value, dtype=object)) for name, value in given.items() if axes(value, name) > 0}
    if not sizes:
        raise ShapeError("one number for every feature does not say how many experts there are: use Panel.exchangeable")
    if len(set(sizes.values())) > 1:
        text = ", ".join(f"{name.replace('_', ' ')} {size}" for name, size in sizes.items())
        raise ShapeError(f"every feature needs one value or one per expert, and the numbers differ: {text}")
    return next(iter(sizes.values()))
