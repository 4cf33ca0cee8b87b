"""Text in CSV that a spreadsheet would take for a formula, and run."""

from __future__ import annotations

import re

_FIRST = "=+-@\t\r"
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
# What is read back, as the engine writes patterns.
APOSTROPHE = r"^''+[=+@\-\t\r]"


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may take text for a formula; numbers are what they look like.

    >>> [is_formula(text) for text in ("=1+1", "@SUM(A1)", "-1.32", "q1")]
    [True, True, False, False]
    """
    if text[:1] not in _FIRST or not text:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def with_apostrophe(text: str) -> str:
    """Text with an apostrophe before what a spreadsheet may take for a formula, so that it does not.

    One apostrophe more, too, where some stand there already: reading takes one away.

    >>> [with_apostrophe(text) for text in ("=1+1", "'=1+1", "-1.32", "it's")]
    ["'=1+1", "''=1+1", '-1.32', "it's"]
    """
    bare = text.lstrip("'")
    return f"'{text}" if _FORMULA.match(text) and (bare != text or is_formula(text)) else text


def without_apostrophe(text: str) -> str:
    """Text as it was before `with_apostrophe`.

    >>> [without_apostrophe(text) for text in ("'=1+1", "''=1+1", "-1.32", "'quoted'")]
    ['=1+1', "'=1+1", '-1.32', "'quoted'"]
    """
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) else text
