"""Pools as stages of pipelines."""

import numpy as np
import pandas as pd
import pytest
from pyspark.ml import Pipeline, PipelineModel

import opinionpool as op
from opinionpool.spark import PoolEstimator, PoolModel


@pytest.fixture(scope="module")
def table(spark):
    X, y = op.Panel.exchangeable(3, correlation=0.4, accuracy=0.6).simulate(500, seed=1)
    frame = pd.DataFrame(X, columns=["ann", "bob", "cy"]).assign(label=y, id=[f"e{i}" for i in range(500)])
    return spark.createDataFrame(frame), X, y


def test_a_pipeline_learns_answers_and_is_kept(spark, table, tmp_path):
    df, X, y = table
    estimator = PoolEstimator(inputCols=["ann", "bob", "cy"], probabilityCol="pooled")
    estimator.write().overwrite().save(str(tmp_path / "estimator"))
    assert PoolEstimator.load(str(tmp_path / "estimator")).getProbabilityCol() == "pooled"
    model = Pipeline(stages=[estimator]).fit(df)
    model.write().overwrite().save(str(tmp_path / "model"))
    again = PipelineModel.load(str(tmp_path / "model"))
    forecasts = op.Forecasts.from_array(X, y, events=[f"e{i}" for i in range(500)], experts=["ann", "bob", "cy"])
    p = op.GaussianPool().fit(forecasts).state_.pool(X)
    expected = np.stack([1 - p, p], axis=1)
    for each in (model, again):
        answers = each.transform(df)
        assert answers.columns == ["ann", "bob", "cy", "label", "id", "pooled"]
        rows = answers.toPandas().set_index("id").loc[list(forecasts.events)]
        np.testing.assert_allclose(np.stack([v.toArray() for v in rows["pooled"]]), expected, rtol=0, atol=1e-12)
    assert isinstance(again.stages[0], PoolModel)


def test_a_pipeline_of_levels(spark, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.5
    scores = np.digitize(np.where(y, 0.8, -0.8)[:, None] + rng.normal(size=(200, 2)), [-1, 0, 1]) + 1
    df = spark.createDataFrame(pd.DataFrame(scores, columns=["ann", "bob"]).assign(label=y.astype(int), id=range(200)))
    model = PoolEstimator(inputCols=["ann", "bob"], scale="1-4").fit(df)
    model.write().overwrite().save(str(tmp_path / "model"))
    expected = op.GaussianPool(scale="1-4").fit(scores, y).predict_proba(scores)
    for each in (model, PoolModel.load(str(tmp_path / "model"))):
        rows = each.transform(df).toPandas().sort_values("id")
        np.testing.assert_allclose(np.stack([v.toArray() for v in rows["probability"]]), expected, atol=1e-9)


def test_wrong_parameters(table):
    with pytest.raises(op.ArgumentError, match="no pool 'gausian'"):
        PoolEstimator(inputCols=["ann"], pool="gausian")
    model = PoolEstimator(inputCols=["ann", "bob"], pool="average", probabilityCol="label").fit(table[0])
    with pytest.raises(op.ArgumentError, match="has a column 'label' already"):
        model.transform(table[0])
