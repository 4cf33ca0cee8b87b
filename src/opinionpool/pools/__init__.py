"""The twelve pools: each in one file with its rule, what a fit learns, and what every expert adds to an answer."""

# In the order in which they are shown; here, so that a command's help need not wait for NumPy.
NAMES = (
    "gaussian",
    "linear",
    "log",
    "independent",
    "average",
    "geometric",
    "median",
    "recent-median",
    "trimmed",
    "extremized",
    "recalibrated",
    "beta-linear",
)
# Those in which a user can say what each expert counts for.
WEIGHTED = ("linear", "log", "geometric", "beta-linear")
