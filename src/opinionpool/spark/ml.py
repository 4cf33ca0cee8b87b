"""Pools as stages of pipelines of `pyspark.ml`."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasInputCols, HasLabelCol, HasProbabilityCol
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import DataFrame, functions as f

from opinionpool.errors import ArgumentError
from opinionpool.estimators.files import load
from opinionpool.pools.registry import POOLS
from opinionpool.saving.files import to_bytes
from opinionpool.spark.functions import pool, summarize
from opinionpool.streams.trained import TrainedPool


class _PoolParams(HasInputCols, HasLabelCol, HasProbabilityCol):
    """Parameters of `pyspark.ml` that the estimator and the fitted model have in common."""

    idCol: Param[str] = Param(
        Params._dummy(), "idCol", "column with the event's id, which decides on the sample", TypeConverters.toString
    )
    pool: Param[str] = Param(Params._dummy(), "pool", "name of the pool", TypeConverters.toString)
    scale: Param[Any] = Param(Params._dummy(), "scale", "levels that the columns hold", TypeConverters.identity)

    def __init__(self, *args: Any) -> None:  # noqa: ANN401
        super().__init__(*args)
        self._setDefault(labelCol="label", probabilityCol="probability", idCol="id", pool="gaussian", scale=None)


class PoolEstimator(Estimator, _PoolParams, DefaultParamsReadable, DefaultParamsWritable):
    """Estimator of a pool of forecasts of two classes, which are in columns.

    Parameters
    ----------
    inputCols : list of str
        Columns of the experts' probabilities, in [0, 1], null where missing.
    labelCol : str, default "label"
        Column of the outcome, 0 or 1, null where not resolved.
    probabilityCol : str, default "probability"
        Column that the model adds, a vector with the probabilities of 0 and 1.
    idCol : str, default "id"
        Column of the event's id, which determines whether the event is in the sample.
    pool : str, default "gaussian"
        Name of the pool, as on the command line.
    scale : str or dict, optional
        Scale of levels that columns hold instead of probabilities, such as "1-10", or by column {"ann": "no,yes"}.
    """

    @keyword_only
    def __init__(
        self,
        *,
        inputCols: list[str] | None = None,  # noqa: ARG002 - `keyword_only` keeps them
        labelCol: str = "label",  # noqa: ARG002
        probabilityCol: str = "probability",  # noqa: ARG002
        idCol: str = "id",  # noqa: ARG002
        pool: str = "gaussian",
        scale: str | dict[str, str] | None = None,  # noqa: ARG002
    ) -> None:
        super().__init__()
        if pool not in POOLS:
            raise ArgumentError(f"there is no pool {pool!r}; there are {', '.join(POOLS)}")
        self._set(**self._input_kwargs)

    def _fit(self, dataset: DataFrame) -> PoolModel:
        columns, label = self.getInputCols(), self.getLabelCol()
        event, scale = self.getOrDefault(self.idCol), self.getOrDefault(self.scale)
        stream = summarize(dataset, columns, outcome=label, event=event, scale=scale)
        name, scales = self.getOrDefault(self.pool), {expert: str(own) for expert, own in stream.scales.items()}
        model: PoolModel = self._copyValues(
            PoolModel(TrainedPool(name, stream.fit(name), stream, scales=scales or None))
        )
        return model


class PoolModel(Model, _PoolParams, MLReadable, MLWritable):
    """Model that adds the pooled probability; `trained` is the pool, as `opinionpool.load` returns it."""

    def __init__(self, trained: TrainedPool) -> None:
        super().__init__()
        self.trained = trained

    def _transform(self, dataset: DataFrame) -> DataFrame:
        column = self.getProbabilityCol()
        if column in dataset.columns:
            raise ArgumentError(f"the table has a column {column!r} already; choose another probabilityCol")
        answers = pool(dataset, self.trained, keep=dataset.columns, experts=self.getInputCols())
        p = f.col("probability")
        return answers.select(*dataset.columns, array_to_vector(f.array(1 - p, p)).alias(column))

    def write(self) -> MLWriter:
        """Return the writer of the model."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[PoolModel]:
        """Return the reader of a model that was written."""
        return _Reader()


class _Writer(MLWriter):
    """Writer of a fitted model: parameters in Spark's format, and the pool in the format of `opinionpool.save`."""

    def __init__(self, model: PoolModel) -> None:
        super().__init__()
        self._model = model

    def saveImpl(self, path: str) -> None:  # noqa: N802 - the name that pyspark calls
        DefaultParamsWriter.saveMetadata(self._model, path, self.sc)
        rows = [(to_bytes(self._model.trained).decode("ascii"),)]
        self.sparkSession.createDataFrame(rows, "pool string").coalesce(1).write.parquet(os.path.join(path, "data"))


class _Reader(MLReader[PoolModel]):
    def load(self, path: str) -> PoolModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        row = self.sparkSession.read.parquet(os.path.join(path, "data")).first()
        assert row is not None
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "pool.json")
            with open(file, "w", encoding="utf-8") as text:
                text.write(row["pool"])
            model = PoolModel(load(file))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model
