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

from opinionpool.estimation import averages as estimates
from opinionpool.estimation.e_step import Model, Sample
from opinionpool.estimation.em import maximum_likelihood
from opinionpool.estimation.rows import ForecastRows

Array = npt.NDArray[np.float64]

EVENTS, EXPERTS, MISSING = 100_000, 50, 0.7
FASTER, PASSES, CLOSE = 15.0, 60, 1e-6
# Events that the peers are timed on, and how often.
PART, ROUNDS = 2_000, 7


def rows() -> Iterator[Row]:
    """Measure the time of an E-step, and how many are needed."""
    x, y, truth = panel(np.random.default_rng(0))
    everyone = np.arange(EXPERTS)
    event, expert = np.nonzero(~np.isnan(x))
    evidence = ForecastRows(event, expert, x[event, expert][:, None], y, np.ones(EVENTS), EXPERTS)
    with threadpool_limits(1):
        sample = Sample.of(evidence, everyone)
        for what, peer in (("event by event", one_by_one), ("the textbook's EM", textbook)):
            pair = interleave(partial(peer, x[:PART], y[:PART], truth), partial(sample.sums, truth), ROUNDS)
            ratio = pair.first / PART * EVENTS / pair.second
            yield Row(
                f"E-step, {EVENTS:,} x {EXPERTS}, 70% missing: {what} takes",
                f">= {FASTER:g} x",
                f"{ratio:.1f} x",
                f"{pair.first / PART * 1e6:.0f} us an event; here {pair.second / EVENTS * 1e6:.1f} us",
                kept=ratio >= FASTER,
            )
        yield from passes(evidence)


def passes(evidence: ForecastRows) -> Iterator[Row]:
    """Measure E-steps until the log-likelihood, of all events together, is within 1e-6 of its maximum."""
    means = estimates.sample_means(evidence, np.zeros(1))
    names = tuple(f"e{i}" for i in range(EXPERTS))
    reports = []
    seconds = once(lambda: reports.append(maximum_likelihood(evidence, means, np.zeros(1), names).report))
    report = reports[0]
    values = np.array(report.values)
    # Every step was one pass, or there would be more of them than values.
    needed = int(np.argmax(values >= values[-1] - CLOSE)) + 1 + report.passes - len(values)
    yield Row(
        "E-steps to within 1e-6 of the maximum",
        f"<= {PASSES}",
        f"{needed}",
        f"{report.passes} to a step of 1e-7, {seconds:.1f} s in all, with products over 4,500 events between",
        kept=report.converged and needed <= PASSES,
    )
    yield Row(f"after as many as {PASSES} of EM alone", "", f"{values[-1] - plain(evidence, means):.2g}", "to gain yet")


def plain(evidence: ForecastRows, means: estimates.Means) -> float:
    """Return the log-likelihood after so many steps of EM, from each expert alone."""
    sample = Sample.of(evidence, np.arange(EXPERTS))
    spread = np.sqrt(means.square / means.count.sum(axis=0))
    rho = estimates.common_correlation(evidence, means, np.zeros(1))
    r = np.where(np.eye(EXPERTS, dtype=bool), 1.0, rho)
    model = Model(np.column_stack([means.bias[:, 0], means.contrast]), r * np.outer(spread, spread))
    for _ in range(PASSES):
        sums = sample.sums(model)
        change = model.sigma @ np.linalg.solve(sample.design, sums.score.T).T
        sigma = model.sigma + model.sigma @ sums.curvature @ model.sigma / sample.terms
        sigma -= change @ sample.design @ change.T / sample.terms
        model = Model(model.coefficients + change, sigma)
    return sample.sums(model).log_likelihood


def panel(rng: np.random.Generator) -> tuple[Array, npt.NDArray[np.intp], Model]:
    """Return log-odds with gaps, outcomes, and the model that they are drawn from."""
    factors = rng.normal(size=(EXPERTS, 4 * EXPERTS))
    shared = factors @ factors.T
    spread = np.sqrt(2) * rng.lognormal(0, 0.2, EXPERTS)
    r = 0.5 + 0.5 * shared / np.sqrt(np.outer(np.diag(shared), np.diag(shared)))
    sigma = r * np.outer(spread, spread)
    model = Model(np.column_stack([rng.normal(0, 0.3, EXPERTS), rng.uniform(0.5, 1.5, EXPERTS)]), sigma)
    y = rng.integers(0, 2, EVENTS)
    x = model.coefficients[:, 0] + model.coefficients[:, 1] * (2 * y - 1)[:, None]
    x += rng.normal(size=x.shape) @ np.linalg.cholesky(sigma).T
    x[rng.random(x.shape) < MISSING] = np.nan
    return x, y, model


def one_by_one(x: Array, y: npt.NDArray[np.intp], model: Model) -> tuple[Array, Array, float]:
    """Return the sums of an E-step, event by event, without forming a missing block either."""
    n = x.shape[1]
    curvature, score, value = np.zeros((n, n)), np.zeros((n, 2)), 0.0
    for row, outcome in zip(x, y, strict=True):
        o = np.flatnonzero(~np.isnan(row))
        block = np.ix_(o, o)
        sigma, sign = model.sigma[block], 2 * outcome - 1
        inverse = np.linalg.inv(sigma)
        off = row[o] - model.coefficients[o, 0] - sign * model.coefficients[o, 1]
        solved = inverse @ off
        curvature[block] += np.outer(solved, solved) - inverse
        score[o, 0] += solved
        score[o, 1] += sign * solved
        value -= (np.linalg.slogdet(sigma)[1] + off @ solved) / 2
    return curvature, score, value


def textbook(x: Array, y: npt.NDArray[np.intp], model: Model) -> tuple[Array, Array]:
    """Return forecasts filled in and the sum of what the conditional covariances add."""
    full, extra = np.empty_like(x), np.zeros_like(model.sigma)
    for i, (row, outcome) in enumerate(zip(x, y, strict=True)):
        mean = model.coefficients[:, 0] + (2 * outcome - 1) * model.coefficients[:, 1]
        seen = ~np.isnan(row)
        o, m = np.flatnonzero(seen), np.flatnonzero(~seen)
        across = model.sigma[np.ix_(m, o)]
        slope = np.linalg.solve(model.sigma[np.ix_(o, o)], across.T).T
        full[i, o] = row[o]
        full[i, m] = mean[m] + slope @ (row[o] - mean[o])
        extra[np.ix_(m, m)] += model.sigma[np.ix_(m, m)] - slope @ across.T
    return full, extra
