"""Conditions on rows, such as ``type <> 'bot' and rating >= 3``: from the text of --where to SQL for the engine.

A condition is comparisons of a column with values, joined by ``and``, ``or``, ``not`` and parentheses. The SQL is made
anew from its parts, with column numbers for names and bound parameters for literals, so nothing that a user writes
reaches the engine as a query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from opinionpool.errors import ArgumentError, LayoutError
from opinionpool.tables.engine import literal, number
from opinionpool.text import shown, suggestion

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<text>'(?:[^']|'')*')
    |(?P<column>"(?:[^"]|"")*"|`[^`]*`|[^\W\d]\w*)
    |(?P<sign><=|>=|<>|!=|==|=|<|>)
    |(?P<bracket>[(),]))""",
    re.VERBOSE,
)
# Letters that stand for words in the form of a condition; other tokens have the first letter of their kind, or are it.
_WORDS = {"and": "&", "or": "|", "not": "!", "in": "i", "is": "b", "blank": "B"}
_SQL = {"&": "AND", "|": "OR", "!": "NOT", "==": "=", "!=": "<>"}
# Forms of a comparison, and of parts of a condition that are a condition (x).
_COMPARISON = r"c(?:s[ntc]|!?i\((?:[nt],)*[nt]\)|b!?B)"
_CONDITION = r"!x|\(x\)|x[&|]x"
_LONGEST, _MOST = 4000, 99  # characters of a condition; parentheses and nots
_FORM = "a condition compares columns with values, as in --where \"type <> 'bot' and rating >= 3\""


class _Token(NamedTuple):
    letter: str  # of its kind
    text: str
    start: int  # where it begins and ends in the condition
    end: int


def condition(name: str, sign: str, *values: str) -> str:
    r"""Return a condition for ``--where``: the column `name`, `sign`, and a text (several texts if `sign` is "in").

    >>> condition("quantile", "=", "0.5"), condition("round no", "in", "1", "2")
    ("quantile = '0.5'", '"round no" in (\'1\', \'2\')')
    """
    column = name if re.fullmatch(r"[^\W\d]\w*", name) else '"' + name.replace('"', '""') + '"'
    several = ", ".join(map(literal, values))
    return f"{column} {sign} {f'({several})' if sign == 'in' else several}"


def parse_where(
    text: str, table: str, names: Sequence[str], cell: Callable[[int], str]
) -> tuple[str, list[str | float]]:
    """Return the condition on rows that `text` states, as SQL with question marks for literals, and the literals.

    Blank cells differ from every value, and are neither below nor above one. Cells are compared with a number as
    numbers, with anything else as text; `cell` gives the SQL of a column as text from its position.

    >>> parse_where("kind in ('a', 'b')", "t", ["kind"], "c{}".format)
    ("(coalesce(trim(c0), '') IN (?, ?))", ['a', 'b'])
    """
    if len(text) > _LONGEST:
        raise ArgumentError(f"--where takes at most {_LONGEST:,} characters, and there are {len(text):,}")
    tokens = list(_tokens(text))
    form = "".join(token.letter for token in tokens)
    if form.count("(") + form.count("!") > _MOST:
        raise ArgumentError(f"--where takes at most {_MOST} parentheses and nots")
    rest, before = re.sub(_COMPARISON, "x", form), ""
    while rest != before:
        rest, before = re.sub(_CONDITION, "x", rest), rest
    if rest != "x":
        raise ArgumentError(f"--where: {shown(text)} is not understood; {_FORM}")
    sql, parameters = list[str](), list[str | float]()
    for match in re.finditer(f"{_COMPARISON}|.", form):
        part = tokens[match.start() : match.end()]
        if len(part) == 1:
            sql.append(_SQL.get(part[0].letter, part[0].text))
            continue
        columns = [cell(_position(each.text, table, names)) for each in part if each.letter == "c"]
        own, values = _comparison(part, *columns)
        sql.append(own)
        parameters += values
    return " ".join(sql), parameters


def conjuncts(text: str) -> list[str]:
    """Return the conditions that ``and`` joins in `text`, as written; `text` as one if it has ``or`` outside brackets.

    >>> conjuncts("a = 1 and not (b = 2 and c = 'x and y')"), conjuncts("a = 1 or b = 2 and c = 3")
    (['a = 1', "not (b = 2 and c = 'x and y')"], ['a = 1 or b = 2 and c = 3'])
    """
    found, start, depth = [], 0, 0
    for token in _tokens(text):
        depth += {"(": 1, ")": -1}.get(token.letter, 0)
        if not depth and token.letter == "|":
            return [text]
        if not depth and token.letter == "&":
            found.append(text[start : token.start].strip())
            start = token.end
    return [*found, text[start:].strip()]


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens (names, signs, literals) of a condition; raise an error at text that is none."""
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ArgumentError(f"--where: {shown(text[at:].strip()[:20])} is not understood; {_FORM}")
        kind, at = str(match.lastgroup), match.end()
        token = match[kind]
        letter = token if kind == "bracket" else kind[0]
        yield _Token(_WORDS.get(token.lower(), letter), token, match.start(kind), at)


def _comparison(part: Sequence[_Token], left: str, right: str | None = None) -> tuple[str, list[str | float]]:
    """SQL of a comparison of the column with SQL `left`, perhaps with another one, `right`; and its literals."""
    letters, text = "".join(token.letter for token in part), _text(left)
    numbers: list[str | float] = [float(token.text) for token in part if token.letter == "n"]
    texts: list[str | float] = [token.text[1:-1].replace("''", "'").strip() for token in part if token.letter == "t"]
    if "b" in letters:
        return f"{text} {'<>' if '!' in letters else '='} ''", []
    if "i" in letters:
        able = ((text, texts), (f"coalesce({number(left)}, 'nan'::DOUBLE)", numbers))
        among = " OR ".join(f"{of} IN ({', '.join('?' * len(own))})" for of, own in able if own)
        return f"{'NOT ' if '!' in letters else ''}({among})", [*texts, *numbers]
    sign = _SQL.get(part[1].text, part[1].text)
    if right is not None:
        return f"coalesce({number(left)} {sign} {number(right)}, {text} {sign} {_text(right)})", []
    if numbers:
        return f"coalesce({number(left)} {sign} ?, {'true' if sign == '<>' else 'false'})", numbers
    return f"{text} {sign} ?" if sign in {"=", "<>"} else f"({text} <> '' AND {text} {sign} ?)", texts


def _position(name: str, table: str, names: Sequence[str]) -> int:
    """Position in `names` of the column that a condition calls `name`, in quotes or not and in whatever case."""
    name = name[1:-1].replace('""', '"') if name[0] == '"' else name.strip("`")
    folded = [i for i, own in enumerate(names) if own.lower() == name.lower()]
    exact = [i for i in folded if names[i] == name]
    if len(exact or folded) != 1:
        near = suggestion(name, names, "its columns are")
        raise LayoutError(
            f"{table}: --where names the column {shown(name)}, which is not there; {near}; if it is a value, put it in "
            "single quotes"
        )
    return (exact or folded)[0]


def _text(cell: str) -> str:
    return f"coalesce(trim({cell}), '')"
