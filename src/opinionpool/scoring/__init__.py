"""Scores of probabilities, in-sample and out of sample (model.md, section 5)."""
