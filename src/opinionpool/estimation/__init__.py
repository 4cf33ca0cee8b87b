"""Estimates from the data alone: sums, averages, EM, likelihoods, optimisers (model.md, sections 2.5 and 6)."""
