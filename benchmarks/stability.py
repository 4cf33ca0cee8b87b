"""How far one outcome more moves the answers about other events.

    python benchmarks/stability.py [--draws N] [--data FOLDER] [--pool NAME] [NAME ...]
    python benchmarks/stability.py --large

Of each binary panel of FOLDER (files ``*.csv.gz`` as `read_forecasts` takes them) n outcomes are known, drawn at random
with at least five of each kind, and the rest of up to 200 other events is open. Each of the n is left out in turn, and
becomes open: the shift is the mean absolute difference between answers about events that were open before. In the
table, the median and the largest shift over outcomes left out, and over draws, times n: in probability, of which the
median is to be `MEDIAN` and the largest `WORST` at most, and in log-odds. Where a panel has dates, it stands twice: as
they are, days of forecasting, and taken as the days on which the events closed.

The pool is the default one, or, to compare, logistic regression: ``recalibrated``, of the mean log-odds, with beliefs
N(1, 1) about the slope and N(0, 1) about the intercept, or ``ridge``, of all experts' log-odds, with N(0, 0.1) about
each weight, missing ones taken as the mean of the others'.

With --large, panels of twenty simulated experts: the largest difference between probabilities, of 2,000 other events,
after one event less, after one more, after experts are named anew and put in another order, and after events are.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from opinionpool.estimation.logistic import logistic_fit
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.learn import learn
from opinionpool.logodds import FLOOR, expit, logit
from opinionpool.model.panel import Panel
from opinionpool.tables.read import read_forecasts

Array = npt.NDArray[np.float64]

SIZES, EACH, OPEN = (40, 80, 160), 5, 200
# Of shifts in probability, times n: one outcome moves the share of events that happen by 1/n, and one that speaks for
# another alternative more.
MEDIAN, WORST = 1.0, 6.0
LARGE = (5000, 20001, 30000)


def panels(folder: Path, names: list[str]) -> Iterator[tuple[str, Forecasts]]:
    """Resolved events of the binary panels."""
    for file in sorted(folder.glob("*.csv.gz")):
        name = file.name.split(".")[0]
        if names and name not in names:
            continue
        forecasts = read_forecasts(file, columns={"time": None} if name == "nfl_students" else {})
        if len(forecasts.classes) > 2:
            continue
        forecasts = forecasts.select_events(forecasts.resolved & (forecasts.crowd > 0))
        yield name, forecasts
        if forecasts.times is not None:
            yield f"{name}, days of closing", replace(forecasts, settled=~np.isnat(forecasts.times))


def drawn(forecasts: Forecasts, size: int, rng: np.random.Generator) -> tuple[Forecasts, npt.NDArray[np.intp]] | None:
    """Events of which the first are resolved, the others open; None if there are too few."""
    y = forecasts.outcomes
    rare = [np.flatnonzero(y == k) for k in (0, 1)]
    if len(y) < size + EACH or min(map(len, rare)) < EACH:
        return None
    order = rng.permutation(len(y))
    if np.bincount(y[order[:size]], minlength=2).min() < EACH:
        # Rare outcomes: some are put first.
        first = np.concatenate([rng.permutation(kind)[:EACH] for kind in rare])
        order = np.concatenate([first, np.setdiff1d(order, first, assume_unique=True)])
    sample = forecasts.select_events(order[: size + OPEN])
    outcomes = sample.outcomes.copy()
    outcomes[size:] = UNRESOLVED
    return replace(sample, outcomes=outcomes), np.arange(size)


def by_default(sample: Forecasts) -> Array:
    """Log-odds of the default pool's answers."""
    return np.asarray(logit(learn(sample).pool_forecasts(sample)))


def recalibrated(sample: Forecasts) -> Array:
    """Log-odds by logistic regression on the mean log-odds."""
    x = np.nanmean(logit(np.clip(sample.X, FLOOR, 1.0 - FLOOR)), axis=1, keepdims=True)
    return _regression(sample, x, penalty=1.0, center=1.0, intercept_penalty=1.0)


def ridge(sample: Forecasts) -> Array:
    """Log-odds by logistic regression on the log-odds of all experts."""
    x = logit(np.clip(sample.X, FLOOR, 1.0 - FLOOR))
    x = np.where(np.isnan(x), np.nanmean(x, axis=1, keepdims=True), x)
    return _regression(sample, x, penalty=10.0, center=0.0)


def _regression(sample: Forecasts, x: Array, **beliefs: float) -> Array:
    known = sample.resolved
    found = logistic_fit(x[known], sample.outcomes[known], **beliefs)
    return x @ found.weights + found.intercept[0]


RULES: dict[str, Callable[[Forecasts], Array]] = {"default": by_default, "recalibrated": recalibrated, "ridge": ridge}


def shifts(sample: Forecasts, known: npt.NDArray[np.intp], rule: Callable[[Forecasts], Array] = by_default) -> Array:
    """Mean absolute shifts of the answers about open events for each outcome left out, in both scales, (n, 2)."""
    still = ~sample.resolved
    before = rule(sample)[still]
    found = []
    for event in known:
        outcomes = sample.outcomes.copy()
        outcomes[event] = UNRESOLVED
        other = replace(sample, outcomes=outcomes)
        after = rule(other)[still]
        found.append((np.abs(expit(after) - expit(before)).mean(), np.abs(after - before).mean()))
    return np.array(found)


def large(events: int, n: int = 20, new: int = 2000) -> list[float]:
    """Largest differences between answers about other events after each of the changes."""
    rng = np.random.default_rng(events)
    mean, root = rng.lognormal(0.0, 0.5, n), 0.5 + 0.5 * np.eye(n)
    panel = Panel(mean, root * np.outer(np.sqrt(2 * mean), np.sqrt(2 * mean)))
    x, y = panel.simulate(events + 1 + new, seed=events)
    x, y, other = x[: events + 1], y[: events + 1], x[events + 1 :]
    names = [f"expert {i}" for i in range(n)]

    def answers(rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp], prefix: str = "") -> Array:
        known = Forecasts.from_array(x[np.ix_(rows, columns)], y[rows], experts=[prefix + names[i] for i in columns])
        return np.asarray(learn(known).pool(other[:, columns]))

    rows, columns = np.arange(events), np.arange(n)
    before = answers(rows, columns)
    changed = (
        answers(rows[1:], columns),
        answers(np.arange(events + 1), columns),
        answers(rows, rng.permutation(n), "another "),
        answers(rng.permutation(events), columns),
    )
    return [float(np.abs(each - before).max()) for each in changed]


def print_large() -> None:
    """Print the table of large panels."""
    print("| events | one less | one more | names and order of experts | order of events |\n" + "| --- " * 5 + "|")
    for events in LARGE:
        print(f"| {events:,} | " + " | ".join(f"{each:.1e}" for each in large(events)) + " |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--pool", choices=RULES, default="default")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.large:
        print_large()
        return
    print("| panel | " + " | ".join(f"n = {n}: median | largest | in log-odds" for n in SIZES) + " |")
    print("| --- |" + " --- | --- | --- |" * len(SIZES))
    for name, forecasts in panels(options.data, options.names):
        cells = []
        for size in SIZES:
            rng, found = np.random.default_rng([size, 7]), []
            for _ in range(options.draws):
                sample = drawn(forecasts, size, rng)
                if sample is not None:
                    found.append(shifts(*sample, RULES[options.pool]) * size)
            if found:
                every = np.concatenate(found)
                median, largest, odds = np.median(every[:, 0]), every[:, 0].max(), every[:, 1].max()
                kept = "" if median <= MEDIAN and largest <= WORST else " BROKEN"
                cells.append(f"{median:.2f} | {largest:.2f}{kept} | {odds:.0f}")
            else:
                cells.append(" | | ")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
