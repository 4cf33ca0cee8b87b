"""What happens when who answers depends on what they know, on what they would say, or on the outcome.

    python benchmarks/missing.py

Three experts of known accuracy; half of the first one's forecasts are missing, for a different reason in each line.
Maximum likelihood on the forecasts that are there assumes that the reason has nothing to do with what was not said.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.model.panel import Panel
from opinionpool.scoring.scores import log_score

Array = npt.NDArray[np.float64]

EVENTS = 40_000
TRUTH = Panel([1.0, 0.8, 0.8], [[2.0, 0.8, 0.8], [0.8, 1.6, 0.8], [0.8, 0.8, 1.6]], names=["ann", "bob", "cat"])


def gaps(x: Array, y: npt.NDArray[np.intp], rng: np.random.Generator) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which of the first expert's forecasts are missing, by reason, about half of them."""
    said = np.log(x / (1 - x))
    others = said[:, 1:].mean(axis=1)
    return {
        "by chance": rng.random(len(y)) < 0.5,
        "where others are unsure (they answer)": np.abs(others) < np.median(np.abs(others)),
        "where she is unsure": np.abs(said[:, 0]) < np.median(np.abs(said[:, 0])),
        "where she would say unlikely": said[:, 0] < np.median(said[:, 0]),
        "mostly where it does not happen": rng.random(len(y)) < np.where(y == 1, 0.2, 0.8),
    }


def figures() -> dict[str, tuple[float, ...]]:
    """Return, for each reason, what is learned about the first expert and what the pool loses by it.

    Bias, contrast, spread, weight, score of the pool on new events, and the best score of whoever knows the reason.
    """
    found = {}
    rng = np.random.default_rng(0)
    x, outcomes = TRUTH.simulate(EVENTS, seed=rng)
    y = np.asarray(outcomes, dtype=np.intp)
    half = EVENTS // 2
    for reason, gone in gaps(x, y, rng).items():
        seen = x.copy()
        seen[gone, 0] = np.nan
        learned = learn(Forecasts.from_array(seen[:half], y[:half], experts=TRUTH.names), prior=0.5, structure="full")
        panel = learned.panel
        test, happened = seen[half:], y[half:]
        score = log_score(learned.pool(test), happened).mean()
        # Whoever knows the reason has that to go by as well: the best answer, by bins of what the true panel says.
        best = log_score(informed(TRUTH.pool(test), gone[half:], happened), happened).mean()
        spread = np.sqrt(panel.covariance[0, 0])
        found[reason] = tuple(map(float, (panel.bias[0], panel.contrast[0], spread, panel.weights[0], score, best)))
    return found


def main() -> None:
    """Print the figures as a table."""
    heads = "".join(f"{head:>10s}" for head in ("bias", "contrast", "spread", "weight", "score", "best"))
    print(f"{'ann is missing':40s}{heads}")
    print(f"{'never':40s}{0:10.2f}{1:10.2f}{2**0.5:10.2f}{TRUTH.weights[0]:10.2f}")
    for reason, (*features, score, best) in figures().items():
        print(f"{reason:40s}" + "".join(f"{value:10.2f}" for value in features) + f"{score:10.3f}{best:10.3f}")


def informed(p: Array, gone: npt.NDArray[np.bool_], y: npt.NDArray[np.intp]) -> Array:
    """Return the frequency of the event among events with a similar pooled probability and the same presence."""
    answer = np.empty_like(p)
    for some in (gone, ~gone):
        order = np.argsort(p[some])
        rows = np.flatnonzero(some)[order]
        for part in np.array_split(rows, 25):
            answer[part] = (y[part].sum() + 0.5) / (len(part) + 1)
    return answer


if __name__ == "__main__":
    main()
