"""Learning as it happens: events one by one, late outcomes, corrections, forgetting."""
