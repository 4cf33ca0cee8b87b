"""Random panels and forecasts from benign to nearly singular: every answer is finite and right, or an error has a name.

    .venv/bin/python fuzz/panels.py --seconds 600
    .venv/bin/python fuzz/panels.py --replay fit:1234

Covariances reach a condition of 1e16 and forecasts 1e-300; N is 1 to 2,000 and T 0 to 100,000. What is small is
computed again in 60 digits. The exit status is the number of inputs that broke a rule, 100 at most.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
import traceback
import warnings
from collections.abc import Callable

import mpmath
import numpy as np

from opinionpool.errors import OpinionPoolError, OpinionPoolWarning, PanelError
from opinionpool.forecasts import Forecasts
from opinionpool.model.panel import Panel
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS
from opinionpool.scoring.scores import log_score

EPS = np.finfo(float).eps
# Cells of the largest panel that is fitted, by how long its pool takes for each.
CELLS = {"gaussian": 100_000, "beta-linear": 20_000, "linear": 100_000, "log": 50_000}
LARGEST_FIT = {"gaussian": 60, "log": 60, "beta-linear": 30}


class BrokenError(Exception):
    """A rule does not hold for this input."""


def held(condition: object, rule: str) -> None:
    """Raise `BrokenError` unless all of a condition is true."""
    if not np.all(condition):
        raise BrokenError(rule)


def sizes(random: np.random.Generator, most: int) -> int:
    """1 to `most`, small ones more often."""
    return int(np.clip(np.exp(random.uniform(0, np.log(most + 1))), 1, most))


def forecasts(random: np.random.Generator, t: int, n: int, k: int = 2) -> np.ndarray:
    """T x N (x K) probabilities, some of them extreme, some missing, some the same."""
    spread = 10.0 ** random.uniform(-3, 2.8)
    z = random.normal(0, spread, (t, n, k))
    z -= z.max(axis=-1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=-1, keepdims=True)
    if k == 2:
        p = p[..., 1]
        if random.random() < 0.3:
            p = np.where(random.random(p.shape) < 0.2, random.choice([0.0, 1.0, 0.5, 1e-300, 1 - EPS / 2]), p)
    if random.random() < 0.3:
        p = np.where((random.random((t, n)) < random.uniform(0, 0.9)).reshape((t, n) + (1,) * (k > 2)), np.nan, p)
    if n > 1 and random.random() < 0.2:  # clones
        p[:, random.integers(n)] = p[:, random.integers(n)]
    return p


def covariance(random: np.random.Generator, n: int) -> tuple[np.ndarray, float]:
    """A covariance, and the condition of its correlation."""
    condition = 10.0 ** random.uniform(0, 16)
    values = condition ** -random.uniform(0, 1, n)
    values[0], values[-1] = 1.0, 1.0 / condition if n > 1 else 1.0
    q, _ = np.linalg.qr(random.normal(size=(n, n)))
    sigma = (q * values) @ q.T
    if random.random() < 0.3:  # nearly clones, as experts who read the same papers are
        sigma = np.ones((n, n)) + np.eye(n) * 10.0 ** -random.uniform(0, 16)
    sigma = (sigma + sigma.T) / 2
    scale = 10.0 ** random.uniform(-3, 3, n) / np.sqrt(np.diag(sigma))
    sigma = sigma * np.outer(scale, scale)
    sizes_ = np.sqrt(np.diag(sigma))
    eigenvalues = np.linalg.eigvalsh(sigma / np.outer(sizes_, sizes_))
    return sigma, float(eigenvalues[-1] / max(eigenvalues[0], 1e-300))


def exact_weights(mean: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """W = 2 Sigma⁻¹ mu in 60 digits."""
    with mpmath.workdps(60):
        return np.array([float(w) for w in 2 * mpmath.lu_solve(mpmath.matrix(sigma), mpmath.matrix(mean))])


def panel(random: np.random.Generator) -> None:
    """A panel from parameters: weights, features, answers."""
    n = sizes(random, 2000 if random.random() < 0.02 else 60)
    k = int(random.choice([2, 2, 2, 3, 5]))
    sigma, condition = covariance(random, n)
    mean = random.normal(size=n) * np.sqrt(np.diag(sigma))
    if random.random() < 0.5:  # a contrast that the covariance can tell
        mean = sigma @ random.normal(size=n)
    bias = random.normal(size=n) if k == 2 else random.normal(size=(n, k))
    p = Panel(mean, sigma, bias, classes=range(k))
    try:
        weights = p.weights
    except PanelError:
        held(condition * n > 1e13, f"weights exist (condition {condition:.2g})")
        raise
    held(np.isfinite(weights), "weights are finite")
    if n <= 6 and condition < 1e14:
        right = exact_weights(mean, sigma)
        scale = np.sqrt(np.diag(sigma))
        error = np.linalg.norm((weights - right) * scale) / np.linalg.norm(right * scale)
        held(
            error < 100 * n * EPS * condition + 1e-12,
            f"weights are right (off by {error:.2g}, condition {condition:.2g})",
        )
    for name in ("calibration", "correlation", "contrast", "covariance", "accuracy", "joint_accuracy", "prior_weight"):
        held(np.isfinite(getattr(p, name)), f"{name} is finite")
    q = forecasts(random, 20, n, k)
    prior = 10.0 ** -random.uniform(0.01, 15) if k == 2 else random.dirichlet(np.full(k, 0.5)) + 1e-12
    prior = prior if k == 2 else prior / prior.sum()
    answers = p.pool(q, prior)
    held(np.isfinite(answers) & (answers >= 0) & (answers <= 1), "answers are probabilities")
    held(k == 2 or np.abs(answers.sum(axis=-1) - 1) < 1e-9, "answers add up to 1")
    held(np.isfinite(p.contributions(q, prior)), "contributions are finite")


def features(random: np.random.Generator) -> None:
    """A panel from features, and back."""
    n = sizes(random, 2000)
    kappa, m = 10.0 ** random.uniform(-3, 3, n), 10.0 ** random.uniform(-3, 3, n)
    low = -1 / (n - 1) if n > 1 else -1.0
    rho = random.choice(
        [random.uniform(low, 1), 1 - 10.0 ** -random.uniform(0, 16), low + 10.0 ** -random.uniform(0, 16), 1.0]
    )
    if random.random() < 0.3:
        m[:] = 1.0
    p = Panel.from_features(kappa, float(rho), m, accuracy=float(10.0 ** random.uniform(-6, 3)))
    held(np.isfinite(p.weights), "weights are finite")
    held(np.allclose(p.calibration, kappa, rtol=1e-9), "calibration comes back")
    held(np.allclose(p.relative_accuracy, m / m[0], rtol=1e-9), "relative accuracy comes back")
    if n <= 6 and abs(rho) < 1:
        r = np.where(np.eye(n, dtype=bool), 1.0, float(rho))
        with mpmath.workdps(60):
            root = [mpmath.sqrt(x) for x in m]
            inverse = mpmath.inverse(mpmath.matrix(r))
            right = [kappa[j] / root[j] * sum(root[i] * inverse[i, j] for i in range(n)) for j in range(n)]
            right = np.array([float(x) for x in right])
        unit = np.sqrt(m) / kappa
        condition = np.linalg.cond(r)
        error = np.linalg.norm((p.weights - right) * unit) / np.linalg.norm(right * unit)
        held(error < 100 * n * EPS * condition + 1e-12, f"Theorem 3.1 (off by {error:.2g}, condition {condition:.2g})")
    answers = p.pool(forecasts(random, 20, n), 10.0 ** -random.uniform(0.01, 15))
    held(np.isfinite(answers) & (answers >= 0) & (answers <= 1), "answers are probabilities")


def fit(random: np.random.Generator) -> None:
    """A pool learned from forecasts and outcomes."""
    name = str(random.choice(list(POOLS)))
    k = int(random.choice([2, 2, 2, 3]))
    n = sizes(random, LARGEST_FIT.get(name, 2000))
    t = sizes(random, max(min(100_000, CELLS.get(name, 400_000) // (n * (k - 1))), 2)) - 1
    q = forecasts(random, t, n, k)
    if n > 1 and t and k == 2 and random.random() < 0.4:  # nearly dependent
        others = np.clip(q[:, 1:], 1e-12, 1 - 1e-12)
        mixed = np.log(others / (1 - others)).mean(axis=1) + random.normal(size=t) * 10.0 ** -random.uniform(0, 12)
        q[:, 0] = 1 / (1 + np.exp(-np.clip(mixed, -700, 700)))
    truth = np.nan_to_num(q, nan=0.5 if k == 2 else 1 / k).mean(axis=1) if t else np.zeros((0,) if k == 2 else (0, k))
    if k == 2:
        y = (random.random(t) < truth).astype(object)
    else:
        y = (truth.cumsum(axis=1) < random.random((t, 1))).sum(axis=1).clip(0, k - 1).astype(object)
    y[random.random(t) < random.choice([0, 0.1, 1.0], p=[0.6, 0.35, 0.05])] = None
    f = Forecasts.from_array(q, y, classes=range(k))
    options = {}
    if name == "gaussian":
        beliefs = random.choice(["default", None])
        options = {"beliefs": beliefs}
        if random.random() < 0.4:
            options["structure"] = str(random.choice(["full", "common", "exchangeable", "independent"]))
            options["beliefs"] = None
    weight = random.integers(0, 4, t) if random.random() < 0.2 else None
    prior = 10.0 ** -random.uniform(0.01, 12) if k == 2 and random.random() < 0.5 else None
    learned = fit_pool(name, f, prior=prior, sample_weight=weight, **options)
    held(learned.weights is None or np.isfinite(learned.weights), "weights are finite")
    answers = learned.pool(f.X)
    held(np.isfinite(answers) & (answers >= 0) & (answers <= 1), f"answers of {name} are probabilities")
    held(k == 2 or np.abs(answers.sum(axis=-1) - 1) < 1e-9, f"answers of {name} add up to 1")
    if k == 2 and t and learned.experts and hasattr(learned, "doubt") and learned.uncertainty is not None:
        low, high = learned.interval(f.X)
        held((low <= answers + 1e-9) & (answers <= high + 1e-9), "the interval holds the answer")
        held((low >= 0) & (high <= 1), "intervals are probabilities")


def score(random: np.random.Generator) -> None:
    """Scores of extreme forecasts."""
    t = sizes(random, 100_000)
    q = forecasts(random, t, 1)[:, 0]
    y = random.integers(0, 2, t).astype(float)
    s = log_score(q, y, 10.0 ** -random.uniform(0.01, 12))
    held(np.isfinite(s) == ~np.isnan(q), "scores are finite where there is a forecast")


KINDS: dict[str, Callable[[np.random.Generator], None]] = {
    "panel": panel,
    "features": features,
    "fit": fit,
    "score": score,
}


def attempt(kind: str, seed: int) -> tuple[str, str]:
    """What came of one input, and how it broke a rule if it did."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", OpinionPoolWarning)
            KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind)]))
    except OpinionPoolError as error:
        return f"{type(error).__name__}: {str(error)[:60]}", ""
    except BrokenError as error:
        return "broken", str(error)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return "broken", f"{type(error).__name__}: {error} ({frame.filename}, line {frame.lineno})"
    return "answered", ""


def main() -> int:
    """Try inputs until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--replay", help="one input, as kind:seed")
    chosen = parser.parse_args()
    if chosen.replay:
        kind, _, seed = chosen.replay.partition(":")
        KINDS[kind](np.random.default_rng([int(seed), list(KINDS).index(kind)]))
        return 0
    since, seed, broken, longest = time.monotonic(), chosen.start, 0, (0.0, "")
    kinds = chosen.kinds.split(",")
    tried = {kind: collections.Counter() for kind in kinds}
    while time.monotonic() - since < chosen.seconds:
        for kind in kinds:
            begun = time.monotonic()
            result, how = attempt(kind, seed)
            longest = max(longest, (time.monotonic() - begun, f"{kind}:{seed}"))
            tried[kind][result] += 1
            if how:
                broken += 1
                print(f"{kind}:{seed}: {how}", flush=True)
        seed += 1
    for kind, results in tried.items():
        print(f"{kind}: {results.total():,} inputs")
        for result, count in results.most_common(12):
            print(f"  {count:>8,}  {result}")
    print(
        f"{time.monotonic() - since:.0f} s; {broken} broke a rule; the longest took {longest[0]:.1f} s ({longest[1]})"
    )
    return min(broken, 100)


if __name__ == "__main__":
    sys.exit(main())
