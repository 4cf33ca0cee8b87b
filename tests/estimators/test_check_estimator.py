"""scikit-learn's own checks of every estimator.

The checks feed real-valued X. Here a subclass of each pool takes them for log-odds and maps them into (0, 1): for K > 2
classes each column becomes the K probabilities of one expert, who knows only one direction among the classes.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit, softmax
from sklearn.utils.estimator_checks import check_estimator

import opinionpool as op
from opinionpool.estimators import pools as estimators

POOLS = [getattr(estimators, name) for name in estimators.__all__]

# Checks that cannot apply, and why.
UNRESOLVED = {"check_supervised_y_no_nan": "NaN in y is an event that is not resolved"}
UNTAUGHT = {
    "check_classifiers_one_label": "outcomes teach the rule its prior alone, and all experts say less than that prior"
}
BINARY = UNRESOLVED | {"check_fit1d": "one expert may come as a vector"}
MULTICLASS = UNRESOLVED | {
    "check_n_features_in_after_fitting": "the map makes K columns out of one, and the pool counts those"
}


def mapped(X, classes):
    """Log-odds as probabilities; whatever is not numbers stays, for the pool to refuse."""
    if scipy.sparse.issparse(X):
        return X
    if hasattr(X, "iloc"):
        return 1 / (1 + np.exp(-X))
    try:
        array = np.asarray(X)
        array = array if array.dtype.kind == "c" else array.astype(float)
    except (TypeError, ValueError):
        return X
    if array.dtype.kind == "c":
        return X
    if classes == 2 or array.ndim != 2:
        return expit(array)
    return softmax(array[:, :, None] * np.linspace(-1, 1, classes), axis=2)


class Mapped:
    def fit(self, X, y=None, prior=None, sample_weight=None):
        classes = 2 if y is None else max(2, len(np.unique(np.asarray(y))))
        return super().fit(mapped(X, classes), y, prior, sample_weight)

    def partial_fit(self, X, y=None, classes=None, prior=None, sample_weight=None):
        labels = getattr(self, "classes_", np.unique(np.asarray(y if classes is None else classes)))
        return super().partial_fit(mapped(X, max(2, len(labels))), y, classes, prior, sample_weight)

    def predict_proba(self, X, prior=None, base_rate=None):
        return super().predict_proba(mapped(X, len(getattr(self, "classes_", "01"))), prior, base_rate)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class MappedBinary(Mapped):
    def fit(self, X, y=None, prior=None, sample_weight=None):
        if y is not None and np.asarray(y).dtype.kind != "f" and len(np.unique(np.asarray(y))) > 2:
            raise ValueError("Only binary classification is supported.")
        return super().fit(X, y, prior, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = not self.learns
        return tags


def subclass(mixin, pool):
    """The subclass of a pool, importable by name so that it can be pickled."""
    name = f"{mixin.__name__}{pool.__name__}"
    made = type(name, (mixin, pool), {"learns": pool.rule in {"gaussian", "log"}, "__module__": __name__})
    return globals().setdefault(name, made)


def excuses(mixin, pool):
    """The checks that cannot apply to a pool."""
    made = BINARY if mixin is MappedBinary else MULTICLASS
    return made | UNTAUGHT if pool.rule in {"independent", "extremized"} else made


def mixins(pool):
    return (MappedBinary,) if pool.binary_only else (MappedBinary, Mapped)


SUBJECTS = [(subclass(mixin, pool), excuses(mixin, pool)) for pool in POOLS for mixin in mixins(pool)]


SUBJECTS.append(
    (
        op.LogOddsTransformer,
        dict.fromkeys(
            ["check_sample_weights_shape", "check_sample_weights_not_overwritten"],
            "a column that is constant within either outcome has no calibration, and is refused",
        ),
    )
)


@pytest.mark.parametrize(("subject", "excused"), SUBJECTS, ids=[subject.__name__ for subject, _ in SUBJECTS])
def test_scikit_learns_checks_pass(subject, excused):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", op.OpinionPoolWarning)
        results = check_estimator(subject(), expected_failed_checks=excused, on_skip=None, on_fail=None)
    outcome = {
        status: {result["check_name"]: result["exception"] for result in results if result["status"] == status}
        for status in ("failed", "xfail", "passed")
    }
    assert outcome["failed"] == {}
    assert set(outcome["xfail"]) == set(excused)
    assert len(outcome["passed"]) > 30
