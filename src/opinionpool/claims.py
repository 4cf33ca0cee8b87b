"""A claim of the paper beside what is found."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Claim", "close"]


@dataclass(frozen=True)
class Claim:
    """One row of the table of claims.

    Attributes
    ----------
    where : str
        Section, equation or figure.
    says : str
        What the paper says, or prints.
    found : str
        The number that decides, and how it was found.
    holds : bool
    right : str
        Where it does not hold: what does.
    """

    where: str
    says: str
    found: str
    holds: bool
    right: str = ""


def close(a: float, b: float, places: float = 1e-9) -> bool:
    """Whether two numbers of ordinary size are equal but for rounding.

    >>> close(0.1 + 0.2, 0.3), close(0.3, 0.31)
    (True, False)
    """
    return abs(a - b) <= places * (1.0 + abs(a) + abs(b))
