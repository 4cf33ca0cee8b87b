from opinionpool import plots as plots
from opinionpool.analysis.checks import check_model as check_model
from opinionpool.analysis.diff import Diff as Diff, diff as diff
from opinionpool.analysis.explanation import explain as explain, explain_event as explain_event
from opinionpool.analysis.rates import Rates as Rates, rates as rates
from opinionpool.analysis.selection import (
    best_subset as best_subset,
    gain_from as gain_from,
    gain_from_one_more as gain_from_one_more,
    redundant_groups as redundant_groups,
    subset_path as subset_path,
)
from opinionpool.analysis.value import (
    decision_value as decision_value,
    learned_value as learned_value,
    panel_value as panel_value,
)
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
from opinionpool.estimators.calibration import (
    LogOddsTransformer as LogOddsTransformer,
    calibration_curve as calibration_curve,
    recalibrate as recalibrate,
)
from opinionpool.estimators.files import load as load, save as save
from opinionpool.estimators.pools import (
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
    RecentMedianPool as RecentMedianPool,
    TrimmedPool as TrimmedPool,
)
from opinionpool.forecasts import Forecasts as Forecasts
from opinionpool.learning.beliefs import (
    Belief as Belief,
    Beliefs as Beliefs,
    ExpertBeliefs as ExpertBeliefs,
    read_beliefs as read_beliefs,
)
from opinionpool.model.full_panel import FullPanel as FullPanel
from opinionpool.model.panel import Panel as Panel
from opinionpool.report.page import make_report as make_report
from opinionpool.scoring.compare import Comparison as Comparison, compare_pools as compare_pools
from opinionpool.scoring.reliability import (
    auc as auc,
    decompose as decompose,
    reliability_table as reliability_table,
    wilson_interval as wilson_interval,
)
from opinionpool.scoring.scores import (
    brier_score as brier_score,
    brier_sum as brier_sum,
    log_loss as log_loss,
    log_score as log_score,
    mean_log_score as mean_log_score,
    mean_score as mean_score,
    ranked_probability_score as ranked_probability_score,
    spherical_score as spherical_score,
)
from opinionpool.streams.stream import Stream as Stream
from opinionpool.tables.read import read_forecasts as read_forecasts
from opinionpool.version import __version__ as __version__
