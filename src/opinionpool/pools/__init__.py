"""The twelve pools: each a rule, what a fit learns, and what every expert adds to an answer; a pool is one row here."""

from typing import NamedTuple


class Row(NamedTuple):
    """A pool, told without loading it, so that a command's help need not wait for NumPy."""

    name: str
    place: str  # module and class, as in "averages:Average"; the module in this package, or from its top
    text: str  # what it does, as the help of --pool says
    weighted: bool = False  # whether a user can say what each expert counts for


# In the order in which pools are shown.
ROWS = (
    Row(
        "gaussian", "registry:Gaussian", "corrects bias and overconfidence, and discounts experts who repeat each other"
    ),
    Row("linear", "linear:Linear", "the mean of probabilities with learned weights", weighted=True),
    Row("log", "logarithmic:Log", "the sum of log-odds with learned weights", weighted=True),
    Row(
        "independent",
        "logarithmic:Independent",
        "adds up what each says beyond the prior, as if errors were independent",
    ),
    Row("average", "averages:Average", "the mean of probabilities, all alike"),
    Row("geometric", "logarithmic:Geometric", "the mean of log-odds", weighted=True),
    Row("median", "averages:Median", "the median of probabilities"),
    Row("recent-median", "averages:RecentMedian", "the median, in which newer forecasts count for more"),
    Row("trimmed", "averages:Trimmed", "the mean without the extremes"),
    Row("extremized", "logarithmic:Extremized", "the mean of log-odds, moved away from the prior by a factor of 1.73"),
    Row("recalibrated", "logarithmic:Recalibrated", "the mean of log-odds, with slope and intercept learned"),
    Row(
        "beta-linear",
        "beta_linear:BetaLinear",
        "the linear pool, corrected by a learned curve (a beta distribution function)",
        weighted=True,
    ),
)
NAMES = tuple(row.name for row in ROWS)
# Those in which a user can say what each expert counts for.
WEIGHTED = tuple(row.name for row in ROWS if row.weighted)
