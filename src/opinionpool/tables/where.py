"""Which rows count: a condition such as ``type <> 'bot' and rating >= 3``, as text and as the engine takes it.

The grammar is the whole language: columns, literals, comparisons, ``in``, ``is blank``, ``and``, ``or``, ``not`` and
parentheses. What is handed to the engine is made anew from the parsed condition, with column numbers for names and
bound parameters for literals, so nothing that a user writes ever reaches it as a query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from opinionpool.errors import ArgumentError, LayoutError
from opinionpool.tables.engine import literal
from opinionpool.text import shown, suggestion

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<text>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*"|`[^`]*`)
    |(?P<sign><=|>=|<>|!=|==|=|<|>|\(|\)|,)
    |(?P<word>[^\W\d]\w*))""",
    re.VERBOSE,
)
_COMPARISONS = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_KEYWORDS = {"and", "or", "not", "in", "is", "blank"}
_LONGEST, _DEEPEST = 4000, 40
_FORM = "a condition compares columns with values, as in --where \"type <> 'bot' and rating >= 3\""


def condition(name: str, sign: str, *values: str) -> str:
    r"""Return a comparison of a column with a text, or with several, as ``--where`` takes it.

    >>> condition("quantile", "=", "0.5"), condition("round no", "in", "1", "2")
    ("quantile = '0.5'", '"round no" in (\'1\', \'2\')')
    """
    column = name if re.fullmatch(r"[^\W\d]\w*", name) else '"' + name.replace('"', '""') + '"'
    several = ", ".join(map(literal, values))
    return f"{column} {sign} {f'({several})' if sign == 'in' else several}"


def parse_where(
    text: str, table: str, names: Sequence[str], cell: Callable[[int], str]
) -> tuple[str, list[str | float]]:
    """Return the condition that `text` puts on the rows of a table, as SQL with question marks, and its literals.

    Blank cells differ from every value, and are neither below nor above one. A comparison with a number is one of
    numbers, any other is one of text.

    >>> parse_where("kind in ('a', 'b')", "t", ["kind"], "c{}".format)
    ("coalesce(trim(c0), '') IN (?, ?)", ['a', 'b'])
    """
    if len(text) > _LONGEST:
        raise ArgumentError(f"--where takes at most {_LONGEST:,} characters, and there are {len(text):,}")
    parser = _Parser(text, table, names, cell, _tokens(text))
    query = parser.either()
    if parser.left:
        raise parser.unexpected()
    return query, parser.parameters


def conjuncts(text: str) -> list[str]:
    """Return the conditions that must all hold, as written; a single one if some are joined by ``or``.

    >>> conjuncts("a = 1 and not (b = 2 and c = 'x and y')"), conjuncts("a = 1 or b = 2 and c = 3")
    (['a = 1', "not (b = 2 and c = 'x and y')"], ['a = 1 or b = 2 and c = 3'])
    """
    found, start, depth = [], 0, 0
    for match in _matches(text):
        word = match[0].strip().lower()
        depth += {"(": 1, ")": -1}.get(word, 0)
        if not depth and word == "or":
            return [text]
        if not depth and word == "and":
            found.append(text[start : match.start()].strip())
            start = match.end()
    return [*found, text[start:].strip()]


def _tokens(text: str) -> list[tuple[str, str]]:
    found = [(str(match.lastgroup), str(match[str(match.lastgroup)])) for match in _matches(text)]
    if not found:
        raise ArgumentError(f"--where is empty; {_FORM}")
    return found


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of a condition; raise at text that is no token."""
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ArgumentError(f"--where: {shown(text[at:].strip()[:20])} is not understood; {_FORM}")
        yield match
        at = match.end()


@dataclass
class _Parser:
    """Recursive descent parser of conditions; each method returns SQL and appends to the parameters."""

    text: str
    table: str
    names: Sequence[str]
    cell: Callable[[int], str]
    tokens: list[tuple[str, str]]
    at: int = 0
    depth: int = 0
    parameters: list[str | float] = field(default_factory=list)

    @property
    def left(self) -> bool:
        """Whether tokens are left to parse."""
        return self.at < len(self.tokens)

    def unexpected(self) -> ArgumentError:
        """Return the error for an unexpected token, or for an unexpected end of the text."""
        if not self.left:
            return ArgumentError(f"--where ends where something is to follow; {_FORM}")
        kind, value = self.tokens[self.at]
        if value == "(" and self.at and self.tokens[self.at - 1][0] == "word":
            value = f"{self.tokens[self.at - 1][1]}("
            return ArgumentError(
                f"--where: there are no functions or subqueries, and {shown(value)} begins one; {_FORM}"
            )
        hint = "; a value of text stands in single quotes" if kind in {"word", "quoted"} else ""
        return ArgumentError(f"--where: {shown(value)} is not expected there{hint}; {_FORM}")

    def _is(self, *wanted: str) -> bool:
        """Return True if the next tokens are the words or signs `wanted`."""
        ahead = self.tokens[self.at : self.at + len(wanted)]
        return [value.lower() for kind, value in ahead if kind in {"word", "sign"}] == list(wanted)

    def _skip(self, *wanted: str) -> bool:
        found = self._is(*wanted)
        self.at += len(wanted) if found else 0
        return found

    def _need(self, sign: str) -> None:
        if not self._skip(sign):
            raise self.unexpected()

    def either(self) -> str:
        """Return the SQL of conditions joined by ``or``, each of some joined by ``and``."""
        return self._joined("or", lambda: self._joined("and", self._negated))

    def _joined(self, word: str, part: Callable[[], str]) -> str:
        parts = [part()]
        while self._skip(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else f"({f' {word.upper()} '.join(parts)})"

    def _negated(self) -> str:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ArgumentError(f"--where is nested more than {_DEEPEST} deep")
        try:
            if self._skip("not"):
                return f"NOT ({self._negated()})"
            if self._skip("("):
                inner = self.either()
                self._need(")")
                return f"({inner})"
            return self._comparison()
        finally:
            self.depth -= 1

    def _comparison(self) -> str:
        kind, left = self._operand()
        if kind != "column":
            raise ArgumentError(f"--where: a comparison begins with a column; {_FORM}")
        text = f"coalesce(trim({left}), '')"
        if self._skip("is", "not", "blank"):
            return f"{text} <> ''"
        if self._skip("is", "blank"):
            return f"{text} = ''"
        if self._skip("not", "in"):
            return f"NOT ({self._among(left, text)})"
        if self._skip("in"):
            return self._among(left, text)
        if not self.left or self.tokens[self.at][1] not in _COMPARISONS:
            raise self.unexpected()
        sign = _COMPARISONS[self.tokens[self.at][1]]
        self.at += 1
        kind, right = self._operand()
        unequal = "true" if sign == "<>" else "false"
        if kind == "number":
            self.parameters.append(float(right))
            return f"coalesce({_number(left)} {sign} ?, {unequal})"
        if kind == "text":
            self.parameters.append(right)
            return f"{text} {sign} ?" if sign in {"=", "<>"} else f"({text} <> '' AND {text} {sign} ?)"
        other = f"coalesce(trim({right}), '')"
        return f"coalesce({_number(left)} {sign} {_number(right)}, {text} {sign} {other})"

    def _among(self, left: str, text: str) -> str:
        self._need("(")
        texts: list[str | float] = []
        numbers: list[str | float] = []
        while True:
            kind, value = self._operand()
            if kind == "column":
                raise ArgumentError(f"--where: after in stand values; {_FORM}")
            (numbers if kind == "number" else texts).append(float(value) if kind == "number" else value)
            if not self._skip(","):
                break
        self._need(")")
        parts = []
        for values, of in ((texts, text), (numbers, f"coalesce({_number(left)}, 'nan'::DOUBLE)")):
            if values:
                parts.append(f"{of} IN ({', '.join('?' * len(values))})")
                self.parameters += values
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"

    def _operand(self) -> tuple[str, str]:
        """Return the SQL of a column or literal."""
        if not self.left:
            raise self.unexpected()
        kind, value = self.tokens[self.at]
        if kind == "sign" or (kind == "word" and value.lower() in _KEYWORDS and value not in self.names):
            raise self.unexpected()
        self.at += 1
        if kind == "number":
            return kind, value
        if kind == "text":
            return kind, value[1:-1].replace("''", "'").strip()
        if self._is("("):
            raise self.unexpected()
        name = value if kind == "word" else value[1:-1].replace('""', '"') if value[0] == '"' else value[1:-1]
        folded = [i for i, own in enumerate(self.names) if own.lower() == name.lower()]
        exact = [i for i in folded if self.names[i] == name]
        if len(exact or folded) != 1:
            near = suggestion(name, self.names, "its columns are")
            raise LayoutError(
                f"{self.table}: --where names the column {shown(name)}, which is not there; {near}; if it is a value, "
                f"put it in single quotes"
            )
        return "column", self.cell((exact or folded)[0])


def _number(cell: str) -> str:
    return f"CASE WHEN contains({cell}, '_') THEN NULL ELSE TRY_CAST(trim({cell}) AS DOUBLE) END"
