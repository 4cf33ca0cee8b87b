"""opinionpool combines several probabilities for one event into one.

Importing it loads no other module: each public name loads its module on first use.
"""

from importlib import import_module
from itertools import pairwise

from opinionpool.version import __version__ as __version__


def _homes() -> dict[str, str]:
    """Return the module of each public name, read from the stub file `__init__.pyi`, which type checkers read too."""
    with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as stub:
        imports = [part.partition(" import ") for part in stub.read().split("from opinionpool.")[1:]]
    words = {module: names.replace(",", " ").split() for module, _, names in imports if module != "version"}
    return {name: module for module, own in words.items() for before, name in pairwise(own) if before == "as"}


_HOME = _homes()

__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - every name is text


# Modules that are used by their own names, such as `op.plots.weights`.
_MODULES = ("plots",)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"opinionpool.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'opinionpool' has no attribute {name!r}")
    value = getattr(import_module(f"opinionpool.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
