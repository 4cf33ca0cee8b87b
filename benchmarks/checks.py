"""How often each check of a model alarms where it holds, and where it fails in a stated way.

``python benchmarks/checks.py [FILES]`` prints the tables; a file is a simulated panel.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opinionpool import Forecasts, Panel
from opinionpool.analysis.checks import CODES, check_model
from opinionpool.arrays import Array
from opinionpool.logodds import expit, logit

Outcomes = npt.NDArray[np.intp]
# Experts, events, correlation, classes, step that forecasts are rounded to, share missing.
SOUND = {
    "3 experts, 60 events": (3, 60, 0.5, 2, 0.0, 0.0),
    "6 experts, 200 events": (6, 200, 0.5, 2, 0.0, 0.0),
    "20 experts, 200 events": (20, 200, 0.7, 2, 0.0, 0.0),
    "the same, 40% missing": (20, 200, 0.7, 2, 0.0, 0.4),
    "the same, rounded to 5%": (20, 200, 0.7, 2, 0.05, 0.0),
    "20 experts at 0.95, 60 events, rounded to 10%": (20, 60, 0.95, 2, 0.1, 0.0),
    "6 experts, 2000 events": (6, 2000, 0.5, 2, 0.0, 0.0),
    "6 experts, 200 events, 4 classes": (6, 200, 0.5, 4, 0.0, 0.0),
}


def sound(
    rng: np.random.Generator, n: int, t: int, rho: float, k: int, step: float, missing: float
) -> tuple[Array, Outcomes]:
    """Forecasts and outcomes drawn from the model: calibrations 0.7 to 1.3, accuracies 0.5 to 2."""
    panel = Panel.from_features(
        rng.uniform(0.7, 1.3, n),
        rho,
        accuracy=rng.uniform(0.5, 2.0, n),
        bias=rng.normal(0.0, 0.3, n if k == 2 else (n, k)),
        classes=range(k),
    )
    x, y = panel.simulate(t, 0.4 if k == 2 else np.full(k, 1.0 / k), seed=rng)
    if step:
        x = np.round(x / step) * step
    x[rng.random(x.shape[:2]) < missing] = np.nan
    return x, y


def forecasts(x: Array, y: Outcomes) -> Forecasts:
    """Them, on events a day apart."""
    f = Forecasts.from_array(x, y, classes=range(2 if x.ndim == 2 else x.shape[2]))
    times = np.datetime64("2025-01-01") + np.arange(len(y)).astype("timedelta64[D]")
    return replace(f, times=times.astype("datetime64[us]"))


def alarms(
    files: int, draw: Callable[[np.random.Generator], tuple[Array, Outcomes]], seed: int = 0
) -> dict[str, float]:
    """Share of files in which each check alarms, and any of them."""
    rng = np.random.default_rng(seed)
    counted: Counter[str] = Counter()
    for _ in range(files):
        found = {check.code for check in check_model(forecasts(*draw(rng))) if check.serious}
        counted.update(found)
        counted["any"] += bool(found)
    return {code: counted[code] / files for code in (*CODES, "any")}


# What goes wrong with the first of six experts, and which check is to say so.
def heavy_tails(x: Array, y: Outcomes, rng: np.random.Generator) -> None:
    """Noise from a t distribution with 3 degrees of freedom."""
    x[:, 0] = expit(np.where(y == 1, 1.0, -1.0) + rng.standard_t(3, len(y)))


def skewed(x: Array, y: Outcomes, rng: np.random.Generator) -> None:
    """Noise as an exponential distribution's."""
    x[:, 0] = expit(np.where(y == 1, 1.0, -1.0) + 1.4 * (rng.exponential(size=len(y)) - 1.0))


def wider(x: Array, y: Outcomes, rng: np.random.Generator) -> None:
    """Twice the spread where it happens."""
    x[:, 0] = expit(np.where(y == 1, 1.0, -1.0) + np.where(y == 1, 2.0, 1.0) * rng.standard_normal(len(y)))


def closer(x: Array, y: Outcomes, rng: np.random.Generator) -> None:
    """All experts correlated at 0.8 where it happens, at 0.2 where not."""
    shared = rng.standard_normal((len(y), 1))
    rho = np.where(y == 1, 0.8, 0.2)[:, None]
    noise = np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * rng.standard_normal(x.shape)
    x[:] = expit(np.where(y == 1, 1.0, -1.0)[:, None] + 1.4 * noise)


def rising(x: Array, y: Outcomes, _rng: np.random.Generator) -> None:
    """A bias that goes from -1 to 1."""
    x[:, 0] = expit(logit(x[:, 0]) + np.linspace(-1.0, 1.0, len(y)))


def forgetful(x: Array, y: Outcomes, rng: np.random.Generator) -> None:
    """A contrast that goes from 2 to 0."""
    x[:, 0] = expit(np.where(y == 1, 1.0, -1.0) * np.linspace(2.0, 0.0, len(y)) + 1.4 * rng.standard_normal(len(y)))


def leaked(x: Array, y: Outcomes, rng: np.random.Generator) -> None:
    """99% for what happened, but for one event in 50, which gets 80%."""
    x[:, 0] = np.where(y == 1, 0.99, 0.01)
    few = rng.random(len(y)) < 0.02
    x[few, 0] = np.where(y[few] == 1, 0.8, 0.2)


def evasive(x: Array, y: Outcomes, rng: np.random.Generator) -> None:
    """One forecast in five is 50%, the others rounded to 1%."""
    x[:, 0] = np.where(rng.random(len(y)) < 0.2, 0.5, x[:, 0].round(2))


def evasive_coarse(x: Array, y: Outcomes, rng: np.random.Generator) -> None:
    """One forecast in five is 50%, the others rounded to 10%."""
    x[:, 0] = np.where(rng.random(len(y)) < 0.2, 0.5, x[:, 0].round(1))


def cloned(x: Array, y: Outcomes, rng: np.random.Generator) -> None:
    """The same as the second on 95% of events, all rounded to 1%."""
    x[:, 0] = np.where(rng.random(len(y)) < 0.95, x[:, 1], x[:, 0])
    x[:] = x.round(2)


def opposite(x: Array, _y: Outcomes, _rng: np.random.Generator) -> None:
    """What the second says of the other outcome, all rounded to 1%."""
    x[:] = x.round(2)
    x[:, 0] = 1.0 - x[:, 1]


FAULTS: dict[str, tuple[Callable[[Array, Outcomes, np.random.Generator], None], ...]] = {
    "normality": (heavy_tails, skewed),
    "spreads": (wider,),
    "correlations": (closer,),
    "drift": (rising, forgetful),
    "leakage": (leaked,),
    "placeholders": (evasive, evasive_coarse),
    "clones": (cloned,),
    "complements": (opposite,),
}


def false_alarms(files: int) -> dict[str, dict[str, float]]:
    """By kind of sound panel: share of files in which each check alarms."""
    return {name: alarms(files, lambda rng, given=given: sound(rng, *given)) for name, given in SOUND.items()}  # type: ignore[misc]


def detected(files: int, events: int) -> dict[str, float]:
    """By fault: share of files, of six experts, in which the check that is to say so does."""
    rates = {}
    for code, faults in FAULTS.items():
        for fault in faults:

            def draw(rng: np.random.Generator, fault=fault) -> tuple[Array, Outcomes]:  # noqa: ANN001
                x, y = sound(rng, 6, events, 0.5, 2, 0.0, 0.0)
                fault(x, y, rng)
                return x, y

            rates[f"{code}: {fault.__doc__}"] = alarms(files, draw)[code]
    return rates


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print(f"Share of {count} files in which a check alarms although the model holds")
    print(f"{'':46}" + "".join(f"{code[:11]:>13}" for code in (*CODES, "any")))
    for name, rates in false_alarms(count).items():
        print(f"{name:46}" + "".join(f"{rate:13.3f}" for rate in rates.values()))
    print("\nShare of files, of six experts, in which a fault is found: 50, 100, 200 and 500 events")
    tables = [detected(count, events) for events in (50, 100, 200, 500)]
    for fault in tables[0]:
        print(f"{fault:90}" + "".join(f"{table[fault]:8.2f}" for table in tables))
