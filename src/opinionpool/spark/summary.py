"""Summary of a partition, such as a stream after learning from it; workers merge summaries in several stages.

A summary depends only on the rows of the partition, so that a task that is run again gives the same summary. The result
of merging does not depend on the order: sums up to rounding, the sample to the last bit.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.rates import Likelihoods, Rates, rates_of, with_fit
from opinionpool.analysis.shares import Binned, dependence, posterior
from opinionpool.arrays import Index
from opinionpool.errors import DuplicateError, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.fitted import FittedPanel
from opinionpool.names import places, repeated
from opinionpool.spark.blocks import Batch, Block, read_blocks
from opinionpool.spark.layout import Layout
from opinionpool.streams.stream import Stream
from opinionpool.text import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# States that one task merges, about, and those that the driver merges at most.
FAN, LAST = 16, 16

Found = TypeVar("Found")  # a `Summary` or a `Tally`: blocks are added, others merged, and it is pickled


class Summary:
    """Result of a worker's partition, to learn from: state of a stream with the partition's events, without ledger."""

    def __init__(self, experts: Sequence[str], settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        self.state = Stream(**self.settings)._state.joined(experts)[0]

    def add(self, block: Block) -> None:
        """Add the resolved events of `block` to the stream."""
        facts, all_given = block.halved()
        t = len(facts)
        own = np.zeros(t, dtype=bool)
        if facts.priors is not None:
            own[:] = ~np.isnan(facts.priors.reshape(t, -1)[:, 0])
        for mine, priors in ((np.flatnonzero(~own), False), (np.flatnonzero(own), True)):
            if len(mine):
                some = facts if len(mine) == t else facts.take(mine)
                q = all_given if len(mine) == t else all_given[mine]
                some = some if priors else replace(some, priors=None)
                self.state = self.state.with_rows(q, block.experts, some, None)

    def merge(self, other: Summary) -> None:
        """Add the events of another partition's summary."""
        self.state = self.state.settled().merge(other.state.settled())

    def __getstate__(self) -> dict[str, Any]:
        """Return the content to be sent between workers; the sample is cut down to its greatest size."""
        return {"settings": self.settings, "state": self.state.settled()}

    def stream(self, *, by_name: bool) -> Stream:
        """A stream of the events, experts ordered by name if `by_name`; a DuplicateError if an event occurs twice."""
        state = self.state.settled()
        twice = repeated([str(name) for _, block in state.sample.parts for name in block.ids.tolist()])
        if twice is not None:
            raise DuplicateError(f"each event may have one row, and {shown(twice)} has several; keep one of them")
        stream = Stream(**self.settings)
        names = sorted(state.experts) if by_name else state.experts
        stream._state = stream._state.joined(names)[0].merge(state)
        return stream


class Tally:
    """Result of a worker's partition, for rates: counts of its events by group and pooled log-odds."""

    def __init__(self, state: FittedPanel, prior: npt.ArrayLike | None) -> None:
        self.state, self.prior = state, prior
        self.names: list[str] = []
        self.parts: list[tuple[Binned, Index]] = []

    def add(self, block: Block) -> None:
        """Add the events of `block` to the counts."""
        q, y, classes = block.probabilities, block.facts.outcomes, self.state.classes
        wide = np.full((len(q), len(self.state.experts)), np.nan)
        wide[:, places(block.experts, self.state.experts)] = q
        outcomes = [None if each < 0 else classes[each] for each in y.tolist()]
        events = Likelihoods.of(
            self.state,
            Forecasts.from_array(wide, outcomes, experts=self.state.experts, classes=classes),
            self.prior,
        )
        labels = (
            [each or "(none)" for each in block.facts.groups.tolist()]
            if block.facts.groups is not None
            else ["all"] * len(q)
        )
        names = sorted(set(labels))
        group = np.array([names.index(each) for each in labels], dtype=np.intp)
        data = Binned.of(events.ratios[:, 1], group, y, len(names), answered=events.answered)
        self._join(names, [(data, np.arange(len(names)))])

    def _join(self, names: Sequence[str], parts: list[tuple[Binned, Index]]) -> None:
        self.names += [each for each in names if each not in set(self.names)]
        place = np.array([self.names.index(each) for each in names], dtype=np.intp)
        together = [*self.parts, *((data, place[rows]) for data, rows in parts)]
        self.parts = [(Binned.joined(together, len(self.names)), np.arange(len(self.names)))]

    def merge(self, other: Tally) -> None:
        """Add the counts of another partition."""
        self._join(other.names, other.parts)

    def rates(self, labels: str, level: float) -> Rates:
        """Share of events that happen in each group, with intervals of probability `level`; `labels` as in `rates`."""
        order = np.argsort(self.names)
        data = self.parts[0][0]
        data = data._replace(counts=data.counts[:, order])
        one = np.ones(len(order))
        design, together = dependence(one, order, None, len(order))
        size = data.counts.sum(axis=2).round().astype(np.intp)
        data, believed = with_fit(data, self.state.left_out, np.full(2, 0.5), 1)
        found = posterior(data, believed, design, one, together, random=labels == "random")
        names = tuple(self.names[g] for g in order)
        return rates_of(names, self.state.classes, [found], (size.sum(axis=0), size[1:].sum(axis=0)), {}, level)


def merged_over(table: DataFrame, layout: Layout, make: Callable[[], Found]) -> Found:
    """Return the merged summary of all partitions of a table from `lay_out`; `make` returns an empty summary.

    Raises the OpinionPoolError of the first partition in which one occurred.
    """
    from pyspark.sql import functions as f

    def partition(batches: Iterable[Batch]) -> Iterator[Batch]:
        return summed(batches, layout, make)

    schema = "part long, state binary"
    states = table.mapInArrow(partition, schema)
    group = f.floor(f.col("part") / FAN)
    states = states.repartition(group).mapInArrow(merge_states, schema)
    tasks = int(str(table.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    while tasks > LAST:
        tasks = -(-tasks // FAN)
        states = states.repartition(tasks, group).mapInArrow(merge_states, schema)
    rows = sorted(states.collect())
    found = _merged(bytes(row["state"]) for row in rows)
    if isinstance(found, OpinionPoolError):
        raise found
    return make() if found is None else found


def summed(batches: Iterable[Batch], layout: Layout, make: Callable[[], Any]) -> Iterator[Batch]:
    """Yield one row: the partition's number and the pickled summary (from `make`) of its rows; no row if empty."""
    from pyspark import TaskContext

    context = TaskContext.get()
    state = state_of(batches, layout, make)
    if state is not None:
        yield _row(0 if context is None else context.partitionId(), state)


def state_of(batches: Iterable[Batch], layout: Layout, make: Callable[[], Any]) -> bytes | None:
    """Return the pickled summary of the rows of a partition, or the error that occurred; None if there are no rows.

    Errors of this package are returned, as Spark would repeat a task that raises one.
    """
    state: Any = None
    try:
        for block in read_blocks(batches, layout):
            state = make() if state is None else state
            state.add(block)
        return None if state is None else pickle.dumps(state, pickle.HIGHEST_PROTOCOL)
    except OpinionPoolError as error:
        return pickle.dumps(error)


def merge_states(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield one row with the merged summary of several partitions, from rows with one summary each."""
    rows = [row for batch in batches for row in zip(*(batch.column(i).to_pylist() for i in (0, 1)), strict=True)]
    # In the order of the partitions, so that the same partitions give the same bits.
    rows.sort()
    found = _merged(state for _, state in rows)
    if found is not None:
        yield _row(rows[0][0] // FAN, pickle.dumps(found, pickle.HIGHEST_PROTOCOL))


def _merged(states: Iterable[bytes]) -> Any:  # noqa: ANN401 - a state, an error or None
    """Return the merged summary of pickled ones, or the first error among them; None if `states` is empty."""
    total: Any = None
    for state in states:
        found = pickle.loads(state)
        if isinstance(found, OpinionPoolError):
            return found
        if total is None:
            total = found
            continue
        try:
            total.merge(found)
        except OpinionPoolError as error:
            return error
    return total


def _row(part: int, state: bytes) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([part], pa.int64()), pa.array([state], pa.binary())], ["part", "state"])
