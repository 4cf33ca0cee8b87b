"""What a partition says: the state of a stream that has learned from it, which merges and travels as bytes.

It depends on the rows of the partition alone, so that a task that is run twice, or twice at once, gives the same; and
merging depends on nothing but what is merged: sums to rounding, the sample to the last bit.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opinionpool.errors import DuplicateError
from opinionpool.names import repeated
from opinionpool.spark.blocks import Block
from opinionpool.streams.stream import Stream
from opinionpool.text import shown


class Summary:
    """A stream of these settings, without a memory of which events it learned from; `experts` are known beforehand."""

    def __init__(self, experts: Sequence[str], settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        self.state = Stream(**self.settings)._state.joined(experts)[0]

    def add(self, block: Block) -> None:
        """Add the resolved events of a block."""
        facts, t = block.facts, len(block.facts)
        own = np.zeros(t, dtype=bool)
        if facts.priors is not None:
            own[:] = ~np.isnan(facts.priors.reshape(t, -1)[:, 0])
        for mine, priors in ((np.flatnonzero(~own), False), (np.flatnonzero(own), True)):
            if len(mine):
                some = facts if len(mine) == t else facts.take(mine)
                q = block.probabilities if len(mine) == t else block.probabilities[mine]
                some = some if priors else replace(some, priors=None)
                self.state = self.state.with_rows(q, block.experts, some, None)

    def merge(self, other: Summary) -> None:
        """Merge another summary into this one."""
        self.state = self.state.settled().merge(other.state.settled())

    def to_bytes(self) -> bytes:
        """Pickle of the summary, for transfer between workers."""
        self.state = self.state.settled()
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    def stream(self, *, by_name: bool) -> Stream:
        """Stream with these events, its experts in the order of their names if `by_name`.

        Raises DuplicateError if an event is in the sample twice.
        """
        state = self.state.settled()
        twice = repeated([str(name) for _, block in state.sample.parts for name in block.ids.tolist()])
        if twice is not None:
            raise DuplicateError(f"each event may have one row, and {shown(twice)} has several; keep one of them")
        stream = Stream(**self.settings)
        names = sorted(state.experts) if by_name else state.experts
        stream._state = stream._state.joined(names)[0].merge(state)
        return stream
