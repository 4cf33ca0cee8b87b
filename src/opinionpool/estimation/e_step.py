"""The E-step of a multivariate normal regression whose responses are partly missing.

With K_t the inverse of Sigma_oo placed in an N x N of zeros, and v_t = K_t (x_t − m_t), the next Sigma and coefficients
need only the sums of v_t v_tᵀ − K_t and of v_t times the regressors. No missing block is ever formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.rows import ForecastRows, ResolvedEvents
from opinionpool.estimation.statistics import Statistics
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import metric

# A pattern of presence that occurs on so many events is kept as moments.
REPEATED = 16
# Up to so many forecasts, events are inverted side by side; beyond, each by LAPACK.
SMALL = 64
# Numbers in a block of events, so that it stays in cache.
BLOCK = 1 << 19


@dataclass(frozen=True, eq=False)
class Model:
    """Expected log-ratios and covariance of N experts."""

    coefficients: Array  # (N, K); whitened bias (K - 1) and contrast of each expert
    sigma: Array  # (N, N)


@dataclass(frozen=True, eq=False)
class Sums:
    """What a step needs: sums over events and whitened classes at a model."""

    curvature: Array  # (N, N); of v vᵀ − K
    score: Array  # (N, K); of v times the regressors
    log_likelihood: float  # without its constant
    inverses: tuple[Array, ...]  # of the covariances of the experts in each group's patterns, (P, n, n)


@dataclass(frozen=True, eq=False)
class Group:
    """Patterns of presence with n experts each, and the events of each as moments in whitened log-ratios."""

    columns: Index  # (P, n)
    weight: Array  # (P, K); by outcome
    mean: Array  # (P, K, n, K - 1)
    scatter: Array  # (P, n, n); about those means, summed over classes

    def place(self, experts: int) -> Index:
        """Where the pairs of each pattern stand in an N x N array, (P, n, n)."""
        return np.asarray(self.columns[:, :, None] * experts + self.columns[:, None, :])

    def products(self, model: Model, shape: Array) -> tuple[Array, Array]:
        """Products of residuals summed over events, (P, n, n), and the means of residuals, (P, K, n, K - 1)."""
        own = model.coefficients[self.columns][:, None]
        off = self.mean - own[..., :-1] - own[..., -1:] * shape[:, None, :]
        weighed = self.weight[..., None, None] * off
        return self.scatter + np.einsum("pcnd,pcmd->pnm", weighed, off, optimize=True), off

    def add(self, model: Model, shape: Array, curvature: Array, score: Array) -> tuple[Array, float]:
        """Add to curvature (N * N,) and score (N, K); the inverses (P, n, n), and the log-likelihood."""
        n, d = len(model.sigma), shape.shape[1]
        place = self.place(n)
        sigma = model.sigma.ravel()[place]
        pivots = np.linalg.cholesky(sigma).diagonal(axis1=1, axis2=2)
        inverse = np.linalg.inv(sigma)
        products, off = self.products(model, shape)
        total = d * self.weight.sum(axis=1)
        gathered(place, inverse @ products @ inverse - total[:, None, None] * inverse, curvature)
        solved = self.weight[..., None, None] * (inverse[:, None] @ off)
        each = np.concatenate([solved.sum(axis=1), np.einsum("pcnd,cd->pn", solved, shape)[..., None]], axis=2)
        for j in range(d + 1):
            score[:, j] += np.bincount(self.columns.ravel(), weights=each[..., j].ravel(), minlength=n)
        value = 2.0 * float(total @ np.log(pivots).sum(axis=1)) + float(np.vdot(inverse, products))
        return np.asarray(inverse, dtype=np.float64), -value / 2.0


def gathered(place: Index, values: Array, total: Array) -> None:
    """Add values (P, n, n) to a flat array (N * N,) at their places."""
    if len(place) == 1:
        # No place comes twice.
        total[place.ravel()] += values.ravel()
    else:
        total += np.bincount(place.ravel(), weights=values.ravel(), minlength=len(total))


@dataclass(frozen=True, eq=False)
class Batch:
    """Events with the same number n of forecasts, by different experts."""

    columns: Index  # (n, T)
    ratios: Array  # (K - 1, n, T); whitened
    outcomes: Index  # (T,)
    weight: Array  # (T,)


@dataclass(frozen=True, eq=False)
class Sample:
    """Resolved events with missing forecasts, whitened over the classes and sorted by who answered."""

    experts: int  # N
    events: Array  # (K,); weight of the events with a forecast by outcome
    shape: Array  # (K, K - 1); whitened signature of each outcome
    biased: bool  # whether there is a bias; where not, it stays 0
    groups: tuple[Group, ...]
    batches: tuple[Batch, ...]

    @classmethod
    def of(cls, evidence: ResolvedEvents, kept: Index) -> Sample:
        """The resolved events as some of the experts answered them."""
        root = np.asarray(np.linalg.cholesky(metric(evidence.classes)), dtype=np.float64)
        shape, biased = evidence.design.signature @ root, evidence.design.biased
        if isinstance(evidence, Statistics):
            found = list(_groups_of_moments(evidence, kept, root))
            events = np.sum([group.weight[0] for group in found], axis=0)
            return cls(len(kept), events, shape, biased, _stacked(found), ())
        rows = list(_batches_of_rows(evidence, kept, root))
        events = np.sum([_by_outcome(rows.outcomes, rows.weight, len(shape)) for rows in rows], axis=0)
        groups: list[Group] = []
        batches: list[Batch] = []
        for batch in rows:
            repeated, rest = _split(batch, len(shape))
            groups += repeated
            batches += rest
        return cls(len(kept), events, shape, biased, _stacked(groups), tuple(batches))

    @property
    def design(self) -> Array:
        """XᵀX of the regressors, (K, K): an intercept for each whitened class, and the signature."""
        d = self.shape.shape[1]
        design = np.eye(d + 1) * self.events.sum()
        design[d, :d] = design[:d, d] = self.biased * (self.events @ self.shape)
        design[d, d] = self.events @ (self.shape**2).sum(axis=1)
        return np.asarray(design)

    @property
    def terms(self) -> float:
        """Rows of the regression, (K - 1) T."""
        return float(self.events.sum() * self.shape.shape[1])

    def pairwise(self, model: Model) -> Array:
        """Mean products of residuals of each pair on the events that both answered, (N, N), of the groups alone.

        NaN where a pair has none there.
        """
        n, d = len(model.sigma), self.shape.shape[1]
        products, count = np.zeros(n * n), np.zeros(n * n)
        for group in self.groups:
            place = group.place(n)
            gathered(place, group.products(model, self.shape)[0], products)
            weight = d * group.weight.sum(axis=1)
            gathered(place, np.broadcast_to(weight[:, None, None], place.shape), count)
        mean = np.divide(products, count, out=np.full(n * n, np.nan), where=count > 0)
        return np.asarray(mean.reshape(n, n), dtype=np.float64)

    def sums(self, model: Model) -> Sums:
        """The E-step.

        Raises
        ------
        LinAlgError
            If Sigma is not positive definite.
        """
        n, k = model.coefficients.shape
        total, score, value, inverses = np.zeros(n * n), np.zeros((n, k)), 0.0, []
        for group in self.groups:
            inverse, own = group.add(model, self.shape, total, score)
            inverses.append(inverse)
            value += own
        lower = np.zeros(n * n)
        for batch in self.batches:
            add = _add_small if len(batch.columns) <= SMALL else _add_large
            value += add(batch, model, self.shape, lower, score)
        if not self.biased:
            score[:, :-1] = 0.0
        below = lower.reshape(n, n)
        # Each pair came once, above or below the diagonal.
        curvature = total.reshape(n, n) + below + below.T - np.diag(np.diag(below))
        return Sums(curvature, score, value, tuple(inverses))


def _stacked(groups: list[Group]) -> tuple[Group, ...]:
    """Patterns with the same number of experts side by side, up to a block of numbers."""
    stacks: list[Group] = []
    for n in sorted({group.columns.shape[1] for group in groups}):
        alike = [group for group in groups if group.columns.shape[1] == n]
        size = _block(n)
        for first in range(0, len(alike), size):
            some = alike[first : first + size]
            fields = ([getattr(group, name) for group in some] for name in ("columns", "weight", "mean", "scatter"))
            stacks.append(Group(*map(np.concatenate, fields)))
    return tuple(stacks)


def _groups_of_moments(evidence: Statistics, kept: Index, root: Array) -> Iterator[Group]:
    position = np.full(len(evidence.experts), -1)
    position[kept] = np.arange(len(kept))
    for key, part in evidence.patterns.items():
        columns = position[np.array(key, dtype=np.intp)]
        active = np.flatnonzero(columns >= 0)
        if len(active) and part.weight[:-1].any():
            mean = part.mean[:-1][:, active] @ root
            scatter = part.scatter[0][np.ix_(active, active)]
            yield Group(columns[active][None], part.weight[None, :-1], mean[None], scatter[None])


def _batches_of_rows(evidence: ForecastRows, kept: Index, root: Array) -> Iterator[Batch]:
    """Events by their number of forecasts."""
    position = np.full(evidence.experts, -1)
    position[kept] = np.arange(len(kept))
    counted = (evidence.outcomes != UNRESOLVED) & (evidence.weight > 0)
    cells = np.flatnonzero(counted[evidence.event] & (position[evidence.expert] >= 0))
    column, event = position[evidence.expert[cells]], evidence.event[cells]
    order = np.lexsort((column, event))
    column, ratios = column[order], evidence.ratios[cells[order]] @ root
    crowd = np.bincount(event, minlength=len(evidence.outcomes))
    start = np.concatenate([[0], np.cumsum(crowd)[:-1]])
    for n in np.unique(crowd[crowd > 0]):
        events = np.flatnonzero(crowd == n)
        index = start[events] + np.arange(n)[:, None]
        own = np.ascontiguousarray(np.moveaxis(ratios[index], 2, 0))
        yield Batch(column[index], own, evidence.outcomes[events], evidence.weight[events])


def _by_outcome(outcomes: Index, weight: Array, classes: int) -> Array:
    return np.bincount(outcomes, weights=weight, minlength=classes).astype(np.float64)


def _split(batch: Batch, classes: int) -> tuple[list[Group], list[Batch]]:
    """Patterns that repeat as moments, and the other events."""
    n = len(batch.columns)
    _, which, count = np.unique(batch.columns.T, axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    many = count >= (REPEATED if n <= SMALL else 2)
    order = np.argsort(which, kind="stable")
    parts = np.split(order, np.cumsum(count)[:-1])
    groups = [_group(batch, parts[i], classes) for i in np.flatnonzero(many)]
    rest = np.flatnonzero(~many[which])
    if not len(rest):
        return groups, []
    left = Batch(
        np.ascontiguousarray(batch.columns[:, rest]),
        np.ascontiguousarray(batch.ratios[..., rest]),
        batch.outcomes[rest],
        batch.weight[rest],
    )
    return groups, [left]


def _group(batch: Batch, rows: Index, classes: int) -> Group:
    ratios, outcomes, weight = batch.ratios[..., rows], batch.outcomes[rows], batch.weight[rows]
    member = np.zeros((classes, len(rows)))
    member[outcomes, np.arange(len(rows))] = weight
    total = member.sum(axis=1)
    mean = np.einsum("ct,dnt->cnd", member / np.where(total > 0, total, 1.0)[:, None], ratios)
    off = ratios - np.moveaxis(mean[outcomes], 0, 2).swapaxes(0, 1)
    scatter = np.einsum("t,dnt,dmt->nm", weight, off, off, optimize=True)
    return Group(batch.columns[None, :, rows[0]], total[None], mean[None], scatter[None])


def _blocks(batch: Batch) -> Iterator[slice]:
    n, t = batch.columns.shape
    size = _block(n)
    for start in range(0, t, size):
        yield slice(start, min(start + size, t))


def _block(n: int) -> int:
    """Events in a block."""
    return max(16, BLOCK // n**2)


def _residuals(batch: Batch, rows: slice, model: Model, shape: Array) -> Array:
    """Whitened log-ratios less what is expected, (K - 1, n, T)."""
    own = model.coefficients[batch.columns[:, rows]]
    signs = shape[batch.outcomes[rows]]
    return np.stack(
        [batch.ratios[j][:, rows] - own[..., j] - own[..., -1] * signs[:, j] for j in range(shape.shape[1])]
    )


def _add_score(columns: Index, solved: Array, signs: Array, weight: Array, score: Array) -> None:
    """Add v times the regressors; `solved` is (K - 1, n, T)."""
    n = len(score)
    for j, own in enumerate([*solved, np.einsum("jnt,tj->nt", solved, signs)]):
        score[:, j] += np.bincount(columns.ravel(), weights=(own * weight).ravel(), minlength=n)


def _add_small(batch: Batch, model: Model, shape: Array, lower: Array, score: Array) -> float:
    """Add a batch to the sums, its matrices inverted side by side; the log-likelihood."""
    n, d = len(batch.columns), shape.shape[1]
    size, value = len(model.sigma), 0.0
    sigma = np.ascontiguousarray(model.sigma).ravel()
    lines = [slice(i * (i + 1) // 2, (i + 1) * (i + 2) // 2) for i in range(n)]
    most = min(_block(n), batch.columns.shape[1])
    # Memory that is used again costs less than new memory, and a root stays 0 above its diagonal.
    places, products = np.empty((lines[-1].stop, most), dtype=np.intp), np.empty((lines[-1].stop, most))
    roots, factors = np.zeros((n + d, n, most)), np.empty((n + d, most))
    for rows in _blocks(batch):
        columns, weight, signs = batch.columns[:, rows], batch.weight[rows], shape[batch.outcomes[rows]]
        place, added, root = places[:, : len(weight)], products[:, : len(weight)], roots[..., : len(weight)]
        for i, line in enumerate(lines):
            np.add(columns[i] * size, columns[: i + 1], out=place[line])
            np.take(sigma, place[line], out=root[i, : i + 1], mode="clip")
        logs = _invert_root(root[:n])
        scaled = np.einsum("ikt,dkt->dit", root[:n], _residuals(batch, rows, model, shape))
        value += float(weight @ (2.0 * d * logs + np.einsum("dit,dit->t", scaled, scaled)))
        solved = np.einsum("ijt,dit->djt", root[:n], scaled)
        # v vᵀ − K, K = L⁻ᵀ L⁻¹, as one product: v are further rows of L⁻¹.
        root[n:] = solved
        for i, line in enumerate(lines):
            left = factors[: n + d - i, : len(weight)]
            np.multiply(root[i:n, i], -d * weight, out=left[: n - i])
            np.multiply(solved[:, i], weight, out=left[n - i :])
            np.einsum("kt,kjt->jt", left, root[i:, : i + 1], out=added[line])
        lower += np.bincount(place.ravel(), weights=added.ravel(), minlength=size * size)
        _add_score(columns, solved, signs, weight, score)
    return -value / 2.0


def _invert_root(matrices: Array) -> Array:
    """Turn (n, n, T) matrices L Lᵀ into L⁻¹, side by side so that each operation is one long one; log det L, (T,).

    Only lower triangles are read and overwritten; above them must be 0.
    """
    n = len(matrices)
    pivots = np.empty((n, matrices.shape[2]))
    for j in range(n):
        if j:
            matrices[j:, j] -= np.einsum("ikt,kt->it", matrices[j:, :j], matrices[j, :j])
        pivots[j] = matrices[j, j]
        if not pivots[j].min() > 0:
            raise np.linalg.LinAlgError("not positive definite")
        inverse = 1.0 / np.sqrt(pivots[j])
        matrices[j + 1 :, j] *= inverse
        matrices[j, j] = inverse
    for i in range(1, n):
        row = matrices[i, :i].copy()
        # In two parts, as half of what is above row i is 0.
        for first, last in ((0, i // 2), (i // 2, i)):
            if last > first:
                product = np.einsum("kt,kjt->jt", row[first:], matrices[first:i, first:last])
                np.multiply(product, -matrices[i, i], out=matrices[i, first:last])
    # Logarithms of products of a few are fewer logarithms, and far from overflow.
    products = [pivots[first : first + 6].prod(axis=0) for first in range(0, n, 6)]
    return np.asarray(np.log(products).sum(axis=0) / 2.0)


def _add_large(batch: Batch, model: Model, shape: Array, lower: Array, score: Array) -> float:
    """The same where events have many forecasts."""
    size, value, d = len(model.sigma), 0.0, shape.shape[1]
    for rows in _blocks(batch):
        columns, weight, signs = batch.columns[:, rows], batch.weight[rows], shape[batch.outcomes[rows]]
        each = columns.T
        place = each[:, :, None] * size + each[:, None, :]
        sigma = model.sigma.ravel()[place]
        pivots = np.linalg.cholesky(sigma).diagonal(axis1=1, axis2=2)
        inverse = np.linalg.inv(sigma)
        off = np.moveaxis(_residuals(batch, rows, model, shape), 2, 0)
        solved = off @ inverse
        products = np.einsum("tjn,tjn->t", off, solved)
        value += float(weight @ (2.0 * d * np.log(pivots).sum(axis=1) + products))
        both = np.swapaxes(solved, 1, 2) @ solved - d * inverse
        half = np.tril(both, -1) + both * np.eye(both.shape[1])
        lower += np.bincount(place.ravel(), weights=(half * weight[:, None, None]).ravel(), minlength=size * size)
        _add_score(columns, np.moveaxis(solved, 0, 2), signs, weight, score)
    return -value / 2.0
