"""What Spark does with two worker processes: the same as one process, also when tasks fail and workers die."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.errors import PythonException
from pyspark.ml.functions import array_to_vector
from pyspark.sql import functions as f

import opinionpool as op
import opinionpool.spark as ops

EXPERTS = ["ann", "bob", "cy.d"]
T = 4000
TOLERANCE = 1e-12


@pytest.fixture(scope="module")
def panel():
    rng = np.random.default_rng(3)
    X, y = op.Panel.exchangeable(3, correlation=0.4, accuracy=0.6).simulate(T, seed=3)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X, y


@pytest.fixture(scope="module")
def frame(panel):
    X, y = panel
    frame = pd.DataFrame(X, columns=EXPERTS)
    frame["y"], frame["id"] = y, [f"event {i}" for i in range(T)]
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(T) % 300, "D")
    frame["league"] = [f"league {i % 3}" for i in range(T)]
    return frame


@pytest.fixture(scope="module")
def files(spark, frame, tmp_path_factory):
    """The table in files of Parquet, so that every task reads its rows again."""
    path = str(tmp_path_factory.mktemp("files") / "wide")
    spark.createDataFrame(frame).repartition(7).write.parquet(path)
    return path


@pytest.fixture(scope="module")
def wide(spark, files):
    return spark.read.parquet(files)


@pytest.fixture(scope="module")
def long(wide):
    return wide.unpivot(["id", "y", "day", "league"], [f.col("`" + name + "`") for name in EXPERTS], "expert", "p")


@pytest.fixture(scope="module")
def forecasts(panel, frame):
    return op.Forecasts.from_array(*panel, events=frame["id"].tolist(), experts=EXPERTS)


def one_process(forecasts):
    stream = op.Stream(capacity=600)
    stream.add(forecasts)
    return stream


@pytest.fixture(scope="module")
def one(forecasts):
    return one_process(forecasts)


def same(stream, one, X):
    assert stream.events.tolist() == one.events.tolist()
    assert stream.sample()[0].events == one.sample()[0].events
    for options in ({}, {"beliefs": None, "structure": "common"}, {"beliefs": None, "structure": "independent"}):
        p, q = (s.learn(**options).pool(X) for s in (stream, one))
        np.testing.assert_allclose(p, q, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("partitions", [1, 13])
def test_a_wide_table(wide, one, panel, partitions):
    same(ops.summarize(wide.repartition(partitions), EXPERTS, capacity=600), one, panel[0])


def test_a_long_table(long, panel, frame, forecasts):
    dated = replace(forecasts, times=frame["day"].to_numpy("datetime64[us]"), groups=frame["league"].to_numpy(np.str_))
    one = one_process(dated)
    stream = ops.summarize(long, "expert", probability="p", time="day", group="league", capacity=600)
    same(stream, one, panel[0])
    mine, theirs = stream.sample()[0], one.sample()[0]
    assert mine.groups.tolist() == theirs.groups.tolist()
    assert mine.times.tolist() == theirs.times.tolist()


def trouble(folder):
    """A stage before: one task fails when half its rows have gone out, one takes its executor with it."""

    def once(name):
        try:
            os.close(os.open(Path(folder) / name, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def parent(process):
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return int(file.read().rpartition(")")[2].split()[1])

    def stage(batches):
        from pyspark import TaskContext

        part = TaskContext.get().partitionId()
        rows = list(batches)
        yield from rows[:1]
        if part == 1 and once("failed"):
            raise RuntimeError("this task fails")
        if part == 2 and once("killed"):
            # The Python worker belongs to a daemon, and that to the executor.
            os.kill(parent(os.getppid()), signal.SIGKILL)
            time.sleep(60)
        yield from rows[1:]

    return stage


def test_a_task_that_fails_and_a_worker_that_is_killed(spark, files, one, panel, tmp_path):
    spark.conf.set("spark.sql.files.maxPartitionBytes", "24k")
    try:
        # Spark's own functions on Arrow take no names with a dot in them.
        table = spark.read.parquet(files).withColumnRenamed("cy.d", "cy")
        stream = ops.summarize(
            table.mapInArrow(trouble(str(tmp_path)), table.schema), ["ann", "bob", "cy"], capacity=600
        )
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert {path.name for path in tmp_path.iterdir()} == {"failed", "killed"}
    assert stream.count == T
    same(stream, one, panel[0])


def test_pool_and_scores(wide, long, one, panel, frame):
    X, y = panel
    learned = one.learn()
    answers = ops.pool(wide, learned, keep=["id", "y", "league"])
    assert answers.columns == ["id", "y", "league", "probability", "low", "high"]
    found = answers.toPandas().set_index("id").loc[frame["id"]]
    np.testing.assert_allclose(found["probability"], learned.pool(X), rtol=0, atol=TOLERANCE)
    low, high = learned.interval(X)
    known = ~np.isnan(X).all(axis=1)
    np.testing.assert_allclose(found["low"], np.where(known, low, np.nan), rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(found["high"], np.where(known, high, np.nan), rtol=0, atol=TOLERANCE)
    other = ops.pool(long, learned, experts="expert", event="id", probability="p", keep=["id"]).toPandas()
    np.testing.assert_allclose(
        other.set_index("id").loc[frame["id"], "probability"], found["probability"], atol=TOLERANCE
    )

    rows = ops.scores(answers, ["probability"], group="league").collect()
    for row in rows:
        mine = (frame["league"] == row["group"]).to_numpy()
        assert row["events"] == mine.sum()
        assert row["log_score"] == pytest.approx(op.mean_log_score(learned.pool(X)[mine], y[mine]), abs=TOLERANCE)
        assert row["brier"] == pytest.approx(op.brier_score(learned.pool(X)[mine], y[mine]).mean(), abs=TOLERANCE)
    assert len(rows) == 3
    (cy,) = ops.scores(long, "expert", event="id", probability="p").where("expert = 'cy.d'").collect()
    assert cy["events"] == (~np.isnan(X[:, 2])).sum()
    assert cy["log_score"] == pytest.approx(op.mean_log_score(X[:, 2], y), abs=TOLERANCE)


def test_classes_as_arrays_vectors_and_rows(spark):
    classes = ["home", "draw", "away"]
    panel = op.Panel.exchangeable(2, correlation=0.4, accuracy=0.6, classes=classes)
    X, y = panel.simulate(300, prior=np.full(3, 1 / 3), seed=1)
    rows = [(f"m{i}", str(y[i]), X[i, 0].tolist(), X[i, 1].tolist()) for i in range(300)]
    table = spark.createDataFrame(rows, "id string, y string, ann array<double>, bob array<double>")
    forecasts = op.Forecasts.from_array(
        X, y.tolist(), events=[f"m{i}" for i in range(300)], experts=["ann", "bob"], classes=classes
    )
    learned = op.GaussianPool().fit(forecasts).state_
    stream = ops.summarize(table, ["ann", "bob"], classes=classes)
    np.testing.assert_allclose(stream.learn().pool(X), learned.pool(X), rtol=0, atol=TOLERANCE)
    vectors = table.withColumns({name: array_to_vector(name) for name in ("ann", "bob")})
    found = ops.pool(vectors, learned, keep=["id"]).toPandas().set_index("id").loc[list(forecasts.events)]
    np.testing.assert_allclose(np.stack(found["probability"]), learned.pool(X), rtol=0, atol=TOLERANCE)
    assert (np.stack(found["low"]) < np.stack(found["high"])).all()
    long = table.unpivot(["id", "y"], ["ann", "bob"], "expert", "p").select(
        "id", "y", "expert", f.posexplode("p").alias("k", "p")
    )
    long = long.withColumn("class", f.element_at(f.array(*map(f.lit, classes)), f.col("k") + 1))
    stream = ops.summarize(long, "expert", probability="p", class_column="class", classes=classes)
    np.testing.assert_allclose(stream.learn().pool(X), learned.pool(X), rtol=0, atol=TOLERANCE)


def test_errors(spark, wide, one):
    with pytest.raises(op.LayoutError, match="no column of the name 'anne'; did you mean 'ann'"):
        ops.summarize(wide, ["anne", "bob"])
    with pytest.raises(op.LayoutError, match="column 'league' is to be the probability and is of type string"):
        ops.summarize(wide, ["league"])
    with pytest.raises(op.ArgumentError, match="names the column of a long table"):
        ops.summarize(wide, "ann")
    with pytest.raises(op.ArgumentError, match="no 'half_life'"):
        ops.summarize(wide, EXPERTS, half_life=3.0)
    with pytest.raises(op.OutcomeError, match="each outcome must be one of 0, 1, and the one of event 'event 0' is 7"):
        ops.summarize(wide.withColumn("y", f.when(f.col("id") == "event 0", 7).otherwise(f.col("y"))), EXPERTS)
    learned = one.learn()
    with pytest.raises(op.LayoutError, match="no column of the name 'bob'"):
        ops.pool(wide.drop("bob"), learned)
    with pytest.raises(op.ExpertError, match="zed"):
        ops.pool(wide.withColumn("zed", f.lit(0.5)), learned, experts=["ann", "zed"])
    with pytest.raises(op.ArgumentError, match="have a column 'low' of their own"):
        ops.pool(wide.withColumn("low", f.lit(0.5)), learned, keep=["low"])
    bad = ops.pool(wide.withColumn("ann", f.lit(40.0)), learned)
    with pytest.raises(PythonException, match="is 40; a percentage must be divided by 100"):
        bad.collect()


def test_an_empty_table(wide):
    stream = ops.summarize(wide.where("false"), EXPERTS)
    assert (stream.count, stream.experts) == (0, tuple(EXPERTS))
    assert ops.scores(wide.where("false"), EXPERTS).count() == 0


def test_rates_are_those_of_one_process(wide, long, forecasts, frame, one):
    state = one.learn()
    expected = op.rates(state, forecasts, frame["league"].to_numpy(str))
    tables = ((wide, {}), (long, {"experts": "expert", "probability": "p", "event": "id"}))
    for table, names in tables:
        found = ops.rates(table, state, "league", outcome="y", **names)
        assert found.groups_ == expected.groups_
        assert found.rate_ == pytest.approx(expected.rate_, abs=1e-9)
        assert np.array(found.interval_) == pytest.approx(np.array(expected.interval_), abs=1e-9)


def test_levels_are_those_of_one_process(spark):
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.5
    latent = np.where(y, 0.8, -0.8)[:, None] + rng.normal(size=(300, 3))
    frame = pd.DataFrame(np.digitize(latent, [-1, 0, 1])[:, :2] + 1, columns=["ann", "bob"])
    frame["cy"], frame["y"], frame["id"] = np.where(latent[:, 2] > 0, "yes", "no"), y.astype(int), range(300)
    scale = {"ann": "1-4", "bob": "1-4", "cy": "no,yes"}
    names, df = [*scale], spark.createDataFrame(frame).repartition(3)
    f = op.Forecasts.from_array(frame[names], frame["y"], scale=scale)
    expected = op.GaussianPool().fit(f).predict_proba(f)[:, 1]
    stream = ops.summarize(df, names, scale=scale)
    for pool, own in (
        (stream, None),
        (stream.learn(), scale),
        (op.GaussianPool(scale=scale).fit(frame[names], y), None),
    ):
        found = ops.pool(df, pool, keep=["id"], experts=names, scale=own).toPandas().sort_values("id")
        np.testing.assert_allclose(found["probability"], expected, atol=1e-9)
    long = spark.createDataFrame(frame.astype(str).melt(["id", "y"], names, "expert", "score").astype({"y": int}))
    stream = ops.summarize(long, "expert", probability="score", scale=scale)
    found = ops.pool(long, stream, keep=["id"], experts="expert", event="id", probability="score").toPandas()
    found = found.astype({"id": int}).sort_values("id")
    np.testing.assert_allclose(found["probability"], expected, atol=1e-9)
    with pytest.raises(op.ArgumentError, match="scale is given for 'eve'"):
        ops.summarize(df, names, scale={"eve": "1-4"})
