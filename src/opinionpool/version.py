"""Version of opinionpool, in its own module so that reading it does not import all public names."""

__version__ = "0.2.0"
