"""Words in messages: numbers with nouns, lists of limited length, suggestions of similar names, quoting."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


def shown(value: object) -> str:
    """Return a name or cell in quotes, as messages show it; cut if it is long.

    >>> shown("q1"), shown(0), len(shown("x" * 1000))
    ("'q1'", '0', 62)
    """
    return repr(value[:57] + "..." if isinstance(value, str) and len(value) > 60 else value)


def listed(names: Sequence[object], most: int = 8) -> str:
    """Return names with commas between them, cut after `most` names.

    >>> listed(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    first = ", ".join(shown(name) for name in names[:most])
    return first + (f" and {len(names) - most} more" if len(names) > most else "")


def suggestion(name: str, names: Sequence[str], else_say: str) -> str:
    """Return a text that suggests the most similar of `names` or, if none is similar enough, lists all names.

    >>> suggestion("bod", ["ann", "bob"], "there are"), suggestion("x", ["ann", "bob"], "there are")
    ("did you mean 'bob'?", "there are 'ann', 'bob'")
    """
    from difflib import SequenceMatcher, get_close_matches

    near = get_close_matches(name, names, 2, 0.5)
    how_near = [SequenceMatcher(None, each, name).ratio() for each in near]
    # Of two that are as near, as numbered names are, neither was meant.
    meant = near and (len(near) == 1 or how_near[0] > how_near[1])
    return f"did you mean {shown(near[0])}?" if meant else f"{else_say} {listed(names)}"


def meant(name: str, names: Sequence[str]) -> str:
    """Return an end for a message that suggests the most similar of `names`; empty if none is similar enough.

    >>> meant("bod", ["ann", "bob"]), meant("x", ["ann", "bob"])
    ("; did you mean 'bob'?", '')
    """
    found = suggestion(name, names, "")
    return f"; {found}" if found.startswith("did") else ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    >>> counted(1, "event"), counted(2500, "event")
    ('1 event', '2,500 events')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def are(number: int) -> str:
    """Return "is" for the number 1, else "are"."""
    return "is" if number == 1 else "are"


def quoted(value: str) -> str:
    """Return a value quoted for use after an option on the command line, cut if it is long.

    >>> quoted("-1"), quoted("no idea")
    ('-1', "'no idea'")
    """
    value = value if len(value) <= 60 else value[:57] + "..."
    if value and all(c.isalnum() or c in "+-.,_@%" for c in value):
        return value
    return typed(value) if value.isprintable() else repr(value)


def typed(word: str) -> str:
    r"""Return a word quoted for a shell if needed: in double quotes if it has single ones, as $'...' if unprintable.

    >>> print(typed("it's" + chr(27) + "[31m"))
    $'it\'s\x1b[31m'
    >>> print(typed("q1"), typed("no idea"), typed("Question <> 'Total'"), typed("\"My question\" <> 'Total'"))
    q1 'no idea' "Question <> 'Total'" "\"My question\" <> 'Total'"
    """
    import shlex

    if not word.isprintable():
        # A terminal would act on control characters, so they are escapes.
        inner = "".join(_bare(sign) for sign in word)
        return f"$'{inner}'"
    # Between double quotes these are no plain characters.
    if "'" not in word or not {"!", "$", "`"}.isdisjoint(word):
        return shlex.quote(word)
    return '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'


def _bare(sign: str) -> str:
    """Return the character `sign` as it is written between $' and ', where a backslash begins an escape."""
    if sign.isprintable():
        return f"\\{sign}" if sign in "\\'" else sign
    return "".join(f"\\x{byte:02x}" for byte in sign.encode("utf-8", "surrogateescape"))


FORMULAS = frozenset("=+-@\t\r")  # first characters of formulas in spreadsheets
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
# Texts from which reading removes an apostrophe, as a pattern of the SQL engine.
APOSTROPHE = r"^''+[=+@\-\t\r]"


def is_formula(text: str) -> bool:
    """Return True if a spreadsheet may read the text as a formula.

    >>> [is_formula(text) for text in ("=1+1", "@SUM(A1)", "-1.32", "q1")]
    [True, True, False, False]
    """
    if text[:1] not in FORMULAS:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def with_apostrophe(text: str) -> str:
    """Return the text, with an apostrophe in front if a spreadsheet would else read a formula.

    A text that already begins with apostrophes before a formula gets one more, as reading removes one.

    >>> [with_apostrophe(text) for text in ("=1+1", "'=1+1", "-1.32", "it's")]
    ["'=1+1", "''=1+1", '-1.32', "it's"]
    """
    bare = text.lstrip("'")
    return f"'{text}" if _FORMULA.match(text) and (bare != text or is_formula(text)) else text


def without_apostrophe(text: str) -> str:
    """Return the text without the apostrophe that `with_apostrophe` puts in front.

    >>> [without_apostrophe(text) for text in ("'=1+1", "''=1+1", "-1.32", "'quoted'")]
    ['=1+1', "'=1+1", '-1.32', "'quoted'"]
    """
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) else text


def toml(values: Mapping[str, object]) -> str:
    """Return `values`, by name, as the text of a TOML file: texts, numbers, lists of both, and one level of tables.

    >>> print(toml({"percent": True, "column": {"event": "race"}}), end="")
    percent = true
    <BLANKLINE>
    [column]
    event = "race"
    """
    lines = []
    for name, value in sorted(values.items(), key=lambda item: isinstance(item[1], Mapping)):
        key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)
        if isinstance(value, Mapping):
            lines.append(f"\n[{key}]\n{toml(value)}")
        else:
            lines.append(f"{key} = {toml_value(value)}\n")
    return "".join(lines)


def toml_value(value: object) -> str:
    """Return a text, number, boolean or list as TOML, which is JSON except for one control character."""
    import json

    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
