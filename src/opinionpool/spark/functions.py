"""Functions of Spark data frames: learning (`summarize`), pooling, scoring, and shares of events that happen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.analysis.rates import LABELS, Rates, learned_panel
from opinionpool.arguments import number, one_of
from opinionpool.arrays import Array, Index
from opinionpool.errors import ArgumentError, ProbabilityError
from opinionpool.learning.fitted import FittedPanel
from opinionpool.names import places, unknown_expert
from opinionpool.pools.fitted_pool import FittedPool
from opinionpool.scales import scale_of
from opinionpool.scoring.scores import brier, log_score
from opinionpool.spark import need_pyspark
from opinionpool.spark.layout import Asked, Layout, lay_out
from opinionpool.streams.stream import Stream
from opinionpool.streams.trained import TrainedPool

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from opinionpool.spark.blocks import Batch, Block


def summarize(  # noqa: PLR0913 - each names a column
    df: DataFrame,
    experts: Sequence[str] | str,
    *,
    outcome: str = "y",
    event: str = "id",
    prior: npt.ArrayLike | str | None = None,
    classes: Sequence[object] | None = None,
    probability: str | None = None,
    class_column: str | None = None,
    time: str | None = None,
    group: str | None = None,
    topic: str | None = None,
    scale: object = None,
    **settings: Any,  # noqa: ANN401 - those of a stream
) -> Stream:
    """Return a stream on the driver with sums and a sample of a table of any size, to which pools are fitted.

    Sums are over all resolved events. The sample is the one that a `Stream` in one process draws from the events: for
    each outcome the events with the least hashes of their contents, so partitions and their order have no influence.
    Unresolved events are ignored, and the stream does not know later which events it learned from.

    Parameters
    ----------
    df : DataFrame
        Wide: a row for each event. Long: a row for each forecast; the table is then repartitioned by event.
    experts : sequence of str, or str
        Wide: names of the columns of the experts' probabilities of the second class; if K > 2, columns of arrays of K
        numbers, or a column ``expert:class`` for each class. Long: name of the column of the experts' names.
    outcome, event : str
        Names of the columns of the outcome, null where not resolved, and of the event's id.
    prior : float, array_like, shape (K,), or str, optional
        Prior that all experts start from, or name of the column with a prior for each event (an array if K > 2).
        Laplace's estimate from the outcomes if not given.
    classes : sequence, default (0, 1)
        K labels.
    probability, class_column : str, optional
        Long tables: names of the columns of probabilities and, if each class has a row, of classes.
    time, group, topic : str, optional
        Names of the columns of an event's date, group and topic, which the events of the sample keep.
    scale : str, sequence or mapping, optional
        Scale of levels that columns hold instead of probabilities (two classes), as for `opinionpool.read_forecasts`.
    **settings
        `capacity`, `seed`, `floor` and `pool_floor`, as for `Stream`.

    Raises
    ------
    LayoutError
        If a column is missing or of a wrong type.
    CellError, ProbabilityError, OutcomeError, DuplicateError
        If a value in the table is invalid; names the event. A repeated event is noticed if it is in the sample.

    Examples
    --------
    ::

        stream = opinionpool.spark.summarize(df, ["ann", "bob"], outcome="y", event="id")
        pool = stream.learn()
    """
    need_pyspark()
    labels = (0, 1) if classes is None else tuple(classes)
    unknown = sorted(set(settings) - {"capacity", "seed", "floor", "pool_floor"})
    if unknown:
        raise ArgumentError(f"a summary has the settings capacity, seed, floor and pool_floor, and no {unknown[0]!r}")
    given = None if isinstance(prior, str) else prior
    settings = {**settings, "classes": labels, "prior": given}
    # What is wrong with the settings is an error here, and not of a worker.
    Stream(**settings)
    own = prior if isinstance(prior, str) else None
    asked = Asked(experts, outcome, event, probability, class_column, own, time, group, topic, scale=scale)
    table, layout = lay_out(df, asked, labels)
    from opinionpool.spark.summary import Summary, merged_over

    summary = merged_over(table, layout, partial(Summary, layout.experts or (), settings))
    stream = summary.stream(by_name=layout.experts is None)
    found = ((name, scale_of(layout.scales, name)) for name in stream.experts)
    stream.scales = {name: own for name, own in found if own is not None}
    return stream


def pool(  # noqa: PLR0913 - each names a column
    df: DataFrame,
    pool: object,
    *,
    keep: Sequence[str] = (),
    experts: Sequence[str] | str | None = None,
    event: str | None = None,
    prior: npt.ArrayLike | str | None = None,
    base_rate: npt.ArrayLike | None = None,
    level: float = 0.9,
    probability: str | None = None,
    class_column: str | None = None,
    topic: str | None = None,
    scale: object = None,
) -> DataFrame:
    """Return the pooled probability of every event.

    Parameters
    ----------
    df : DataFrame
        Wide or long, as for `summarize`.
    pool : fitted pool
        Result of a fit of a stream or an estimator, or of `opinionpool.load`.
    keep : sequence of str
        Names of columns to copy to the result. In a long table all rows of an event must have equal values there.
    experts : sequence of str, or str, optional
        Wide: names of the experts, which are their columns; all experts of the pool if not given. Experts of the pool
        without a column are absent. Long: name of the column of the experts' names.
    event : str, optional
        Name of the column of ids; required for long tables.
    prior : float, array_like, shape (K,), or str, optional
        As for `summarize`; the prior of the fit if not given, or where the column is null.
    base_rate : float or array_like, shape (K,), optional
        Frequency of such events where the answers are used, if it differs from the prior.
    level : float
        Probability of the interval.
    probability, class_column : str, optional
        As for `summarize`.
    topic : str, optional
        Name of the column of topics, null if an event has none; required by a pool that has learned about topics.
    scale : str, sequence or mapping, optional
        As for `summarize`; the scale of the saved pool or estimator if not given.

    Returns
    -------
    DataFrame
        A row for each event: the columns `keep`, then `probability` (of the second class; an array if K > 2) and the
        ends of its interval, `low` and `high`, which are null if the pool has no interval.

    Raises
    ------
    LayoutError, ExpertError, ArgumentError
        If columns, experts and pool do not fit together, or the pool has learned how forecasts lose value with age.
        An invalid value in the table is an error of the query that reads the rows.
    """
    need_pyspark()
    trained = TrainedPool.of(pool)
    state, classes = trained.learned, trained.classes
    if not isinstance(prior, str):
        if prior is None and state.prior is None:
            raise ProbabilityError(
                "this pool was learned with a prior for each event, so pooling needs one too: prior= names its column"
            )
        if prior is not None:
            logodds.class_probabilities(prior, len(classes))
    if not 0 < level < 1:
        raise ArgumentError(f"a level must lie strictly between 0 and 1, and it is {level!r}")
    _check_about(state, topic)
    names = trained.experts if experts is None else experts
    column = prior if isinstance(prior, str) else None
    levels = trained.scales if scale is None else scale
    asked = Asked(names, None, event, probability, class_column, column, topic=topic, keep=keep, scale=levels)
    table, layout = lay_out(df, asked, classes)
    for name in layout.experts or ():
        if name not in trained.experts:
            raise unknown_expert(name, trained.experts)
    answer = partial(
        _answers, layout=layout, state=state, prior=None if column else prior, base_rate=base_rate, level=level
    )
    return table.mapInArrow(answer, _answer_schema(df, layout))


def _check_about(state: FittedPanel | FittedPool, topic: str | None) -> None:
    """Raise an ArgumentError if a pool needs topics or times that are missing, or gets topics but has learned none."""
    panel = state if isinstance(state, FittedPanel) else None
    if panel is not None and panel.recency is not None:
        raise ArgumentError(
            "this pool has learned how fast forecasts go stale, and tables of Spark have no times of forecasts; use "
            "one that was learned without times, as summarize(...) learns it, or --column time= on the command line"
        )
    topics = None if panel is None else panel.topics
    if topics is not None and topic is None:
        raise ArgumentError(
            "this pool has learned how topics differ; topic= names the column with each event's topic, null where it "
            "has none, and new topics get what is common to all"
        )
    if topic is not None and topics is None:
        raise ArgumentError(
            f"this pool has learned nothing about topics; leave out topic={topic!r}, or learn with topics"
        )


def _answer_schema(df: DataFrame, layout: Layout) -> Any:  # noqa: ANN401 - a StructType
    from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType

    taken = sorted({"probability", "low", "high"} & set(layout.kept))
    if taken:
        raise ArgumentError(f"the answers have a column {taken[0]!r} of their own: rename the one that is kept")
    kind = DoubleType() if len(layout.classes) == 2 else ArrayType(DoubleType())
    kept = [StructField(name, df.schema[name].dataType) for name in layout.kept]
    return StructType([*kept, *(StructField(name, kind) for name in ("probability", "low", "high"))])


def _answers(
    batches: Iterable[Batch],
    *,
    layout: Layout,
    state: FittedPanel | FittedPool,
    prior: npt.ArrayLike | None,
    base_rate: npt.ArrayLike | None,
    level: float,
) -> Iterator[Batch]:
    """Yield batches with the pooled probabilities and intervals of the events in the batches of a partition."""
    import pyarrow as pa

    from opinionpool.spark.blocks import read_blocks

    for block in read_blocks(batches, layout):
        columns = places(block.experts, state.experts)
        q = block.probabilities
        if columns.tolist() != list(range(len(state.experts))):
            q = np.full((len(q), len(state.experts), *q.shape[2:]), np.nan)
            q[:, columns] = block.probabilities
        own = _own_priors(block, state) if block.facts.priors is not None else prior
        topics = None if block.facts.topics is None else np.array([each or "" for each in block.facts.topics], object)
        p = state.pool(q, own, base_rate, topics)
        found = [p, *_interval(state, q, own, base_rate, level, topics)]
        arrays = [*block.kept.columns, *(_column(p) for p in found)]
        yield pa.RecordBatch.from_arrays(arrays, [*layout.kept, "probability", "low", "high"])


def _own_priors(block: Block, state: FittedPanel | FittedPool) -> Array:
    """Return the prior of each event, or the prior of the fit where the column is null."""
    assert block.facts.priors is not None
    own = block.facts.priors.copy()
    blank = np.isnan(own.reshape(len(own), -1)[:, 0])
    if blank.any():
        if state.prior is None:
            name = block.facts.ids[int(np.flatnonzero(blank)[0])]
            on = "an event" if name is None else f"event {name!r}"
            raise ProbabilityError(
                f"this pool was learned with a prior for each event, so pooling needs one too, and {on} has none"
            )
        own[blank] = logodds.public_probabilities(state.prior)
    return own


def _interval(
    state: FittedPanel | FittedPool,
    q: Array,
    prior: npt.ArrayLike | None,
    base_rate: npt.ArrayLike | None,
    level: float,
    topics: npt.NDArray[np.object_] | None,
) -> tuple[Array, Array]:
    """Return both ends of the answers' intervals; NaN without a posterior, or without an informative forecast."""
    if not isinstance(state, FittedPanel) or state.posterior is None:
        none = np.full((len(q), *q.shape[2:]), np.nan)
        return none, none
    answered = ~np.isnan(q if q.ndim == 2 else q[..., 0])
    known = (answered & state.panel.informative).any(axis=1)
    low, high = state.interval(q, prior, base_rate, level, topics)
    low[~known] = high[~known] = np.nan
    return low, high


def _column(p: Array) -> Any:  # noqa: ANN401 - a pyarrow.Array
    """Return an Arrow column of the probabilities (or arrays of probabilities) `p`, null where NaN."""
    import pyarrow as pa

    if p.ndim == 1:
        return pa.array(p, from_pandas=True)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(p).ravel()), p.shape[1])
    missing = np.isnan(p).any(axis=1)
    lists = lists.cast(pa.list_(pa.float64()))
    return pa.compute.if_else(pa.array(~missing), lists, pa.scalar(None, lists.type)) if missing.any() else lists


def scores(
    df: DataFrame,
    experts: Sequence[str] | str,
    *,
    outcome: str = "y",
    classes: Sequence[object] | None = None,
    scoring_prior: npt.ArrayLike | None = None,
    group: str | None = None,
    event: str | None = None,
    probability: str | None = None,
    class_column: str | None = None,
    scale: object = None,
) -> DataFrame:
    """Return the mean scores of the experts, or of any other columns of probabilities, as `pool` makes them.

    Parameters
    ----------
    df : DataFrame
        Wide or long, as for `summarize`.
    experts : sequence of str, or str
        Wide: names of the columns to be scored. Long: name of the column of the experts' names.
    outcome, classes, group, event, probability, class_column, scale
        As for `summarize`. If `group` is given, there are scores for each group.
    scoring_prior : float or array_like, shape (K,), optional
        As for `opinionpool.log_score`; uniform if not given.

    Returns
    -------
    DataFrame
        Columns `expert`; `group` if given; `events`, the number of resolved events with a forecast; `log_score`, the
        mean `opinionpool.log_score`; `brier`, the mean `opinionpool.brier_score` (K > 2: `opinionpool.brier_sum`).
    """
    need_pyspark()
    labels = (0, 1) if classes is None else tuple(classes)
    if scoring_prior is not None:
        logodds.class_probabilities(scoring_prior, len(labels), "scoring prior")
    asked = Asked(experts, outcome, event, probability, class_column, group=group, scale=scale)
    table, layout = lay_out(df, asked, labels)
    from pyspark.sql import functions as f

    sums = table.mapInArrow(
        partial(_score_sums, layout=layout, scoring_prior=scoring_prior),
        "expert string, group string, events long, log_score double, brier double",
    )
    by = ["expert", *["group"] * (group is not None)]
    total = f.sum("events")
    return (
        sums.groupBy(*by)
        .agg(
            total.alias("events"),
            (f.sum("log_score") / total).alias("log_score"),
            (f.sum("brier") / total).alias("brier"),
        )
        .orderBy(*by)
    )


def _score_sums(batches: Iterable[Batch], *, layout: Layout, scoring_prior: npt.ArrayLike | None) -> Iterator[Batch]:
    """Yield rows of sums: experts' scores and numbers of events, one row for each block of events, group and expert."""
    import pyarrow as pa

    from opinionpool.spark.blocks import read_blocks

    for block in read_blocks(batches, layout):
        y = np.where(block.facts.outcomes < 0, np.nan, block.facts.outcomes)
        groups = np.full(len(y), None, dtype=object) if block.facts.groups is None else block.facts.groups
        names, group = _numbered(groups)
        rows: dict[str, list[Any]] = {name: [] for name in ("expert", "group", "events", "log_score", "brier")}
        for i, expert in enumerate(block.experts):
            p = block.probabilities[:, i]
            each = log_score(p, y, scoring_prior), brier(p, y)
            known = ~np.isnan(each[0])
            count = np.bincount(group[known], minlength=len(names))
            found = [np.bincount(group[known], weights=score[known], minlength=len(names)) for score in each]
            some = np.flatnonzero(count)
            rows["expert"] += [expert] * len(some)
            rows["group"] += [names[g] for g in some]
            rows["events"] += count[some].tolist()
            rows["log_score"] += found[0][some].tolist()
            rows["brier"] += found[1][some].tolist()
        kinds = [pa.string(), pa.string(), pa.int64(), pa.float64(), pa.float64()]
        arrays = [pa.array(values, kind) for values, kind in zip(rows.values(), kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, [*rows])


def _numbered(labels: npt.NDArray[np.object_]) -> tuple[list[Any], Index]:
    """Return the distinct labels as a list, and for each element of `labels` its position in that list."""
    place: dict[Any, int] = {}
    places_of = np.array([place.setdefault(label, len(place)) for label in labels.tolist()], dtype=np.intp)
    return [*place], places_of


def rates(
    df: DataFrame,
    pool: object,
    by: str,
    *,
    outcome: str | None = None,
    experts: Sequence[str] | str | None = None,
    event: str | None = None,
    probability: str | None = None,
    prior: float | None = None,
    labels: str = "random",
    level: float = 0.9,
) -> Rates:
    """Return shares of events that happen, by group, as `opinionpool.rates`, without the other estimators.

    Parameters
    ----------
    df : DataFrame
        Wide or long, as for `summarize`.
    pool : fitted pool of two classes with a posterior
    by : str
        Name of the column of groups.
    outcome : str, optional
        Name of the column of outcomes, null where not resolved; if not given all events are open.
    experts, event, probability
        As for `opinionpool.spark.pool`.
    prior : float, optional
        Prior of all events; the prior of the fit if not given.
    labels, level
        As for `opinionpool.rates`.

    Raises
    ------
    ArgumentError, LearningError
        If the pool has more than two classes or no posterior.
    """
    need_pyspark()
    one_of(labels, "labels", LABELS)
    level, trained = number(level, "level", 0, 1, between=True), TrainedPool.of(pool)
    state = learned_panel(trained.learned)
    if len(state.classes) > 2:
        raise ArgumentError(f"rates of tables of Spark are of two classes, and the pool has {len(state.classes)}")
    names = trained.experts if experts is None else experts
    asked = Asked(names, outcome, event, probability, group=by, scale=trained.scales)
    table, layout = lay_out(df, asked, trained.classes)
    from opinionpool.spark.summary import Tally, merged_over

    return merged_over(table, layout, partial(Tally, state, prior)).rates(labels, level)
