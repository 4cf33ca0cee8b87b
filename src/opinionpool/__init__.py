"""opinionpool turns several probabilities for the same event into one.

Importing it loads nothing: a name brings its module, and what that module needs, when it is first used.
"""

from importlib import import_module

from opinionpool.version import __version__ as __version__

# The public names, by the module that defines them; `__init__.pyi` tells type checkers and editors the same.
_NAMES = {
    "learning.beliefs": ("Belief", "Beliefs", "ExpertBeliefs", "read_beliefs"),
    "estimators.calibration": ("LogOddsTransformer", "calibration_curve", "recalibrate"),
    "analysis.selection": ("best_subset", "gain_from", "gain_from_one_more", "redundant_groups", "subset_path"),
    "scoring.compare": ("Comparison", "compare_pools"),
    "analysis.checks": ("check_model",),
    "analysis.diff": ("Diff", "diff"),
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
    "estimators.pools": (
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
        "RecentMedianPool",
        "TrimmedPool",
    ),
    "analysis.explanation": ("explain", "explain_event"),
    "forecasts": ("Forecasts",),
    "model.full_panel": ("FullPanel",),
    "streams.stream": ("Stream",),
    "model.panel": ("Panel",),
    "scoring.reliability": ("auc", "decompose", "reliability_table", "wilson_interval"),
    "report.page": ("make_report",),
    "estimators.files": ("load", "save"),
    "scoring.scores": (
        "brier_score",
        "brier_sum",
        "log_loss",
        "log_score",
        "mean_log_score",
        "mean_score",
        "ranked_probability_score",
        "spherical_score",
    ),
    "tables.read": ("read_forecasts",),
    "analysis.rates": ("Rates", "rates"),
    "analysis.value": ("decision_value", "learned_value", "panel_value"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - every name is text


# Modules that are used by their own names, such as `op.plots.weights`.
_MODULES = ("plots",)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"opinionpool.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'opinionpool' has no attribute {name!r}")
    value = getattr(import_module(f"opinionpool.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
