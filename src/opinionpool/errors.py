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
        Code, place and remedies of what the error reports; None for errors that have only a message.
    """

    finding: Any = None


class ArgumentError(OpinionPoolError):
    """Error for an argument that breaks a rule."""


class ShapeError(ArgumentError):
    """Error for arrays whose shapes do not fit together."""


class ProbabilityError(ArgumentError):
    """Error for a probability, prior or base rate outside its range."""


class OutcomeError(ArgumentError):
    """Error for outcomes that are not classes of the event."""


class ExpertError(ArgumentError):
    """Error for an unknown, repeated or missing expert."""


class PanelError(ArgumentError):
    """Error for a panel's parameters, such as a correlation or covariance, that no panel can have."""


class AccuracyUnknownError(OpinionPoolError):
    """Error if an absolute accuracy is needed, and only relative accuracies of the panel are known."""


class LearningError(OpinionPoolError):
    """Error if the resolved events do not determine what is to be learnt."""


class SavedPoolError(OpinionPoolError):
    """Error for a saved pool that cannot be read, or an object that cannot be saved."""


# Options of reading, with values, that together solve the problem.
Remedy: TypeAlias = Mapping[str, object]


class TableError(OpinionPoolError):
    """Error for a file or data frame that cannot be read as forecasts.

    Parameters
    ----------
    message : str
    remedies : sequence of mapping
        Options of `opinionpool.read_forecasts` with their values. With any one of these mappings the table can be read;
        if there are several, the user must choose.
    count : int
        Number of cells, rows or forecasts concerned.
    """

    def __init__(self, message: str = "", *, remedies: Sequence[Remedy] = (), count: int = 1) -> None:
        super().__init__(message)
        self.remedies: tuple[Remedy, ...] = tuple(remedies)
        self.count = count


class MissingFileError(TableError, FileNotFoundError):
    """Error if a file does not exist; also a FileNotFoundError."""


class LayoutError(TableError):
    """Error for a table of which it is not known what each column has, such as events, experts or forecasts."""


class CellError(TableError):
    """Error for a cell of a table that cannot be read."""


class DuplicateError(TableError):
    """Error for several forecasts by one expert on one event, without a rule to choose one."""


class OpinionPoolWarning(UserWarning):
    """Warning about something that matters for an answer but is not an error."""


@dataclass(frozen=True)
class Note:
    """Note for the user: what was converted, dropped by a named rule, or assumed.

    Attributes
    ----------
    code : str
        Short, stable code for programs: ``"percent"``, ``"after-close"``, ``"clones"``, ...
    text : str
        One sentence for people.
    count : int
        Number of cells, rows or experts concerned.
    serious : bool
        Whether Python raises it as an `OpinionPoolWarning`.
    """

    code: str
    text: str
    count: int = 1
    serious: bool = False
