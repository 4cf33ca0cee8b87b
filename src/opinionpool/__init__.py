"""opinionpool turns several probabilities for the same event into one.

Importing it loads nothing: a name brings its module, and what that module needs, when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# The public names, by the module that defines them. A name stands here and in the imports below, which are
# for type checkers and editors only.
_NAMES = {
    "beliefs": ("Belief", "Beliefs", "ExpertBeliefs"),
    "calibration": ("LogOddsTransformer", "calibration_curve", "recalibrate"),
    "choosing": ("best_subset", "gain_from", "gain_from_one_more", "subset_path"),
    "compare": ("Comparison", "compare_pools"),
    "diagnostics": ("check_model",),
    "errors": (
        "AccuracyUnknownError",
        "ArgumentError",
        "CellError",
        "DuplicateError",
        "ExpertError",
        "LayoutError",
        "LearningError",
        "Note",
        "OpinionPoolError",
        "OpinionPoolWarning",
        "OutcomeError",
        "PanelError",
        "ProbabilityError",
        "SavedPoolError",
        "ShapeError",
        "TableError",
    ),
    "estimators": (
        "AveragePool",
        "BetaLinearPool",
        "ExtremizedPool",
        "GaussianPool",
        "GeometricPool",
        "IndependentPool",
        "LinearPool",
        "LogPool",
        "MedianPool",
        "RecalibratedPool",
        "TrimmedPool",
    ),
    "explanation": ("explain", "explain_event"),
    "forecasts": ("Forecasts",),
    "fullpanel": ("FullPanel",),
    "online": ("Stream",),
    "panel": ("Panel",),
    "panelfile": ("read_beliefs",),
    "redundancy": ("redundant_groups",),
    "reliability": ("auc", "decompose", "reliability_table", "wilson_interval"),
    "report": ("make_report",),
    "saved": ("load", "save"),
    "scores": (
        "brier_score",
        "brier_sum",
        "log_loss",
        "log_score",
        "mean_log_score",
        "mean_score",
        "ranked_probability_score",
        "spherical_score",
    ),
    "tables": ("read_forecasts",),
    "value": ("decision_value", "learned_value", "panel_value"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - every name is text

if TYPE_CHECKING:
    from opinionpool.beliefs import Belief as Belief, Beliefs as Beliefs, ExpertBeliefs as ExpertBeliefs
    from opinionpool.calibration import (
        LogOddsTransformer as LogOddsTransformer,
        calibration_curve as calibration_curve,
        recalibrate as recalibrate,
    )
    from opinionpool.choosing import (
        best_subset as best_subset,
        gain_from as gain_from,
        gain_from_one_more as gain_from_one_more,
        subset_path as subset_path,
    )
    from opinionpool.compare import Comparison as Comparison, compare_pools as compare_pools
    from opinionpool.diagnostics import check_model as check_model
    from opinionpool.errors import (
        AccuracyUnknownError as AccuracyUnknownError,
        ArgumentError as ArgumentError,
        CellError as CellError,
        DuplicateError as DuplicateError,
        ExpertError as ExpertError,
        LayoutError as LayoutError,
        LearningError as LearningError,
        Note as Note,
        OpinionPoolError as OpinionPoolError,
        OpinionPoolWarning as OpinionPoolWarning,
        OutcomeError as OutcomeError,
        PanelError as PanelError,
        ProbabilityError as ProbabilityError,
        SavedPoolError as SavedPoolError,
        ShapeError as ShapeError,
        TableError as TableError,
    )
    from opinionpool.estimators import (
        AveragePool as AveragePool,
        BetaLinearPool as BetaLinearPool,
        ExtremizedPool as ExtremizedPool,
        GaussianPool as GaussianPool,
        GeometricPool as GeometricPool,
        IndependentPool as IndependentPool,
        LinearPool as LinearPool,
        LogPool as LogPool,
        MedianPool as MedianPool,
        RecalibratedPool as RecalibratedPool,
        TrimmedPool as TrimmedPool,
    )
    from opinionpool.explanation import explain as explain, explain_event as explain_event
    from opinionpool.forecasts import Forecasts as Forecasts
    from opinionpool.fullpanel import FullPanel as FullPanel
    from opinionpool.online import Stream as Stream
    from opinionpool.panel import Panel as Panel
    from opinionpool.panelfile import read_beliefs as read_beliefs
    from opinionpool.redundancy import redundant_groups as redundant_groups
    from opinionpool.reliability import (
        auc as auc,
        decompose as decompose,
        reliability_table as reliability_table,
        wilson_interval as wilson_interval,
    )
    from opinionpool.report import make_report as make_report
    from opinionpool.saved import load as load, save as save
    from opinionpool.scores import (
        brier_score as brier_score,
        brier_sum as brier_sum,
        log_loss as log_loss,
        log_score as log_score,
        mean_log_score as mean_log_score,
        mean_score as mean_score,
        ranked_probability_score as ranked_probability_score,
        spherical_score as spherical_score,
    )
    from opinionpool.tables import read_forecasts as read_forecasts
    from opinionpool.value import (
        decision_value as decision_value,
        learned_value as learned_value,
        panel_value as panel_value,
    )
else:
    # Hidden from type checkers, who would otherwise take every name for a public one.
    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'opinionpool' has no attribute {name!r}")
        value = getattr(import_module(f"opinionpool.{_HOME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
