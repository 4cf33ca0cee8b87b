"""Recalibration of one expert, and of continuous covariates to log-odds (paper, sections 3.1 and 4.1)."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from opinionpool import logodds
from opinionpool.arguments import one_of
from opinionpool.arrays import Array, Mask, as_numbers, axes
from opinionpool.errors import (
    ArgumentError,
    LearningError,
    OpinionPoolWarning,
    OutcomeError,
    ProbabilityError,
    ShapeError,
)
from opinionpool.estimation import averages as estimates
from opinionpool.estimation.averages import Means
from opinionpool.estimation.rows import ForecastRows
from opinionpool.estimators.inputs import Given, aligned, event_weights, in_our_terms, labels_of, row_keys
from opinionpool.labels import Labels, classes_of, encode
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.model.contrasts import contrasts
from opinionpool.model.features import LARGEST
from opinionpool.priors import laplace_prior, spread_prior

OUTPUTS = ("log-odds", "probability")


def recalibrate(
    q: npt.ArrayLike,
    calibration: npt.ArrayLike,
    bias: npt.ArrayLike = 0.0,
    prior: npt.ArrayLike = 0.5,
    *,
    floor: float = FLOOR,
    pool_floor: float = POOL_FLOOR,
) -> Array:
    """Return the recalibrated forecast of one expert (paper, equation 14): L* = L° + kappa (L - L° - b).

    Parameters
    ----------
    q : float or array_like
        Forecast probabilities, NaN where missing. All arguments broadcast.
    calibration : float or array_like
        kappa (equation 13): 1 = no change, below 1 = overconfident, above 1 = underconfident, 0 = the prior.
    bias : float or array_like, default 0.0
        Bias b in log-odds (equation 6).
    prior : float or array_like, default 0.5
    floor, pool_floor : float
        Least probability of `q` and of the result (model.md, section 4).

    Returns
    -------
    ndarray
        NaN where `q` is.

    Raises
    ------
    ProbabilityError, ArgumentError
        If a probability is outside [0, 1], a prior outside (0, 1), or a calibration or bias not finite.

    Examples
    --------
    >>> recalibrate([0.7, 0.9], calibration=0.5).round(4)
    array([0.6044, 0.75  ])
    """
    kappa, b = (as_numbers(each, what, ArgumentError) for each, what in ((calibration, "calibration"), (bias, "bias")))
    if not ((np.abs(kappa) <= LARGEST).all() and (np.abs(b) <= LARGEST).all()):
        raise ArgumentError(f"calibration and bias must be finite numbers, at most {LARGEST:g}")
    p = logodds.class_probabilities(prior)
    forecasts = logodds.check_probabilities(q)
    try:
        forecasts, kappa, b, _ = np.broadcast_arrays(forecasts, kappa, b, p[..., 0])
    except ValueError:
        shapes = f"q {forecasts.shape}, calibration {kappa.shape}, bias {b.shape}, prior {p.shape[:-1]}"
        raise ShapeError(
            f"q, calibration, bias and prior must have shapes that go together, and they are {shapes}"
        ) from None
    reference = logodds.prior_log_ratios(p)
    updated = reference + kappa[..., None] * (contrasts(forecasts, p, floor, reference) - b[..., None])
    return np.asarray(logodds.pooled_probabilities(updated, p, pool_floor)[..., 1])


def calibration_curve(calibration: npt.ArrayLike, prior: float, q: npt.ArrayLike) -> Array:
    """Return the recalibrated forecast for each probability in `q`, for several calibrations (Figure 1).

    Parameters
    ----------
    calibration : array_like, shape (...)
    prior : float
    q : array_like, shape (P,)

    Returns
    -------
    ndarray, shape (..., P)

    Examples
    --------
    >>> calibration_curve([0.0, 0.5, 1.0], prior=0.3, q=[0.1, 0.3, 0.9]).round(3)
    array([[0.3  , 0.3  , 0.3  ],
           [0.179, 0.3  , 0.663],
           [0.1  , 0.3  , 0.9  ]])
    """
    return recalibrate(q, as_numbers(calibration, "calibration", ArgumentError)[..., None], prior=prior)


class LogOddsTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer of continuous covariates to calibrated, unbiased log-odds of an outcome (paper, section 4.1).

    Each column is treated as biased, miscalibrated log-odds that are normal given the outcome: bias and calibration are
    estimated from its conditional means and pooled variance (divisor T - 2) and corrected (equations 14 and 21). A
    column may also be one expert's log-odds. NaN stays NaN, and each column is fitted to the rows in which it has a
    value. A column that never varies becomes the prior, with a warning.

    y may hold None or NaN for events that are not resolved. **prior**, one or one per event, is Laplace's
    estimate in `fit` if not given, and that of the fit in `transform`; it and **sample_weight**, a frequency, can be
    routed as metadata.

    Parameters
    ----------
    output : {"log-odds", "probability"}
        Scale of the result; pools take probabilities. No floor is applied.

    Attributes
    ----------
    bias_, calibration_, contrast_, variance_ : ndarray, shape (N,)
        b, kappa, mu and sigma² of each column less L° (equations 6, 13, 8); calibration 0 if it never varies.
    prior_ : float or None
        Prior probability; None if each event had its own.
    classes_ : ndarray, shape (2,)
    n_features_in_, feature_names_in_
        Columns of X, and their names if it had any.

    Examples
    --------
    >>> X, y = [[-2.0], [-1.0], [0.0], [0.0], [1.0], [2.0]], [0, 0, 0, 1, 1, 1]
    >>> recalibrated = LogOddsTransformer().fit(X, y)
    >>> recalibrated.calibration_, recalibrated.transform([[0.5]])
    (array([2.]), array([[1.]]))
    """

    classes_: Labels
    prior_: float | None
    bias_: Array
    calibration_: Array
    contrast_: Array
    variance_: Array

    def __init__(self, output: str = "log-odds") -> None:
        self.output = output

    def fit(
        self, X: Given, y: Given, prior: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the transformer to the resolved events.

        Parameters
        ----------
        X : array_like or data frame, shape (T, N)
        y : array_like, shape (T,)
        prior : float or array_like, shape (T,), optional
        sample_weight : array_like, shape (T,), optional

        Raises
        ------
        OutcomeError
            If there are more than two classes.
        LearningError
            If a column has too few events, or no variation within an outcome.
        """
        one_of(self.output, "output", OUTPUTS)
        keys = row_keys(X)
        with in_our_terms("X"):
            x = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        labels, known = labels_of(aligned(y, keys, "y"), len(x), type(self).__name__)
        classes = classes_of(labels)
        if len(classes) > 2:
            raise OutcomeError(f"Only binary classification is supported. There are {len(classes)} classes in y.")
        codes = encode(labels, known, classes)
        known = codes >= 0
        weight = event_weights(aligned(sample_weight, keys, "sample_weight"), len(x))
        events = np.asarray(np.bincount(codes[known], weights=weight[known], minlength=2), dtype=np.float64)
        _check_events(events, classes)
        prior = float(laplace_prior(events)[1]) if prior is None else aligned(prior, keys, "prior")
        reference = _log_odds(prior, len(x))
        common = axes(prior, "prior") == 0
        # A common prior is subtracted from the means: columns in small units would lose their digits to it.
        answered, means, scale, centre = _means(x, 0.0 if common else reference, codes, weight)
        self._check(means, answered)
        self.classes_ = classes
        self.prior_ = float(np.asarray(prior)) if common else None
        self._reference = float(reference[0, 0]) if common else 0.0
        self._middle = means.bias[:, 0] * scale + centre
        self.contrast_ = means.contrast * scale
        self.variance_ = np.where(answered, means.square / np.where(answered, means.terms, 1.0), 0.0) * scale**2
        self.bias_ = self._middle - self._reference
        self.calibration_ = 2.0 * self.contrast_ / np.where(answered, self.variance_, np.inf)
        if not answered.all():
            text = ", ".join(repr(str(name)) for name in self.get_feature_names_out()[~answered])
            warnings.warn(
                f"{text} never varied on resolved events and became the prior", OpinionPoolWarning, stacklevel=2
            )
        return self

    def transform(self, X: Given, prior: npt.ArrayLike | None = None) -> Array:
        """Return log-odds, or probabilities, of ``classes_[1]`` by each column by itself, (T, N).

        Parameters
        ----------
        X : array_like or data frame, shape (T, N)
        prior : float or array_like, shape (T,), optional

        Raises
        ------
        NotFittedError
            Before `fit`.
        ProbabilityError
            If each event had its own prior in `fit` and no prior is given now.
        """
        check_is_fitted(self)
        keys = row_keys(X)
        with in_our_terms("X"):
            x = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        if prior is None:
            if self.prior_ is None:
                raise ProbabilityError("this was learned with a prior for each event, so transforming needs one too")
            prior = self.prior_
        reference = _log_odds(aligned(prior, keys, "prior"), len(x))
        updated = reference + self.calibration_ * (x - self._middle - (reference - self._reference))
        return updated if self.output == "log-odds" else logodds.expit(updated)

    def fit_transform(
        self, X: Given, y: Given, prior: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None
    ) -> Array:
        """Return the result of `fit`, then `transform`, both with `prior`."""
        return self.fit(X, y, prior, sample_weight).transform(X, prior)

    def _check(self, means: Means, answered: Mask) -> None:
        """Raise a LearningError unless each varying column has 3 events, both outcomes and variation within one."""
        for i in np.flatnonzero(answered):
            short = (means.count[:, i] == 0).any() or means.terms[i] < 1
            if short or means.square[i] <= estimates.ROUNDING**2 * means.count[:, i].sum():
                name = str(self.get_feature_names_out()[i])
                raise LearningError(
                    "need at least 3 resolved events with both outcomes and some within-outcome variation for "
                    f"{name!r}, and it has {means.count[0, i]:g} and {means.count[1, i]:g}; leave it out"
                )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def _log_odds(prior: npt.ArrayLike, events: int) -> Array:
    """Return the prior log-odds L° of every event, (T, 1)."""
    return logodds.prior_log_ratios(spread_prior(prior, (events,), 2))


def _check_events(events: Array, classes: Labels) -> None:
    if not events.all() or events.sum() < 3:
        text = " and ".join(f"{n:g} with outcome {label!r}" for n, label in zip(events, classes.tolist(), strict=True))
        what = "" if events.all() else ", one class at most"
        raise LearningError(f"need at least 3 resolved events and both outcomes, and there are {text}{what}")


def _means(
    x: Array, reference: Array | float, codes: npt.NDArray[np.intp], weight: Array
) -> tuple[Mask, Means, Array, Array]:
    """Return which columns vary, their means by outcome after standardising `x` − `reference`, and scale and centre."""
    counted = ((codes >= 0) & (weight > 0))[:, None] & ~np.isnan(x)
    low, high = (f(x, axis=0, where=counted, initial=i) for f, i in ((np.min, np.inf), (np.max, -np.inf)))
    answered = np.isfinite(low) & (high - low > 1e-13 * np.maximum(np.abs(low), np.abs(high)))
    d = np.where(counted & answered, x - reference, np.nan)
    number = np.maximum(counted.sum(axis=0), 1)
    centre = np.where(answered, np.nansum(d, axis=0) / number, 0.0)
    scale = np.where(answered, np.sqrt(np.nansum((d - centre) ** 2, axis=0) / number), 1.0)
    ratios = ((d - centre) / scale)[:, :, None]
    evidence = ForecastRows.of_array(ratios, codes, weight)
    return answered, estimates.sample_means(evidence), scale, centre
