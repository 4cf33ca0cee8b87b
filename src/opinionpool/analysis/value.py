"""Value of a panel, if its model holds: expected scores of experts and panel, and value in a decision.

For two classes the pooled contrast is normal with mean ±μ* and variance 2 μ* given the outcome (model.md, section 2.4),
so what a decision maker asks is a one-dimensional integral or a closed form of the accuracy μ* and of the prior. The
same holds for one expert once its bias and its calibration are corrected. All of it needs an absolute accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import expect_type, number
from opinionpool.arrays import Array, as_numbers
from opinionpool.errors import ArgumentError, ProbabilityError
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import POOL_FLOOR, class_probabilities, expit, prior_log_ratios
from opinionpool.model.accuracy import expected, normal_cdf
from opinionpool.model.features import LARGEST
from opinionpool.model.panel import Panel, PoolingPanel
from opinionpool.priors import laplace_prior


@dataclass(frozen=True, eq=False)
class PanelValue:
    """Accuracy and expected scores of each expert (bias and calibration corrected) and of the panel, at one prior.

    Attributes
    ----------
    experts : tuple of str
        Names of the N experts.
    prior : float or None
        Prior of the events; None for more than two classes.
    accuracy, auc : ndarray, shape (N,)
        mu* (paper, equation 15), and the area under the ROC curve (K > 2: between two classes).
    score, brier, hit_rate : ndarray, shape (N,), or None
        Expected normalised log score with uniform scoring prior, Brier score, and share of answers on the right side of
        50%; None for more than two classes, where they take K - 1 dimensions.
    joint_accuracy, joint_auc : float
    joint_score, joint_brier, joint_hit_rate : float or None
    effective : float
        Number of independent experts of average accuracy who would be as good.
    """

    experts: tuple[str, ...]
    prior: float | None
    accuracy: Array
    auc: Array
    score: Array | None
    brier: Array | None
    hit_rate: Array | None
    joint_accuracy: float
    joint_auc: float
    joint_score: float | None
    joint_brier: float | None
    joint_hit_rate: float | None
    effective: float


def panel_value(panel: PoolingPanel, prior: float = 0.5, joint_accuracy: float | None = None) -> PanelValue:
    """Accuracy and expected scores of each expert and of the panel, if the panel's parameters are true.

    Parameters
    ----------
    panel : Panel or FullPanel
    prior : float, default 0.5
    joint_accuracy : float, optional
        Accuracy mu* of the pool: the mean of its log-odds less the prior's is mu* if the event happens, else -mu*. By
        default, the accuracy with the weights that the parameters imply.

    Raises
    ------
    AccuracyUnknownError
        If the panel knows relative accuracies only.
    ProbabilityError
        If the prior does not lie strictly between 0 and 1.

    Examples
    --------
    >>> value = panel_value(Panel.exchangeable(4, correlation=0.5, accuracy=1.0))
    >>> value.auc.round(3)[0], round(value.joint_auc, 3), round(value.joint_score, 3), round(value.effective, 2)
    (np.float64(0.841), 0.897, 0.416, 1.6)
    """
    expect_type(panel, PoolingPanel, "panel")
    joint = panel.joint_accuracy if joint_accuracy is None else number(joint_accuracy, "joint_accuracy", 0, LARGEST)
    every, binary = np.append(panel.accuracy, joint), len(panel.classes) == 2
    found: dict[str, Array | None] = {"accuracy": every, "auc": expected_auc(every)}
    for name, score in (("score", expected_score), ("brier", expected_brier), ("hit_rate", hit_rate)):
        found[name] = score(every, prior) if binary else None
    each: dict[str, Any] = {name: None if values is None else values[:-1] for name, values in found.items()}
    each |= {f"joint_{name}": None if values is None else float(values[-1]) for name, values in found.items()}
    known = one_prior(prior) if binary else None
    return PanelValue(experts=panel.names, prior=known, effective=effective_number(panel), **each)


def learned_value(state: FittedPanel, prior: float | None = None) -> PanelValue:
    """Accuracy and expected scores of each expert, and of the panel, as estimated by a fit.

    Features of an expert are estimated from the expert's own data and shrunken towards the panel's. The joint accuracy
    is that of the learned weights with these features: 2m²/v if the mean of the pooled contrast is m or -m, by outcome,
    and its variance is v. In simulated panels, the area under the curve agrees with that on new events to about 0.01,
    and the expected score is up to 0.05 too high after 20 to 50 events; `opinionpool compare` has no such bias.

    Parameters
    ----------
    state : FittedPanel
    prior : float, optional
        By default the prior of the fit, or Laplace's estimate if each event had its own prior.

    Raises
    ------
    AccuracyUnknownError, ProbabilityError
        As for `panel_value`.
    """
    expect_type(state, FittedPanel, "state")
    if prior is None:
        class_prior = state.prior if state.prior is not None else laplace_prior(state.events)
        prior = float(class_prior[1])
    if state.marginal is None or not isinstance(state.panel, Panel):
        return panel_value(state.panel, prior)
    panel = known_panel(state)
    weights = state.panel.weights * panel.parts.spread
    mean = max(float(weights @ panel.parts.signal), 0.0)
    variance = float(weights @ panel.parts.times(weights))
    return panel_value(panel, prior, 2.0 * mean**2 / variance if variance > 0 else 0.0)


def known_panel(state: FittedPanel) -> Panel:
    """Panel with the features of each single expert in the fit; its weights follow from these, unlike the fit's."""
    panel = state.panel
    if not isinstance(panel, Panel):
        raise ArgumentError("what experts know of each class is no one number; learn with class_model='symmetric'")
    if state.marginal is None:
        return panel
    spread = np.where(panel.informative, state.marginal.spread, 0.0)
    contrast = np.where(panel.informative, state.marginal.contrast, 0.0)
    parts = replace(panel.parts, contrast=contrast, spread=spread, absolute=True)
    return Panel.from_parts(parts, names=panel.names, classes=panel.classes)


def effective_number(panel: PoolingPanel) -> float:
    """Number of independent experts, as accurate as the panel's on average, who would be as good (equation 24).

    >>> round(effective_number(Panel.exchangeable(10, correlation=0.5)), 3)
    1.818
    """
    if isinstance(panel, Panel):
        single = 2.0 * panel.parts.signal[panel.informative] ** 2
        joint = float(panel.weights @ panel.parts.contrast)
    else:
        single, joint = panel.accuracy[panel.informative], panel.joint_accuracy
    return joint / float(single.mean()) if single.any() else 0.0


def expected_auc(accuracy: npt.ArrayLike) -> Array:
    """Area under the ROC curve between two classes, Φ(√μ*), for each `accuracy` μ*, in log-odds."""
    return normal_cdf(np.sqrt(_accuracies(accuracy)))


def expected_score(accuracy: npt.ArrayLike, prior: float = 0.5) -> Array:
    """Expected normalised log score (paper, equation 26; uniform scoring prior); `accuracy` is μ*, in log-odds."""
    return _expected(accuracy, prior, lambda p: 1.0 + np.log2(np.clip(p, POOL_FLOOR, 1.0)))


def expected_brier(accuracy: npt.ArrayLike, prior: float = 0.5) -> Array:
    """Expected Brier score, 0 to 1, of forecasts with `accuracy` μ*, in log-odds, on events with the given prior."""
    return _expected(accuracy, prior, lambda p: (1.0 - p) ** 2)


def hit_rate(accuracy: npt.ArrayLike, prior: float = 0.5) -> Array:
    """Expected share of forecasts with `accuracy` μ*, in log-odds, on the right side of 50%, at the given prior."""
    prior = one_prior(prior)
    right, wrong = _acted(_accuracies(accuracy), prior, 0.0)
    return np.asarray(prior * right + (1.0 - prior) * (1.0 - wrong))[()]


@dataclass(frozen=True, eq=False)
class Decision:
    """Expected expense of acting on the pooled probability; acting costs a share of the loss that it prevents.

    Expenses are per event, in units of that loss. All have the shape of `cost_loss`.

    Attributes
    ----------
    cost_loss : ndarray
        Cost of acting over the loss prevented; it pays to act above this probability.
    expense : ndarray
        Expected expense of acting on the pool's answer.
    climatology, perfect : ndarray
        Expected expense with only the prior, and with the outcome known beforehand.
    saving : ndarray
        climatology - expense.
    value : ndarray
        saving / (climatology - perfect): 0 as good as the prior, 1 as good as perfect foresight.
    """

    cost_loss: Array
    expense: Array
    climatology: Array
    perfect: Array
    saving: Array
    value: Array


def decision_value(accuracy: float | Panel, cost_loss: npt.ArrayLike, prior: float = 0.5) -> Decision:
    """Value of a panel, or of an expert (bias and calibration corrected), in a decision with the given stakes.

    Parameters
    ----------
    accuracy : float or Panel
        mu*, or a panel for its joint accuracy.
    cost_loss : float or array_like
        Strictly between 0 and 1.
    prior : float, default 0.5

    Raises
    ------
    ArgumentError, ProbabilityError
        If an argument is out of range, or the panel has more than two classes.

    Examples
    --------
    >>> d = decision_value(Panel.exchangeable(4, correlation=0.5, accuracy=1.0), 0.2, prior=0.2)
    >>> float(d.saving.round(4)), float(d.value.round(3))
    (0.1006, 0.629)
    """
    if isinstance(accuracy, Panel):
        check_binary(accuracy)
        accuracy = accuracy.joint_accuracy
    accuracy = number(accuracy, "accuracy", 0, LARGEST)
    ratio = as_numbers(cost_loss, "cost-loss ratio", ArgumentError)
    outside = ~((ratio > 0) & (ratio < 1))
    if outside.any():
        raise ArgumentError(
            f"a cost-loss ratio must lie strictly between 0 and 1, and it is {float(ratio[outside].flat[0]):g}; "
            "outside, one should always or never act"
        )
    prior = one_prior(prior)
    right, wrong = _acted(_accuracies(accuracy), prior, np.log(ratio / (1.0 - ratio)))
    expense = np.asarray(prior * (ratio * right + (1.0 - right)) + (1.0 - prior) * ratio * wrong)
    climatology, perfect = np.minimum(ratio, prior), prior * ratio
    saving = climatology - expense
    return Decision(ratio, expense, climatology, perfect, saving, np.asarray(saving / (climatology - perfect)))


def check_binary(panel: Panel) -> None:
    """Raise an `ArgumentError` for more than two classes: expected scores then have no closed form."""
    if len(panel.classes) != 2:
        raise ArgumentError(
            f"expected scores and savings of {len(panel.classes)} classes take as many dimensions less one; "
            "for more than two only the area under the curve between two of them is known (expected_auc)"
        )


def one_prior(prior: object) -> float:
    """Return `prior` as a checked probability of the second class, strictly between 0 and 1."""
    return number(prior, "prior", 0, 1, between=True, error=ProbabilityError)


def _accuracies(accuracy: npt.ArrayLike) -> Array:
    values = as_numbers(accuracy, "accuracy", ArgumentError)
    bad = values[~((values >= 0) & (values <= LARGEST))]
    if bad.size:
        raise ArgumentError(f"an accuracy must be a number from 0 to {LARGEST:g}, and it is {float(bad.flat[0])!r}")
    return values


def _acted(accuracy: Array, prior: float, threshold: npt.ArrayLike) -> tuple[Array, Array]:
    """Probabilities that the pooled log-odds exceed `threshold`, given that the event happens and that it does not."""
    start = float(prior_log_ratios(class_probabilities(prior))[0])
    spread = np.sqrt(2.0 * np.where(accuracy > 0, accuracy, 1.0))
    ahead = start - np.asarray(threshold, dtype=np.float64)
    known = accuracy > 0
    # Without any accuracy the answer is the prior; at the threshold itself one may as well act half of the time.
    fixed = 0.5 * (1.0 + np.sign(ahead))
    return (
        np.asarray(np.where(known, normal_cdf((ahead + accuracy) / spread), fixed)),
        np.asarray(np.where(known, normal_cdf((ahead - accuracy) / spread), fixed)),
    )


def _expected(accuracy: npt.ArrayLike, prior: float, score: Callable[[Array], Array]) -> Array:
    """Expectation of `score`, a function of the probability that a forecast with `accuracy` μ* gives to the outcome."""
    m, prior = _accuracies(accuracy), one_prior(prior)
    start = float(prior_log_ratios(class_probabilities(prior))[0])
    happened, not_happened = (expected(lambda x: score(expit(x)), m + side, 2.0 * m) for side in (start, -start))
    return np.asarray(prior * happened + (1.0 - prior) * not_happened)
