"""opinionpool turns several probabilities for the same event into one."""

__version__ = "0.1.0"
