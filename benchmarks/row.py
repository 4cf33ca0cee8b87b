"""One line of the benchmarks' report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the report.

    Attributes
    ----------
    what : str
        The thing measured.
    needed : str
        What was promised, such as ``"<= 4 x"``; empty where nothing was.
    got : str
        What was measured, in the same unit.
    peer : str
        What it was measured against, and how that did.
    kept : bool
        Whether the promise holds.
    """

    what: str
    needed: str
    got: str
    peer: str
    kept: bool = True


def at_most(what: str, limit: float, ratio: float, peer: str) -> Row:
    """Return the row of a ratio that must not exceed `limit`."""
    return Row(what, f"<= {limit:g} x", f"{ratio:.2f} x", peer, kept=ratio <= limit)
