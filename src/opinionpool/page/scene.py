"""What a page is drawn from: an assessment, its answer, and how one looks at it."""

from __future__ import annotations

from dataclasses import dataclass

from opinionpool.analysis.steps import of_class
from opinionpool.arrays import Array
from opinionpool.page.answer import Answer, Material
from opinionpool.page.assessment import Assessment
from opinionpool.report.listing import printable

VIEWS = {"panel": "Panel", "what_if": "What if", "evidence": "Evidence", "hand_over": "Hand over", "events": "Events"}
UNIT_NAMES = {"auc": "AUC: which of two", "hit_rate": "hit rate", "score": "expected log score"}
# Experts whose controls are shown, and whose contributions are listed.
ROWS = 60


@dataclass(frozen=True)
class Look:
    """What is looked at, which no answer depends on."""

    view: str = "panel"  # a key of `VIEWS`
    unit: str = "auc"  # how accuracies are given: a key of `UNITS`
    about: int = 1  # the class that figures are about
    # search, order, start: of the list of events
    search: str = ""
    order: str = "file"
    start: int = 0


@dataclass(frozen=True, eq=False)
class Scene:
    """All that a page is drawn from."""

    a: Assessment
    look: Look
    material: Material
    found: Answer | None
    trouble: str = ""  # why there is no answer, or why the last move was not made
    # undo, redo: whether there is something to undo, or to redo
    undo: bool = False
    redo: bool = False

    @property
    def at(self) -> int:
        """The class that figures are about."""
        return min(self.look.about, len(self.a.classes) - 1)

    @property
    def event(self) -> str:
        """What a probability is of, in a few words."""
        label = self.a.classes[self.at]
        return "yes" if self.a.binary and label in {1, "1"} else printable(str(label))

    def probability(self, p: Array) -> float:
        """The probability of that class."""
        return of_class(p, self.at)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of that probability."""
        if self.found is None or self.found.interval is None:
            return None
        low, high = sorted(self.probability(end) for end in self.found.interval)
        return low, high

    @property
    def views(self) -> list[str]:
        """Those that there are."""
        file = self.material.forecasts is not None
        return ["events", "panel", "what_if", "evidence", "hand_over"] if file else ["panel", "what_if", "hand_over"]
