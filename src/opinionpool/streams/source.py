"""A stream as a source to learn from: its sums where these decide, else its sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import LEAST, Array
from opinionpool.errors import LearningError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.learning.problem import Problem, Seen, Sums
from opinionpool.learning.request import Request
from opinionpool.priors import laplace_prior
from opinionpool.scales import Scale
from opinionpool.streams.block import EventBlock
from opinionpool.streams.state import StreamState
from opinionpool.streams.totals import Totals
from opinionpool.text import counted


@dataclass(frozen=True, eq=False)
class StreamSource:
    """Source for learning from the events of a stream, in a state without pending changes."""

    state: StreamState
    scales: Mapping[str, Scale] = field(default_factory=dict)
    has_options: bool = False

    @property
    def experts(self) -> tuple[str, ...]:
        """N names."""
        return self.state.experts

    @property
    def classes(self) -> tuple[object, ...]:
        """K labels."""
        return self.state.classes

    @property
    def _filled(self) -> StreamState:
        """The state; LearningError if nothing was added."""
        if not self.state.experts:
            raise LearningError("nothing has been added yet, so there is nothing to learn from")
        return self.state

    def rows(self) -> tuple[Forecasts, Array, float]:
        """Events of the sample and open events; how many each stands for, (T,); and the least of these numbers.

        The least is relative to what an event counts by itself.
        """
        state = self._filled.settled()
        opened = EventBlock.of_events([state.open[name] for name in sorted(state.open)], len(state.classes))
        kept = [block for _, block in state.sample.parts]
        stands, own = np.ones((2, 0))
        if kept:
            stands, own = state.sample.stands_for(kept[0], state.totals.events, state.totals.origin)
        counts = own > 0
        least = 1.0 if state.sample.complete else float((stands[counts] / own[counts]).min(initial=np.inf))
        found = EventBlock.joined([*kept, opened]).forecasts(state.experts, state.classes)
        found = replace(found, scales=self.scales)
        return found, np.concatenate([stands, opened.weights]), least

    def _seen(self, *notes: Note) -> Seen:
        totals = self.state.totals
        return Seen(totals.events.copy(), totals.counts.copy(), self.state.present(), notes)

    def sums(self, request: Request) -> Sums | None:
        """Sums of all events, where floors allow it and, for the full structure, everybody answered everything."""
        totals = self._filled.totals
        found = totals.evidence(laplace_prior(totals.events) if totals.prior is None else totals.prior)
        if found is None or (request.kind == "full" and not found[0].complete):
            return None
        return Sums(*found, self._seen(), self.state.always_right())

    def problem(self) -> Problem:
        """The sample, open events among it.

        As outcomes are as frequent as among all events, and those that stand for least count by themselves, no
        posterior is narrower than the sample allows.
        """
        forecasts, weight, least = self.rows()
        sample, prior = self.state.sample.thinned(), self.state.totals.prior
        if not sample.complete:
            weight = np.where(forecasts.resolved, weight / least, weight)
            if prior is None and forecasts.prior is None:
                prior = laplace_prior(self.state.totals.events)
        # Weights that have decayed below a frequency are 0.
        weight = np.where(weight < LEAST, 0.0, weight)
        problem = Problem.of(forecasts, None if prior is None else logodds.public_probabilities(prior), weight)
        return replace(
            problem, whole=self._seen(*(() if sample.complete else (_sampled(len(sample), self.state.totals),)))
        )


def _sampled(kept: int, totals: Totals) -> Note:
    """The note that not all events are in the sample."""
    text = (
        f"learned from {kept:,} of {counted(int(totals.number.sum()), 'resolved event')}, which stand for all of them; "
        "more would be kept with a larger capacity"
    )
    return Note("sampled", text, kept)
