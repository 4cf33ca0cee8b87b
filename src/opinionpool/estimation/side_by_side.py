"""Fits of many regressions at once, on the same events or others."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from opinionpool.arrays import Array
from opinionpool.estimation.anchor import Quadratic
from opinionpool.estimation.binary import BinaryEvents, BinaryLikelihoods, keep_pairs
from opinionpool.estimation.class_events import ClassEvents, ClassLikelihoods
from opinionpool.estimation.coefficients import Coefficients, roots
from opinionpool.estimation.event_likelihoods import Forms, RootForm, turned
from opinionpool.estimation.posterior import Likelihoods, Mode, modes
from opinionpool.estimation.regression import Regression

Result = TypeVar("Result")
# Numbers in the second derivatives of what is fitted side by side.
_SQUARES = 1 << 22

# Of so many coefficients on, their roots' form saves time.
_WIDE = 100


class Task(NamedTuple):
    """A fit that is asked for."""

    regression: Regression
    deviation: float  # how much weights differ from each other
    # Where to begin, or the sum of the weights there; the answer does not depend on it.
    start: Coefficients | float | None = None

    def begin(self, theta: Array) -> None:
        """Set the coefficients (P,), which are 0, to those of the start, or to its intercept and sum of weights."""
        beliefs, start = self.regression.beliefs, self.start
        if start is None:
            return
        total = start if isinstance(start, float) else start.total
        if isinstance(start, Coefficients):
            d = len(start.values) - len(beliefs.mean)
            if len(start.mode.coefficients) == len(theta):
                theta[:] = start.mode.coefficients
            if beliefs.intercept_spread > 0:
                theta[beliefs.shared : beliefs.shared + d] = beliefs.of_intercept(start.values[:d])
        if beliefs.slope_spread > 0:
            theta[0] = (total - beliefs.total) / beliefs.slope_spread


# Work that asks for fits, and goes on with what they are.
Steps: TypeAlias = Generator[Sequence[Task], list[Coefficients], Result]


def together(works: Sequence[Steps[Result]]) -> list[Result]:
    """The results of several pieces of work; fits that they ask for at the same time are done side by side."""
    results: dict[int, Result] = {}
    found: dict[int, list[Coefficients] | None] = dict.fromkeys(range(len(works)))
    while found:
        asked: dict[int, Sequence[Task]] = {}
        for i, answer in found.items():
            try:
                # What a generator is sent first is nothing.
                asked[i] = next(works[i]) if answer is None else works[i].send(answer)
            except StopIteration as done:
                results[i] = done.value
        every = iter(fit_all([task for tasks in asked.values() for task in tasks]))
        found = {i: list(islice(every, len(tasks))) for i, tasks in asked.items()}
    return [results[i] for i in range(len(works))]


def fit_all(tasks: Sequence[Task]) -> list[Coefficients]:
    """The fit of each: those for many events side by side, the others one by one."""
    beside = [i for i, task in enumerate(tasks) if task.regression.side_by_side]
    size = max((sum(tasks[i].regression.observed.contrasts.shape[1:]) for i in beside), default=1)
    most = max(1, _SQUARES // size**2)
    found: dict[int, Coefficients] = {}
    for some in (beside[first : first + most] for first in range(0, len(beside), most)):
        found.update(zip(some, _side_by_side([tasks[i] for i in some]), strict=True))
    for i, (regression, deviation, start) in enumerate(tasks):
        if i not in found:
            # Nearest is, of its start and the fits before it to the same events, that in which weights differ as much.
            known = [found[j] for j in range(i) if tasks[j].regression.observed is regression.observed]
            if isinstance(start, Coefficients):
                known.insert(0, start)
            near = min(known, key=lambda fit: abs(fit.deviation - deviation), default=None)
            found[i] = regression.fit(deviation, near)
    return [found[i] for i in range(len(tasks))]


def _side_by_side(tasks: Sequence[Task]) -> list[Coefficients]:
    """Fits for many events; all have as many coefficients, of which some do nothing where fewer do."""
    keep_pairs(events for task in tasks if isinstance(events := task.regression.observed.events, BinaryEvents))
    sets = [_Fits.of(list(some)) for _, some in groupby(tasks, _same_design)]
    parts = [part for each in sets for part in each.parts()]
    q, p = (max(part.root.shape[axis] for part in parts) for axis in (1, 2))
    likelihoods = _likelihoods(parts, q, p)
    pulls = [each.pull() for each in sets]
    pull = Quadratic(_joined([each.curvature for each in pulls], (p, p)), _joined([each.slope for each in pulls], (p,)))
    found = iter(modes(likelihoods, _joined([each.start for each in sets], (p,)), pull))
    return [fit for each in sets for fit in each.found(list(islice(found, len(each.tasks))))]


def _same_design(task: Task) -> tuple[int, bool]:
    """What tasks have in common that have the same design, and whether each would better have one of its own."""
    observed = task.regression.observed
    narrow = isinstance(observed.events, ClassEvents) or observed.events.narrow
    return id(observed), not narrow and not task.regression.several(task.deviation)


def _likelihoods(parts: Sequence[_Part], q: int, p: int) -> Likelihoods:
    """Those of all parts, with Q coefficients of events, and P of their own."""
    binary = [part.events for part in parts if isinstance(part.events, BinaryEvents)]
    several = [part.events for part in parts if isinstance(part.events, ClassEvents)]
    group = np.repeat(np.arange(len(parts)), [len(part.root) for part in parts])
    centre, root = _joined([part.centre for part in parts], (q,)), _joined([part.root for part in parts], (q, p))
    forms = (
        Forms([part.form for part in parts], np.concatenate([part.spread for part in parts])) if q >= _WIDE else None
    )
    if several:
        return ClassLikelihoods(several, group, centre, root, forms)
    return BinaryLikelihoods(binary, group, centre, root, forms)


def _joined(parts: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Arrays behind each other, zeros where what they consist of is smaller than others."""
    if all(part.shape[1:] == shape for part in parts):
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    found, first = np.zeros((sum(map(len, parts)), *shape)), 0
    for part in parts:
        found[(slice(first, first + len(part)), *map(slice, part.shape[1:]))] = part
        first += len(part)
    return found


class _Part(NamedTuple):
    """Likelihoods of the same events, whose coefficients are centre (F, Q) + root (F, Q, P)'coefficients."""

    events: BinaryEvents | ClassEvents
    centre: Array
    root: Array
    form: RootForm
    spread: Array


@dataclass(frozen=True, eq=False)
class _Fits:
    """F fits to the same events.

    Attributes
    ----------
    tasks : list of Task
    centre : ndarray, shape (F, 1 + N)
        Intercept and weights that are believed on average.
    root : ndarray, shape (F, 1 + N, P)
        Of their covariance; zeros behind where there are fewer coefficients.
    sizes : list of int
        How many there are.
    start : ndarray, shape (F, P)
    form : RootForm
        Of the roots, with their σ, `spread` (F,).
    """

    tasks: list[Task]
    centre: Array
    root: Array
    sizes: list[int]
    start: Array
    form: RootForm
    spread: Array

    @classmethod
    def of(cls, tasks: list[Task]) -> _Fits:
        beliefs = [task.regression.beliefs for task in tasks]
        d = tasks[0].regression.observed.contrasts.shape[2]
        root, sizes, spread = roots(beliefs, [task.deviation for task in tasks], d)
        centre, start = np.zeros(root.shape[:2]), np.zeros((len(root), root.shape[2]))
        centre[:, d:] = [each.mean for each in beliefs]
        for theta, size, task in zip(start, sizes, tasks, strict=True):
            task.begin(theta[:size])
        q, p = root.shape[1:]
        form = RootForm(q, p, 0 if spread is None or q < _WIDE else len(beliefs[0].mean))
        return cls(tasks, centre, root, sizes, start, form, np.zeros(len(root)) if spread is None else spread)

    def parts(self) -> list[_Part]:
        """Their likelihoods: together, or each with a design of its own."""
        events = self.tasks[0].regression.observed.events
        if isinstance(events, ClassEvents) or not _same_design(self.tasks[0])[1]:
            return [_Part(events, self.centre, self.root, self.form, self.spread)]
        p = self.root.shape[2]
        return [
            _Part(events.along(centre, root), np.zeros((1, p)), np.eye(p)[None], RootForm(p, p, 0), np.zeros(1))
            for centre, root in zip(self.centre, self.root, strict=True)
        ]

    def pull(self) -> Quadratic:
        """What keeps one outcome from moving much (`Anchor`)."""
        observed, (f, _, p) = self.tasks[0].regression.observed, self.root.shape
        anchored = np.array([task.regression.anchored for task in self.tasks])
        if observed.expected is None or not anchored.any():
            return Quadratic(np.zeros((f, p, p)), np.zeros((f, p)))
        both, common = observed.precisions
        beyond = self.centre.copy()
        beyond[:, observed.contrasts.shape[2] :] -= observed.expected
        curvature = turned(self.root, np.broadcast_to(both, (f, *both.shape)), self.form, self.spread)
        slope = ((beyond @ common)[:, None] @ self.root)[:, 0]
        return Quadratic(anchored[:, None, None] * curvature, anchored[:, None] * slope)

    def found(self, found: Sequence[Mode]) -> list[Coefficients]:
        """Intercept and weights by the coefficients at modes."""
        theta = np.array([mode.coefficients[: self.root.shape[2]] for mode in found])
        values = self.centre + (self.root @ theta[..., None])[..., 0]
        own = (
            Mode(mode.coefficients[:size], mode.evidence, mode.precision[:size, :size])
            for mode, size in zip(found, self.sizes, strict=True)
        )
        return [
            Coefficients(value, mode.evidence, mode, regression.beliefs, deviation)
            for value, mode, (regression, deviation, _) in zip(values, own, self.tasks, strict=True)
        ]
