"""How good probabilities are, in and out of sample (model.md, section 5)."""
