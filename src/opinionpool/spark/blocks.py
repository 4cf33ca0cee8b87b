"""Conversion of batches of Arrow columns, as Spark passes them to workers, to blocks of events x experts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import CellError, DuplicateError, LayoutError, OpinionPoolError, OutcomeError, ProbabilityError
from opinionpool.labels import UNRESOLVED, halves, label_text
from opinionpool.logodds import normalised
from opinionpool.scales import Scale, scale_of, without_ties
from opinionpool.spark.layout import Layout
from opinionpool.streams.block import EventBlock
from opinionpool.text import listed, shown

# Numbers in a block of a long table, of which not every expert need have answered.
CELLS = 1 << 20

Batch: TypeAlias = Any  # a pyarrow.RecordBatch; pyarrow has no types


class Block(NamedTuple):
    """Block of T events with all their forecasts."""

    experts: tuple[str, ...]  # N names
    probabilities: Array  # (T, N), or (T, N, K) when K > 2; NaN where missing
    facts: EventBlock  # the events, without their forecasts
    kept: Batch  # columns that are copied to the output, a row for each event
    ties: Mask | None = None  # (T,), True if the outcome is half of each class; None if outcomes have no ties

    def halved(self) -> tuple[EventBlock, Array]:
        """Return events and forecasts, with each tied event as two events of weight 1/2, one for each outcome."""
        if self.ties is None or not self.ties.any():
            return self.facts, self.probabilities
        event, outcomes, share = halves(self.facts.outcomes, self.ties)
        ids, second = self.facts.ids[event], np.append(False, event[1:] == event[:-1])
        ids[second] = [each and f"{each} ½" for each in ids[second].tolist()]
        return replace(self.facts.take(event), ids=ids, outcomes=outcomes, weights=share), self.probabilities[event]


def read_blocks(batches: Iterable[Batch], layout: Layout) -> Iterator[Block]:
    """Yield blocks of whole events from batches with the columns of `lay_out`; long tables are sorted by event.

    Invalid values raise a CellError, ProbabilityError, OutcomeError or DuplicateError, which names event and value.
    """
    if layout.experts is not None:
        return (_wide_block(batch, layout) for batch in batches if batch.num_rows)
    return (block for rows in _whole_events(batches) for block in _long_blocks(rows, layout))


def _wide_block(batch: Batch, layout: Layout) -> Block:
    assert layout.experts is not None
    t, n, k = batch.num_rows, len(layout.experts), len(layout.classes)
    events = _events(batch, layout)
    cells = batch.column("p").flatten()
    if layout.arrays:
        q = _array_column(cells, k, np.repeat(events, n).tolist())
    elif layout.scales:
        q = _levels(cells.to_pylist(), list(layout.experts), np.tile(np.arange(n), t), layout.scales)
    else:
        q = _floats(cells)
    q = q.reshape((t, n, k) if layout.by_class or layout.arrays else (t, n))
    q = checked(q, events, layout.experts, k)
    return _block(batch, layout, events, layout.experts, q, np.arange(t), np.arange(t))


def _whole_events(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the rows of a long table, ordered by event, in batches that do not split an event."""
    waiting: list[Batch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        events = batch.column("event")
        # Where the last event of the batch begins.
        last = events[batch.num_rows - 1]
        other = np.flatnonzero(~_equal(events, last))
        cut = int(other[-1]) + 1 if len(other) else 0
        if waiting and not cut and waiting[-1].column("event")[0].as_py() != events[0].as_py():
            yield _joined(waiting)
            waiting = []
        if cut:
            yield _joined([*waiting, batch.slice(0, cut)])
            waiting = []
        waiting.append(batch.slice(cut))
    if waiting:
        yield _joined(waiting)


def _long_blocks(rows: Batch, layout: Layout) -> Iterator[Block]:
    """Yield blocks from `rows` of whole events, ordered by event; blocks are smaller if experts are many."""
    events = rows.column("event")
    if events.null_count:
        raise CellError("a row has no event id; fill it, or leave such rows out with a filter")
    changed = pc.not_equal(events.slice(1), events.slice(0, len(events) - 1)).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], np.flatnonzero(changed) + 1])
    experts = rows.column("expert").dictionary_encode()
    size = max(1, len(experts.dictionary)) * len(starts) * len(layout.classes)
    if len(starts) > 1 and size > CELLS:
        half = int(starts[len(starts) // 2])
        yield from _long_blocks(rows.slice(0, half), layout)
        yield from _long_blocks(rows.slice(half), layout)
        return
    yield _long_block(rows, layout, starts, experts)


def _long_block(rows: Batch, layout: Layout, starts: Index, experts: Any) -> Block:  # noqa: ANN401
    t, k = len(starts), len(layout.classes)
    event = np.repeat(np.arange(t), np.diff([*starts, rows.num_rows]))
    ids = rows.column("event").take(pa.array(starts)).to_pylist()
    names = sorted(experts.dictionary.to_pylist())
    place = np.array([names.index(name) for name in experts.dictionary.to_pylist()], dtype=np.intp)
    given = experts.indices.is_valid().to_numpy(zero_copy_only=False)
    expert = place[experts.indices.fill_null(0).to_numpy()] if names else np.zeros(rows.num_rows, np.intp)
    column = rows.column("probability")
    if layout.scales:
        values = _levels(column.to_pylist(), names, np.where(given, expert, -1), layout.scales)
    else:
        values = _array_column(column, k, [ids[i] for i in event]) if layout.arrays else _floats(column)
    blank = np.isnan(values.reshape(len(event), -1)).all(axis=1)
    if (~given & ~blank).any():
        raise CellError(f"a forecast on event {shown(ids[event[np.flatnonzero(~given & ~blank)[0]]])} has no expert")
    cells = event * max(1, len(names)) + expert
    place_of = (event, expert)
    if layout.by_class:
        label = _codes(rows.column("class"), layout.classes, [ids[i] for i in event], "class")
        if (label < 0).any():
            raise CellError(f"a forecast on event {shown(ids[event[np.flatnonzero(label < 0)[0]]])} has no class")
        cells, place_of = cells * k + label, (event, expert, label)  # type: ignore[assignment]
    _refuse_repeated(cells[given], event[given], expert[given], ids, names)
    shape = (t, len(names), k) if layout.by_class or values.ndim > 1 else (t, len(names))
    q = np.full(shape, np.nan)
    q[tuple(index[given] for index in place_of)] = values[given]
    q = checked(q, ids, names, k)
    return _block(rows, layout, ids, tuple(names), q, event, starts)


def _refuse_repeated(cells: Index, event: Index, expert: Index, ids: list[str], names: list[str]) -> None:
    order = np.argsort(cells, kind="stable")
    twice = np.flatnonzero(np.diff(cells[order]) == 0)
    if len(twice):
        row = order[twice[0]]
        raise DuplicateError(
            f"each expert may have one forecast per event, and expert {names[expert[row]]!r} has several on event "
            f"{ids[event[row]]!r}; keep the one that counts, for example the last one, with a window function"
        )


def _block(
    rows: Batch, layout: Layout, ids: list[str], names: tuple[str, ...], q: Array, event: Index, starts: Index
) -> Block:
    """The block of events in `rows`; `event` is each row's event, and `starts` has the first row of each event."""
    t = len(starts)
    outcomes, ties, columns = np.full(t, UNRESOLVED), None, dict[str, Any]()
    if "outcome" in layout.roles:
        given, tied = without_ties(rows.column("outcome"), layout.scales)
        given = given if tied is None else pa.array(given.tolist(), pa.string())
        codes = _codes(given, layout.classes, [ids[i] for i in event] if ids else [], "outcome")
        codes = codes if tied is None else np.where(tied, len(layout.classes), codes)
        outcomes = codes[_one_per_event(codes, codes == UNRESOLVED, event, starts, ids, "outcomes")]
        ties = None if tied is None else outcomes == len(layout.classes)
        outcomes = outcomes if ties is None else np.where(ties, UNRESOLVED, outcomes)
    if "time" in layout.roles:
        stamps = rows.column("time").cast(pa.timestamp("us")).to_numpy(zero_copy_only=False)
        stamps = stamps.astype("datetime64[us]")
        columns["times"] = stamps[_one_per_event(stamps, np.isnat(stamps), event, starts, ids, "times")]
    for role in {"group", "topic"} & {*layout.roles}:
        labels = _alike(rows.column(role), event, starts, ids, role).to_numpy(zero_copy_only=False)
        columns[f"{role}s"] = labels.astype(object)
    if "prior" in layout.roles:
        columns["priors"] = _priors(rows.column("prior"), layout, ids, event, starts)
    names_of = np.array(ids, dtype=object) if ids else np.full(t, None, dtype=object)
    facts = EventBlock.facts(names_of, outcomes, np.ones(t), q, **columns)
    kept = [_alike(rows.column(f"k{i}"), event, starts, ids, name) for i, name in enumerate(layout.kept)]
    return Block(names, q, facts, pa.RecordBatch.from_arrays(kept, [f"k{i}" for i in range(len(kept))]), ties)


def _priors(column: Any, layout: Layout, ids: list[str], event: Index, starts: Index) -> Array:  # noqa: ANN401
    k = len(layout.classes)
    if not pa.types.is_list(column.type):
        if k > 2:
            raise LayoutError(f"the priors of {k} classes are an array for each event")
        values = _floats(column)
        return np.asarray(values[_one_per_event(values, np.isnan(values), event, starts, ids, "priors")])
    values = _array_column(column, k, [ids[i] for i in event] if ids else [])
    flat = np.ascontiguousarray(values).view(f"V{8 * k}")[:, 0]
    found = values[_one_per_event(flat, np.asarray(np.isnan(values).any(axis=1)), event, starts, ids, "priors")]
    return np.asarray(found[:, 1] if k == 2 else found)


def _one_per_event(
    values: npt.NDArray[Any], blank: npt.NDArray[np.bool_], event: Index, starts: Index, ids: list[str], what: str
) -> Index:
    """For each event its first row with a value, or if it has none its first row; a CellError if values differ."""
    first = starts.copy()
    if len(starts) == len(event):
        return first
    known = np.flatnonzero(~blank)
    owner, where = np.unique(event[known], return_index=True)
    first[owner] = known[where]
    differing = known[values[known] != values[first[event[known]]]]
    if len(differing):
        raise CellError(f"rows about event {shown(ids[event[differing[0]]])} have different {what}")
    return first


def _alike(column: Any, event: Index, starts: Index, ids: list[str], name: str) -> Any:  # noqa: ANN401
    """Return one value of `column` for each event; a CellError, naming the column, if an event's rows differ in it."""
    if len(starts) == len(event):
        return column
    try:
        codes = column.dictionary_encode().indices.fill_null(-1).to_numpy()
    except pa.ArrowNotImplementedError:
        raise LayoutError(
            f"column {shown(name)} of a long table, of type {column.type}, cannot be reduced to a row for each event; "
            "join it on afterwards"
        ) from None
    first = _one_per_event(codes, np.asarray(codes < 0), event, starts, ids, f"values in column {shown(name)}")
    return column.take(pa.array(first))


def checked(q: Array, events: list[str], experts: tuple[str, ...] | list[str], classes: int) -> Array:
    """Return `q`, checked to be NaN or in [0, 1], with sum 1 over classes: (T, N) for the second of two, or (T, N, K).

    Otherwise a ProbabilityError names the first event and expert with such a forecast.
    """
    bad = (q < 0) | (q > 1)
    if bad.any():
        t, i, *_ = (int(each) for each in np.argwhere(bad)[0])
        value = float(q[tuple(np.argwhere(bad)[0])])
        hint = "; a percentage must be divided by 100 first" if 1 < value <= 100 else ""
        on = f" on event {shown(events[t])}" if events else ""
        raise ProbabilityError(
            f"each probability must lie in [0, 1], and that of expert {shown(experts[i])}{on} is {value:.15g}{hint}"
        )
    if q.ndim == 2 or q.size == 0:
        return q if q.ndim == 2 or classes > 2 else q[..., 1]
    try:
        whole, _ = normalised(q)
    except OpinionPoolError:
        for t in range(len(q)):
            for i in range(q.shape[1]):
                try:
                    normalised(q[t, i])
                except OpinionPoolError as error:
                    on = f" on event {shown(events[t])}" if events else ""
                    raise ProbabilityError(f"expert {shown(experts[i])}{on}: {error}") from None
        raise
    return np.asarray(whole[..., 1] if classes == 2 else whole)


def _events(batch: Batch, layout: Layout) -> list[str]:
    """Return the event id of each row; an empty list if the table has no ids."""
    if "event" not in layout.roles:
        return []
    column = batch.column("event")
    if column.null_count:
        raise CellError(f"{column.null_count} rows have no event id; fill it, or leave such rows out with a filter")
    return list(column.to_pylist())


def _levels(words: list[str | None], names: list[str], expert: Index, scales: Mapping[str, Scale]) -> Array:
    """Probabilities of `words`: levels on the scale of the row's expert, or numbers if the expert has no scale."""
    given, values = np.array(words, dtype=object), np.full(len(words), np.nan)
    for i, name in enumerate(names):
        own, scale = expert == i, scale_of(scales, name)
        values[own] = given[own].astype(np.float64) if scale is None else scale.probabilities(given[own], name)
    return values


def _floats(column: Any) -> Array:  # noqa: ANN401
    """Return a column as float64 numbers, NaN where null."""
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _array_column(column: Any, classes: int, events: list[str]) -> Array:  # noqa: ANN401
    """Return a column of arrays of K numbers as an array (rows, K), NaN where null."""
    sizes = column.value_lengths()
    given = column.is_valid().to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(given & (sizes.fill_null(classes).to_numpy() != classes))
    if len(wrong):
        on = f" on event {shown(events[wrong[0]])}" if events else ""
        raise CellError(f"an array{on} has {sizes[int(wrong[0])]} values, and there are {classes} classes")
    values = np.full((len(column), classes), np.nan)
    values[given] = _floats(column.drop_null().flatten()).reshape(-1, classes)
    return values


def _codes(column: Any, classes: tuple[object, ...], events: list[str], what: str) -> Index:  # noqa: ANN401
    """Labels as positions in `classes`, -1 if null or -1; an OutcomeError names the first label that is no class."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
        kind = column.type
    words = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not words and all(isinstance(label, int | float | np.number | np.bool_) for label in classes):
        values = _floats(column)
        codes = np.full(len(values), UNRESOLVED)
        for code, label in enumerate(classes):
            codes[values == float(label)] = code  # type: ignore[arg-type]
        blank = np.isnan(values) | (values == UNRESOLVED)
    else:
        texts = [label_text(label) for label in classes]
        given = pa.array([None if each is None else label_text(each) for each in column.to_pylist()], pa.string())
        codes = pc.index_in(given, pa.array(texts)).fill_null(UNRESOLVED).to_numpy().astype(np.intp)
        blank = pc.fill_null(pc.equal(given, str(UNRESOLVED)), True).to_numpy(zero_copy_only=False)
    strange = np.flatnonzero((codes == UNRESOLVED) & ~blank)
    if len(strange):
        on = f" of event {shown(events[strange[0]])}" if events else ""
        raise OutcomeError(
            f"each {what} must be one of {listed(classes)}, and the one{on} is "
            f"{shown(column[int(strange[0])].as_py())}; give the labels with classes=[...]"
        )
    return codes


def _equal(column: Any, value: Any) -> npt.NDArray[np.bool_]:  # noqa: ANN401
    if not value.is_valid:
        return np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    return np.asarray(pc.equal(column, value).fill_null(False).to_numpy(zero_copy_only=False))


def _joined(parts: list[Batch]) -> Batch:
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)
