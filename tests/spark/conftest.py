"""A cluster of two worker processes on this machine, for the tests that need pyspark; without it they are left out."""

import importlib.util
import os
import sys

import pytest

collect_ignore = [] if importlib.util.find_spec("pyspark") else ["test_cluster.py", "test_ml.py"]


@pytest.fixture(scope="session")
def spark(root, tmp_path_factory):
    """A session on two executors with one core and 1 GB each."""
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "OPENBLAS_NUM_THREADS": "1"}
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": str(root / "src"),
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "10",
        "spark.task.maxFailures": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("opinionpool")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("FATAL")
    yield session
    session.stop()
