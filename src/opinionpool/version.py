"""The version, in a module of its own so that nobody imports all public names for it."""

__version__ = "0.2.0"
