"""Learning from a stream of events: events one by one, late outcomes, corrections, forgetting."""
