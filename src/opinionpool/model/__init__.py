"""Gaussian model of experts' log-odds: panels with its parameters, and how they pool (model.md, sections 1 to 4)."""
