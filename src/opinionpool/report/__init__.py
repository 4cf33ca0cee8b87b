"""Results for people and programs: tables, CSV, JSON, HTML."""

# Orders of listed events: as in the file, by name, the first to close, the most probable, the least certain,
# the most disputed; here, so that a command's help need not wait for NumPy.
SORTS = ("file", "event", "closes", "probability", "interval", "disagreement")
