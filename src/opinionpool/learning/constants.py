"""Constants of the method in one table: prior beliefs about any panel, crowd, event and scale (docs/model.md, 10).

A row is a value, or a grid with its probabilities; above it are its unit, its meaning and the study behind it. None
depends on the number of events. "Simulated" is benchmarks/default_pool.py, where results are flat around the values.
Tolerances, and how many numbers are kept or taken together, stand where they are used.
"""

from __future__ import annotations

from typing import NamedTuple


class Dependent(NamedTuple):
    """Assumption on how experts' errors correlate and on what indicates accuracy, with its prior probability."""

    kind: str  # "nested" or "common"
    correlation: float  # of the errors of equally accurate experts
    exponent: float  # power of the guide to which accuracies are proportional; 0 if they are equal
    probability: float  # before any outcome
    guide: str = "agreement"  # what indicates accuracy: "agreement" or "sharpness"


# Ratio. Calibration κ of any expert (13). Reasoning: people are a little too sure; simulated.
CALIBRATION = 0.95
# Accuracy μ* of an expert of whom nothing is known (15), an area under the curve of 0.84, and the standard deviation of
# its logarithm, on which weights do not depend. Reasoning.
ACCURACY, LEVEL = 1.0, 1.0
# Correlation of errors: of a typical panel, and a grid with probabilities, which is that of ln Σw (10.3). Simulated.
CORRELATION = 0.6
CORRELATIONS, CORRELATION_PROBABILITIES = (0.3, CORRELATION, 0.8, 0.92), (0.15, 0.4, 0.3, 0.15)
# Standard deviation of ln Σw about that: where calibrations are about as believed, and where they are not, and the
# probability of the latter. Simulated.
SLOPE_SD, DIFFUSE_SD, DIFFUSE_PROBABILITY = 0.25, 0.8, 0.2
# Log-odds. Standard deviations of the intercept per unit of Σw, with probabilities: where all outcomes are of one class
# that was likely not to happen, experts have a bias rather than weights below 0. Reasoning; simulated one-sided panels.
BIASES, BIAS_PROBABILITIES = (0.15, 1.0), (0.95, 0.05)
# Events. What it is worth to believe that experts have no common bias, a standard deviation of about 0.2. Reasoning.
COMMON_BIAS_EVENTS = 40.0
# In Σw/√N. Standard deviations of weights about those of the believed panel, and probabilities. Simulated.
WEIGHT_SD, WEIGHT_SD_PROBABILITIES = (0.1, 0.4, 1.0, 2.5), (0.5, 0.25, 0.16, 0.09)
# Correlation, exponent, probability. How experts depend on each other, and how good guides agreement and sharpness
# are. Simulated, hard kinds too.
DEPENDENCE = (
    Dependent("common", CORRELATION, 0.0, 0.25),
    Dependent("nested", CORRELATION, 0.5, 0.25),
    Dependent("nested", CORRELATION, 1.0, 0.1),
    Dependent("common", 0.3, 0.5, 0.1),
    Dependent("common", CORRELATION, 0.5, 0.1),
    Dependent("common", 0.3, 1.0, 0.05),
    Dependent("common", CORRELATION, 1.0, 0.05),
    Dependent("nested", CORRELATION, 1.0, 0.1, "sharpness"),
)
# Log-odds. What a robust contrast reaches at most (10.1), and probabilities. Simulated; benchmarks/classes.py.
LIMITS, LIMIT_PROBABILITIES = (2.5, 5.0, 12.0), (0.2, 0.4, 0.4)
# Log-odds. Where agreement and half-lives are looked at, contrasts reach so far at most.
# Reasoning: 1.8% and 98.2% at even odds.
FURTHEST = 4.0
# Events, and an exponent. What the panel's agreement counts as beside an expert's own, and how far accuracies go with
# agreement, from not at all, 0, to as in a model of one factor, 1. Simulated.
AGREEMENT_WORTH, GUIDE = 40.0, 0.5
# Probabilities of the log pool, the simple average and one expert to follow, which are mixed (10.6), and the standard
# deviation of logarithms of slopes of the latter two. Reasoning: that what is believed of panels holds of this one is
# about as probable as not; simulated, hard kinds too, where the least share of the average is taken that leaves no kind
# behind it by more than .026; and benchmarks/coverage.py.
MEMBERS, MEMBER_SLOPE_SD = (0.55, 0.3, 0.15), 0.6
# Events that it is worth to believe how often events happen before outcomes tell: L° is T / (T + n) of Laplace's
# estimate. It is believed to be E / (E + n) of the mean of what is forecast of E events. Reasoning; simulated.
PRIOR_EVENTS = 20.0
# Events. What a belief counts where no worth is given, and what one about accuracies counts against agreement.
# Reasoning: about what the default beliefs are worth themselves, so that a number counts, and a few dozen outcomes that
# speak against it count as much.
WORTH = 20.0
# Events, forecasts and events. What counts, beside outcomes, for the marginal features of the panel (and votes of all
# judges beside one's own), against each expert's own; and, beside as many as there are experts, against a correlation
# for each pair. Simulated.
PANEL_WORTH, EXPERT_WORTH, PAIR_WORTH = 10.0, 40.0, 40.0
# Correlation of surprises of events that share a group or a closing day, with probabilities; the variance, relative to
# surprises, of what all events have in common, which speaks for no group; and how many times their root mean square
# surprises count at most. Reasoning.
SHARED, SHARED_PROBABILITIES = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6), (0.05, 0.1, 0.2, 0.3, 0.25, 0.1)
COMMON, LARGEST = 0.05, 2.0
# Correlation of what a day has in common with what the next one has, with probabilities. Reasoning.
LASTING, LASTING_PROBABILITIES = (0.0, 0.3, 0.6, 0.9), (0.25, 0.25, 0.25, 0.25)
# Log-odds, and ratios. Standard deviations of intercepts and slopes of topics, with probabilities. By
# benchmarks/topics.py: where topics do not differ this costs .001 at most from 20 events a topic on.
TOPICS, TOPIC_PROBABILITIES = ((0.0, 0.0), (0.2, 0.15), (0.4, 0.3), (0.8, 0.6)), (0.7, 0.2, 0.08, 0.02)
# Typical ages. Half-lives of forecasts, and the probability that nothing decays; the others are equally probable. By
# benchmarks/recency.py: where nothing decays this costs .001 if experts share errors, .006 at 20 outcomes if those who
# are early know other things. The typical age in days is an hour at least: seconds between answers tell nothing.
HALF_LIVES, STEADY, LEAST_AGE = (4.0, 2.0, 1.0, 0.5, 0.25), 0.5, 1 / 24
# Log-odds, and a ratio. Standard deviations of intercept and slope of the pool by which half-lives are compared. By
# benchmarks/recency.py.
INTERCEPT, SLOPE = 0.4, 0.35
# Ratios. Standard deviations of differences between classes in the weight of all experts together, as a share of their
# sum, and of each, with probabilities; the first is that there are none. Reasoning: small ones are likelier.
CLASS_SPREADS = ((0.0, 0.0), (0.1, 0.0), (0.3, 0.1), (0.3, 0.3), (1.0, 0.3), (1.0, 1.0))
CLASS_PROBABILITIES = (0.5, 0.15, 0.125, 0.1, 0.075, 0.05)
# Share of what all experts seem biased by towards some of K > 2 classes, mean and standard deviation, that is an error:
# all of it, or none as classes are not alike, with even odds. Reasoning, and benchmarks/classes.py.
COMMON_SHARE = (0.5, 0.5)
# Log-odds. Probability that a scale of scores stands anywhere, standard deviations of its shift and of base rates. By
# benchmarks/levels.py, judges with anchored and with arbitrary scales.
ARBITRARY, SHIFT, BASE_RATE = 0.2, 1.0, 1.0
# Forecasts. What the crowd's features count beside each expert's own forecasts as they are learned, and, with
# probabilities, as they are used; and the probabilities that weights follow from features, with one correlation or
# with nested evidence: else agreement guides. By benchmarks/crowd.py and crowd_dependence.py.
CROWD_WORTH = 15.0
WORTHS, WORTH_PROBABILITIES, FEATURES = (5.0, 15.0, 50.0, 1000.0), (0.2, 0.3, 0.3, 0.2), (0.15, 0.15)
# Times. What is open about features counts in a crowd's intervals, as how far experts differ is open too. By the
# coverage of benchmarks/crowd.py.
UNKNOWN = 2.0
# Experts, a share and events. More experts than this with less than this share of the forecasts are a crowd, from so
# many resolved events on. By benchmarks/crowd.py.
CROWD, SPARSE, SEVERAL = 30, 0.25, 40
