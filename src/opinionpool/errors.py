"""Errors and warnings of opinionpool, in one class hierarchy, and notes.

Every error is a ``ValueError``, so that code written for scikit-learn catches it, and says in one sentence
which rule was broken, by which value, and what to do about it.

::

    OpinionPoolError
    ├── ArgumentError              an argument from Python breaks a rule
    │   ├── ShapeError             arrays that do not fit together
    │   ├── ProbabilityError       a probability, prior or base rate outside its range
    │   ├── OutcomeError           outcomes that are not classes
    │   ├── ExpertError            an unknown, repeated or missing expert
    │   └── PanelError             no such panel: correlation, covariance, calibration, ...
    ├── AccuracyUnknownError       a panel with only relative accuracies is asked for more
    ├── LearningError              the data do not determine what was asked for
    ├── SavedPoolError             a saved pool that cannot be read, or something that cannot be saved
    └── TableError                 a file or data frame that cannot be read as forecasts
        ├── LayoutError            its columns
        ├── CellError              one of its cells
        └── DuplicateError         several forecasts by one expert on one event
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


class OpinionPoolError(ValueError):
    """Base of every error that opinionpool raises on purpose.

    Attributes
    ----------
    finding : opinionpool.findings.Finding or None
        What it is about: its code, place and remedies; None where the message says it all.
    """

    finding: Any = None


class ArgumentError(OpinionPoolError):
    """Error for an argument that breaks a rule."""


class ShapeError(ArgumentError):
    """Arrays whose shapes do not fit together."""


class ProbabilityError(ArgumentError):
    """A probability, prior or base rate outside its range."""


class OutcomeError(ArgumentError):
    """Outcomes that are not classes of the event."""


class ExpertError(ArgumentError):
    """An unknown, repeated or missing expert."""


class PanelError(ArgumentError):
    """Parameters or features that no panel can have."""


class AccuracyUnknownError(OpinionPoolError):
    """Error where an absolute accuracy is needed, and the panel knows relative ones only."""


class LearningError(OpinionPoolError):
    """Error if the resolved events do not determine a result."""


class SavedPoolError(OpinionPoolError):
    """A saved pool that cannot be read, or something that cannot be saved."""


# Options of reading, each with its value, that together are a way out.
Remedy: TypeAlias = Mapping[str, object]


class TableError(OpinionPoolError):
    """A file or data frame that cannot be read as forecasts.

    Parameters
    ----------
    message : str
    remedies : sequence of mapping
        Options of `opinionpool.read_forecasts` with their values, any of which lets the table be read: one where that
        is a way out, several where the user must choose.
    count : int
        How many cells, rows or forecasts are concerned.
    """

    def __init__(self, message: str = "", *, remedies: Sequence[Remedy] = (), count: int = 1) -> None:
        super().__init__(message)
        self.remedies: tuple[Remedy, ...] = tuple(remedies)
        self.count = count


class MissingFileError(TableError, FileNotFoundError):
    """There is no such file; also what Python raises then."""


class LayoutError(TableError):
    """Columns of a table whose roles are not known."""


class CellError(TableError):
    """One cell of a table cannot be read."""


class DuplicateError(TableError):
    """Several forecasts by one expert on one event, and no rule that says which one counts."""


class OpinionPoolWarning(UserWarning):
    """A warning that matters for an answer, short of an error."""


@dataclass(frozen=True)
class Note:
    """Something a user should know: what was coerced, dropped by a named rule, or assumed.

    Attributes
    ----------
    code : str
        Short and stable, for programs: ``"percent"``, ``"after-close"``, ``"clones"``, ...
    text : str
        One sentence, for people.
    count : int
        How many cells, rows or experts it concerns.
    serious : bool
        Whether Python raises it as an `OpinionPoolWarning`.
    """

    code: str
    text: str
    count: int = 1
    serious: bool = False

    @property
    def kind(self) -> str:
        """Key of the notes on parts of a table that can be added up."""
        return self.text

    def __add__(self, other: Note) -> Note:
        """The note on two parts of a table; both are of one kind."""
        return self

    def out_of(self, total: int) -> Note:  # noqa: ARG002 - of findings it matters
        """The note with another total number."""
        return self
