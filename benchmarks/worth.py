"""What beliefs are worth: how open the weights are after T events and beliefs worth n, and after n + T events.

    python benchmarks/worth.py

The panel is as it is believed to be; events are simulated from it. Means over panels of the standard errors that the
pool gives for its weights, and of how far the weights learned from n + T events lie from the true ones (root mean
square, over experts and panels).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.learn import learn
from opinionpool.model.panel import Panel

NAMES = ("ann", "bob", "cat", "dan")
PANELS = 10
SIZES = ((20, 20), (100, 20), (400, 20))
# Next to nothing: the panel is then believed to be the same, and as open as any panel is.
NOTHING = 1e-6


def beliefs_about(panel: Panel) -> Callable[[float], Beliefs]:
    """Return beliefs, each of some worth, that are true of a panel of nested evidence, two of whom are equal."""

    def of_worth(worth: float) -> Beliefs:
        features = zip(NAMES, panel.calibration.tolist(), panel.accuracy.tolist(), strict=True)
        each = {
            name: {"calibration": (k, worth), "accuracy": (a, worth), "bias": (0, worth)} for name, k, a in features
        }
        return Beliefs(correlation=(float(panel.correlation[1, 2]), worth), experts=each)

    return of_worth


def figures(sizes: Sequence[tuple[int, int]] = SIZES) -> dict[str, tuple[float, ...]]:
    """Return, by panel and n, T of `sizes`, the errors after n believed, T more, and n + T events; and the miss."""
    panels = {
        "equal, correlation 0.6": Panel.from_features(np.ones(4), 0.6, accuracy=np.ones(4), names=NAMES),
        "equal, correlation 0.2": Panel.from_features(np.ones(4), 0.2, accuracy=np.ones(4), names=NAMES),
        "unequal, correlation 0.4": Panel.from_features(
            [0.8, 1.0, 1.0, 1.2], 0.4, accuracy=[2.0, 1.0, 1.0, 0.5], names=NAMES, dependence="nested"
        ),
    }
    found = {}
    for name, panel in panels.items():
        of_worth = beliefs_about(panel)
        for n, t in sizes:
            errors, misses = [], []
            blank = Forecasts.from_array([[0.6] * 4], experts=NAMES)
            before = learn(blank, prior=0.5, beliefs=of_worth(n)).posterior
            for seed in range(PANELS):
                x, y = panel.simulate(n + t, seed=seed)
                few = Forecasts.from_array(x[:t], y[:t], experts=NAMES)
                believed = learn(few, prior=0.5, beliefs=of_worth(n))
                data = learn(Forecasts.from_array(x, y, experts=NAMES), prior=0.5, beliefs=of_worth(NOTHING))
                assert before is not None
                assert believed.posterior is not None
                assert data.posterior is not None
                errors.append([each.weight_sd(4).mean() for each in (before, believed.posterior, data.posterior)])
                misses.append(np.square(data.weights - panel.weights).mean())
            found[f"{name}; {n}, {t}"] = (*np.mean(errors, axis=0).tolist(), float(np.sqrt(np.mean(misses))))
    return found


def main() -> None:
    """Print the table of the page on beliefs."""
    print("| panel; n, T | n believed | n believed, T events | n + T events | miss |")
    print("| --- | --- | --- | --- | --- |")
    for name, values in figures().items():
        print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in values) + " |")


if __name__ == "__main__":
    main()
