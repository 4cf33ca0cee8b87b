"""Panels from sample averages (paper, section 5.4) in four structures, and experts who are uninformative in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import LearningError, Note
from opinionpool.estimation.rows import ResolvedEvents
from opinionpool.estimation.statistics import MeanDesign
from opinionpool.logodds import inner_products, metric, unwhitened, whitened
from opinionpool.model.correlation import CommonCorrelation, MatrixCorrelation
from opinionpool.model.features import Parts
from opinionpool.text import listed

# Two experts whose correlation is this close to 1 or -1 say the same thing.
DUPLICATE = 1e-9
# Relative size below which a spread is rounding.
ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class Means:
    """Fit of each expert's mean log-ratios by outcome: bias + contrast · signature of the outcome (±1 if K = 2)."""

    bias: Array  # (N, K - 1)
    contrast: Array  # (N,)
    square: Array  # (N,); residual sum of squares
    count: Array  # (K, N); weight of the forecasts by outcome
    design: MeanDesign  # expected contrasts by outcome, for a contrast of 1

    @property
    def terms(self) -> Array:
        """Residual degrees of freedom of each expert's fit, (K - 1) T - K for T forecasts, (N,)."""
        rows = self.design.signature.shape[1] * self.count.sum(axis=0)
        return np.asarray(rows - self.design.coefficients)

    @property
    def expected(self) -> Array:
        """Mean log-ratios (less the prior's) of each expert given each outcome, (K, N, K - 1)."""
        shape = self.design.signature
        return np.asarray(self.bias + self.contrast[:, None] * shape[:, None, :])


class Effects(NamedTuple):
    """Bias and contrast by ridge regressions, and their posterior variances relative to the residual variance."""

    bias: Array  # (..., K - 1); in orthonormal coordinates
    contrast: Array  # (...)
    bias_variance: Array  # (...); of each coordinate
    contrast_variance: Array  # (...)


@dataclass(frozen=True, eq=False)
class Regressions:
    """Sums for regressions of log-ratios c on 1 and outcomes' signatures s (±1 for two classes); axes (...) are theirs.

    All log-ratios are in orthonormal coordinates (`whitened`): c = bias + contrast s + error. There is a regression,
    such as that of an expert, for each index (...).
    """

    count: Array  # (...); sum of weights
    signature: Array  # (..., K - 1); sum of s
    value: Array  # (..., K - 1); sum of c
    square: Array  # (...); sum of s's
    product: Array  # (...); sum of s'c

    def among(self, rows: Index | slice) -> Regressions:
        """Return the sums of the regressions at the positions `rows`."""
        return Regressions(*(each[rows] for each in vars(self).values()))

    def about(self, bias: Array, contrast: Array) -> Regressions:
        """Return the sums for log-ratios less `bias` (..., K - 1), and less `contrast` (...) times the signature."""
        value = self.value - self.count[..., None] * bias - contrast[..., None] * self.signature
        product = self.product - (self.signature * bias).sum(axis=-1) - contrast * self.square
        return replace(self, value=value, product=product)

    def solve(self, worth: tuple[Array | float, Array | float] = (0.0, 0.0)) -> Effects:
        """Ridge regression: bias and contrast, drawn to 0 by penalties `worth` added to `count` and `square`."""
        total, d = self.count + worth[0], self.signature.shape[-1]
        safe = np.where(total > 0, total, 1.0)
        length = (self.signature**2).sum(axis=-1)
        precision = self.square + worth[1] - length / safe
        known = precision > ROUNDING * np.maximum(self.count, 1.0)
        precision = np.where(known, precision, np.inf)
        contrast = (self.product - (self.signature * self.value).sum(axis=-1) / safe) / precision
        bias = (self.value - contrast[..., None] * self.signature) / safe[..., None]
        return Effects(bias, contrast, (1.0 + length / (d * safe * precision)) / safe, 1.0 / precision)


def fit_means(count: Array, mean: Array, square: Array, design: MeanDesign | None = None) -> Means:
    """Fit each expert's bias and contrast to mean log-ratios by outcome, by least squares.

    `count` (K, N) are numbers of forecasts, `mean` (K, N, K - 1) their mean log-ratios, `square` (N,) sums of squared
    deviations from these means. A contrast that the data do not determine, and a bias that the design leaves out, are
    0.
    """
    design = design or MeanDesign.by_outcome(len(count))
    values, signature = whitened(mean), whitened(design.signature)
    total = np.einsum("cn,cnd->nd", count, values)
    product = np.einsum("cn,cnd,cd->n", count, values, signature)
    sums = Regressions(count.sum(axis=0), count.T @ signature, total, design.squares @ count, product)
    found = sums.solve((0.0 if design.biased else np.inf, 0.0))
    misfit = values - found.bias - found.contrast[:, None] * signature[:, None, :]
    between = np.einsum("cn,cnd,cnd->n", count, misfit, misfit)
    return Means(unwhitened(found.bias), found.contrast, square + between, count, design)


def sample_means(evidence: ResolvedEvents) -> Means:
    """Each expert's bias and contrast (mean log-odds given the outcome) by least squares, from its own forecasts."""
    marginals = evidence.marginals
    return fit_means(marginals.count[:-1], marginals.mean[:-1], marginals.square[0], evidence.design)


def zero_variance(evidence: ResolvedEvents, means: Means) -> Mask:
    """Mask of experts with several forecasts, all equal up to rounding, (N,)."""
    marginals = evidence.marginals
    count = np.where(means.count > 0, means.count, 0.0)
    active = count.sum(axis=0)
    centre = np.einsum("cn,cnd->nd", count, marginals.mean[:-1]) / np.where(active > 0, active, 1.0)[:, None]
    centre *= evidence.design.biased  # what is the same whatever the options is none of them
    off = marginals.mean[:-1] - centre
    moved = marginals.square[0] + np.einsum("cn,cnd,cnd->n", count, off, off)
    return np.asarray((active > 1) & (moved <= _rounding(centre, active)))


def without_spread(evidence: ResolvedEvents, means: Means) -> Mask:
    """Mask of experts whose log-ratios are all equal given the outcome, up to rounding, (N,)."""
    size = np.abs(evidence.marginals.mean[:-1]).max(axis=0)
    return np.asarray(means.square <= _rounding(size, means.count.sum(axis=0)))


def _rounding(level: Array, count: Array) -> Array:
    return np.asarray(ROUNDING**2 * count * (1.0 + (level**2).sum(axis=-1)))


def residual_products(evidence: ResolvedEvents, means: Means) -> Array:
    """Sums of products of two experts' residuals about `means`, (N, N), if all experts answered every event."""
    misfit = evidence.marginals.mean[:-1] - means.expected
    n = misfit.shape[1]
    weighed = means.count[:, :1, None] * (misfit @ metric(evidence.classes))
    between = np.swapaxes(weighed, 0, 1).reshape(n, -1) @ np.swapaxes(misfit, 0, 1).reshape(n, -1).T
    products = evidence.scatter() + between
    # To the last digit, as saved files keep one half of it.
    return np.asarray((products + products.T) / 2.0)


def correlations(products: Array) -> Array:
    """Scale sums of products (N, N) to correlations; an expert whose sum of squares is 0 is correlated with nobody."""
    size = np.sqrt(np.diag(products))
    scale = np.where(size > 0, size, np.inf)
    r = np.clip(products / np.outer(scale, scale), -1.0, 1.0)
    np.fill_diagonal(r, 1.0)
    # To rounding, duplicates and complements are exact.
    return np.asarray(np.where(np.abs(r) > 1.0 - DUPLICATE, np.sign(r), r))


def spreads(means: Means) -> Array:
    """Standard deviation sigma of each expert's log-ratios given the outcome, (N,); 0 if its forecasts are too few."""
    return np.sqrt(np.where(means.terms > 0, means.square / np.where(means.terms > 0, means.terms, 1.0), 0.0))


def common_correlation(evidence: ResolvedEvents, means: Means) -> float:
    """Mean correlation of two experts' residuals, weighted by shared events and clipped to (-1/(N-1), 1]."""
    n = len(means.contrast)
    active = means.square > 0
    spread = np.where(active, np.sqrt(means.square / np.where(active, means.count.sum(axis=0), 1.0)), np.inf)
    total, pairs = evidence.shared(means.expected, spread)
    return keep_in_range(total / pairs if pairs > 0 else 0.0, n)


def keep_in_range(rho: float, n: int) -> float:
    """Correlation `rho` that `n` experts share, clipped to its possible range (-1/(n-1), 1]."""
    if n == 1:
        return 0.0
    if rho > 1.0 - DUPLICATE:
        return 1.0
    return max(rho, -(1.0 - DUPLICATE) / (n - 1))


def full_parts(evidence: ResolvedEvents, means: Means) -> tuple[Parts, Array]:
    """Parameters with each pair's own correlation, and correlations (N, N); a LearningError if events are too few."""
    r = correlations(residual_products(evidence, means))
    different = len(distinct(r))
    terms = int(means.terms[0])
    if different > terms:
        needed = -(-(different + means.design.coefficients) // (evidence.classes - 1))
        counted = "" if means.design.biased else " of two options (one with K counts as K - 1)"
        raise LearningError(
            f"rank {min(terms, different)} < {different} experts; {means.design.events(means.count[:, 0]):g} events: "
            "a full "
            f"covariance needs at least {needed} resolved events{counted}; use structure='common', 'independent' or "
            "'auto', or leave experts out"
        )
    return Parts(means.contrast, spreads(means), MatrixCorrelation(r)), r


def distinct(r: Array) -> list[list[int]]:
    """Groups of experts whose correlation is 1 or -1, as lists of positions in the order of their first members."""
    if np.count_nonzero(np.abs(r) > 1.0 - DUPLICATE) == len(r):
        return [[i] for i in range(len(r))]
    groups: list[list[int]] = []
    for i in range(len(r)):
        home = next((group for group in groups if abs(r[group[0], i]) > 1.0 - DUPLICATE), None)
        if home is None:
            groups.append([i])
        else:
            home.append(i)
    return groups


def exchangeable_parts(evidence: ResolvedEvents) -> tuple[Parts, Array]:
    """Parameters of equal experts: one contrast, spread and correlation for all; and their bias, (N, K - 1)."""
    marginals = evidence.marginals
    n = marginals.count.shape[1]
    if evidence.complete:
        means, variance, rho = _exchangeable_complete(evidence)
    else:
        means, variance, rho = _exchangeable_cells(evidence)
    parts = Parts(
        np.full(n, means.contrast[0]), np.full(n, np.sqrt(variance)), CommonCorrelation(n, keep_in_range(rho, n))
    )
    return parts, np.tile(means.bias[0], (n, 1))


def _exchangeable_complete(evidence: ResolvedEvents) -> tuple[Means, float, float]:
    """Fit of means, variance and correlation of equal experts, if all answered each event (model.md, section 2.5)."""
    marginals = evidence.marginals
    n = marginals.count.shape[1]
    count = marginals.count[:-1, :1]
    level = marginals.mean[:-1].mean(axis=1, keepdims=True)
    products = evidence.scatter()
    rows = products.sum() / n**2
    means = fit_means(count, level, np.array([rows]), evidence.design)
    v1 = n * float(means.square[0] / means.terms[0])
    if n == 1:
        return means, v1, 0.0
    deviation = marginals.mean[:-1] - level
    between = count[:, 0] @ inner_products(deviation, deviation).sum(axis=1)
    v2 = float(np.trace(products) - n * rows + between) / ((evidence.classes - 1) * count.sum() * (n - 1))
    total = v1 + (n - 1) * v2
    return means, float(total / n), float((v1 - v2) / total) if total > 0 else 0.0


def _exchangeable_cells(evidence: ResolvedEvents) -> tuple[Means, float, float]:
    """Fit of means, variance and correlation of equal experts, from all forecasts and from pairs on one event."""
    count, mean, square = pooled_cells(evidence)
    means = fit_means(count, mean, square, evidence.design)
    n = evidence.marginals.count.shape[1]
    cells = float(count.sum())
    spread = np.full(n, np.sqrt(means.square[0] / cells) if means.square[0] > 0 else np.inf)
    total, pairs = evidence.shared(np.repeat(means.expected, n, axis=1), spread)
    return means, float(means.square[0] / means.terms[0]), total / pairs if pairs else 0.0


def pooled_cells(evidence: ResolvedEvents) -> tuple[Array, Array, Array]:
    """Number (K, 1) and mean (K, 1, K - 1) of all experts' log-ratios by outcome; sum of squared deviations, (1,)."""
    marginals = evidence.marginals
    count = marginals.count[:-1].sum(axis=1, keepdims=True)
    mean = np.einsum("cn,cnd->cd", marginals.count[:-1], marginals.mean[:-1]) / np.where(count > 0, count, 1.0)
    deviation = marginals.mean[:-1] - mean[:, None]
    between = (marginals.count[:-1] * inner_products(deviation, deviation)).sum()
    return count, mean[:, None], np.array([marginals.square[0].sum() + between])


def sample_parts(
    evidence: ResolvedEvents, experts: tuple[str, ...], classes: tuple[object, ...], kind: str
) -> tuple[Parts, Array, list[Note]]:
    """Parameters of structure `kind`, biases (N, K - 1) and notes, estimated from resolved events by averages."""
    _check_events(evidence, classes)
    if kind == "exchangeable":
        parts, bias = exchangeable_parts(evidence)
        if not parts.spread[0] > 0:
            raise LearningError(
                "forecasts never vary within an outcome; more resolved events would show how far to trust them"
            )
        return parts, bias, []
    means = sample_means(evidence)
    uninformative, notes = _uninformative(evidence, means, experts, classes)
    means = replace(
        means, contrast=np.where(uninformative, 0.0, means.contrast), square=np.where(uninformative, 0.0, means.square)
    )
    if kind == "full" and not evidence.complete:
        # Loaded where forecasts are missing: nobody else should wait for it.
        from opinionpool.estimation.em import maximum_likelihood

        likeliest = maximum_likelihood(evidence, means.bias, means.square > 0, experts)
        means = replace(means, bias=likeliest.bias, contrast=likeliest.contrast)
        among, spread = MatrixCorrelation(correlations(likeliest.covariance)), np.sqrt(np.diag(likeliest.covariance))
        parts = Parts(likeliest.contrast, spread, among)
        notes.append(likeliest.fit.note)
    elif kind == "full":
        parts, r = full_parts(evidence, means)
        notes += _duplicate_notes(r, experts, uninformative)
    else:
        rho = common_correlation(evidence, means) if kind == "common" else 0.0
        parts = Parts(means.contrast, spreads(means), CommonCorrelation(len(experts), rho))
    unknown = means.count.sum(axis=0) == 0
    spread = np.where(unknown, np.nan, np.where(uninformative, 0.0, parts.spread))
    return Parts(parts.contrast, spread, parts.dependence), means.bias, notes


def _check_events(evidence: ResolvedEvents, classes: tuple[object, ...]) -> None:
    """Raise a LearningError unless resolved events have two different outcomes and outnumber the coefficients."""
    answered, k = evidence.answered, evidence.classes
    if not evidence.design.biased:
        _check_choices(evidence)
        return
    seen = np.flatnonzero(answered > 0)
    if len(seen) < 2:
        if len(seen) == 0:
            what = "there are no resolved events with forecasts"
        elif k == 2:
            what = f"there are no resolved events with outcome {classes[1 - seen[0]]!r}"
        else:
            what = f"every resolved event has outcome {classes[seen[0]]!r}"
        raise LearningError(
            f"{what}, so the experts' weights cannot be estimated from the data alone; use structure='auto' with "
            "beliefs='default'"
        )
    if (k - 1) * answered.sum() - k < 1:
        needed = -(-(k + 1) // (k - 1))
        raise LearningError(
            f"need at least {needed} resolved events and some variation within an outcome, and there are "
            f"{answered.sum():g}; use structure='auto' with beliefs='default'"
        )


def _check_choices(evidence: ResolvedEvents) -> None:
    """Raise a LearningError if fewer than two events, which have options of their own, have forecasts."""
    if evidence.answered.sum() < 2:
        raise LearningError(
            "need at least 2 resolved events with forecasts, or one with 3 options, and there are "
            f"{evidence.answered.sum():g}; use structure='auto' with beliefs='default'"
        )


def uninformative_experts(evidence: ResolvedEvents, means: Means, experts: Sequence[str]) -> tuple[Mask, list[Note]]:
    """Mask (N,) of experts with missing or only equal forecasts, and notes; a LearningError if that is all experts."""
    absent = means.count.sum(axis=0) == 0
    constant = zero_variance(evidence, means) & ~absent
    if (absent | constant).all():
        raise LearningError("no expert has forecasts that vary on resolved events, so there is nothing to learn from")
    notes = no_forecast_notes(experts, absent) + constant_notes(experts, constant)
    return np.asarray(absent | constant), notes


def _uninformative(
    evidence: ResolvedEvents, means: Means, experts: tuple[str, ...], classes: tuple[object, ...]
) -> tuple[Mask, list[Note]]:
    """Mask (N,) of uninformative experts, and notes; a LearningError if others have too few or equal forecasts."""
    uninformative, notes = uninformative_experts(evidence, means, experts)
    few = means.terms < 1
    if means.design.biased:
        few = few | ((means.count > 0).sum(axis=0) < 2)
    if (few & ~uninformative).any():
        i = int((few & ~uninformative).argmax())
        need, phrase = "2", ""
        if means.design.biased:
            each = ", ".join(
                f"{n:g} with outcome {label!r}" for n, label in zip(means.count[:, i], classes, strict=True)
            )
            need, phrase = "3 and both outcomes", f" ({each})"
        raise LearningError(
            f"expert {experts[i]!r} has too few forecasts on resolved events for estimates of its own{phrase}: need at "
            "least "
            f"{need}; use structure='auto' with beliefs='default' or leave the expert out"
        )
    flat = without_spread(evidence, means) & ~uninformative
    if flat.any():
        raise LearningError(
            "need at least 3 resolved events and some within-outcome variation for expert "
            f"{listed([experts[i] for i in np.flatnonzero(flat)], 3)}, whose forecasts on resolved events differ "
            "only between outcomes; use structure='auto' with beliefs='default'"
        )
    return uninformative, notes


def _duplicate_notes(r: Array, experts: tuple[str, ...], uninformative: Mask) -> list[Note]:
    notes = []
    for group in distinct(r):
        if len(group) > 1 and not uninformative[group].any():
            same = all(r[group[0], i] > 0 for i in group)
            what = "say the same" if same else "say the same or its complement"
            names = ", ".join(experts[i] for i in group)
            notes.append(
                Note("clones", f"{names} {what} on every resolved event; they share one weight", len(group), True)
            )
    return notes


# Names in a note before it is cut.
NAMED = 3


def no_forecast_notes(experts: Sequence[str], absent: Mask, what: str = "got weight 0") -> list[Note]:
    """Note that the experts in the mask `absent` have no forecast on a resolved event; [] if there are none."""
    names = _names(experts, absent)
    text = f"{listed(names, NAMED)} had no forecast on a resolved event and {what}"
    return [Note("no-forecasts", text, len(names))] if names else []


def constant_notes(experts: Sequence[str], constant: Mask, what: str = "and got weight 0") -> list[Note]:
    """Note that the experts in the mask `constant` always gave the same forecast; [] if there are none."""
    names = _names(experts, constant)
    text = f"{listed(names, NAMED)} always gave the same forecast {what}"
    return [Note("constant", text, len(names))] if names else []


def _names(experts: Sequence[str], which: Mask) -> list[str]:
    return [experts[i] for i in np.flatnonzero(which).tolist()]
