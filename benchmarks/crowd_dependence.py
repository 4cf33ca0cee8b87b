"""Crowds whose experts have one correlation, or nested evidence: which is recognised, and what is gained by it.

python benchmarks/crowd_dependence.py [draws]          a table; half a minute a draw
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from opinionpool.forecasts import Forecasts
from opinionpool.learning import crowd
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit, logit
from opinionpool.model.nested import NestedCorrelation

Array = npt.NDArray[np.float64]

EVENTS, EXPERTS, EACH, CORRELATION = 4000, 1500, 12, 0.4
RESOLVED = 100, 500, 2000
# Only one of the models, or both.
CHOICES = {"learned": crowd.FEATURES, "common": (1.0 - 2e-16, 1e-300), "nested": (1e-300, 1.0 - 2e-16)}


@dataclass(frozen=True, eq=False)
class Simulated:
    """A crowd of whom log contrasts ~ N(-.3, .5²), log spreads ~ N(.2, .3²), and biases ~ N(0, .4²)."""

    forecasts: Forecasts
    outcomes: npt.NDArray[np.intp]
    optimal: Array  # log-odds by whoever knows all features
    contrast: Array
    spread: Array
    bias: Array

    @classmethod
    def drawn(
        cls, seed: int, resolved: int, *, nested: bool, t: int = EVENTS, n: int = EXPERTS, differ: float = 1.0
    ) -> Simulated:
        """Of `t` events so many with an outcome, the first ones; `n` experts who differ as above, or so much less."""
        rng = np.random.default_rng(seed)
        contrast = np.exp(-0.3 + 0.5 * differ * rng.normal(size=n))
        spread = np.exp(0.2 + 0.3 * differ * rng.normal(size=n))
        bias = 0.4 * differ * rng.normal(size=n)
        expert = np.stack([np.sort(rng.choice(n, EACH, replace=False)) for _ in range(t)])
        y = (rng.random(t) < 0.5).astype(np.intp)
        signal = (contrast / spread)[expert]
        errors, answers = np.empty(expert.shape), np.empty(t)
        for i in range(t):
            r = np.full((EACH, EACH), CORRELATION)
            if nested:
                r = NestedCorrelation(signal[i], CORRELATION).matrix()
            np.fill_diagonal(r, 1.0)
            errors[i] = np.linalg.cholesky(r) @ rng.normal(size=EACH)
            moved = signal[i] * (2 * y[i] - 1) + errors[i]
            answers[i] = 2.0 * np.linalg.solve(r, signal[i]) @ moved
        given = bias[expert] + spread[expert] * (signal * (2 * y - 1)[:, None] + errors)
        events, experts = tuple(f"q{i}" for i in range(t)), tuple(f"e{i}" for i in range(n))
        event, known = np.repeat(np.arange(t), EACH), np.where(np.arange(t) < resolved, y, -1)
        found = Forecasts(events, experts, (0, 1), event, expert.ravel(), expit(given.ravel()), known)
        return cls(found, y, answers, contrast, spread, bias)

    def loss(self, answers: Array) -> float:
        """Mean log loss on open events, of log-odds."""
        some = self.forecasts.outcomes < 0
        return float(np.logaddexp(0.0, np.where(self.outcomes == 1, -answers, answers))[some].mean())

    def fitted(self, believed: tuple[float, float]) -> tuple[FittedPanel, float]:
        """What is learned with these probabilities of the models beforehand, and its loss."""
        with patch.object(crowd, "FEATURES", believed):
            found = learn(self.forecasts, prior=0.5)
        return found, self.loss(logit(found.pool_forecasts(self.forecasts)))


def probability(learned: FittedPanel, *, nested: bool) -> float:
    """How probable nested evidence, or one correlation, is afterwards."""
    posterior = learned.posterior
    assert posterior is not None
    name = "features, nested evidence" if nested else "features, one correlation"
    return float(posterior.posterior[posterior.value.index(name)])


def main(draws: int) -> None:
    """Print the table."""
    print("| truth | resolved | learned | one correlation | nested | optimal | probability of the truth |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for nested in (False, True):
        for resolved in RESOLVED:
            rows = []
            for seed in range(1, draws + 1):
                one = Simulated.drawn(seed, resolved, nested=nested)
                fits = [one.fitted(believed) for believed in CHOICES.values()]
                truth = probability(fits[0][0], nested=nested)
                rows.append([*(loss for _, loss in fits), one.loss(one.optimal), truth])
            mean = np.mean(rows, axis=0)
            name = "nested" if nested else "one correlation"
            print(f"| {name} | {resolved:,} | " + " | ".join(f"{value:.3f}" for value in mean) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
