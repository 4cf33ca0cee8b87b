"""The estimators that files may hold."""

from opinionpool.estimators import pools
from opinionpool.estimators.kinds import estimator_kinds

ESTIMATORS = estimator_kinds(*(getattr(pools, name) for name in pools.__all__))
