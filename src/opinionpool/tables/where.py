"""Conditions on rows, such as ``type <> 'bot' and rating >= 3``: from the text of --where to SQL for the engine.

The language is columns, literals, comparisons, ``in``, ``is blank``, ``and``, ``or``, ``not`` and parentheses, which
have the grammar of Python. What is handed to the engine is made anew from the parsed condition, with column numbers for
names and bound parameters for literals, so nothing that a user writes ever reaches it as a query.
"""

from __future__ import annotations

import ast
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
# Signs and words of a condition in Python's grammar; other signs are the same there.
_IN_PYTHON = {"=": "==", "<>": "!=", "and": "and", "or": "or", "not": "not", "in": "in", "is": "is", "blank": "None"}
_COMPARISONS = {ast.Eq: "=", ast.NotEq: "<>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_LONGEST, _MOST = 4000, 99  # characters of a condition; parentheses and nots
_FORM = "a condition compares columns with values, as in --where \"type <> 'bot' and rating >= 3\""


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
    ("coalesce(trim(c0), '') IN (?, ?)", ['a', 'b'])
    """
    if len(text) > _LONGEST:
        raise ArgumentError(f"--where takes at most {_LONGEST:,} characters, and there are {len(text):,}")
    found, words = _Condition(table, names, cell), list[str]()
    for match in _matches(text):
        kind, value = str(match.lastgroup), str(match[str(match.lastgroup)])
        if kind == "sign" or (kind == "word" and value.lower() in _IN_PYTHON):
            words.append(_IN_PYTHON.get(value.lower(), value))
        else:
            words.append(f"v{len(found.operands)}")
            found.operands[words[-1]] = kind, value
    if words.count("(") + words.count("not") > _MOST:
        raise ArgumentError(f"--where takes at most {_MOST} parentheses and nots")
    try:
        tree = ast.parse(" ".join(words), mode="eval")
    except SyntaxError:
        raise ArgumentError(f"--where: {shown(text)} is not understood; {_FORM}") from None
    return found.sql(tree.body), found.parameters


def conjuncts(text: str) -> list[str]:
    """Return the conditions that ``and`` joins in `text`, as written; `text` as one if it has ``or`` outside brackets.

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


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens (names, signs, literals) of a condition; raise an error at text that is none."""
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ArgumentError(f"--where: {shown(text[at:].strip()[:20])} is not understood; {_FORM}")
        yield match
        at = match.end()


@dataclass
class _Condition:
    """Condition on the rows of a table; its methods turn nodes of its syntax tree into SQL, and collect literals."""

    table: str
    names: Sequence[str]
    cell: Callable[[int], str]
    # columns and literals as written, by what stands for them in the parsed condition: their kinds and texts
    operands: dict[str, tuple[str, str]] = field(default_factory=dict)
    parameters: list[str | float] = field(default_factory=list)

    def sql(self, node: ast.expr) -> str:
        """Return the SQL of the condition at `node` of the syntax tree."""
        match node:
            case ast.BoolOp(op, values):
                return f"({(' OR ' if isinstance(op, ast.Or) else ' AND ').join(map(self.sql, values))})"
            case ast.UnaryOp(ast.Not(), operand):
                return f"NOT ({self.sql(operand)})"
            case ast.Compare(left, [ast.Is() | ast.IsNot() as op], [ast.Constant()]):
                return f"{_text(self._column(left))} {'=' if isinstance(op, ast.Is) else '<>'} ''"
            case ast.Compare(left, [ast.In() | ast.NotIn() as op], [right]):
                among = self._among(self._column(left), right.elts if isinstance(right, ast.Tuple) else [right])
                return among if isinstance(op, ast.In) else f"NOT ({among})"
            case ast.Compare(left, [op], [right]) if type(op) in _COMPARISONS:
                return self._compared(self._column(left), _COMPARISONS[type(op)], right)
        raise ArgumentError(f"--where: a column is to be compared with one value; {_FORM}")

    def _compared(self, left: str, sign: str, right: ast.expr) -> str:
        kind, value = self._operand(right)
        text, unequal = _text(left), "true" if sign == "<>" else "false"
        if kind == "column":
            return f"coalesce({_number(left)} {sign} {_number(str(value))}, {text} {sign} {_text(str(value))})"
        self.parameters.append(value)
        if kind == "number":
            return f"coalesce({_number(left)} {sign} ?, {unequal})"
        return f"{text} {sign} ?" if sign in {"=", "<>"} else f"({text} <> '' AND {text} {sign} ?)"

    def _among(self, left: str, values: Sequence[ast.expr]) -> str:
        operands, parts = [self._operand(value) for value in values], []
        for kind, of in (("text", _text(left)), ("number", f"coalesce({_number(left)}, 'nan'::DOUBLE)")):
            own = [value for its, value in operands if its == kind]
            if own:
                parts.append(f"{of} IN ({', '.join('?' * len(own))})")
                self.parameters += own
        if not parts or "column" in dict(operands):
            raise ArgumentError(f"--where: after in stand values; {_FORM}")
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"

    def _column(self, node: ast.expr) -> str:
        """Return the SQL of the column that begins a comparison; raise an error if `node` is no column."""
        kind, sql = self._operand(node)
        if kind != "column":
            raise ArgumentError(f"--where: a comparison begins with a column; {_FORM}")
        return str(sql)

    def _operand(self, node: ast.expr) -> tuple[str, str | float]:
        """Kind of the operand at `node` (column, text or number), and its SQL or, of a literal, its value."""
        if not isinstance(node, ast.Name):
            raise ArgumentError(f"--where: columns are compared with values, and there are no functions; {_FORM}")
        kind, value = self.operands[node.id]
        if kind == "number":
            return kind, float(value)
        if kind == "text":
            return kind, value[1:-1].replace("''", "'").strip()
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


def _text(cell: str) -> str:
    return f"coalesce(trim({cell}), '')"


def _number(cell: str) -> str:
    return f"CASE WHEN contains({cell}, '_') THEN NULL ELSE TRY_CAST(trim({cell}) AS DOUBLE) END"
