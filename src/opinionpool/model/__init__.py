"""What is assumed of experts: the Gaussian model, its panels, and how they pool (model.md, sections 1 to 4)."""
