"""One state for each partition, merged in stages by the workers, so that the driver gets a few."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from opinionpool import errors
from opinionpool.errors import OpinionPoolError
from opinionpool.spark.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from opinionpool.spark.blocks import Batch

# States that one task merges, about, and those that the driver merges at most.
FAN, LAST = 16, 16


Found = TypeVar("Found")  # a `Summary` or a `Tally`: blocks are added, others merged, and it travels as bytes


class Failure(NamedTuple):
    """Error of this package on a worker, raised on the driver; Spark does not retry, as it would come again."""

    kind: str
    text: str

    def error(self) -> OpinionPoolError:
        """The error."""
        kind: type[OpinionPoolError] = getattr(errors, self.kind)
        return kind(self.text)


def merged_over(table: DataFrame, layout: Layout, make: Callable[[], Found]) -> Found:
    """Merged state of all partitions of a table that `lay_out` gave, each begun by `make`.

    Raises the OpinionPoolError that a worker met first, in the order of the partitions.
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
    if isinstance(found, Failure):
        raise found.error()
    return make() if found is None else found


def summed(batches: Iterable[Batch], layout: Layout, make: Callable[[], Any]) -> Iterator[Batch]:
    """The state of a partition, as one row with its number; none if the partition has no rows."""
    from pyspark import TaskContext

    context = TaskContext.get()
    state = state_of(batches, layout, make)
    if state is not None:
        yield _row(0 if context is None else context.partitionId(), state)


def state_of(batches: Iterable[Batch], layout: Layout, make: Callable[[], Any]) -> bytes | None:
    """State of the rows of a partition, or a `Failure`, as bytes; None if there are no rows."""
    from opinionpool.spark.blocks import read_blocks

    summary = None
    try:
        for block in read_blocks(batches, layout):
            summary = make() if summary is None else summary
            summary.add(block)
        return None if summary is None else summary.to_bytes()
    except OpinionPoolError as error:
        return _failed(error)


def merge_states(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the merged state of several partitions, as one row."""
    rows = [row for batch in batches for row in zip(*(batch.column(i).to_pylist() for i in (0, 1)), strict=True)]
    # In the order of the partitions, so that the same partitions give the same bits.
    rows.sort()
    found = _merged(state for _, state in rows)
    if found is not None:
        yield _row(rows[0][0] // FAN, pickle.dumps(found) if isinstance(found, Failure) else found.to_bytes())


def _merged(states: Iterable[bytes]) -> Any:  # noqa: ANN401 - a State, a Failure or None
    """Merged state, or the first failure; None if there are no states."""
    total: Any = None
    for state in states:
        found = pickle.loads(state)
        if isinstance(found, Failure):
            return found
        if total is None:
            total = found
            continue
        try:
            total.merge(found)
        except OpinionPoolError as error:
            return pickle.loads(_failed(error))
    return total


def _failed(error: OpinionPoolError) -> bytes:
    return pickle.dumps(Failure(type(error).__name__, str(error)))


def _row(part: int, state: bytes) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([part], pa.int64()), pa.array([state], pa.binary())], ["part", "state"])
