"""Scores of probabilities, in and out of sample (model.md, section 5)."""
