"""The full model from the data alone: K means and one covariance, linear discriminant analysis (model.md, section 3).

From complete forecasts the means are those of each outcome, and Ω the products of what is left over T − K. Where
forecasts are missing it is maximum likelihood on those that are there (see `opinionpool.estimation.em`), Ω then times
T/(T − K).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import LearningError, Note, PanelError
from opinionpool.estimation.averages import sample_means, uninformative_experts
from opinionpool.estimation.em import NoMaximumError, NormalRegression, check_overlaps
from opinionpool.estimation.rows import ForecastRows
from opinionpool.estimation.statistics import MeanDesign, PatternMoments
from opinionpool.labels import UNRESOLVED
from opinionpool.model.full_panel import Discriminant

# Relative size below which a spread is rounding.
ROUNDING = 1e-11
# Free log-odds up to which a covariance is looked at.
MOST = 2000
_WAYS_OUT = "use beliefs='default', or class_model='symmetric'"


def full_fit(
    contrasts: Array,
    outcomes: npt.NDArray[np.intp],
    weight: Array,
    experts: tuple[str, ...],
    classes: tuple[object, ...],
) -> tuple[Discriminant, Array, list[Note]]:
    """Means, covariance, biases (N, K - 1) and notes from contrasts L − L°, (T, N, K - 1), NaN where missing.

    Raises a LearningError if the events do not determine means and covariance.
    """
    used = (outcomes != UNRESOLVED) & (weight > 0) & ~np.isnan(contrasts[..., 0]).all(axis=1)
    contrasts, outcomes, weight = contrasts[used], outcomes[used], weight[used]
    count = np.bincount(outcomes, weights=weight, minlength=len(classes))
    if not count.all():
        raise LearningError(
            f"no resolved event with a forecast has outcome {classes[int(np.argmin(count))]!r}, so its means cannot be "
            f"estimated from the data alone; {_WAYS_OUT}"
        )
    cells = ForecastRows.of_array(contrasts, outcomes, weight)
    uninformative, notes = uninformative_experts(cells, sample_means(cells), experts)
    kept = np.flatnonzero(~uninformative)
    _check(contrasts[:, kept], outcomes, weight, [experts[i] for i in kept], classes)
    t, (n, d) = len(contrasts), contrasts.shape[1:]
    rows, k = contrasts[:, kept].reshape(t, -1, 1), len(classes)
    if np.isnan(rows).any():
        cells = replace(ForecastRows.of_array(rows, outcomes, weight), groups=MeanDesign(np.zeros((k, 1))))
        try:
            fit = NormalRegression.of(cells, np.arange(rows.shape[1]), np.eye(k)).fit()
        except NoMaximumError:
            raise LearningError(
                "forecasts are missing, and those that are there do not determine the full model: its likelihood keeps "
                f"rising towards a singular covariance; {_WAYS_OUT}, or leave experts out"
            ) from None
        notes.append(fit.note)
        centres, scatter = fit.coefficients.T, fit.covariance * count.sum()
    else:
        part = PatternMoments.of_rows(rows, outcomes, weight, k)
        centres, scatter = part.mean[:-1, :, 0], (part.scatter[0] + part.scatter[0].T) / 2.0
    covariance = np.zeros((n, d, n, d))
    block = (scatter / (count.sum() - k)).reshape(len(kept), d, len(kept), d)
    covariance[kept[:, None], :, kept] = block.transpose(0, 2, 1, 3)
    means = np.zeros((k, n, d))
    means[:, kept] = centres.reshape(k, len(kept), d)
    bias = means.mean(axis=0)
    parts = Discriminant(means - bias, covariance)
    spread = np.sqrt(np.einsum("papa->p", block) / d)
    still = spread <= ROUNDING * (1.0 + np.nanmax(np.abs(contrasts[:, kept]), axis=(0, 2)))
    if not still.any():
        try:
            parts.rule(kept)
        except PanelError:
            still[:] = True
    if still.any():
        raise LearningError(
            "some of what the experts say never varies within an outcome and differs between outcomes, so how far to "
            f"trust it cannot be learned from the data alone; {_WAYS_OUT}"
        )
    return parts, bias, notes


def _check(
    contrasts: Array, outcomes: npt.NDArray[np.intp], weight: Array, names: list[str], classes: tuple[object, ...]
) -> None:
    """Raise a LearningError unless every class and every pair of experts has enough events for the covariance."""
    (n, d), k = contrasts.shape[1:], len(classes)
    if n * d > MOST:
        raise LearningError(f"{n} experts have {n * d} log-ratios of {k} classes, more than the {MOST} allowed here")
    present = ~np.isnan(contrasts[..., 0])
    different = len({np.ascontiguousarray(contrasts[:, i]).tobytes() for i in range(n)})
    events, needed = weight.sum(), different * d + k
    if events < needed:
        raise LearningError(
            f"the full model of {different} experts and {k} classes needs at least {needed} resolved events with "
            f"forecasts, and there are {events:g}; {_WAYS_OUT}"
        )
    by_class = np.stack([weight @ (present * (outcomes == c)[:, None]) for c in range(k)])
    if not by_class.all():
        c, i = np.argwhere(by_class == 0)[0]
        raise LearningError(
            f"expert {names[i]!r} has no forecast on a resolved event with outcome {classes[c]!r}, so its mean there "
            f"cannot be estimated from the data alone; {_WAYS_OUT}, or leave the expert out"
        )
    check_overlaps((present.T * weight) @ present, 2 * d + k, names, "the full model", _WAYS_OUT)
