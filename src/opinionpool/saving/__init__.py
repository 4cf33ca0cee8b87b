"""Pools in files: what `op.save` writes and `op.load` reads."""
