"""A crowd: 1,000,000 forecasts by 10,000 experts on 50,000 events, by a process's own time and memory.

Then what smaller crowds lose, how often their intervals hold the truth, and how long 2,000 experts on few events take.

python benchmarks/crowd.py [share]          one run, in figures; with this share of the events open
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from crowd_dependence import Simulated
from row import Row

from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import FEATURES
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit
from opinionpool.model.nested import NestedCorrelation

Array = npt.NDArray[np.float64]

EVENTS, EXPERTS, EACH = 50_000, 10_000, 20
SECONDS, MEGABYTES = 15.0, 1000.0
CORRELATION = 0.5
# Mean log loss of three crowds of 1,500, coverage of 90% intervals, and seconds for 2,000 experts on 5 events.
LOSS, COVERAGE, FEW_SECONDS = 0.145, (0.85, 0.97), 0.2
# Half of what is believed of how far experts differ, and all of it: standard deviations of bias, contrast, ln spread.
DIFFER, COVERED, RESOLVED, OPEN = (0.216, 0.216, 0.18), 600, (40, 100, 400), 200


def rows() -> Iterator[Row]:
    """Measure one run with all events resolved, and one with half of them."""
    found, half = (
        json.loads(subprocess.run([sys.executable, __file__, share], check=True, capture_output=True, text=True).stdout)
        for share in ("0", "0.5")
    )
    what = f"crowd, {found['forecasts']:,} forecasts by {EXPERTS:,} on {EVENTS:,} events"
    seconds, size = found["learn"], found["megabytes"]
    yield Row(f"{what}: learn", f"<= {SECONDS:g} s", f"{seconds:.1f} s", "", kept=seconds <= SECONDS)
    yield Row("the same: peak memory", f"<= {MEGABYTES:g} MB", f"{size:.0f} MB", "", kept=size <= MEGABYTES)
    yield Row("the same: pool all events", "", f"{found['pool']:.2f} s", "")
    for name, (error, differ, centre) in found["features"].items():
        told = f"experts differ by {differ:.2f}; {centre}"
        limit = f"<= {differ / 2:.2f}"
        yield Row(f"the same: {name} off by", limit, f"{error:.3f}", told, kept=error <= differ / 2)
    seconds, size = half["learn"], half["megabytes"]
    what = "a crowd with half of the events open: learn"
    yield Row(what, f"<= {SECONDS:g} s", f"{seconds:.1f} s", "", kept=seconds <= SECONDS)
    yield Row("the same: peak memory", f"<= {MEGABYTES:g} MB", f"{size:.0f} MB", "", kept=size <= MEGABYTES)
    losses = [one.fitted(FEATURES)[1] for one in (Simulated.drawn(seed, 2000, nested=False) for seed in (1, 2, 3))]
    what, loss = "a crowd of 1,500, half of 4,000 events open: log loss, mean of three draws", float(np.mean(losses))
    yield Row(what, f"<= {LOSS:g}", f"{loss:.3f}", "", kept=loss <= LOSS)
    inside = [covered(r, k, nested=nested) for nested in (False, True) for r in RESOLVED for k in (0.5, 1.0)]
    mean, ends = float(np.mean(inside)), f"{min(inside):.2f} to {max(inside):.2f}"
    limit = f"{COVERAGE[0]:g} to {COVERAGE[1]:g}"
    yield Row("crowds: truth inside 90% intervals", limit, f"{mean:.2f}", ends, kept=COVERAGE[0] <= mean <= COVERAGE[1])
    seconds = few_events()
    yield Row(
        "2,000 experts on 5 events: fit", f"<= {FEW_SECONDS:g} s", f"{seconds:.2f} s", "", kept=seconds <= FEW_SECONDS
    )


def covered(resolved: int, share: float, *, nested: bool) -> float:
    """How often intervals hold what whoever knows all features would say, in three crowds."""
    found = []
    for seed in range(3):
        rng = np.random.default_rng([9, seed])
        bias, contrast, spread = (share * sd * rng.normal(size=COVERED) for sd in DIFFER)
        level, rho = rng.choice([0.4, 0.7, 1.0]), rng.choice([0.4, 0.6, 0.75])
        contrast, spread = level * np.abs(1.0 + contrast), np.sqrt(2.0 * level) * np.exp(spread)
        y = (rng.random(resolved + OPEN) < 0.5).astype(np.intp)
        q, truth = np.full((len(y), COVERED), np.nan), np.empty(len(y))
        for t, outcome in enumerate(y.tolist()):
            own = np.sort(rng.choice(COVERED, 10, replace=False))
            signal = (contrast / spread)[own]
            r = NestedCorrelation(signal, rho).matrix() if nested else np.where(np.eye(10) > 0, 1.0, rho)
            z = signal * (2 * outcome - 1) + np.linalg.cholesky(r) @ rng.normal(size=10)
            truth[t], q[t, own] = 2.0 * np.linalg.solve(r, signal) @ z, expit(bias[own] + spread[own] * z)
        given = Forecasts.from_array(q, [*y[:resolved].tolist(), *[None] * OPEN], classes=(0, 1))
        low, high = learn(given).forecast_intervals(given) or (truth, truth)
        found.append(((low <= expit(truth)) & (expit(truth) <= high))[resolved:].mean())
    return float(np.mean(found))


def few_events() -> float:
    """Seconds for 2,000 experts of whom many repeat each other, some never change, and one is new; the worst of two."""
    rng, found = np.random.default_rng(0), []
    for share in (0.05, 0.3):
        q = np.round(3.0 * rng.random((5, 2000))) / 3.0
        q[rng.random(q.shape) < share] = np.nan
        q[:, 0] = np.nan
        forecasts = Forecasts.from_array(q, [0, 1, 0, 1, 1])
        start = time.process_time()
        learn(forecasts)
        found.append(time.process_time() - start)
    return max(found)


def crowd(rng: np.random.Generator) -> tuple[Forecasts, dict[str, Array]]:
    """Return forecasts of experts with features drawn at random, and the features."""
    cells = np.unique(np.repeat(np.arange(EVENTS), EACH) * EXPERTS + rng.integers(0, EXPERTS, EVENTS * EACH))
    event, expert = cells // EXPERTS, cells % EXPERTS
    features = {
        "bias": 0.1 + 0.3 * rng.normal(size=EXPERTS),
        "contrast": 1.0 + 0.4 * rng.normal(size=EXPERTS),
        "spread": np.sqrt(2) * np.exp(0.3 * rng.normal(size=EXPERTS)),
    }
    y = (rng.random(EVENTS) < 0.5).astype(np.intp)
    shared = rng.normal(size=EVENTS)[event]
    noise = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * rng.normal(size=len(event))
    said = features["bias"][expert] + features["contrast"][expert] * (2 * y[event] - 1)
    q = expit(said + features["spread"][expert] * noise)
    events, experts = tuple(f"q{i}" for i in range(EVENTS)), tuple(f"e{i}" for i in range(EXPERTS))
    return Forecasts(events, experts, (0, 1), event, expert, q, y), features


def peak(*, reset: bool = False) -> float:
    """The most memory that this process has had, in MB, since that was last reset (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def main(share: float) -> None:
    """Print the figures of one run as JSON, with this share of the events open."""
    forecasts, features = crowd(np.random.default_rng(0))
    known = np.where(np.arange(EVENTS) < (1.0 - share) * EVENTS, forecasts.outcomes, -1)
    forecasts = replace(forecasts, outcomes=known)
    peak(reset=True)
    start = time.process_time()
    learned = learn(forecasts, prior=0.5)
    middle = time.process_time()
    learned.pool_forecasts(forecasts)
    end = time.process_time()
    panel = learned.panel
    # Contrasts carry the slope of the answer, so they are compared up to one factor.
    slope = panel.contrast.mean() / features["contrast"].mean()
    found = {"bias": panel.bias, "contrast": panel.contrast / slope, "spread": panel.parts.spread}
    told = {
        name: (
            float(np.sqrt(np.mean((found[name] - true) ** 2))),
            float(true.std()),
            f"mean {found[name].mean():.3f} for {true.mean():.3f}",
        )
        for name, true in features.items()
    }
    figures = {
        "forecasts": len(forecasts.probabilities),
        "learn": middle - start,
        "pool": end - middle,
        "megabytes": peak(),
        "features": told,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0)
