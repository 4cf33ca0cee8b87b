"""Which columns can still play which role: headers that were recognised, given or ruled out."""

from __future__ import annotations

from collections.abc import Sequence

from opinionpool.errors import LayoutError
from opinionpool.tables.contents import Contents
from opinionpool.tables.roles import ROLES, find_roles, normal
from opinionpool.text import listed, shown

OF_ROWS = {"expert", "probability", "class", "verdict"}
# Headers of columns that number the rows, as programs write them.
INDEX = frozenset({"", "index", "row", "unnamed:_0", "n", "no", "nr", "id"})
# Headers of columns that are no expert's even where they are blank.
REMARKS = frozenset(
    {
        *("note", "notes", "comment", "comments", "remark", "remarks", "description", "title", "url", "link", "status"),
        *("reason", "rationale", "kommentar", "bemerkung", "bemerkungen", "anmerkung", "begrundung", "commentaire"),
        *("remarque", "comentario", "comentarios", "estado", "statut"),
    }
)
# Headers of events that stand on every row of a poll about one question.
ASKED = frozenset({"event", "question", "ereignis", "frage", "evenement", "evento", "pregunta"})
TIMES = ("time", "closes", "resolved_at", "expires")


class Candidates:
    """A table whose columns are being given roles."""

    def __init__(self, contents: Contents, given: dict[str, str | None], parts: Sequence[str]) -> None:
        self.contents, self.given = contents, given
        self.table, self.names = contents.table.name, contents.table.names
        self.aside = _check_names(self.table, self.names, contents)
        # They are seen in the key, and are neither free nor unused.
        self.aside |= {i for i, name in enumerate(self.names) if name in parts}
        found = find_roles(self.table, self.names, given, ROLES)
        fit = {role: [i for i in hits if i not in self.aside] for role, hits in found.items()}
        self.found = {role: hits for role, hits in fit.items() if hits}
        self.guessed: list[str] = []
        self._prune()

    def candidates(self, role: str) -> list[int]:
        """Columns that could play a role."""
        return self.found.get(role, [])

    def named(self, role: str) -> bool:
        """Whether the user named the column."""
        return self.given.get(role) is not None

    def emptied(self, role: str) -> bool:
        """Whether no column is to play a role."""
        return role in self.given and self.given[role] is None

    def guess(self, role: str, column: int) -> None:
        """Give a role by what a column holds."""
        self.found[role] = [column]
        self.guessed.append(role)

    def keep(self, role: str, columns: Sequence[int]) -> None:
        """Leave these candidates for a role, if there are any."""
        if columns:
            self.found[role] = list(columns)
        else:
            self.found.pop(role, None)

    def free(self) -> list[int]:
        """Columns that no role has, and that are no candidates for one that only one can have."""
        taken = {column for columns in self.found.values() for column in columns}
        return [i for i in range(len(self.names)) if i not in taken and i not in self.aside]

    def _prune(self) -> None:
        """Leave aside candidates that hold what their role cannot be."""
        look = self.contents
        if not self.named("expert"):
            # Where a column holds the probabilities, whole numbers are names of experts.
            forecasts = {"fractions"} if "probability" in self.found else {"binary", "fractions"}
            kept = [
                i
                for i in self.candidates("expert")
                if normal(self.names[i]) == "expert" or look.unit(i) not in forecasts
            ]
            self.keep("expert", kept)
        numbers = [i for i in self.candidates("probability") if look.kind(i) == "numbers"]
        events = [
            i
            for i in self.candidates("event")
            if look.distinct(i) > 1 and look.unit(i) != "fractions" and look.present(i) > 0.5
        ]
        if all(map(self.is_row_id, events)):
            # One question may stand on every row, beside the number of each answer.
            events = sorted({*events, *(i for i in self.candidates("event") if self._is_asked(i))})
        for role, fit in (("probability", numbers), ("event", events)):
            if fit and not self.named(role):
                self.keep(role, fit)

    def is_row_id(self, column: int) -> bool:
        """Whether a column numbers rows by its name, and none of them twice."""
        return normal(self.names[column]) in INDEX and not self.contents.repeats([column])

    def _is_asked(self, column: int) -> bool:
        """Whether a column says by its name what rows are about, and several say the same."""
        look = self.contents
        return normal(self.names[column]) in ASKED and look.repeats([column]) and look.present(column) > 0.5

    def asked(self) -> list[int]:
        """Columns that could say which event a row is about, without numbers of rows where another column says it."""
        events = self.candidates("event")
        if self.named("event") or not any(map(self._is_asked, events)):
            return events
        return [i for i in events if not self.is_row_id(i)]

    def ask(self, role: str, columns: Sequence[int], why: str = "") -> LayoutError:
        """The error that asks which column plays a role."""
        return LayoutError(
            f"{self.table}: columns {listed([self.names[i] for i in columns])} could each be the {role}{why}; "
            f"say which with --column {role}=NAME",
            remedies=[{"columns": {role: self.names[i]}} for i in columns],
        )


def _check_names(table: str, names: Sequence[str], contents: Contents) -> set[int]:
    """Raise unless columns have different names; returns those without name and cells, as trailing separators make."""
    nameless = {i for i, name in enumerate(names) if not name and i > 0}
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise LayoutError(f"{table}: two columns are called {shown(twice)}; every column needs its own name")
    full = next((i for i in sorted(nameless) if contents.kind(i)), None)
    if full is not None:
        raise LayoutError(f"{table}: column {full + 1} has no name, and holds something")
    return nameless
