"""Fit and pool of complete forecasts: against loops in C, and against linear discriminant analysis on log-odds.

All processors are used, as they are by default; the reference loop runs on one. Its nanoseconds are per forecast,
floor and logarithm included; scikit-learn is given the log-odds.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from reference import Reference, reference
from row import Row
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_info
from timing import Comparison, interleave

from opinionpool.estimation.statistics import dense_statistics
from opinionpool.estimators.pools import GaussianPool

Array = npt.NDArray[np.float64]

EVENTS = 1_000_000
# Experts, the most times the reference loop, and rounds of the slow peer.
PANELS = ((20, 1.5, 3), (100, 2.2, 1), (5, 3.5, 3))
MEMORY = 8.0
FEW = 1_000
ROUNDS = 7


def rows() -> Iterator[Row]:
    """Measure time and memory, the kernels of the linear algebra first."""
    for library in threadpool_info():
        if library["user_api"] == "blas":
            kernel = f"{library['internal_api']} {library['version']}, {library['num_threads']} threads"
            yield Row("linear algebra", "", str(library.get("architecture")), kernel)
    for experts, limit, slow in PANELS:
        q, y = panel(EVENTS, experts)
        loops = reference(experts)
        if loops is None:
            yield Row(f"reference loop, N = {experts}", "", "skipped", "there is no gcc")
        yield from fits(q, y, loops, limit, slow)
        if experts == 20:
            yield from pools(q, y, loops)
            yield from memory(q, y)
            yield from default(q, y)
        del q, y
    for experts in (5, 20, 100):
        yield from few(experts)


def panel(events: int, experts: int) -> tuple[Array, npt.NDArray[np.int64]]:
    """Forecasts by correlated experts, and outcomes."""
    rng = np.random.default_rng(experts)
    y = rng.integers(0, 2, events)
    z = rng.normal(size=(events, experts))
    z += rng.normal(size=(events, 1))
    z += (2 * y - 1)[:, None]
    np.negative(z, out=z)
    np.exp(z, out=z)
    z += 1.0
    np.reciprocal(z, out=z)
    return z, y


def log_odds(q: Array) -> Array:
    """What scikit-learn is given."""
    return np.log(q / (1.0 - q))


def fit(q: npt.NDArray[np.generic], y: npt.NDArray[np.int64]) -> GaussianPool:
    """Fit from the data alone (5.4)."""
    return GaussianPool(beliefs=None).fit(q, y)


def fits(q: Array, y: npt.NDArray[np.int64], loops: Reference | None, limit: float, slow: int) -> Iterator[Row]:
    """Rows of fitting."""
    n = q.shape[1]
    what = f"fit, 1e6 x {n}"
    if loops is not None:
        codes = y.astype(np.uint8)
        found, wanted = moments_of(q, y, None), loops.moments(q, codes)
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-9)
        yield within(
            f"{what}, both processors", limit, interleave(lambda: fit(q, y), lambda: loops.moments(q, codes), ROUNDS), q
        )
        one = interleave(lambda: moments_of(q, y, 1), lambda: loops.moments(q, codes), ROUNDS)
        yield within(f"{what}, moments on one thread", limit, one, q)
    z = log_odds(q)
    lsqr = LinearDiscriminantAnalysis(solver="lsqr")
    yield faster(what, 7, interleave(lambda: fit(q, y), lambda: lsqr.fit(z, y), 3), "LDA(lsqr)")
    yield faster(what, 25, interleave(lambda: fit(q, y), lambda: LinearDiscriminantAnalysis().fit(z, y), slow), "LDA()")


def moments_of(q: Array, y: npt.NDArray[np.int64], threads: int | None) -> tuple[Array, Array]:
    """Counts and sums, as the reference loop gives them."""
    names = tuple(map(str, range(q.shape[1])))
    found = dense_statistics(q, y, np.array([0.5, 0.5]), 1e-4, names, threads)
    assert found is not None
    (part,) = found.patterns.values()
    return part.weight[:2], part.weight[:2, None] * part.mean[:2, :, 0]


def pools(q: Array, y: npt.NDArray[np.int64], loops: Reference | None) -> Iterator[Row]:
    """Rows of pooling."""
    pool = fit(q[:100_000], y[:100_000])
    panel_, peer = pool.panel_, LinearDiscriminantAnalysis().fit(log_odds(q[:100_000]), y[:100_000])
    z = log_odds(q)
    if loops is not None:
        weights = panel_.weights
        constant = -float(weights @ panel_.bias)
        np.testing.assert_allclose(panel_.pool(q[:1000]), loops.pool(q[:1000], weights, constant), rtol=1e-6)
        work = interleave(lambda: panel_.pool(q), lambda: loops.pool(q, weights, constant), ROUNDS)
        yield within("pool, 1e6 x 20", 1.5, work, q)
        codes = y.astype(np.uint8)
        work = interleave(lambda: panel_.pool(q), lambda: loops.moments(q, codes), ROUNDS)
        yield within("pool, 1e6 x 20, and the loop of a fit", 2.2, work, q)
    seconds = interleave(lambda: panel_.pool(q), lambda: peer.predict_proba(z), ROUNDS)
    yield faster("pool, 1e6 x 20", 3, seconds, "LDA.predict_proba on log-odds")
    seconds = interleave(lambda: panel_.pool(q), lambda: peer.predict_proba(log_odds(q)), ROUNDS)
    yield faster("pool, 1e6 x 20", None, seconds, "the same, log-odds made first")
    seconds = interleave(lambda: pool.predict_proba(q), lambda: peer.predict_proba(z), ROUNDS)
    yield faster("GaussianPool.predict_proba, 1e6 x 20", 3, seconds, "the same")
    one, its = q[0], z[:1]
    seconds = interleave(repeated(lambda: panel_.pool(one)), repeated(lambda: peer.predict_proba(its)), 11)
    took = seconds.first / 500 * 1e6
    yield Row("one event of 20 experts, Panel.pool", "<= 40 us", f"{took:.1f} us", "", kept=took <= 40)


def repeated(work: Callable[[], object]) -> Callable[[], None]:
    """The same, so many times that it can be timed."""

    def several() -> None:
        for _ in range(500):
            work()

    return several


def memory(q: Array, y: npt.NDArray[np.int64]) -> Iterator[Row]:
    """Rows of memory beside input and output."""
    pool = fit(q, y)
    z = log_odds(q)
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(z[:1000], y[:1000])
    size = q.nbytes / 1e6
    works: list[tuple[str, Callable[[], object], int, Callable[[], object]]] = [
        ("fit", lambda: fit(q, y), 0, lambda: LinearDiscriminantAnalysis(solver="lsqr").fit(z, y)),
        ("Panel.pool", lambda: pool.panel_.pool(q), 8, lambda: peer.predict_proba(z)),
        ("GaussianPool.predict_proba", lambda: pool.predict_proba(q), 16, lambda: peer.predict_proba(z)),
    ]
    for what, work, output, other in works:
        own, its = (traced(each) for each in (work, other))
        mb = own - output * len(q) / 1e6
        told = f"LDA {its / size:.1f} x its input of {size:.0f} MB"
        yield Row(f"{what}, 1e6 x 20: memory", f"<= {MEMORY:g} MB", f"{mb:.1f} MB", told, kept=mb <= MEMORY)


def traced(work: Callable[[], object]) -> float:
    """MB at the most."""
    tracemalloc.start()
    kept = work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return peak / 1e6


def default(q: Array, y: npt.NDArray[np.int64]) -> Iterator[Row]:
    """Row of the default pool, which needs more than moments."""
    z = log_odds(q)
    seconds = interleave(lambda: GaussianPool().fit(q, y), lambda: LinearDiscriminantAnalysis().fit(z, y), 1)
    yield faster("fit of the default pool, 1e6 x 20", None, seconds, "LDA()")


def few(experts: int) -> Iterator[Row]:
    """Row of a small fit."""
    q, y = panel(FEW, experts)
    z = log_odds(q)
    seconds = interleave(lambda: fit(q, y), lambda: LinearDiscriminantAnalysis().fit(z, y), 101)
    yield faster(f"fit, 1e3 x {experts}", 10, seconds, "LDA()")


def within(what: str, limit: float | None, seconds: Comparison, q: Array) -> Row:
    """Return the row of something measured in times of the reference loop."""
    own, its = (1e9 * each / q.size for each in (seconds.first, seconds.second))
    needed = "" if limit is None else f"<= {limit:g} x"
    kept = limit is None or seconds.ratio <= limit
    return Row(what, needed, f"{seconds.ratio:.2f} x", f"loop in C: {its:.2f} ns a forecast, here {own:.2f}", kept)


def faster(what: str, needed: float | None, seconds: Comparison, peer: str) -> Row:
    """Return the row of something that must be at least so many times as fast as its peer."""
    times = 1.0 / seconds.ratio
    own, its = (1e3 * each for each in (seconds.first, seconds.second))
    told = f"{peer}: {its:.3g} ms, here {own:.3g} ms"
    return Row(
        what, "" if needed is None else f">= {needed:g} x", f"{times:.1f} x", told, needed is None or times >= needed
    )
