"""Forecasts on Apache Spark: learning from tables of any size, pooling and scoring their forecasts.

>>> import opinionpool.spark as ops
>>> ops.summarize.__name__
'summarize'
"""

from importlib import import_module

from opinionpool.errors import OpinionPoolError
from opinionpool.extras import install

_HOME = {
    "summarize": "functions",
    "pool": "functions",
    "scores": "functions",
    "rates": "functions",
    "PoolEstimator": "ml",
    "PoolModel": "ml",
}

__all__ = [*_HOME]  # noqa: PLE0604 - every name is text


def need_pyspark() -> None:
    """Raise an error that says how to install pyspark if it is not installed."""
    try:
        import_module("pyspark")
    except ImportError:
        raise OpinionPoolError(f"Spark is used through pyspark; get it with {install('spark')}") from None


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'opinionpool.spark' has no attribute {name!r}")
    if _HOME[name] == "ml":
        # Its classes derive from those of pyspark.
        need_pyspark()
    return getattr(import_module(f"opinionpool.spark.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
