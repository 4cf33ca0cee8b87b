"""Features and parameters of a panel, and their conversion (model.md, section 2.1; Theorem 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import one_of
from opinionpool.arrays import Array, Index, Mask, as_numbers, axes
from opinionpool.errors import AccuracyUnknownError, PanelError, ShapeError
from opinionpool.logodds import signature, uncentred
from opinionpool.model.contrasts import padded_cells
from opinionpool.model.correlation import (
    CommonCorrelation,
    Dependence,
    MatrixCorrelation,
    MixedCorrelation,
    in_rows,
    matrix_correlation,
)
from opinionpool.model.nested import NestedCorrelation

# Contrasts and their spreads beyond this are a mistake, and their squares would overflow.
LARGEST = 1e100
DEPENDENCES = ("common", "nested")


@dataclass(frozen=True, eq=False)
class Parts:
    """Parameters of a panel of N experts: mean, spread and correlation of log-odds; duplicates share one weight."""

    contrast: Array  # (N,); contrast means mu
    # (N,); standard deviations sigma of the contrasts; 0 for an expert whose forecasts never vary, NaN for one whose
    # calibration was assessed as 0. Both are uninformative.
    spread: Array
    dependence: Dependence  # correlation R of the V distinct experts
    absolute: bool = True  # False if `contrast` and `spread` are known only up to a factor
    source: Index | None = None  # (N,); position of each expert among the V distinct ones; None if N = V

    def __post_init__(self) -> None:
        source, v = self.source, self.dependence.size
        if source is not None and not (source.shape == self.contrast.shape and ((source >= 0) & (source < v)).all()):
            raise PanelError(f"behind each expert should be one of {v} distinct ones")

    @property
    def informative(self) -> Mask:
        """True for experts with an influence, (N,): the forecasts vary, and the calibration is not set to 0."""
        return np.asarray(self.spread > 0)

    @property
    def scale(self) -> Array:
        """Standard deviation sigma of each expert's log-odds given the outcome, (N,); 1 for uninformative experts."""
        return np.where(self.informative, self.spread, 1.0)

    @property
    def signal(self) -> Array:
        """Signal-to-noise ratio mu / sigma of each expert, (N,); 0 for uninformative experts."""
        return np.asarray(self.contrast / self.scale)

    def matrix(self) -> Array:
        """Return the correlation matrix R of all N experts, (N, N)."""
        r = self.dependence.matrix()
        return r if self.source is None else np.asarray(r[np.ix_(self.source, self.source)])

    def times(self, v: Array) -> Array:
        """Return R v for `v` of shape (..., N)."""
        if self.source is None:
            return self.dependence.times(v)
        total = np.zeros((*v.shape[:-1], self.dependence.size))
        np.add.at(np.moveaxis(total, -1, 0), self.source, np.moveaxis(v, -1, 0))
        return np.asarray(self.dependence.times(total)[..., self.source])

    def solve(self, v: Array, present: Mask, experts: Index | None = None, *, strict: bool = True) -> Array:
        """Solve R_SS x = v_S in each row, see `Dependence.solve`; duplicates get equal parts of one expert's x."""
        if self.source is None:
            return self.dependence.solve(v, present, experts, strict=strict)
        who = np.broadcast_to(self.source, present.shape) if experts is None else self.source[experts]
        cells = np.nonzero(present)
        key = cells[0] * self.dependence.size + who[cells]
        _, first, group, number = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        once, mean, group = (cells[0][first], cells[1][first]), np.zeros(present.shape), group.ravel()
        mean[once] = np.bincount(group, in_rows(v, present, experts)[cells]) / number
        kept = np.zeros(present.shape, dtype=bool)
        kept[once] = True
        solved = np.zeros(present.shape)
        solved[cells] = (self.dependence.solve(mean, kept, who, strict=strict)[once] / number)[group]
        return solved

    def weights_for(self, present: Mask, experts: Index | None = None) -> Array:
        """Return each row's weights (equation 10) of a panel of the experts present, (T, m), 0 for absent experts."""
        informative, scale = self.informative, self.scale
        if experts is not None:
            informative, scale = informative[experts], scale[experts]
        return np.asarray(2.0 * self.solve(self.signal, present & informative, experts) / scale)

    @cached_property
    def weights(self) -> Array:
        """Weights of the experts when all are present, (N,)."""
        return np.asarray(self.weights_for(np.ones((1, len(self.contrast)), dtype=bool))[0])

    def added(self, debiased: Array, experts: Index | None = None) -> Array:
        """Return each expert's contribution to pooled log-ratios: weight times own log-ratios `debiased`; 0 for NaN."""
        present = ~np.isnan(debiased[..., 0])
        weights = self.weights if experts is None and present.all() else self.weights_for(present, experts)
        return np.asarray(weights[..., None] * np.where(present[..., None], debiased, 0.0))

    def total(self, levels: Array, origin: Array, experts: Index | None = None) -> Array:
        """Sum over experts of weight times log-ratios, (T, K - 1), where log-ratios are `levels` less `origin`."""
        if experts is None and not np.isnan(levels.min(initial=0.0)):
            (t, m, d), weights = levels.shape, self.weights
            total = (levels.swapaxes(1, 2).reshape(t * d, m) @ weights).reshape(t, d)
            return np.asarray(total - np.einsum("tnd,n->td", origin, weights))
        return np.asarray(self.added(levels - origin, experts).sum(axis=1))

    def expected(self, values: Array, present: Mask) -> Array:
        """Return `values` (T, N), in units of σ, with absent ones replaced by their expectations given the others."""
        if isinstance(self.dependence, MixedCorrelation):
            return self.dependence.average(lambda each: replace(self, dependence=each).expected(values, present))
        return np.where(present, values, self.times(self.solve(values, present, strict=False)))

    def fill(self, contrasts: Array) -> Array:
        """Return contrasts (T, N, K - 1) with missing ones (NaN) replaced by expectations given the experts present, S.

        Expectations E[C | C_S] are under Sigma; 0 for uninformative experts. With weights w of the whole panel, w'E[C |
        C_S] is the pooled contrast of the sub-panel S, as Sigma w = 2 mu. So a regression on filled contrasts learns
        weights for every sub-panel, if contrasts have no bias; a common bias would need an intercept in proportion to
        the sum of the sub-panel's weights.
        """
        known = self.informative
        present = ~np.isnan(contrasts[..., 0]) & known
        if present.all():
            return contrasts
        scaled = np.moveaxis(np.where(present[..., None], contrasts, 0.0) / self.scale[:, None], 2, 0)
        full = np.stack([self.expected(column, present) for column in scaled], axis=2) * self.scale[:, None]
        return np.where(present[..., None], contrasts, np.where(known[:, None], full, 0.0))

    def drawn(self, outcomes: Index, classes: int, rng: np.random.Generator) -> Array:
        """Log-ratios less the prior's and the bias, (T, N, K - 1), drawn from the model given `outcomes` (T,)."""
        source = np.arange(len(self.contrast)) if self.source is None else self.source
        distinct, first = np.unique(source, return_index=True)
        normal = np.zeros((len(outcomes), classes, self.dependence.size))
        normal[..., distinct] = rng.standard_normal((len(outcomes), classes, len(source)))[..., first]
        noise = self.dependence.correlate(normal)[..., source] * (self.spread / np.sqrt(2.0))
        expected = self.contrast[:, None] * signature(classes)[outcomes][:, None, :]
        return np.asarray(expected + np.swapaxes(noise[:, 1:] - noise[:, :1], 1, 2))

    def subset(self, positions: Index) -> Parts:
        """Return the parameters of the experts at `positions`."""
        kept, source = positions, None
        if self.source is not None:
            kept, source = np.unique(self.source[positions], return_inverse=True)
            if len(kept) == len(positions):
                kept, source = self.source[positions], None
        own = self.contrast[positions], self.spread[positions]
        return Parts(*own, self.dependence.subset(kept), self.absolute, source)

    def check_scale(self, what: str) -> None:
        """Raise an `AccuracyUnknownError`, as `what` needs absolute accuracies, if only relative ones are known."""
        if not self.absolute:
            raise AccuracyUnknownError(
                f"{what} needs an absolute accuracy, and this panel knows relative ones only; "
                "give accuracy= (of the first expert, or of each)"
            )

    def check_spread(self, names: Sequence[str]) -> None:
        """Raise an `AccuracyUnknownError` that names an expert, if its log-odds have an unknown standard deviation."""
        unknown = np.flatnonzero(np.isnan(self.spread))
        if len(unknown):
            raise AccuracyUnknownError(
                f"expert {names[unknown[0]]!r} was assessed with calibration 0, so the spread of its log-odds is "
                "unknown; leave it out with subset()"
            )


def cell_weights(
    event: Index, expert: Index, contrast: Array, spread: Array, dependence: Dependence, events: int
) -> Array:
    """Pool weights (M,) of forecasts by `expert` for `event`; `contrast` and `spread` are all experts' mu and sigma."""
    signal, weights = contrast / spread, np.zeros(len(event))
    for _, cells, present in padded_cells(event, events):
        weights[cells[present]] = dependence.solve(signal[cells], present, expert[cells])[present]
    return np.asarray(2.0 * weights / spread)


def numbers(values: npt.ArrayLike, what: str) -> Array:
    """Return `values` as a new float64 array; a `PanelError` if not numbers, or nested lists of different lengths."""
    return np.array(as_numbers(values, what, PanelError))


def _refuse(bad: Mask, values: Array, rule: str) -> None:
    """Raise a `PanelError` that quotes the violated `rule` and the first of `values` that `bad` marks, if any."""
    if bad.any():
        raise PanelError(f"{rule}, and one is {values[bad][0]:.15g}")


def vector(values: npt.ArrayLike, n: int | None, what: str) -> Array:
    """`values` as n finite numbers, repeating a single one; a `ShapeError` or `PanelError`, naming `what`, if not."""
    array = numbers(values, what)
    if array.ndim == 0 and n is not None:
        array = np.full(n, float(array))
    if array.ndim != 1 or len(array) == 0 or (n is not None and len(array) != n):
        wanted = f"one value or {n} values" if n is not None else "one value per expert"
        raise ShapeError(f"{what} needs {wanted}, and its shape is {array.shape}")
    _refuse(~np.isfinite(array), array, f"each {what} must be finite")
    _refuse(np.abs(array) > LARGEST, array, f"each {what} must be at most {LARGEST:g}")
    return array


def bias_ratios(bias: npt.ArrayLike, n: int, classes: int) -> Array:
    """Return biases given in log-odds (N,), or in log-probabilities (N, K) if K > 2, as log-ratios (N, K - 1)."""
    if classes == 2:
        return vector(bias, n, "bias")[:, None]
    full = numbers(bias, "bias")
    if full.shape not in ((), (n, classes)) or not np.isfinite(full).all():
        raise ShapeError(f"the bias of {n} experts on {classes} classes must be finite and of shape {(n, classes)}")
    return uncentred(np.broadcast_to(full, (n, classes)))


def parts_of_parameters(contrast: npt.ArrayLike, covariance: npt.ArrayLike) -> Parts:
    """Return the checked parameters of a panel from contrast means mu (N,) and covariance Sigma (N, N)."""
    mean, sigma = vector(contrast, None, "contrast"), numbers(covariance, "covariance")
    if sigma.shape != (len(mean), len(mean)):
        raise ShapeError(f"{len(mean)} contrasts need a covariance of shape {(len(mean),) * 2}, not {sigma.shape}")
    spread, among = scaled(sigma)
    if (mean[spread == 0] != 0).any():
        raise PanelError("a covariance must be positive definite; an expert without variance must have contrast 0")
    return Parts(mean, spread, among)


def scaled(sigma: Array) -> tuple[Array, MatrixCorrelation]:
    """The standard deviations (M,) and the correlations of a covariance matrix `sigma` (M, M), after checking it."""
    variance = np.diag(sigma)
    if not np.isfinite(sigma).all() or (variance < 0).any():
        raise PanelError(f"a covariance must be finite, with variances above 0, and the variances are {variance}")
    constant = variance == 0
    if (sigma[constant] != 0).any():
        raise PanelError("a covariance must be positive definite, and here one without variance varies with others")
    if ((variance > LARGEST) | (~constant & (variance < 1.0 / LARGEST))).any():
        raise PanelError(f"variances must lie between {1 / LARGEST:g} and {LARGEST:g}, and they are {variance}")
    scale = np.sqrt(np.where(constant, 1.0, variance))
    r = sigma / np.outer(scale, scale)
    r[constant, constant] = 1.0
    return np.sqrt(variance), matrix_correlation(r, "covariance, scaled to correlations,")


def parts_of_features(
    calibration: npt.ArrayLike,
    correlation: npt.ArrayLike,
    relative_accuracy: npt.ArrayLike,
    accuracy: npt.ArrayLike | None,
    n: int,
    dependence: str = "common",
) -> Parts:
    """Panel with mu = accuracy/calibration, sigma = √(2 accuracy)/calibration; without `accuracy`, in unknown units."""
    kappa = vector(calibration, n, "calibration")
    _refuse(kappa < 0, kappa, "a calibration must be at least 0")
    absolute = _accuracies(relative_accuracy, accuracy, n)
    informative = kappa > 0
    safe = np.where(informative, kappa, 1.0)
    with np.errstate(over="ignore"):
        spread = np.where(informative, np.sqrt(2.0 * absolute) / safe, np.nan)
        contrast = np.where(informative, absolute / safe, 0.0)
    if np.isinf(spread).any() or np.isinf(contrast).any():
        raise PanelError(f"a calibration must be 0 or not so close to it, and one is {kappa[informative].min():.3g}")
    one_of(dependence, "dependence", DEPENDENCES, PanelError)
    r = numbers(correlation, "correlation")
    if dependence == "nested" and r.ndim > 0:
        raise PanelError("nested evidence has one correlation, that of two experts who are equally accurate")
    among = NestedCorrelation(np.sqrt(absolute), float(r)) if dependence == "nested" else _dependence(r, n)
    return Parts(contrast, spread, among, absolute=accuracy is not None)


def _accuracies(relative_accuracy: npt.ArrayLike, accuracy: npt.ArrayLike | None, n: int) -> Array:
    """The accuracy mu* of each expert, (N,); if `accuracy` is None, divided by the first expert's."""
    m = vector(relative_accuracy, n, "relative accuracy")
    _refuse(m <= 0, m, "a relative accuracy must be above 0")
    with np.errstate(over="ignore"):
        relative = np.asarray(m / m[0])
    if np.isinf(relative).any():
        raise PanelError(f"relative accuracies differ by too much: {m.min():g} to {m.max():g}")
    if accuracy is None:
        return relative
    absolute = vector(accuracy, n, "accuracy")
    _refuse(absolute <= 0, absolute, "an accuracy must be above 0")
    if np.ndim(accuracy) == 0:
        return np.asarray(absolute * relative)
    if not (relative == 1).all():
        raise PanelError("give relative accuracies, or an accuracy for each expert, not both")
    return absolute


def _dependence(r: Array, n: int) -> Dependence:
    """Return the correlation of `n` experts from `r`: one number that all pairs share, or a matrix (n, n)."""
    if r.ndim == 0:
        _refuse(~np.isfinite(r[None]), r[None], "a correlation must be finite")
        return CommonCorrelation(n, float(r))
    if r.shape != (n, n):
        raise ShapeError(f"{n} experts need one correlation or a matrix of shape {(n, n)}, not {r.shape}")
    return matrix_correlation(r)


def believed_dependence(rho: float, accuracy: Array) -> Dependence:
    """Nested evidence with correlation `rho` (model.md, 8), or one correlation if rho < 0 or accuracies are equal."""
    if rho < 0 or (accuracy == accuracy[0]).all():
        return CommonCorrelation(len(accuracy), rho if len(accuracy) > 1 else 0.0)
    return NestedCorrelation(np.sqrt(accuracy), rho)


def number_of_experts(**given: object) -> int:
    """N, the length of arguments with a value for each expert; a `ShapeError` if lengths differ or none has one."""
    each = {name: value for name, value in given.items() if axes(value, name) > 0}
    sizes = {
        name: len(value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object))
        for name, value in each.items()
    }
    if not sizes:
        raise ShapeError("one number for every feature does not say how many experts there are: use Panel.exchangeable")
    if len(set(sizes.values())) > 1:
        text = ", ".join(f"{name.replace('_', ' ')} {size}" for name, size in sizes.items())
        raise ShapeError(f"every feature needs one value or one per expert, and the numbers differ: {text}")
    return next(iter(sizes.values()))
