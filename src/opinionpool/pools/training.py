"""Resolved events to which a pool is fitted, and weights that a user gives instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, Mask, as_numbers
from opinionpool.errors import ArgumentError, ExpertError, Note
from opinionpool.estimation.averages import constant_notes, no_forecast_notes
from opinionpool.forecasts import Forecasts
from opinionpool.learning.duplicates import constant_experts
from opinionpool.learning.problem import Problem
from opinionpool.model.contrasts import Contrasts, contrasts_in, read_batch
from opinionpool.names import unknown_names
from opinionpool.priors import one_outcome_notes
from opinionpool.text import meant, shown

Weights: TypeAlias = Mapping[str, float] | npt.ArrayLike


@dataclass(frozen=True, eq=False)
class TrainingEvents:
    """Resolved events with forecasts, to which a pool is fitted, and the notes of the fit."""

    problem: Problem  # forecasts on all events, with weights and priors
    rows: Index  # (T,); positions of the resolved events among all events
    floor: float  # least probability taken from an expert
    notes: list[Note] = field(default_factory=list)

    @classmethod
    def of(cls, problem: Problem, floor: float) -> TrainingEvents:
        """Return the events in `problem` that are resolved and have a forecast and a positive weight."""
        used = problem.forecasts.resolved & (problem.weight > 0) & (problem.forecasts.crowd > 0)
        return cls(problem, np.flatnonzero(used), floor)

    @property
    def forecasts(self) -> Forecasts:
        """All forecasts, on resolved and open events."""
        return self.problem.forecasts

    @cached_property
    def weight(self) -> Array:
        """Number of times that each event counts, above 0, (T,)."""
        return self.problem.weight[self.rows]

    @property
    def priors(self) -> Array:
        """Prior that all events share, (K,), or prior of each event, (T, K)."""
        shared = self.problem.shared
        return self.problem.reference[self.rows] if shared is None else shared

    @property
    def classes(self) -> int:
        """Number of classes, K."""
        return len(self.forecasts.classes)

    @property
    def has_intercept(self) -> bool:
        """True if an intercept can be learned, as the classes have the same meaning in all events."""
        return not self.problem.has_options

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the N experts."""
        return self.forecasts.experts

    @property
    def outcomes(self) -> npt.NDArray[np.intp]:
        """Outcomes as positions in `classes` of the forecasts, (T,)."""
        return self.forecasts.outcomes[self.rows]

    def collect(self, part: Callable[[Contrasts, npt.NDArray[np.intp]], Array], *shape: int) -> Array:
        """Return `part(contrasts, outcomes)` of all events, (T, *shape); `part` is called for one block at a time."""
        prior = logodds.public_probabilities(self.priors)
        batch = read_batch(self.forecasts.X[self.rows], prior, len(self.experts), self.classes, floor=self.floor)
        result = np.empty((len(self.rows), *shape))
        for rows, contrast in contrasts_in(batch):
            result[rows] = part(contrast, self.outcomes[rows])
        return result

    @property
    def present(self) -> Mask:
        """True where an expert has a forecast, (T, N)."""
        x = self.forecasts.X[self.rows]
        return np.asarray(~np.isnan(x if self.classes == 2 else x[..., 0]))

    @property
    def offset(self) -> Array:
        """Log-ratios L° of each event's prior, (T, K - 1)."""
        return np.broadcast_to(logodds.prior_log_ratios(self.priors), (len(self.rows), self.classes - 1))

    def check_binary(self, pool: str) -> None:
        """Raise an `ArgumentError` unless all events share the same two classes."""
        if self.classes != 2 or not self.has_intercept:
            have = f"have {self.classes}" if self.has_intercept else "are of events with options of their own"
            raise ArgumentError(f"the {pool} pool is for two classes, and these forecasts {have}")

    def nothing(self, assumed: str) -> bool:
        """True if no event can be learned from, with a note on what is `assumed`; adds a note on a single outcome."""
        if len(self.rows) == 0:
            what = "resolved event has forecasts" if self.forecasts.resolved.any() else "event is resolved"
            self.notes.append(Note("nothing-learned", f"no {what}, so nothing was learned: {assumed}"))
            return True
        if self.has_intercept:
            self.notes.extend(one_outcome_notes(self.forecasts.classes, self.problem.events))
        return False

    def informative(self, assumed: str) -> Mask:
        """Return True for experts whose forecasts vary, (N,); if there are none, add a note on what is `assumed`."""
        used = np.asarray(self.answered & ~self.constant)
        if not used.any():
            self.note_constant(f"as all who answered did, so {assumed}")
        return used

    @cached_property
    def constant(self) -> Mask:
        """True for experts whose forecasts never vary, (N,), about whom nothing can be learned."""
        return constant_experts(self.forecasts)

    @cached_property
    def answered(self) -> Mask:
        """True for experts with at least one forecast in the sample, (N,)."""
        return np.asarray(self.present.any(axis=0))

    def note_constant(self, what: str) -> None:
        """Add a note that names experts whose forecasts never vary; its text ends in the consequence `what`."""
        self.notes.extend(constant_notes(self.experts, self.constant, what))

    def note_unused(self, what: str) -> None:
        """Add a note that names experts without a forecast in the sample; its text ends in the consequence `what`."""
        self.notes.extend(no_forecast_notes(self.experts, ~self.answered, what))

    def given_weights(self, weights: Weights) -> Array:
        """Return `weights`, by name or in the experts' order, as an array (N,); add a note on unknown names."""
        experts = self.experts
        if not isinstance(weights, Mapping):
            array = as_numbers(weights, "weight", ArgumentError)
            if array.shape != (len(experts),):
                raise ExpertError(
                    f"there are {len(experts)} experts ({', '.join(experts[:10])}), and {array.size} weights; "
                    "give one for each, or weights by name"
                )
            return array
        unused = tuple(unknown_names(map(str, weights), experts))
        without = [name for name in experts if name not in weights]
        if without:
            other = f"; is it meant by {shown(unused[0])}?" if unused and meant(without[0], unused) else ""
            raise ExpertError(
                f"weights by name need one for each expert, and {without[0]!r} has none; 0 leaves it out{other}"
            )
        if unused:
            text = f"weights for {', '.join(map(repr, unused[:3]))} are not used: no such expert is here"
            self.notes.append(Note("unused-weights", text, len(unused)))
        return as_numbers([weights[name] for name in experts], "weight", ArgumentError)
