"""Files of pools: the format that `op.save` writes and `op.load` reads."""
