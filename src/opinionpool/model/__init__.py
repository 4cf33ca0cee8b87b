"""The Gaussian model of experts, its panels, and how panels pool (model.md, sections 1 to 4)."""
