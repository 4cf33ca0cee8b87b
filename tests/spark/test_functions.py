"""What needs no Spark: the error without pyspark."""

import sys

import pytest

import opinionpool as op
import opinionpool.spark as ops


@pytest.mark.parametrize(
    "call",
    [lambda: ops.summarize(None, ["ann"]), lambda: ops.pool(None, None), lambda: ops.scores(None, ["ann"]),
     lambda: ops.rates(None, None, "system"), lambda: ops.PoolEstimator],
)  # fmt: skip
def test_without_pyspark_an_error_names_the_extra(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "opinionpool.spark.ml", raising=False)
    with pytest.raises(op.OpinionPoolError, match=r"pip install .*\[spark\]"):
        call()


def test_names():
    assert set(dir(ops)) == {"PoolEstimator", "PoolModel", "pool", "rates", "scores", "summarize"}
    with pytest.raises(AttributeError, match="no attribute 'sumarize'"):
        ops.sumarize  # noqa: B018
