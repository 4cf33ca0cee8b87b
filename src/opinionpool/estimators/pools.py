"""Every pool as a scikit-learn classifier.

X has the forecasts, events x experts, and y the outcomes; `opinionpool.estimators.base.BasePool` describes both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from opinionpool.arrays import Array
from opinionpool.estimators.incremental import IncrementalPool
from opinionpool.estimators.inputs import Given, labels_of, settled_classes
from opinionpool.forecasts import Forecasts
from opinionpool.labels import Labels, encode
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn_from
from opinionpool.learning.parts import ArraySource
from opinionpool.learning.posterior import Posterior
from opinionpool.learning.problem import Request
from opinionpool.model.panel import PoolingPanel
from opinionpool.model.pooling import Settings
from opinionpool.pools import beta_linear as beta, logarithmic
from opinionpool.pools.averages import TRIM
from opinionpool.pools.logarithmic import FACTOR
from opinionpool.pools.training import Weights


@dataclass(eq=False, repr=False)
class GaussianPool(IncrementalPool):
    """Gaussian pool: log-odds weighted by the experts' calibration, accuracy and correlation (paper; model.md).

    Parameters
    ----------
    structure : {"auto", "full", "common", "exchangeable", "independent"}
        Correlations between experts: one for each pair, one for all pairs, one with all experts equal, or none. "auto"
        is the default rule, for any number of events; if `beliefs` is None it is "full".
    beliefs : Beliefs, "default" or None
        Beliefs about the experts, by name (columns without names are ``expert_1`` ...). "default" is ``op.Beliefs()``,
        which suits any panel. None: only the data are used, with an error if they do not determine the weights.
    class_model : {"auto", "symmetric", "full"}
        If K > 2: one weight per expert for all classes, or weights that differ between classes; "auto" averages both
        by their posterior probabilities. If `beliefs` is None, "auto" is "symmetric", and "full" is linear
        discriminant analysis.
    scale : str, sequence or mapping, optional
        Scale of levels that X has instead of probabilities, such as ``"1-10"`` or ``("no", "unsure", "yes")``, or by
        column ``{"judge_a": "1-5"}``. Levels are numbers or text.
    floor, pool_floor : float
        The least probability taken from an expert and given as an answer (model.md, section 4).

    Attributes
    ----------
    panel_ : Panel, or FullPanel where classes differ
        Panel that pools. Its biases and calibrations are those of experts weighted together; those of each expert by
        itself are in ``state_.to_frame()`` and in the output of the command ``experts``.
    weights_ : ndarray, shape (N,)
    weight_intervals_ : ndarray, shape (N, 2)
    posterior_ : Posterior or None
        Mixture of normal distributions of intercept and weights, and a table of the hyperparameters' posterior; None
        if unknown.
    prior_ : ndarray, shape (K,), or None
    classes_ : ndarray, shape (K,)
    n_events_ : float
        Weight of the resolved events.
    notes_ : tuple of Note
    state_ : FittedPanel
    n_features_in_, feature_names_in_
        Columns of X, and their names if it had any.

    Examples
    --------
    >>> pool = GaussianPool(beliefs=None)
    >>> pool = pool.fit([0.2, 0.3, 0.6, 0.4, 0.7, 0.8], [0, 0, 0, 1, 1, 1], prior=0.5)
    >>> pool.weights_.round(5), pool.predict_proba([0.7]).round(5)
    (array([1.44221]), array([[0.22759, 0.77241]]))
    """

    rule: ClassVar[str] = "gaussian"

    structure: str = "auto"
    beliefs: Beliefs | str | None = "default"
    class_model: str = "auto"

    def predict_interval(
        self,
        X: Given,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        level: float = 0.9,
        topics: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> Array:
        """Return credible intervals of the pooled probability, given the posterior of the weights.

        Parameters
        ----------
        X, prior, base_rate, topics, times
            As for `predict_proba`.
        level : float, default 0.9

        Returns
        -------
        ndarray, shape (T, 2), or (T, K, 2) when K > 2
            Lower and upper end for the probability of ``classes_[1]``, or of each class.

        Raises
        ------
        NotFittedError
            Before `fit`.
        LearningError
            If there is no posterior, as with `beliefs` None.
        ArgumentError
            If `level` is outside (0, 1).

        Examples
        --------
        >>> pool = GaussianPool().fit([0.2, 0.3, 0.6, 0.4, 0.7, 0.8], [0, 0, 0, 1, 1, 1], prior=0.5)
        >>> pool.predict_proba([0.7])[:, 1].round(2), pool.predict_interval([0.7]).round(2)
        (array([0.7]), array([[0.57, 0.82]]))
        """
        check_is_fitted(self)
        fitted, learned = self._learned()
        assert isinstance(learned, FittedPanel)
        q, prior, base_rate = self._asked(X, prior, base_rate, fitted, learned)
        about = self._topics(X, topics, len(q), learned, fitted)
        timed = X if isinstance(X, Forecasts) else None
        if times is not None:
            timed = self._with_times(X, q, about, times, fitted)
        if timed is not None and timed.made is not None:
            reference = learned.reference(prior)
            q, learned = learned.aged(timed, reference).dense(experts=learned.experts), replace(learned, coding=None)
        ends = learned.interval(q, prior, base_rate, level, about)
        return np.stack(ends, axis=-1)

    @property
    def weight_intervals_(self) -> Array:
        """90% credible interval of each weight, (N, 2); NaN if unknown."""
        check_is_fitted(self)
        return np.stack(self.state_.weight_interval(), axis=-1)

    @property
    def posterior_(self) -> Posterior | None:
        """Posterior of intercept and weights; None if unknown."""
        check_is_fitted(self)
        return self.state_.posterior

    def _fit_dense(self, X: Given, y: Given, prior: npt.ArrayLike | None) -> tuple[Labels, FittedPanel] | None:
        request = Request(**self._options(), settings=Settings(self.floor, self.pool_floor))
        if X.ndim not in {2, 3} or (X.ndim == 3 and self.class_model == "full"):
            return None
        if X.ndim == 2:
            source = ArraySource.of(X, y, prior=prior)
            if source is None or not source.serves(request):
                return None
            return np.array([0, 1], dtype=y.dtype), learn_from(source, request)
        if X.shape[2] == 2 or X.dtype != np.float64 or request.believed is not None:
            return None
        labels, known = labels_of(y, len(X), type(self).__name__)
        classes = settled_classes(labels, None, None, X)
        source = ArraySource.of(X, encode(labels, known, classes), classes=classes.tolist(), prior=prior)
        if source is None or not source.serves(request):
            return None
        return classes, learn_from(source, request)

    @property
    def panel_(self) -> PoolingPanel:
        """Panel of experts with the learned parameters, which pools."""
        check_is_fitted(self)
        state = self.state_
        assert isinstance(state, FittedPanel)
        return state.panel


@dataclass(eq=False, repr=False)
class LinearPool(IncrementalPool):
    """Linear pool (LinOps): weighted mean of the probabilities, with maximum-likelihood weights (model.md, section 6).

    Where forecasts are missing, weights are rescaled to sum to 1 over the experts present.

    Parameters
    ----------
    weights : mapping of str to float, or array_like, shape (N,), optional
        Instead of learned ones: by expert name, or in the order of the columns; scaled to sum to 1.
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> pool = LinearPool(weights=[2, 1, 1]).fit([[0.7, 0.6, 0.2], [0.1, 0.5, 0.4]], [1, 0])
    >>> pool.weights_, pool.predict_proba([[0.8, 0.6, 0.4]])
    (array([0.5 , 0.25, 0.25]), array([[0.35, 0.65]]))
    """

    rule: ClassVar[str] = "linear"

    weights: Weights | None = None


@dataclass(eq=False, repr=False)
class LogPool(IncrementalPool):
    """Logarithmic pool (LogOps): weighted sum of the experts' log-odds less the prior's, added to the prior's.

    The weights and an intercept are learned by logistic regression. A missing forecast is treated as equal to the
    prior.

    Parameters
    ----------
    weights : mapping of str to float, or array_like, shape (N,), optional
        Instead of learned ones: by expert name, or in the order of the columns. The intercept is then 0.
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> q, y = [0.2, 0.3, 0.6, 0.4, 0.7, 0.8, 0.35, 0.65], [0, 0, 0, 1, 1, 1, 0, 1]
    >>> pool = LogPool().fit(q, y)
    >>> pool.weights_.round(4), pool.predict_proba([0.8]).round(4)
    (array([2.2586]), array([[0.0418, 0.9582]]))
    """

    rule: ClassVar[str] = "log"

    weights: Weights | None = None


class IndependentPool(IncrementalPool):
    """Independent pool (IndOps): the prior's log-odds plus every expert's log-odds less the prior's.

    This is right for calibrated experts with independent errors.

    Parameters
    ----------
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> pool = IndependentPool().fit([[0.2, 0.2, 0.2]], [0], prior=0.1)
    >>> pool.predict_proba([[0.2, 0.2, 0.2]]).round(5)
    array([[0.44138, 0.55862]])
    """

    rule: ClassVar[str] = "independent"


class AveragePool(IncrementalPool):
    """Simple average (AvgOps): mean probability of the experts present.

    Parameters
    ----------
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> AveragePool().fit([[0.9, 0.6, 0.3]], [1]).predict_proba([[0.9, 0.6, 0.3]])
    array([[0.4, 0.6]])
    """

    rule: ClassVar[str] = "average"


@dataclass(eq=False, repr=False)
class GeometricPool(IncrementalPool):
    """Geometric mean of the odds, that is the mean of the log-odds, of the experts present.

    Parameters
    ----------
    weights : mapping of str to float, or array_like, shape (N,), optional
        By expert name, or in the order of the columns, equal if not given. At least 0; they are scaled to sum to 1.
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> GeometricPool().fit([[0.9, 0.6, 0.1]], [1]).predict_proba([[0.9, 0.6, 0.1]]).round(5)
    array([[0.46626, 0.53374]])
    """

    rule: ClassVar[str] = "geometric"

    weights: Weights | None = None


class MedianPool(IncrementalPool):
    """Median probability of the experts present.

    Parameters
    ----------
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> MedianPool().fit([[0.9, 0.6, 0.1]], [1]).predict_proba([[0.9, 0.6, 0.1]])
    array([[0.4, 0.6]])
    """

    rule: ClassVar[str] = "median"


class RecentMedianPool(IncrementalPool):
    """Weighted median probability with more weight on newer forecasts, as on Metaculus; the median without times.

    Parameters
    ----------
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> pool = RecentMedianPool().fit([[0.9, 0.2, 0.3, 0.8]], [1])
    >>> pool.predict_proba([[0.9, 0.2, 0.3, 0.8]], times=[[90.0, 0.0, 30.0, 89.0]]).round(5)
    array([[0.2, 0.8]])
    """

    rule: ClassVar[str] = "recent-median"


@dataclass(eq=False, repr=False)
class TrimmedPool(IncrementalPool):
    """Mean probability of the experts present without the highest and the lowest.

    Parameters
    ----------
    trim : float, default 0.1
        Fraction cut off at each end, from 0 (the average) to 0.5 (the median); for the default's source see
        `opinionpool.pools.averages.Trimmed`.
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> TrimmedPool(trim=0.25).fit([[0.9, 0.6, 0.5, 0.1]], [1]).predict_proba([[0.9, 0.6, 0.5, 0.1]]).round(5)
    array([[0.45, 0.55]])
    """

    rule: ClassVar[str] = "trimmed"

    trim: float = TRIM


@dataclass(eq=False, repr=False)
class ExtremizedPool(IncrementalPool):
    """Mean log-odds of the experts present, moved away from the prior by a factor.

    Parameters
    ----------
    factor : float, default 3 ** 0.5
        Factor; for the default's source see `opinionpool.pools.logarithmic.Extremized`.
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> ExtremizedPool().fit([[0.3, 0.2]], [0], prior=0.1).predict_proba([[0.3, 0.2]]).round(4)
    array([[0.5808, 0.4192]])
    """

    rule: ClassVar[str] = "extremized"

    factor: float = FACTOR


@dataclass(eq=False, repr=False)
class RecalibratedPool(IncrementalPool):
    """Mean log-odds of the experts present, less the prior's, with a learned intercept and slope.

    Parameters
    ----------
    penalty : float, default 1.0
        Weight of the belief in intercept 0 and slope 1, in events.
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> pool = RecalibratedPool().fit([[0.4, 0.4], [0.6, 0.6], [0.7, 0.7], [0.3, 0.3]] * 5, [0, 1, 1, 0] * 5)
    >>> float(pool.predict_proba([[0.7, 0.7]])[0, 1].round(2))
    0.91
    """

    rule: ClassVar[str] = "recalibrated"

    penalty: float = logarithmic.PENALTY


@dataclass(eq=False, repr=False)
class BetaLinearPool(IncrementalPool):
    """Linear pool moved away from 1/2 by a learned beta distribution; two classes only.

    Parameters
    ----------
    weights : mapping of str to float, or array_like, shape (N,), optional
        By expert name, or in the order of the columns; rescaled to sum to 1. If not given, learned if there are enough
        events, else equal.
    penalty : float, default 1.0
        Weight of the belief in the linear pool itself, a = b = 1, in events.
    scale, floor, pool_floor
        As for `GaussianPool`.

    Examples
    --------
    >>> pool = BetaLinearPool().fit([[0.4, 0.4], [0.6, 0.6], [0.7, 0.7], [0.3, 0.3]] * 5, [0, 1, 1, 0] * 5)
    >>> pool.predict([[0.7, 0.7], [0.4, 0.3]])
    array([1, 0])
    """

    rule: ClassVar[str] = "beta-linear"
    binary_only: ClassVar[bool] = True

    weights: Weights | None = None
    penalty: float = beta.PENALTY


__all__ = sorted(kind.__name__ for kind in IncrementalPool.__subclasses__())  # noqa: PLE0605 - all that are defined here
