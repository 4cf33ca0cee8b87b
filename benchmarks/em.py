"""Maximum likelihood with missing forecasts, against going through events one by one, on one thread.

100,000 events, 50 experts, 70% of the forecasts missing, every pattern of presence its own. The peer makes the same
sums event by event with NumPy; the textbook's EM, which forms the missing block of every event, is timed as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
from row import Row
from threadpoolctl import threadpool_limits
from timing import interleave, once

from opinionpool.estimation.em import NormalFit, NormalRegression
from opinionpool.estimation.rows import ForecastRows

Array = npt.NDArray[np.float64]
# Bias and contrast (N, 2), and covariance (N, N).
Model = tuple[Array, Array]

EVENTS, EXPERTS, MISSING = 100_000, 50, 0.7
FASTER, STEPS, CLOSE = 4.0, 150, 1e-6
# Events that the peers are timed on, and how often.
PART, ROUNDS = 2_000, 7


def rows() -> Iterator[Row]:
    """Measure the time of an E-step, and how many steps are needed."""
    x, y, truth = panel(np.random.default_rng(0))
    evidence = ForecastRows.of_array(x[..., None], y, np.ones(EVENTS))
    with threadpool_limits(1):
        regression = NormalRegression.of(evidence, np.arange(EXPERTS), np.array([[1.0, -1.0], [1.0, 1.0]]))
        ours = partial(regression.sums, np.column_stack(truth))
        for what, peer in (("event by event", one_by_one), ("the textbook's EM", textbook)):
            pair = interleave(partial(peer, x[:PART], y[:PART], truth), ours, ROUNDS)
            ratio = pair.first / PART * EVENTS / pair.second
            yield Row(
                f"E-step, {EVENTS:,} x {EXPERTS}, 70% missing: {what} takes",
                f">= {FASTER:g} x",
                f"{ratio:.1f} x",
                f"{pair.first / PART * 1e6:.0f} us an event; here {pair.second / EVENTS * 1e6:.1f} us",
                kept=ratio >= FASTER,
            )
        yield from steps(regression)


def steps(regression: NormalRegression) -> Iterator[Row]:
    """Measure steps until the log-likelihood, of all events together, is within 1e-6 of its maximum."""
    found: list[NormalFit] = []
    seconds = once(lambda: found.append(regression.fit()))
    values = np.array(found[0].log_likelihood)
    needed = int(np.argmax(values >= values[-1] - CLOSE)) + 1
    told = f"{len(values)} to a step of 1e-9, {seconds:.1f} s in all"
    yield Row("EM steps to within 1e-6 of the maximum", f"<= {STEPS}", f"{needed}", told, kept=needed <= STEPS)
    model = regression.start()
    for _ in range(needed):
        model = regression.step(model, *regression.sums(model)[:2])
    yield Row(f"after {needed} of EM alone", "", f"{values[-1] - regression.sums(model)[2]:.2g}", "to gain yet")


def panel(rng: np.random.Generator) -> tuple[Array, npt.NDArray[np.intp], Model]:
    """Return log-odds with gaps, outcomes, and the model that they are drawn from."""
    factors = rng.normal(size=(EXPERTS, 4 * EXPERTS))
    shared = factors @ factors.T
    spread = np.sqrt(2) * rng.lognormal(0, 0.2, EXPERTS)
    r = 0.5 + 0.5 * shared / np.sqrt(np.outer(np.diag(shared), np.diag(shared)))
    sigma = r * np.outer(spread, spread)
    means = np.column_stack([rng.normal(0, 0.3, EXPERTS), rng.uniform(0.5, 1.5, EXPERTS)])
    y = rng.integers(0, 2, EVENTS)
    x = means[:, 0] + means[:, 1] * (2 * y - 1)[:, None]
    x += rng.normal(size=x.shape) @ np.linalg.cholesky(sigma).T
    x[rng.random(x.shape) < MISSING] = np.nan
    return x, y, (means, sigma)


def one_by_one(x: Array, y: npt.NDArray[np.intp], model: Model) -> tuple[Array, Array, float]:
    """Return the sums of an E-step, event by event, without forming a missing block either."""
    n = x.shape[1]
    curvature, score, value = np.zeros((n, n)), np.zeros((n, 2)), 0.0
    for row, outcome in zip(x, y, strict=True):
        o = np.flatnonzero(~np.isnan(row))
        block = np.ix_(o, o)
        sigma, sign = model[1][block], 2 * outcome - 1
        inverse = np.linalg.inv(sigma)
        off = row[o] - model[0][o, 0] - sign * model[0][o, 1]
        solved = inverse @ off
        curvature[block] += np.outer(solved, solved) - inverse
        score[o, 0] += solved
        score[o, 1] += sign * solved
        value -= (np.linalg.slogdet(sigma)[1] + off @ solved) / 2
    return curvature, score, value


def textbook(x: Array, y: npt.NDArray[np.intp], model: Model) -> tuple[Array, Array]:
    """Return forecasts filled in and the sum of what the conditional covariances add."""
    full, extra = np.empty_like(x), np.zeros_like(model[1])
    for i, (row, outcome) in enumerate(zip(x, y, strict=True)):
        mean = model[0][:, 0] + (2 * outcome - 1) * model[0][:, 1]
        seen = ~np.isnan(row)
        o, m = np.flatnonzero(seen), np.flatnonzero(~seen)
        across = model[1][np.ix_(m, o)]
        slope = np.linalg.solve(model[1][np.ix_(o, o)], across.T).T
        full[i, o] = row[o]
        full[i, m] = mean[m] + slope @ (row[o] - mean[o])
        extra[np.ix_(m, m)] += model[1][np.ix_(m, m)] - slope @ across.T
    return full, extra
