"""How the default pool does with more than two classes, on the shared panels that have them.

    python benchmarks/classes.py [--draws N] [--data FOLDER] [--pool NAME] [NAME ...]

Of a panel's resolved events, as many as the head of the column says are drawn at random to learn from, once for each
draw; the mean log loss, in nats, is that of at most 400 others. Forecasts on the others are not given.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from opinionpool.forecasts import Forecasts
from opinionpool.pools.fit import fit_pool
from opinionpool.tables.read import read_forecasts

PANELS, SIZES, TEST, DRAWS = ("tampere_pop", "flusight"), (10, 40, 160), 400, 10


def losses(forecasts: Forecasts, size: int, draws: int, pool: str = "gaussian") -> list[float]:
    """Mean log loss of the pool in each draw."""
    events = np.flatnonzero(forecasts.resolved & (forecasts.crowd > 0))
    found = []
    for draw in range(draws):
        order = np.random.default_rng([0, draw]).permutation(events)
        test = forecasts.select_events(order[size : size + TEST])
        answers = fit_pool(pool, forecasts.select_events(order[:size])).pool_forecasts(test)
        found.append(float(-np.log(answers[np.arange(len(test.outcomes)), test.outcomes]).mean()))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=PANELS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--pool", default="gaussian")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| panel | " + " | ".join(map(str, SIZES)) + " |\n" + "| --- " * (1 + len(SIZES)) + "|")
    for name in options.names:
        forecasts = read_forecasts(options.data / f"{name}.csv.gz")
        means = [np.mean(losses(forecasts, size, options.draws, options.pool)) for size in SIZES]
        print(f"| {name} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |", flush=True)


if __name__ == "__main__":
    main()
