"""A crowd: 1,000,000 forecasts by 10,000 experts on 50,000 events, by a process's own time and memory.

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
from row import Row

from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit

Array = npt.NDArray[np.float64]

EVENTS, EXPERTS, EACH = 50_000, 10_000, 20
SECONDS, MEGABYTES = 15.0, 1000.0
CORRELATION = 0.5


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
        "correlation": panel.parts.dependence.rho,  # type: ignore[attr-defined]
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0)
