"""Roles of the columns of a data frame, determined before any row is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opinionpool.errors import ArgumentError, LayoutError
from opinionpool.names import check_distinct
from opinionpool.scales import Scale, own_scales, scale_of, scales_given
from opinionpool.text import listed, shown, suggestion

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Of Spark's types, by their names: what a column of each role may hold.
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_WHOLE, "float", "double", "decimal")
_WORDS = (*_WHOLE, "string", "varchar", "char", "date", "timestamp", "timestamp_ntz")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_LABELS = (*_NUMBERS, "string", "varchar", "char", "boolean")


@dataclass(frozen=True)
class Asked:
    """Names of the columns to read, as the caller gives them; see `opinionpool.spark.summarize`."""

    experts: Sequence[str] | str
    outcome: str | None = None
    event: str | None = None
    probability: str | None = None
    class_column: str | None = None
    prior: str | None = None
    time: str | None = None
    group: str | None = None
    topic: str | None = None
    keep: Sequence[str] = ()
    scale: object = None


@dataclass(frozen=True)
class Layout:
    """Meaning of the columns in the batches that workers read: standard names, experts, classes and scales."""

    # names of the experts, whose forecasts are in one column of arrays, p, which Spark passes faster than many columns;
    # None for a long table, a row for each forecast, with columns expert, probability and, if `by_class`, class
    experts: tuple[str, ...] | None
    classes: tuple[object, ...]  # K labels
    arrays: bool  # whether a forecast is an array with a probability for each class
    # whether each class has its own row (long) or column (wide; the first K numbers in p are the first expert's)
    by_class: bool
    roles: tuple[str, ...]  # roles that have a column, among event, outcome, prior, time, group and topic
    kept: tuple[str, ...]  # names of the columns that are copied to the output, k0, k1, ... in the batches
    # scales of the experts whose columns hold levels as text, by name or "*" for all
    scales: Mapping[str, Scale] = field(default_factory=dict)


def lay_out(df: DataFrame, asked: Asked, classes: tuple[object, ...]) -> tuple[DataFrame, Layout]:
    """Return the table of the columns that `asked` names, under standard names, and its layout.

    A long table is repartitioned and sorted by event. Raises LayoutError if a column is missing or has a wrong type,
    and ArgumentError if arguments do not fit together.
    """
    columns, scales = _Columns(df), {name: each.facing(classes) for name, each in scales_given(asked.scale).items()}
    chosen: list[Column] = []
    roles = []
    for role, name, kinds in (
        ("event", asked.event, _WORDS),
        ("outcome", asked.outcome, _LABELS),
        ("prior", asked.prior, (*_NUMBERS, "array")),
        ("time", asked.time, _TIMES),
        ("group", asked.group, (*_WORDS, "boolean")),
        ("topic", asked.topic, (*_WORDS, "boolean")),
    ):
        if name is not None:
            roles.append(role)
            cast = {"event": "string", "group": "string", "topic": "string", "time": "timestamp"}.get(role)
            chosen.append(columns.get(name, role, kinds, cast).alias(role))
    kept = tuple(asked.keep)
    check_distinct(kept)
    chosen += [columns.get(name, "kept", None).alias(f"k{i}") for i, name in enumerate(kept)]
    if isinstance(asked.experts, str):
        forecasts, arrays, by_class = _long(columns, asked, classes, scales)
        names = None
    else:
        names = tuple(asked.experts)
        forecasts, arrays, by_class = _wide(columns, asked, names, classes, scales)
    table = df.select(*forecasts, *chosen)
    if names is None:
        order = ["event", "expert", *["class"] * by_class]
        table = table.repartition("event").sortWithinPartitions(*order)
    if scales and (arrays or len(classes) > 2):
        raise ArgumentError("levels of scales are read where there are two classes, and a forecast is a number or word")
    return table, Layout(names, classes, arrays, by_class, tuple(roles), kept, scales)


def _long(
    columns: _Columns, asked: Asked, classes: tuple[object, ...], scales: Mapping[str, Scale]
) -> tuple[list[Column], bool, bool]:
    if asked.probability is None or asked.event is None:
        raise ArgumentError(
            f"experts={asked.experts!r} names the column of a long table that holds the experts; name the columns of "
            "its probabilities and events, too: probability= and event=; the columns of a wide table are a list"
        )
    arrays = columns.kind(asked.probability) in {"array", "vector"}
    by_class = asked.class_column is not None
    if len(classes) > 2 and not (arrays or by_class):
        raise ArgumentError(
            f"a forecast on {len(classes)} classes is a row for each class, whose column class_column= names, or an "
            "array with a probability for each class"
        )
    if arrays and by_class:
        raise ArgumentError("a forecast is an array, or a row for each class, and not both")
    forecasts = [
        columns.get(str(asked.experts), "expert", _WORDS, "string").alias("expert"),
        columns.forecast(asked.probability, arrays=arrays, levels=bool(scales)).alias("probability"),
    ]
    if asked.class_column is not None:
        forecasts.append(columns.get(asked.class_column, "class", _LABELS).alias("class"))
    return forecasts, arrays, by_class


def _wide(
    columns: _Columns,
    asked: Asked,
    names: tuple[str, ...],
    classes: tuple[object, ...],
    scales: Mapping[str, Scale],
) -> tuple[list[Column], bool, bool]:
    from opinionpool.labels import label_text

    if asked.probability is not None or asked.class_column is not None:
        raise ArgumentError(
            "probability= and class_column= are for long tables, whose experts are in one column: experts='expert'"
        )
    if not names:
        raise ArgumentError("experts= names the columns of the experts, and names none")
    check_distinct(names)
    own_scales(scales, names)
    arrays = all(columns.kind(name) in {"array", "vector"} for name in names)
    by_class = not arrays and len(classes) > 2
    cells = [f"{name}:{label_text(label)}" for name in names for label in classes] if by_class else [*names]
    if by_class and not any(columns.kind(cell) for cell in cells):
        raise LayoutError(
            f"a forecast on {len(classes)} classes is a column for each class, such as {shown(cells[0])}, or an array "
            f"with a probability for each class, and the table has columns {listed(columns.names)}"
        )
    return [columns.together(cells, arrays=arrays, scales=scales).alias("p")], arrays, by_class


class _Columns:
    """Columns of a data frame, by name, with checks of their types."""

    def __init__(self, df: DataFrame) -> None:
        self._df = df
        self.names = list(df.columns)
        self._types = {field.name: field.dataType for field in df.schema.fields}

    def kind(self, name: str) -> str:
        """Return Spark's name for the type of a column, without parameters; empty if no column has this name."""
        if name not in self._types:
            return ""
        kind = self._types[name].simpleString()
        return "vector" if kind in {"vector", "udt"} else kind.split("(")[0].split("<")[0]

    def get(self, name: str, role: str, kinds: Sequence[str] | None, cast: str | None = None) -> Column:
        """Return the column `name`, whose type must be among `kinds`, converted to the type `cast` if it is given.

        Raises LayoutError if no column or several columns have this name, or the type is another.
        """
        if not isinstance(name, str):
            raise ArgumentError(f"the {role} column is named by a text, and not by a {type(name).__name__}")
        if self.names.count(name) != 1:
            what = "several columns" if name in self.names else "no column"
            raise LayoutError(
                f"the table has {what} of the name {shown(name)}; "
                + suggestion(name, self.names, f"its columns are {listed(self.names)}")
            )
        if kinds is not None and self.kind(name) not in kinds:
            raise LayoutError(
                f"column {shown(name)} is to be the {role} and is of type {self._types[name].simpleString()}; it must "
                f"be one of {', '.join(dict.fromkeys(kinds))}: cast it first"
            )
        column = _column(self._df, name)
        return column if cast is None or self.kind(name) == cast else column.cast(cast)

    def together(self, names: Sequence[str], *, arrays: bool, scales: Mapping[str, Scale]) -> Column:
        """Return the columns `names` of forecasts as one column of arrays; all are text if any column holds levels."""
        from pyspark.sql import functions as f

        given = [self.forecast(each, arrays=arrays, levels=scale_of(scales, each) is not None) for each in names]
        return f.array(*(each.cast("string") if scales and not arrays else each for each in given))

    def forecast(self, name: str, *, arrays: bool, levels: bool = False) -> Column:
        """A column of forecasts: probabilities as doubles, arrays of them if `arrays`, levels as text if `levels`."""
        if levels and not arrays:
            return self.get(name, "level", _LABELS, "string")
        if not arrays:
            return self.get(name, "probability", _NUMBERS, "double")
        column = self.get(name, "probability", ("array", "vector"))
        if self.kind(name) == "array":
            return column.cast("array<double>")
        from pyspark.ml.functions import vector_to_array

        return vector_to_array(column)


def _column(df: DataFrame, name: str) -> Any:  # noqa: ANN401 - a Column of whichever kind of session
    """Return the column with the name `name`, which may have any characters."""
    return df["`" + name.replace("`", "``") + "`"]
