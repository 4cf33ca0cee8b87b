"""Registry of all pools by name, built and checked from the rows of `opinionpool.pools`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError
from opinionpool.model.contrasts import Contrasts
from opinionpool.pools import ROWS, Row
from opinionpool.pools.rule import Option, Pool


class Gaussian(Pool):
    """Registry entry of the Gaussian pool, which `opinionpool.learning.learn` fits and a `FittedPanel` applies."""

    title = "Gaussian pool"
    options = MappingProxyType(
        {
            "structure": Option("auto", "full, common, exchangeable, independent or auto"),
            "beliefs": Option(
                "default", 'beliefs beforehand: Beliefs, "default", or None to learn from the data alone'
            ),
            "class_model": Option("auto", "symmetric, full or auto, for more than two classes"),
        }
    )
    learns = True
    scale = "log-odds"

    def combine(self, contrast: Contrasts, **parameters: Any) -> Array:  # noqa: ANN401
        """Raise a NotImplementedError, as a `FittedPanel` combines the forecasts of this pool."""
        raise NotImplementedError


def read_rows(rows: Iterable[Row]) -> dict[str, Pool]:
    """Return the pools in `rows` by name; an `ArgumentError` names an invalid row."""
    pools: dict[str, Pool] = {}
    for row in rows:
        module, _, name = row.place.partition(":")
        try:
            kind = getattr(import_module(module if "." in module else f"opinionpool.pools.{module}"), name)
        except (ImportError, AttributeError) as error:
            raise ArgumentError(f"there is no pool {row.name!r} at {row.place!r}: {error}") from None
        wrong = f"{row.name!r} is there twice" if row.name in pools else _fault(row, kind)
        if wrong:
            raise ArgumentError(f"the row of the pool {row.name!r} is wrong: {wrong}")
        pools[row.name] = kind()
    return pools


def _fault(row: Row, kind: Any) -> str | None:  # noqa: ANN401 - whatever the row names
    """Return the error message for an invalid row or pool class; None if both are valid."""
    if not (inspect.isclass(kind) and issubclass(kind, Pool)):
        return f"{row.place} is no subclass of Pool"
    if inspect.isabstract(kind) or not getattr(kind, "title", ""):
        return f"{kind.__name__} needs a title and a rule, combine"
    if kind.scale not in {None, "log-odds", "probability"}:
        return f"its scale is {kind.scale!r}, and should be 'log-odds', 'probability' or None"
    if kind.scale is not None and kind is not Gaussian and kind.parts is Pool.parts:
        return f"its answer is a sum of {kind.scale}, and it has no parts"
    if row.weighted != ("weights" in kind.options):
        return "a row is weighted where the pool has the option weights, and only there"
    if kind.fixed_by is not None and kind.fixed_by not in kind.options:
        return f"it is fixed by {kind.fixed_by!r}, which is no option"
    taken = inspect.signature(kind.fit).parameters.values()
    unknown = kind.options.keys() - {each.name for each in taken}
    if kind is not Gaussian and unknown and not any(each.kind is each.VAR_KEYWORD for each in taken):
        return f"its fit does not take {', '.join(sorted(unknown))}"
    return None


_POOLS = read_rows(ROWS)
POOLS: Mapping[str, Pool] = MappingProxyType(_POOLS)
