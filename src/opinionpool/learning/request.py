"""Checked options of a fit: structure, beliefs, class model and floors."""

from __future__ import annotations

from dataclasses import dataclass, replace

from opinionpool.arguments import brief, one_of
from opinionpool.errors import ArgumentError
from opinionpool.learning.beliefs import Beliefs
from opinionpool.model.pooling import Settings

DEFAULT = Settings()
STRUCTURES = ("auto", "full", "common", "exchangeable", "independent")
CLASS_MODELS = ("auto", "symmetric", "full")


@dataclass(frozen=True)
class Request:
    """Options of a fit, checked; the fields are those of `opinionpool.learning.learn.learn`.

    Raises
    ------
    ArgumentError
        If an option has no such value, or options exclude each other.
    """

    structure: str = "auto"
    beliefs: Beliefs | str | None = "default"
    class_model: str = "auto"
    settings: Settings = DEFAULT
    # Whether the default pool needs no intervals and no marginal features of experts.
    answers_only: bool = False

    def __post_init__(self) -> None:
        one_of(self.structure, "structure", STRUCTURES)
        one_of(self.class_model, "class_model", CLASS_MODELS)
        beliefs: object = self.beliefs
        if isinstance(beliefs, Beliefs):
            if self.structure != "auto" and not beliefs.any_panel:
                raise ArgumentError(f"beliefs meet data with structure='auto', and it is {self.structure!r}")
        elif beliefs is not None and not (isinstance(beliefs, str) and beliefs == "default"):
            raise ArgumentError(
                f'beliefs must be Beliefs, "default" or None, and it is {brief(beliefs)}; op.Beliefs(correlation=0.6) '
                "makes some"
            )

    @property
    def believed(self) -> Beliefs | None:
        """Beliefs that the default pool starts from; None if the fit uses no beliefs."""
        if self.structure != "auto" or self.beliefs is None:
            return None
        return self.beliefs if isinstance(self.beliefs, Beliefs) else Beliefs()

    @property
    def by_moments(self) -> bool:
        """True if the fit needs only averages over all events, for which sums are enough."""
        return self.believed is None and self.class_model != "full"

    @property
    def kind(self) -> str:
        """Correlation structure for fits by averages: "full" for "auto"."""
        return "full" if self.structure == "auto" else self.structure

    def about(self, classes: int, *, options: bool = False) -> Request:
        """Return the request for events with `classes` classes; for two, either class model becomes "symmetric".

        Raises
        ------
        ArgumentError
            If the class model does not suit the structure, or events with options of their own.
        """
        if classes == 2:
            return replace(self, class_model="symmetric")
        if options:
            if self.class_model == "full":
                raise ArgumentError(
                    "events have options of their own, which have no order, so no weight can be that of one of them; "
                    "use class_model='symmetric'"
                )
            return replace(self, class_model="symmetric")
        if self.class_model == "full" and self.structure not in {"auto", "full"}:
            raise ArgumentError(
                f"class_model='full' learns a covariance over all classes, and the structure is {self.structure!r}; "
                "use structure='auto'"
            )
        return self
