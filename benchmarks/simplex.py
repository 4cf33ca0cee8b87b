"""Maximum-likelihood weights of the linear pool, against EM and against SLSQP with the gradient, all on one thread.

Each size comes in three kinds. Dense and sparse: what happened is drawn from a mixture of all experts, or of three.
Panel: experts of unequal accuracy with correlated normal errors, which leaves few with weight and is easy for EM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil, inf, log
from statistics import median

import numpy as np
import numpy.typing as npt
from row import Row, at_most
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits
from timing import interleave

from opinionpool.estimation.simplex import simplex_weights

Array = npt.NDArray[np.float64]

GAP = 1e-8
SIMILAR = 1e-7
READS = 25.0
# Numbers from which on an array is a long one.
LONG = 10**7
# Than EM, on long arrays and on others; and how much slower than SLSQP, on long arrays and on others.
FASTER_LONG, FASTER, SLOWER_LONG, SLOWER = 20.0, 50.0, 1.0, 1.2
BLOCK = 1 << 17
PRECISIONS = (1e-9, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15)
# Steps after which EM's rate on a long array is read, and over how many.
WATCHED, TAIL = 120, 60


@dataclass(frozen=True)
class Size:
    """One size of array.

    Attributes
    ----------
    events, experts : int
        Its shape.
    seeds : int
        How many arrays of it.
    repeats, steps : int
        How often the weights are computed, and how many steps of EM are taken, for one measurement: about as long, and
        short, so that a busy machine interrupts both alike.
    rounds : int
        How many measurements, of which the median counts.
    """

    events: int
    experts: int
    seeds: int
    repeats: int
    steps: int
    rounds: int


SIZES = (Size(250, 10, 9, 5, 150, 21), Size(10_000, 50, 3, 1, 20, 11), Size(1_000_000, 50, 1, 1, 7, 5))


def rows() -> Iterator[Row]:
    """Measure every size and kind."""
    most = 0.0
    with threadpool_limits(1):
        for size in SIZES:
            for kind in ("dense", "sparse", "panel"):
                arrays = [instance(kind, size.events, size.experts, seed) for seed in range(size.seeds)]
                what = f"linear pool, {size.events:,} x {size.experts}, {kind}"
                yield against_em(what, size, arrays)
                yield against_slsqp(what, size, arrays)
                most = max(most, *(simplex_weights(q).passes for q in arrays))
    yield Row(
        "linear pool, reads of the array", f"<= {READS:g}", f"{most:.1f}", "the most of these", kept=most <= READS
    )


def instance(kind: str, events: int, experts: int, seed: int) -> Array:
    """Return what each expert gave to what happened."""
    g = np.random.default_rng(seed)
    if kind == "panel":
        accuracy = np.exp(g.normal(-0.7, 0.5, experts))
        noise = np.sqrt(0.3) * g.normal(size=(events, 1)) + np.sqrt(0.7) * g.normal(size=(events, experts))
        q = 1 / (1 + np.exp(-accuracy - np.sqrt(2 * accuracy) * noise))
    else:
        q = 1 / (1 + np.exp(-g.normal(size=(events, 1)) - 1.5 * g.normal(size=(events, experts))))
        some = experts if kind == "dense" else 3
        happened = g.random(events) < q[:, :some] @ g.dirichlet(np.full(some, 5.0))
        q[~happened] = 1 - q[~happened]
    return np.clip(q, 1e-4, 1 - 1e-4)


def gradient_of(q: Array, w: Array) -> Array:
    """Return the gradient of the mean log-likelihood; a long array is read once, in blocks."""
    if q.size <= 8 * BLOCK:
        return ((1 / (q @ w)) @ q) / len(q)
    gradient = np.zeros(q.shape[1])
    rows = BLOCK // q.shape[1]
    for start in range(0, len(q), rows):
        block = q[start : start + rows]
        gradient += (1 / (block @ w)) @ block
    return gradient / len(q)


def em(q: Array, steps: int) -> int:
    """Take steps of EM until the gap, looked at every tenth step, is small enough; how many it took."""
    w = np.full(q.shape[1], 1 / q.shape[1])
    for step in range(steps):
        gradient = gradient_of(q, w)
        if step % 10 == 0 and gradient.max() - 1 <= GAP:
            return step
        w *= gradient
    return steps


def em_at_least(q: Array) -> int:
    """Steps that EM needs at least: its rate is taken as it is early, and it only gets slower."""
    w = np.full(q.shape[1], 1 / q.shape[1])
    gaps = []
    for _ in range(WATCHED):
        gradient = gradient_of(q, w)
        gaps.append(float(gradient.max()) - 1)
        w *= gradient
    rate = log(gaps[-1] / gaps[-1 - TAIL]) / TAIL
    return WATCHED + ceil(log(GAP / gaps[-1]) / rate)


def repeated(work: Callable[[], object], times: int) -> Callable[[], None]:
    """Return the work done several times."""

    def run() -> None:
        for _ in range(times):
            work()

    return run


def against_em(what: str, size: Size, arrays: list[Array]) -> Row:
    """Return the row of how many times as long EM takes to the same gap: its steps times the time of one."""
    extrapolated = arrays[0].size > LONG
    ratios, ours, theirs, counts = [], [], [], []
    for q in arrays:
        pair = interleave(partial(em, q, size.steps), repeated(partial(simplex_weights, q), size.repeats), size.rounds)
        counts.append(em_at_least(q) if extrapolated else em(q, 10**6))
        ours.append(pair.second / size.repeats)
        theirs.append(pair.first / size.steps * counts[-1])
        ratios.append(theirs[-1] / ours[-1])
    fits = [simplex_weights(q) for q in arrays]
    peer = (
        f"EM {'at least ' if extrapolated else ''}{milliseconds(theirs)} in {median(counts):.0f} steps; "
        f"here {milliseconds(ours)}, {median(fit.passes for fit in fits):.1f} reads, "
        f"{median(np.count_nonzero(fit.weights) for fit in fits)} experts with weight"
    )
    if len(arrays) > 1:
        peer += f"; {min(ratios):.0f} to {max(ratios):.0f} x on {len(arrays)} arrays"
    ratio = median(ratios)
    least = FASTER_LONG if extrapolated else FASTER
    return Row(f"{what}: EM takes", f">= {least:g} x", f"{ratio:.0f} x", peer, kept=ratio >= least)


def milliseconds(seconds: list[float]) -> str:
    """Return the median in words."""
    return f"{median(seconds) * 1e3:.3g} ms"


def slsqp(q: Array, precision: float) -> Array:
    """Return SLSQP's weights."""
    n = q.shape[1]

    def value(w: Array) -> tuple[float, Array]:
        p = q @ w
        return -float(np.log(p).mean()), ((-1 / p) @ q) / len(q)

    total = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda _: np.ones(n)}
    found = minimize(
        value,
        np.full(n, 1 / n),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * n,
        constraints=[total],
        options={"ftol": precision, "maxiter": 60},
    )
    w = np.clip(found.x, 0, 1)
    return np.asarray(w / w.sum())


def loosest(q: Array) -> tuple[float, float]:
    """Return a gap that SLSQP reaches, with the loosest precision that makes it similar, or else least."""
    best = (inf, PRECISIONS[0])
    for precision in PRECISIONS:
        gap = float(gradient_of(q, slsqp(q, precision)).max()) - 1
        best = min(best, (gap, precision))
        if gap <= SIMILAR:
            break
    return best


def against_slsqp(what: str, size: Size, arrays: list[Array]) -> Row:
    """Return the row of the time relative to SLSQP's."""
    ratios, theirs, gaps = [], [], []
    for q in arrays:
        gap, precision = loosest(q)
        ours = repeated(partial(simplex_weights, q), size.repeats)
        pair = interleave(ours, partial(slsqp, q, precision), size.rounds)
        ratios.append(pair.ratio / size.repeats)
        theirs.append(pair.second)
        gaps.append(gap)
    peer = f"SLSQP {milliseconds(theirs)}, gap {min(gaps):.0e} to {max(gaps):.0e}; at worst {max(ratios):.2f} x"
    return at_most(what, SLOWER_LONG if arrays[0].size > LONG else SLOWER, max(ratios), peer)
