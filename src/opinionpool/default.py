"""The default pool: what is believed of any panel, moved by resolved events as far as they bear.

The answer is a log pool around equal weights, L* = L° + Σ w_i (C_i − b_i), whose coefficients are the most probable
ones given the outcomes (model.md, section 2.7). Believed beforehand, of any panel:

* experts are about calibrated and strongly dependent, w = `CALIBRATION` / (1 + (N − 1) `CORRELATION`) each, which puts
  the answer near the average of their log-odds; the common slope may be off by a factor of 1 ± `SLOPE`;
* they are unbiased, give or take `BIAS` in log-odds;
* weights differ from each other by 0 to `SPREADS[-1]`, small differences being likelier;
* extreme statements are believed up to a contrast of about `EXTREMES`: beyond it, C counts as c tanh(C/c).

The last two are averaged by how well each value predicts the outcomes (evidence). If the prior is Laplace's
estimate, it is itself believed only in so far as there are more than `PRIOR_WORTH` events behind it. With one outcome,
or none, this still has one answer. It is then written as a Gaussian panel with the same weights: spreads and
correlations are those of the data held to the panel (`opinionpool.shrunk`), contrasts follow from the weights (10).
The values come from reasoning and from simulated panels of many kinds (`benchmarks/default_pool.py`), where the result
is flat around them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.dependence import CommonCorrelation, Dependence, MatrixCorrelation
from opinionpool.errors import Note
from opinionpool.evidence import evidence_of
from opinionpool.extremes import Extremes
from opinionpool.features import Parts
from opinionpool.filled import fill_missing
from opinionpool.forecasts import UNRESOLVED
from opinionpool.logodds import Array
from opinionpool.mode import Mode, posterior_mode
from opinionpool.shrunk import shrunk_dependence, shrunk_features

CALIBRATION, CORRELATION = 0.95, 0.65
SLOPE, BIAS = 0.35, 0.4
SPREADS, SPREAD_CHANCES = (0.0, 0.05, 0.15, 0.4, 1.0), (0.5, 0.2, 0.15, 0.1, 0.05)
EXTREMES, EXTREME_CHANCES = (2.5, 5.0, 20.0), (0.25, 0.5, 0.25)
PRIOR_WORTH = 20.0
# Without any outcome, an expert alone is taken to have this accuracy: an area under the curve of 0.84.
ACCURACY = 1.0
# Values are chosen on this many events, evenly spread; more would not change the choice.
CHOOSING = 4096
# A spread of weights less probable than this is left out of the average.
NEGLIGIBLE = 1e-3
# So many forecasts, all the same, say nothing.
CONSTANT = 10
# Experts who agree on at least so many events, with so many different statements, are one voice.
CLONED = 5, 3
# What a fit of the mean log-odds may be divided by when a bias is read from an intercept.
LEAST_SLOPE = 0.3


@dataclass(frozen=True, eq=False)
class DefaultFit:
    """A panel in parts.

    Attributes
    ----------
    parts : Parts
    bias : ndarray, shape (N, K - 1)
    extremes : Extremes
        How far extreme statements are believed.
    notes : list of Note
    """

    parts: Parts
    bias: Array
    extremes: Extremes
    notes: list[Note]


def default_fit(
    contrasts: Array,
    reference: Array,
    outcomes: npt.NDArray[np.intp],
    weight: Array,
    experts: tuple[str, ...],
    *,
    estimated: bool,
) -> DefaultFit:
    """Learn from contrasts, whatever there is of them.

    Parameters
    ----------
    contrasts : ndarray, shape (T, N, K - 1)
        L − L°, NaN where missing.
    reference : ndarray, shape (T, K - 1)
        L°.
    outcomes : ndarray of int, shape (T,)
        -1 where not resolved.
    weight : ndarray, shape (T,)
        Frequencies.
    experts : tuple of str
        N names.
    estimated : bool
        Whether the reference is Laplace's estimate from these outcomes.
    """
    voices, notes = _voices(contrasts, experts)
    heard = [group[0] for group in voices]
    if not heard:
        heard, voices = [0], [[0]]
    present = ~np.isnan(contrasts[:, heard, 0])
    used = (outcomes != UNRESOLVED) & (weight > 0) & present.any(axis=1)
    rows = _Rows(contrasts[np.ix_(used, heard)], reference[used], outcomes[used], weight[used], estimated)
    if not used.any():
        notes.append(_nothing_learned((outcomes != UNRESOLVED).any()))
        found = _assumed(len(heard), rows.contrasts.shape[2])
    else:
        found = _learned(rows)
    return _spread_over(found, voices, len(experts), notes)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Resolved events with a forecast."""

    contrasts: Array
    reference: Array
    outcomes: npt.NDArray[np.intp]
    weight: Array
    estimated: bool

    @property
    def lean(self) -> Array:
        """How far Laplace's estimate is from what is believed of the prior, (K - 1,)."""
        if not self.estimated:
            return np.zeros(self.contrasts.shape[2])
        return np.asarray(self.reference[0] * PRIOR_WORTH / (self.weight.sum() + PRIOR_WORTH))

    def thinned(self) -> _Rows:
        if len(self.outcomes) <= CHOOSING:
            return self
        kept = np.linspace(0, len(self.outcomes) - 1, CHOOSING).astype(np.intp)
        return _Rows(self.contrasts[kept], self.reference[kept], self.outcomes[kept], self.weight[kept], self.estimated)


def _assumed(n: int, d: int) -> DefaultFit:
    spread = np.full(n, np.sqrt(2.0 * ACCURACY) / CALIBRATION)
    parts = Parts(np.full(n, ACCURACY / CALIBRATION), spread, CommonCorrelation(n, CORRELATION if n > 1 else 0.0))
    return DefaultFit(parts, np.zeros((n, d)), Extremes(_mean_limit(np.array(EXTREME_CHANCES))), [])


def _learned(rows: _Rows) -> DefaultFit:
    few = rows.thinned()
    n = rows.contrasts.shape[1]
    even = np.ones(n)
    centre = tuple(-rows.lean)
    scores = [_averaged(_Design.of(few, even, CORRELATION, None, Extremes(c, centre))) for c in EXTREMES]
    extremes = Extremes(_mean_limit(_chances(scores, EXTREME_CHANCES)), centre)
    held = extremes.believed(rows.contrasts)
    evidence = evidence_of(held, rows.outcomes, rows.weight, tuple(str(i) for i in range(n)))
    spread, rho, bias = shrunk_features(evidence)
    design = _Design.of(few, spread, rho, bias, extremes)
    modes = [design.mode(s) for s in SPREADS[: len(SPREADS) if n > 1 else 1]]
    chances = _chances([mode.evidence for mode in modes], SPREAD_CHANCES[: len(modes)])
    if few is not rows:
        design = _Design.of(rows, spread, rho, bias, extremes)
    slope, intercept, apart = 0.0, np.zeros(rows.contrasts.shape[2]), np.zeros(n)
    for apart_by, chance, mode in zip(SPREADS, chances, modes, strict=False):
        if chance > NEGLIGIBLE:
            final = mode if few is rows else design.mode(apart_by, mode.coefficients)
            own = design.read(final, apart_by)
            slope, intercept, apart = slope + chance * own[0], intercept + chance * own[1], apart + chance * own[2]
    total = chances[chances > NEGLIGIBLE].sum()
    slope, intercept, apart = slope / total, intercept / total, apart / total
    # L* = L° + lean (slope − 1) + intercept + Σ w_i C_i: what does not depend on the forecasts is a bias of all.
    common = -(intercept + (slope - 1.0) * rows.lean) / max(slope, LEAST_SLOPE)
    weights = slope / n + apart
    dependence = shrunk_dependence(evidence, rho)
    contrast = spread * dependence.times(spread * weights) / 2.0
    return DefaultFit(Parts(contrast, spread, dependence), bias + common, extremes, [])


@dataclass(frozen=True, eq=False)
class _Design:
    """The log pool as a regression whose coefficients are standard normal beforehand."""

    rows: _Rows
    level: Array
    apart: Array
    slope: float

    @classmethod
    def of(cls, rows: _Rows, spread: Array, rho: float, bias: Array | None, extremes: Extremes) -> _Design:
        held = extremes.believed(rows.contrasts)
        if bias is not None:
            held = held - bias
        full = fill_missing(held, spread, rho)
        level = full.mean(axis=1)
        n = full.shape[1]
        return cls(rows, level + rows.lean, full - level[:, None, :], CALIBRATION * n / (1.0 + (n - 1) * CORRELATION))

    def mode(self, spread: float, start: Array | None = None) -> Mode:
        """The most probable coefficients if weights differ by `spread`: slope, intercept, weights."""
        t, d = self.level.shape
        # Class-symmetric: the log-ratios of independent log-probabilities.
        shift = BIAS * self.slope * np.linalg.cholesky((np.eye(d) + 1.0) / 2.0)
        columns = [SLOPE * self.slope * self.level[:, None, :], np.broadcast_to(shift.T, (t, d, d))]
        if spread > 0:
            columns.append(spread * self.apart)
        offset = self.rows.reference - self.rows.lean + self.slope * self.level
        return posterior_mode(np.concatenate(columns, axis=1), self.rows.outcomes, offset, self.rows.weight, start)

    def read(self, mode: Mode, spread: float) -> tuple[float, Array, Array]:
        """Slope, intercept (K - 1,) and deviations from equal weights (N,) of a mode."""
        d = self.level.shape[1]
        shift = BIAS * self.slope * np.linalg.cholesky((np.eye(d) + 1.0) / 2.0)
        theta = mode.coefficients
        apart = np.zeros(self.apart.shape[1])
        if spread > 0:
            apart = spread * theta[1 + d :]
            apart = apart - apart.mean()
        return self.slope * (1.0 + SLOPE * theta[0]), shift @ theta[1 : 1 + d], apart


def _averaged(design: _Design) -> float:
    """Log evidence, averaged over how far weights differ."""
    several = design.apart.shape[1] > 1
    terms = [
        design.mode(s).evidence + np.log(c) for s, c in zip(SPREADS, SPREAD_CHANCES, strict=True) if several or s == 0
    ]
    return float(np.logaddexp.reduce(terms))


def _chances(evidence: list[float], prior: tuple[float, ...]) -> Array:
    """Posterior probabilities from log evidence and prior probabilities."""
    score = np.array(evidence) + np.log(prior)
    chance = np.exp(score - score.max())
    return np.asarray(chance / chance.sum())


def _mean_limit(chances: Array) -> float:
    return float(1.0 / (chances @ (1.0 / np.array(EXTREMES))))


def _voices(contrasts: Array, experts: tuple[str, ...]) -> tuple[list[list[int]], list[Note]]:
    """Experts who say something, or might, clones together; and what to tell about the others."""
    groups: dict[bytes, list[int]] = {}
    constant, notes = [], []
    for i, name in enumerate(experts):
        column = np.ascontiguousarray(contrasts[:, i])
        said = column[~np.isnan(column[:, 0])]
        different = len(np.unique(said[:, 0]))
        if len(said) >= CONSTANT and different == 1:
            constant.append(name)
        else:
            telling = len(said) >= CLONED[0] and different >= CLONED[1]
            groups.setdefault(column.tobytes() if telling else i.to_bytes(8, "big"), []).append(i)
    if constant:
        text = f"{_list(constant)} always said the same and got weight 0"
        notes.append(Note("constant", text, len(constant)))
    for group in groups.values():
        if len(group) > 1:
            text = f"{_list([experts[i] for i in group])} say the same on every event; they share one weight"
            notes.append(Note("clones", text, len(group), serious=True))
    return list(groups.values()), notes


def _spread_over(found: DefaultFit, voices: list[list[int]], n: int, notes: list[Note]) -> DefaultFit:
    """The panel of all experts from that of the distinct voices."""
    if [group[0] for group in voices] == list(range(n)):
        return DefaultFit(found.parts, found.bias, found.extremes, notes)
    source = np.full(n, -1)
    for position, group in enumerate(voices):
        source[group] = position
    known = source >= 0
    contrast = np.where(known, found.parts.contrast[source], 0.0)
    spread = np.where(known, found.parts.spread[source], np.nan)
    dependence: Dependence = CommonCorrelation(n, CORRELATION)
    if (np.bincount(source[known]) > 1).any() or not isinstance(found.parts.dependence, CommonCorrelation):
        matrix = found.parts.dependence.matrix()[np.ix_(source, source)]
        matrix[~known] = matrix[:, ~known] = 0.0
        np.fill_diagonal(matrix, 1.0)
        dependence = MatrixCorrelation(matrix)
    elif found.parts.dependence.size > 1:
        dependence = CommonCorrelation(n, found.parts.dependence.rho)
    bias = np.where(known[:, None], found.bias[source], 0.0)
    return DefaultFit(Parts(contrast, spread, dependence), bias, found.extremes, notes)


def _nothing_learned(resolved: bool) -> Note:
    what = "no resolved event has a forecast" if resolved else "no event is resolved"
    text = (
        f"{what}, so nothing was learned: the experts are assumed to be unbiased, about "
        f"calibrated ({CALIBRATION:g}), equally accurate and correlated at {CORRELATION:g}"
    )
    return Note("nothing-learned", text)


def _list(names: list[str]) -> str:
    """Up to three names, and how many more."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(repr(name) for name in names[:3]) + more
