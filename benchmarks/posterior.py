"""The default pool's normal approximation against samples of the exact posterior of its weights.

    python benchmarks/posterior.py [SAMPLES]

Panels are simulated from the default beliefs. For each, the exact posterior of intercept and weights is sampled by
elliptical slice sampling (Murray, Adams and MacKay, AISTATS 2010), given how far weights differ. A line compares, for
the pooled log-odds of 50 new events: how far the answer is from the posterior's mean, in posterior standard deviations;
what the answer's standard error is of the posterior's standard deviation; and the posterior probability inside the 90%
interval.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from opinionpool.estimation.regression import Observations
from opinionpool.learning.constants import BIASES, DEPENDENCE, SLOPE_SD
from opinionpool.learning.laplace import Fit, fit_nodes
from opinionpool.learning.nodes import Nodes, Sums
from opinionpool.learning.prior import believed_slope

Array = npt.NDArray[np.float64]

SAMPLES, BURN = 20_000, 1_000
EVENTS, EXPERTS, DIFFERENCE = (10, 30, 100), (3, 10), (0.05, 0.15, 0.4)
NEW = 50


class Task(NamedTuple):
    """Observed events, and the prior of their coefficients: one normal."""

    observed: Observations
    nodes: Nodes

    @property
    def prior(self) -> tuple[Array, Array]:
        """Mean of intercept and weights, and a root of their covariance."""
        (h,), (across,) = self.nodes.across()
        along = self.nodes.sums.sd[0] * np.linalg.norm(self.nodes.direction[0])
        weights = across * np.eye(len(h)) + (along - across) * np.outer(h, h)
        return np.append(0.0, self.nodes.mean), block_diag(self.nodes.intercept_sd, weights)


def simulated(t: int, n: int, apart: float, rng: np.random.Generator) -> Task:
    """Events whose outcomes follow from weights that are drawn from what is believed of them."""
    total = believed_slope(n)
    sums = Sums(np.array([total]), np.array([SLOPE_SD * total]), np.ones(1), np.array([BIASES[0] * total]))
    even = np.full((1, n), 1.0 / n)
    task = Task(
        Observations(np.zeros((0, n, 1)), np.zeros((0, 1)), np.zeros(0, dtype=np.intp), np.zeros(0)),
        Nodes(np.ones(1), even, np.array([apart]), sums, DEPENDENCE[:1], np.ones(1)),
    )
    mean, root = task.prior
    drawn = mean + root @ rng.normal(size=root.shape[1])
    contrasts = 1.5 * (np.sqrt(0.6) * rng.normal(size=(t, 1)) + np.sqrt(0.4) * rng.normal(size=(t, n)))
    chance = 1.0 / (1.0 + np.exp(-(drawn[0] + contrasts @ drawn[1:])))
    outcomes = (rng.random(t) < chance).astype(np.intp)
    return task._replace(observed=Observations(contrasts[:, :, None], np.zeros((t, 1)), outcomes, np.ones(t)))


def samples(task: Task, number: int, rng: np.random.Generator) -> Array:
    """Draws of intercept and weights from their posterior, (number, 1 + N)."""
    mean, root = task.prior
    design = np.column_stack([np.ones(len(task.observed.outcomes)), task.observed.contrasts[:, :, 0]])
    sign = 2.0 * task.observed.outcomes - 1.0
    columns, fixed = sign[:, None] * (design @ root), sign * (design @ mean)

    def likelihood(theta: Array) -> float:
        return -float(np.logaddexp(0.0, -(columns @ theta + fixed)).sum())

    theta = np.zeros(root.shape[1])
    found, now = np.empty((number, root.shape[1])), likelihood(theta)
    for i in range(-BURN, number):
        other, level = rng.normal(size=len(theta)), now + np.log(rng.random())
        angle = rng.uniform(0.0, 2.0 * np.pi)
        low, high = angle - 2.0 * np.pi, angle
        while True:
            proposed = theta * np.cos(angle) + other * np.sin(angle)
            now = likelihood(proposed)
            if now > level:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
        theta = proposed
        if i >= 0:
            found[i] = theta
    return np.asarray(mean + found @ root.T)


def compared(found: Fit, exact: Array, rng: np.random.Generator) -> tuple[float, float, float]:
    """Distance from the mean, ratio of spreads, and probability inside the interval, averaged over new events."""
    assert found.normals is not None
    n, covariance = len(found.mean) - 1, found.normals.covariance[0]
    new = np.column_stack([np.ones(NEW), 1.5 * rng.normal(size=(NEW, 1)) + 0.7 * rng.normal(size=(NEW, n))])
    answers, error = new @ found.mean, np.sqrt(np.einsum("ti,ij,tj->t", new, covariance, new))
    drawn = new @ exact.T
    spread = drawn.std(axis=1)
    inside = np.abs(drawn - answers[:, None]) <= 1.6449 * error[:, None]
    off = np.abs(answers - drawn.mean(axis=1)) / spread
    return float(off.mean()), float((error / spread).mean()), float(inside.mean())


def row(t: int, n: int, apart: float, number: int = SAMPLES) -> tuple[float, float, float]:
    """One line of the table: a panel's approximation against its posterior."""
    rng = np.random.default_rng([t, n, round(100 * apart)])
    task = simulated(t, n, apart, rng)
    return compared(fit_nodes(task.observed, task.nodes), samples(task, number, rng), rng)


def main(number: int) -> None:
    """Print the table."""
    print("| events | experts | weights differ by | off, in sd | error / sd | inside 90% |")
    print("| --- | --- | --- | --- | --- | --- |")
    for t in EVENTS:
        for n in EXPERTS:
            for apart in DIFFERENCE:
                off, ratio, inside = row(t, n, apart, number)
                print(f"| {t} | {n} | {apart:g} | {off:.2f} | {ratio:.2f} | {inside:.3f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES)
