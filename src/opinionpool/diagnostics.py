"""Whether forecasts are as the model takes them to be: checks, in words with a number each.

Each check is a family of tests, by expert or by pair, corrected for how many there are (Holm) and made at a level of
1%, so that where the model holds one of them alarms in about 1 of 20 files. What is too small to matter is in order,
however significant it is. Leakage is a rule and no test. `benchmarks/checks.py` measures false alarms and detection.
"""

from __future__ import annotations

import numpy.typing as npt

from opinionpool.departures import correlations, drift, normality, spreads
from opinionpool.findings import CODES, LEVEL, Check
from opinionpool.forecasts import Forecasts
from opinionpool.learn import LearnedPanel
from opinionpool.residuals import Residuals
from opinionpool.suspicions import clones, leakage, placeholders

__all__ = ["CODES", "LEVEL", "Check", "check_model"]


def check_model(
    forecasts: Forecasts, state: LearnedPanel | None = None, prior: npt.ArrayLike | None = None
) -> list[Check]:
    """Check whether forecasts are as the model takes them to be: at least one finding of each of `CODES`.

    Parameters
    ----------
    forecasts : Forecasts
    state : LearnedPanel, optional
        Its prior and its floor are used; else Laplace's estimate, and the usual floor.
    prior : optional
        As it was given to the fit, if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> f = Forecasts.from_array(np.tile([[0.1, 0.5], [0.9, 0.5]], (20, 1)), [0, 1] * 20)
    >>> [check.text for check in check_model(f) if check.serious and check.code == "placeholders"]
    ["'expert_2' says 50% 40 times in 40: a placeholder?"]
    """
    residuals = Residuals.of(forecasts, state, prior)
    return [
        *normality(residuals),
        *spreads(residuals),
        *correlations(residuals),
        *drift(residuals),
        *leakage(residuals),
        *placeholders(forecasts),
        *clones(forecasts),
    ]
