"""Answers taken apart: what each expert adds, pool by pool."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool import logodds
from opinionpool.errors import ArgumentError
from opinionpool.gaussian import weights_for
from opinionpool.logodds import Array
from opinionpool.panel import Panel
from opinionpool.poolingpanel import PoolingPanel
from opinionpool.rules import LearnedPool
from opinionpool.said import Said
from opinionpool.stated import Stated

# Pools whose answer is the prior and a sum of contrasts, and those that are a sum of probabilities.
RATIOS = ("log", "independent", "geometric", "extremized", "recalibrated")
SHARES = ("average", "linear")


@dataclass(frozen=True, eq=False)
class Decomposition:
    """An answer as start + lean + the sum of contributions, before any base rate; N experts, 0 for those not there.

    Attributes
    ----------
    scale : {"log-odds", "probability"}
        Of contributions, start and lean: D = K - 1 log-ratios, or D = K probabilities.
    bias, contrast : ndarray, shape (N, K - 1)
    weights : ndarray, shape (N,), or None
        None where the weight of a contrast is not one number.
    contributions : ndarray, shape (N, D)
    start, lean : ndarray, shape (D,)
    """

    scale: str
    bias: Array
    contrast: Array
    weights: Array | None
    contributions: Array
    start: Array
    lean: Array


def panel_parts(panel: PoolingPanel, stated: Stated) -> Decomposition:
    """L* = L° + lean + Σ w_i C_i; where extremes have a centre, it is each one's bias, and what is left the lean."""
    floor, _, extremes = panel.settings
    ratios = logodds.log_ratios(stated.q, stated.prior[:, None, :], floor)[0]
    present = ~np.isnan(ratios[:, :1])
    believed = extremes.believed(ratios - stated.reference, logodds.no_options(stated.prior))
    believed = np.where(present, believed, 0.0)
    inner = logodds.uncentred(panel.bias) if ratios.shape[1] > 1 else panel.bias[:, None]
    if not isinstance(panel, Panel):
        added = logodds.uncentred(panel.contributions(stated.q[0], logodds.public_probabilities(stated.prior[0])))
        contrast = np.where(present, believed - inner, 0.0)
        return Decomposition(
            "log-odds", inner, contrast, None, added, stated.reference[0], np.zeros_like(stated.reference[0])
        )
    bias = inner if extremes.centre is None else extremes.centre
    weights = weights_for(panel.parts, present[None, :, 0])[0]
    contrast = np.where(present, believed - bias, 0.0)
    lean = np.asarray(weights @ (bias - inner))
    return Decomposition("log-odds", bias, contrast, weights, weights[:, None] * contrast, stated.reference[0], lean)


def rule_parts(state: LearnedPool, stated: Stated) -> Decomposition:
    """The same for pools that are sums of contrasts, or of probabilities.

    Raises
    ------
    ArgumentError
        For the others: median, trimmed and beta-linear.
    """
    if state.rule not in RATIOS + SHARES:
        raise ArgumentError(
            f"the {state.rule} pool's answer is not a sum of what each expert adds; "
            f"explain one of gaussian, {', '.join(RATIOS + SHARES)}"
        )
    said = Said(logodds.log_ratios(stated.q, stated.prior[:, None, :], state.floor), stated.reference)
    contrast = said.contrasts[0]
    none, still = np.zeros_like(contrast), np.zeros(contrast.shape[1])
    if state.rule in SHARES:
        if not said.present.any():
            empty = np.zeros((len(contrast), stated.classes))
            return Decomposition(
                "probability", none, none, np.zeros(len(contrast)), empty, stated.prior[0], np.zeros(stated.classes)
            )
        shares = said.shares(state.parameters.get("weights"))[0]
        added = shares[:, None] * said.probabilities[0]
        zero = np.zeros(stated.classes)
        return Decomposition("probability", none, contrast, shares, added, zero, zero)
    if not said.present.any():
        return Decomposition("log-odds", none, none, np.zeros(len(contrast)), none, stated.reference[0], still)
    weights = _contrast_weights(state, said)
    a = np.asarray(state.parameters.get("intercept", 0.0), dtype=np.float64)
    d = len(still)
    lean = np.broadcast_to(a, d) if d == 1 else logodds.uncentred(np.broadcast_to(a, d + 1))
    return Decomposition("log-odds", none, contrast, weights, weights[:, None] * contrast, stated.reference[0], lean)


def _contrast_weights(state: LearnedPool, said: Said) -> Array:
    """What each contrast is multiplied by, (N,), 0 where missing."""
    given, present = state.parameters, said.present[0]
    scale = float(given.get("factor", 1.0)) * float(given.get("slope", 1.0))
    if state.rule == "independent":
        return np.asarray(present, dtype=np.float64)
    if state.rule == "log":
        n = len(present)
        weights = given.get("weights")
        return np.asarray(np.where(present, np.full(n, 1.0 / n) if weights is None else weights, 0.0))
    return np.asarray(scale * said.shares(given.get("weights"))[0])
