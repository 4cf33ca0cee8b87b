"""How often the default pool's 90% intervals hold the truth, on panels drawn from its beliefs.

    python benchmarks/coverage.py [REPEATS]
    python benchmarks/coverage.py figures [REPEATS]

How dependent experts are, weights, intercept and how far extremes count are drawn from what is believed of any panel;
outcomes follow from them. The forecasts' own correlation is ρ, which has no part in the truth. A cell is the mean share
of 100 new events whose true probability lies inside their interval, with its standard error. The next line is of five
experts who are independent and twice too timid, about the opposite of what is believed. The last table is of
calibrated experts with a common correlation of 0.5, whom the beliefs about extremes do not fit: the more accurate they
are, the more they say is extreme, and all of it is true. A cell is the share inside and the median width. The very last
lines are about the weights, too, of such experts whose accuracies' logarithms have a standard deviation of 0.6; then
the mean over the twelve kinds of panel of `default_pool.py`, and experts whose errors follow a t distribution with
three degrees of freedom (so that extreme forecasts say less than the model takes them to say).

With `figures` it measures what reports say of their intervals: the mean share over the twelve kinds of panel, and the
least and largest of a kind, by events and experts, and writes `opinionpool/report/coverage.csv`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from default_pool import HEAVY, KINDS, common_correlation, drawn, log_ratios_of_t

import opinionpool
from opinionpool.forecasts import Forecasts
from opinionpool.learning import constants as believed
from opinionpool.learning.learn import learn
from opinionpool.learning.prior import believed_slope
from opinionpool.logodds import expit
from opinionpool.model.contrasts import Extremes
from opinionpool.model.panel import Panel

Array = npt.NDArray[np.float64]

EVENTS, EXPERTS, CORRELATIONS = (10, 30, 100), (3, 10), (0.0, 0.5)
REPEATS, NEW = 200, 100
ACCURACIES, ACCURATE_EVENTS, ACCURATE = (0.3, 1.0, 2.0, 4.0, 9.0, 16.0), (20, 50, 100, 300), (3, 5, 8)


def drawn_weights(rng: np.random.Generator, n: int) -> Array:
    """Weights of equally accurate experts as they are believed to be, (n,)."""
    slope = believed_slope(n, rng.choice(believed.CORRELATIONS, p=believed.CORRELATION_PROBABILITIES))
    diffuse = rng.random() < believed.DIFFUSE_PROBABILITY
    sd = believed.DIFFUSE_SD if diffuse else believed.SLOPE_SD
    unit = believed_slope(n) / np.sqrt(n)
    apart = unit * rng.choice(believed.WEIGHT_SD, p=believed.WEIGHT_SD_PROBABILITIES) * rng.normal(size=n)
    return np.asarray(slope * np.exp(sd * rng.normal() - sd**2 / 2) / n + apart - apart.mean())


def covered(rng: np.random.Generator, events: int, n: int, rho: float) -> float:
    """The share of new events whose true probability is inside the interval, for one panel."""
    weights = drawn_weights(rng, n)
    limit = rng.choice(believed.LIMITS, p=believed.LIMIT_PROBABILITIES)
    total = events + NEW
    contrasts = 1.5 * (np.sqrt(rho) * rng.normal(size=(total, 1)) + np.sqrt(1 - rho) * rng.normal(size=(total, n)))
    intercept = rng.choice(believed.BIASES, p=believed.BIAS_PROBABILITIES) * believed_slope(n) * rng.normal()
    truth = expit(intercept + Extremes(limit).believed(contrasts[..., None])[..., 0] @ weights)
    y = (rng.random(total) < truth).astype(int)
    learned = learn(Forecasts.from_array(expit(contrasts[:events]), y[:events]), prior=0.5)
    low, high = learned.interval(expit(contrasts[events:]))
    return float(np.mean((truth[events:] >= low) & (truth[events:] <= high)))


def cell(events: int, n: int, rho: float, repeats: int = REPEATS) -> tuple[float, float]:
    """Mean coverage of panels of one kind, and its standard error."""
    rng = np.random.default_rng([events, n, round(10 * rho)])
    shares = [covered(rng, events, n, rho) for _ in range(repeats)]
    return float(np.mean(shares)), float(np.std(shares, ddof=1) / np.sqrt(repeats))


def contradicted(events: int, repeats: int = REPEATS) -> tuple[float, float]:
    """The same for five independent experts with calibration 2."""
    panel, shares = Panel.exchangeable(5, calibration=2.0, accuracy=1.0), []
    for seed in range(repeats):
        x, y = panel.simulate(events + NEW, seed=seed)
        truth = panel.pool(x[events:])
        low, high = learn(Forecasts.from_array(x[:events], y[:events]), prior=0.5).interval(x[events:])
        shares.append(float(np.mean((truth >= low) & (truth <= high))))
    return float(np.mean(shares)), float(np.std(shares, ddof=1) / np.sqrt(repeats))


class Found(NamedTuple):
    """Of several panels: shares of true probabilities and of true weights inside, and median widths."""

    inside: float
    error: float  # standard error of the former
    width: float
    weights: float
    weight_width: float


def accurate(
    accuracy: float, events: int, n: int, repeats: int = REPEATS // 4, seed: int = 0, unequal: float = 0.0
) -> Found:
    """Of n calibrated experts about as accurate as that, whose errors have a correlation of 0.5."""
    rng, found = np.random.default_rng([seed, round(10 * accuracy), events, n]), []
    for _ in range(repeats):
        mean = accuracy * np.exp(unequal * rng.normal(size=n)) if unequal else np.full(n, accuracy)
        spread = np.sqrt(2.0 * mean)
        panel = Panel(mean, np.outer(spread, spread) * (0.5 + 0.5 * np.eye(n)))
        x, y = panel.simulate(events + NEW, seed=int(rng.integers(2**32)))
        # Of forecasts as they are made, without a floor but that of answers.
        forecast = np.clip(x[events:], 1e-16, 1.0 - 1e-16)
        truth = np.clip(expit(np.log(forecast / (1.0 - forecast)) @ panel.weights), 1e-8, 1.0 - 1e-8)
        learned = learn(Forecasts.from_array(x[:events], y[:events]), prior=0.5)
        low, high = learned.interval(x[events:])
        down, up = learned.weight_interval()
        weights = np.mean((panel.weights >= down) & (panel.weights <= up))
        inside = np.mean((truth >= low) & (truth <= high))
        found.append((inside, np.median(high - low), weights, np.median(up - down)))
    inside, width, weights, weight_width = np.mean(found, axis=0).tolist()
    error = float(np.std([each[0] for each in found], ddof=1) / np.sqrt(repeats))
    return Found(inside, error, width, weights, weight_width)


def of_truth(
    draw: Callable[[np.random.Generator, int], tuple[Array, Array, Array]], events: int, seed: list[int], repeats: int
) -> tuple[float, float]:
    """Mean share of true probabilities of new events inside the interval, and median width, over panels drawn."""
    found = []
    for repeat in range(repeats):
        x, y, truth = draw(np.random.default_rng([*seed, repeat]), events + NEW)
        probability = np.clip(expit(truth[events:]), 1e-8, 1.0 - 1e-8)
        low, high = learn(Forecasts.from_array(x[:events], y[:events])).interval(x[events:])
        inside = (probability >= low - 1e-12) & (probability <= high + 1e-12)
        found.append((inside.mean(), np.median(high - low)))
    inside, width = np.mean(found, axis=0).tolist()
    return inside, width


def kinds(events: int, repeats: int) -> tuple[float, float]:
    """The same over the twelve kinds of panel, of three and of twelve experts."""
    cells = [
        of_truth(lambda rng, t, kind=kind, n=n: drawn(kind, rng, t, n), events, [3, events, n], repeats)
        for kind in KINDS
        for n in (3, 12)
    ]
    inside, width = np.mean(cells, axis=0).tolist()
    return inside, width


def figures(repeats: int) -> None:
    """Write the table that reports read."""
    path = Path(opinionpool.__file__).parent / "report" / "coverage.csv"
    lines = ["events,experts,mean,least,most"]
    for events in (5, 20, 80, 320):
        for n in (3, 12):
            shares = [
                of_truth(lambda rng, t, kind=kind, n=n: drawn(kind, rng, t, n), events, [3, events, n], repeats)[0]
                for kind in KINDS
            ]
            lines.append(f"{events},{n},{np.mean(shares):.3f},{min(shares):.3f},{max(shares):.3f}")
            print(lines[-1], flush=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def heavy_tailed(rng: np.random.Generator, t: int, n: int = 5) -> tuple[Array, Array, Array]:
    """Forecasts, outcomes and true log-odds of calibrated experts whose errors follow a t distribution."""
    y = (rng.random(t) < 0.5).astype(float)
    z = np.sqrt(0.5) * rng.normal(size=(t, 1)) + np.sqrt(0.5) * rng.normal(size=(t, n))
    z = z * np.sqrt(HEAVY / rng.chisquare(HEAVY, size=(t, 1)))
    mean, covariance = np.ones(n), 2 * common_correlation(n, 0.5)
    contrasts = (2 * y - 1)[:, None] + np.sqrt(2) * z
    return expit(contrasts), y, log_ratios_of_t(contrasts, mean, covariance, HEAVY)


def main(repeats: int) -> None:
    """Print the table."""
    print("| events | " + " | ".join(f"{n} experts, ρ = {rho:g}" for n in EXPERTS for rho in CORRELATIONS) + " |")
    print("| --- " * (1 + len(EXPERTS) * len(CORRELATIONS)) + "|")
    for events in EVENTS:
        cells = [cell(events, n, rho, repeats) for n in EXPERTS for rho in CORRELATIONS]
        print(f"| {events} | " + " | ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in cells) + " |", flush=True)
    against = [contradicted(events, repeats) for events in EVENTS]
    each = (f"{mean:.3f} ± {error:.3f} ({events})" for events, (mean, error) in zip(EVENTS, against, strict=True))
    print("five independent experts, twice too timid, by events: " + ", ".join(each))
    print("| accuracy | experts | " + " | ".join(f"{events} events" for events in ACCURATE_EVENTS) + " |")
    print("| --- " * (2 + len(ACCURATE_EVENTS)) + "|")
    for accuracy in ACCURACIES:
        for n in ACCURATE:
            found = [accurate(accuracy, events, n, max(2, repeats // 4)) for events in ACCURATE_EVENTS]
            cells = (f"{each.inside:.2f} ± {each.error:.2f}, {each.width:.2f}" for each in found)
            print(f"| {accuracy:g} | {n} | " + " | ".join(cells) + " |", flush=True)
    print("| accuracy, about | experts | answers | weights | width of weights |\n" + "| --- " * 5 + "|")
    for accuracy in (1.0, 4.0, 9.0):
        for n in (3, 8):
            each = accurate(accuracy, 100, n, max(2, repeats // 4), unequal=0.6)
            cells = f"{each.inside:.2f} ± {each.error:.2f} | {each.weights:.2f} | {each.weight_width:.2f}"
            print(f"| {accuracy:g} | {n} | {cells} |", flush=True)
    for n, events in ((10, 30), (8, 100)):
        each = accurate(1.0, events, n, repeats, unequal=0.6)
        print(
            f"the same, {n} experts, {events} events: {each.inside:.3f} ± {each.error:.3f}, {each.width:.2f}",
            flush=True,
        )
    for name, find in (
        ("twelve kinds of panel", lambda events: kinds(events, max(2, repeats // 10))),
        ("t distribution", lambda events: of_truth(heavy_tailed, events, [2, events], repeats)),
    ):
        rows = ((events, *find(events)) for events in ((5, 20, 80) if "kinds" in name else (20, 100)))
        print(
            f"{name}: " + ", ".join(f"{inside:.3f}, {width:.2f} ({events})" for events, inside, width in rows),
            flush=True,
        )


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["figures"]:
        figures(int(words[1]) if len(words) > 1 else 20)
    else:
        main(int(words[0]) if words else REPEATS)
