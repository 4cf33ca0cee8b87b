"""Analyses of a fitted pool: explanations of answers, the panel's value, checks of the model."""
