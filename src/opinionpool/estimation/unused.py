"""Notes on experts of whom nothing can be learned: no forecast on a resolved event, or always the same one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opinionpool.arrays import Mask
from opinionpool.errors import Note
from opinionpool.text import listed

# Names in a note before it is cut.
NAMED = 3


def no_forecast_notes(experts: Sequence[str], absent: Mask, what: str = "got weight 0") -> list[Note]:
    """A note on those without a forecast on a resolved event, if there are any.

    >>> [note.text for note in no_forecast_notes(["ann", "bob"], np.array([True, False]))]
    ["'ann' had no forecast on a resolved event and got weight 0"]
    """
    names = _names(experts, absent)
    text = f"{listed(names, NAMED)} had no forecast on a resolved event and {what}"
    return [Note("no-forecasts", text, len(names))] if names else []


def constant_notes(experts: Sequence[str], constant: Mask, what: str = "and got weight 0") -> list[Note]:
    """A note on those who always gave the same forecast, if there are any."""
    names = _names(experts, constant)
    text = f"{listed(names, NAMED)} always gave the same forecast {what}"
    return [Note("constant", text, len(names))] if names else []


def _names(experts: Sequence[str], which: Mask) -> list[str]:
    return [experts[i] for i in np.flatnonzero(which).tolist()]
