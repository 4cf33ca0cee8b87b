"""A stream as a source to learn from: its sums where these decide, else its sample."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import LEAST
from opinionpool.errors import LearningError, Note
from opinionpool.learning.problem import Problem, Seen, Sums
from opinionpool.learning.request import Request
from opinionpool.priors import laplace_prior
from opinionpool.streams.state import StreamState
from opinionpool.text import counted


@dataclass(frozen=True, eq=False)
class StreamSource:
    """What a stream knows of resolved events."""

    state: StreamState
    has_options: bool = False

    @property
    def experts(self) -> tuple[str, ...]:
        """N names."""
        return tuple(self.state.experts)

    @property
    def classes(self) -> tuple[object, ...]:
        """K labels."""
        return tuple(self.state.classes)

    def _settled(self) -> StreamState:
        """The state with all that was added.

        Raises
        ------
        LearningError
            If that is nothing.
        """
        self.state.flush()
        if not self.state.experts:
            raise LearningError("nothing has been added yet, so there is nothing to learn from")
        return self.state

    def _seen(self, *notes: Note) -> Seen:
        tally = self.state.tally
        return Seen(tally.events.copy(), tally.counts.copy(), self.state.present(), notes)

    def sums(self, request: Request) -> Sums | None:
        """Sums of all events, where floors allow it and, for the full structure, everybody answered everything."""
        tally = self._settled().tally
        found = tally.evidence(laplace_prior(tally.events) if tally.prior is None else tally.prior)
        if found is None or (request.kind == "full" and not found[0].complete):
            return None
        return Sums(*found, self._seen(), self.state.always_right())

    def problem(self) -> Problem:
        """The sample, open events among it.

        As outcomes are as frequent as among all events, and those that stand for least count by themselves, no
        posterior is narrower than the sample allows.
        """
        state = self._settled()
        forecasts, weight, least = state.sample()
        prior, complete = state.tally.prior, state.reservoir.complete
        if not complete:
            weight = np.where(forecasts.resolved, weight / least, weight)
            if prior is None and forecasts.prior is None:
                prior = laplace_prior(state.tally.events)
        # Weights that have decayed below a frequency are 0.
        weight = np.where(weight < LEAST, 0.0, weight)
        problem = Problem.of(forecasts, None if prior is None else logodds.public_probabilities(prior), weight)
        return replace(problem, whole=self._seen(*(() if complete else (_sampled(state),))))


def _sampled(state: StreamState) -> Note:
    """That not all events are in the sample."""
    number = int(state.tally.number.sum())
    text = (
        f"learned from {len(state.reservoir):,} of {counted(number, 'resolved event')}, which stand for all of them; "
        "more would be kept with a larger capacity"
    )
    return Note("sampled", text, len(state.reservoir))
