"""Numbers as people read them."""

from __future__ import annotations

import math

# A difference smaller than this is none, in percentage points as they are shown.
NOTHING = 0.05


def percent(p: float) -> str:
    """A probability with digits enough to tell how far it is from the nearer end: only 0 is 0% and only 1 is 100%.

    >>> [percent(p) for p in (0.5, 0.9995, 0.00042, 1e-8, 1e-300, 1.0)]
    ['50.0%', '99.950%', '0.042%', '0.000001%', '1.0e-298%', '100%']
    """
    left = 100.0 * min(p, 1.0 - p)
    if left <= 0:
        return f"{100.0 * p:.0f}%"
    first = -math.floor(math.log10(left))
    if first > 15:
        return f"{100.0 * p:.1e}%"
    return f"{100.0 * p:.{max(1, first + (left >= 0.01))}f}%"


def brief(p: float) -> str:
    """A probability in whole per cent, with more digits near the ends.

    >>> brief(0.634), brief(0.9928), brief(0.00042), brief(1.0)
    ('63%', '99.3%', '0.042%', '100%')
    """
    if 0.0095 <= p <= 0.9905:
        return f"{100.0 * p:.0f}%"
    return f"{100.0 * p:.1f}%" if 0.00095 <= p <= 0.99905 else percent(p)


def points(p: float) -> str:
    """A difference of probabilities in percentage points.

    >>> points(0.0312), points(-0.2), points(1e-9)
    ('+3.1', '-20.0', '0.0')
    """
    return "0.0" if abs(100.0 * p) < NOTHING else f"{100.0 * p:+.1f}"


def whole(count: float) -> str:
    """A number of things; one that is weighted may be broken.

    >>> whole(1234567.0), whole(2.5)
    ('1,234,567', '2.5')
    """
    return f"{count:,.15g}"


def decimal(x: float) -> str:
    """A number to three decimals.

    >>> decimal(-0.12345), decimal(-0.0)
    ('-0.123', '0.000')
    """
    return f"{round(x, 3) + 0.0:.3f}"


def hundredths(x: float) -> str:
    """A number to two decimals, 0 without a sign."""
    return f"{round(x, 2) + 0.0:.2f}"


def signed(x: float) -> str:
    """A number to three decimals with its sign, which 0 has not."""
    return f"{x:+.3f}" if abs(x) >= 0.0005 else "0.000"


def two_signed(x: float) -> str:
    """A number to two decimals with its sign, which 0 has not."""
    return f"{x:+.2f}" if abs(x) >= 0.005 else "0.00"


def finite(number: float) -> float | None:
    """A number as JSON and tables have it: None where it is NaN or infinite."""
    return number if math.isfinite(number) else None


def as_is(text: str) -> str:
    """A text that stands at the right of its column, as numbers do, and is never folded."""
    return text
