"""The eleven pools by name: their rules and how they are fitted (model.md, section 6)."""
