"""Plots of a fitted pool, a panel, an explanation or a comparison; each function draws on Axes and returns them."""

from opinionpool.plots.panels import (
    correlation as correlation,
    gains as gains,
    learning as learning,
    rates as rates,
    reliability as reliability,
    waterfall as waterfall,
    weights as weights,
)

__all__ = ["correlation", "gains", "learning", "rates", "reliability", "waterfall", "weights"]
