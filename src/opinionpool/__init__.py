"""opinionpool turns several probabilities for the same event into one."""
