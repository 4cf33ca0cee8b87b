"""How often a difference of 0 is called better or worse, and how often a true one is found.

    python benchmarks/claims.py [--repeats N] [--data FOLDER]

Paired differences of scores without any true difference: normal, heavy-tailed (Student's t, 3 degrees of freedom),
skewed (1 less an exponential), and resampled from real ones, less their mean: pools and experts out of sample on the
panels of FOLDER (files ``*.csv.gz`` as `read_forecasts` takes them), each pool beside the simple average and each of
the busiest experts beside the default pool. Independent events, and clusters of 1 to 5 events that share half of their
variance; numbers are those of clusters. Beside the rule of the package stand Student's interval and a studentised
bootstrap, symmetric around the mean. Power is the share of true differences found that Student's interval finds with a
probability of 0.8 if they are normal.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, t as student

from opinionpool.logodds import FLOOR
from opinionpool.scoring.compare import AVERAGE, DEFAULT, compare_pools
from opinionpool.scoring.intervals import FEWEST_CLUSTERS, ClusterSums, difference_intervals
from opinionpool.scoring.scores import log_score
from opinionpool.tables.read import read_forecasts

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

SIZES = (5, 7, 10, 15, 20, 30, 50, 100)
KINDS = ("normal", "heavy-tailed", "skewed", "real")
RULES = ("bootstrap", "Student's t", "here")
POWER = 2.8
MOST, EXPERTS, WEIGHED = 600, 6, 100
RESAMPLES = 400


def real_differences(folder: Path, seed: int = 0) -> dict[str, Array]:
    """Differences of normalised log scores on each panel, less their mean, by panel and what is compared."""
    found = {}
    for file in sorted(folder.glob("*.csv.gz")):
        name = file.name.split(".")[0]
        # Weeks as numbers are no dates.
        forecasts = read_forecasts(file, columns={"time": None} if name == "nfl_students" else {})
        rows = np.flatnonzero(forecasts.resolved)
        if len(rows) > MOST:
            rows = np.sort(np.random.default_rng(seed).choice(rows, MOST, replace=False))
        sample = forecasts.select_events(rows)
        pools = [DEFAULT, "linear", "log", "geometric", "median", "extremized", "recalibrated"]
        if len(sample.experts) > WEIGHED:
            pools = [pool for pool in pools if pool not in {"linear", "log"}]
        scores = compare_pools(sample, pools, repeats=2, seed=seed).scores
        pairs = {pool: scores[pool] - scores[AVERAGE] for pool in pools if pool in scores}
        for i in np.argsort(-sample.counts, kind="stable")[:EXPERTS]:
            own = log_score(sample.X[:, i], sample.outcomes, floor=FLOOR)
            pairs[sample.experts[i]] = own - scores[DEFAULT]
        for what, values in pairs.items():
            known = values[~np.isnan(values)]
            if len(known) >= 20 and known.std() > 1e-9:
                found[f"{name}/{what}"] = known - known.mean()
    return found


def drawn(kind: str, rng: np.random.Generator, size: int, population: Array | None) -> tuple[Array, float]:
    """Differences whose mean is 0, and their standard deviation."""
    if kind == "normal":
        return rng.normal(size=size), 1.0
    if kind == "heavy-tailed":
        return rng.standard_t(3, size=size), 3**0.5
    if kind == "skewed":
        return 1.0 - rng.exponential(size=size), 1.0
    assert population is not None
    return population[rng.integers(len(population), size=size)], float(population.std())


def clustered(
    kind: str, rng: np.random.Generator, clusters: int, population: Array | None
) -> tuple[Array, Index, float]:
    """The same in clusters of 1 to 5 events, half of whose variance is in common; and the error of the mean."""
    member = np.repeat(np.arange(clusters), rng.integers(1, 6, size=clusters))
    own, spread = drawn(kind, rng, len(member), population)
    common, _ = drawn(kind, rng, clusters, population)
    size = np.bincount(member)
    error = spread * np.sqrt((0.5 * size + 0.5 * size.astype(float) ** 2).sum()) / len(member)
    return np.sqrt(0.5) * (own + common[member]), member, float(error)


def by_bootstrap(values: Array, clusters: Index, rng: np.random.Generator) -> tuple[float, float]:
    """Deviations of resampled means over their error, as Student's t is wider than the normal."""
    sums = ClusterSums.of(values[:, None], clusters)
    size, mean, error = len(sums.total), float(sums.mean[0]), float(sums.error[0])
    if size < 5 or error <= 1e-9:
        return mean, mean
    times = rng.multinomial(size, np.full(size, 1.0 / size), size=RESAMPLES).astype(float)
    away = np.abs((times @ sums.total[:, 0]) / (times @ sums.count[:, 0]) - mean) / error
    half = -student.ppf(norm.cdf(-np.quantile(away, 0.95)), size - 1) * error
    return mean - half, mean + half


def by_student(values: Array, clusters: Index) -> tuple[float, float]:
    """Student's interval over clusters."""
    sums = ClusterSums.of(values[:, None], clusters)
    half = student.ppf(0.975, len(sums.total) - 1) * float(sums.error[0])
    return float(sums.mean[0]) - half, float(sums.mean[0]) + half


def verdicts(values: Array, clusters: Index, rng: np.random.Generator) -> Array:
    """Whether each rule says better, and worse, (rules, 2)."""
    (found,) = difference_intervals(values[:, None], clusters)
    limits = [by_bootstrap(values, clusters, rng), by_student(values, clusters), (found.low, found.high)]
    return np.array([[low > 1e-12, high < -1e-12] for low, high in limits], dtype=float)


def cell(kind: str, size: int, repeats: int, populations: Sequence[Array], *, grouped: bool, gain: bool) -> Array:
    """Shares of better and worse by rule, (rules, 2): of populations in turn, with a true difference or without."""
    rng = np.random.default_rng([KINDS.index(kind), size, grouped, gain])
    total = np.zeros((len(RULES), 2))
    for repeat in range(repeats):
        population = populations[repeat % len(populations)] if kind == "real" else None
        if grouped:
            values, member, error = clustered(kind, rng, size, population)
        else:
            values, spread = drawn(kind, rng, size, population)
            member, error = np.arange(size), spread / np.sqrt(size)
        total += verdicts(values + POWER * error * gain, member, rng)
    return total / repeats


def lines(repeats: int, populations: dict[str, Array]) -> Iterator[str]:
    """The tables."""
    everything = list(populations.values())
    for grouped in (False, True):
        unit = "clusters" if grouped else "events"
        yield f"\nFalse claims on {unit}, better / worse\n"
        yield "| differences | rule | " + " | ".join(f"{size}" for size in SIZES) + " |"
        yield "| --- | --- |" + " --- |" * len(SIZES)
        means = np.zeros((len(RULES), len(SIZES), 2))
        for kind in KINDS:
            found = [cell(kind, size, repeats, everything, grouped=grouped, gain=False) for size in SIZES]
            means += np.stack(found, axis=1) / len(KINDS)
            for i, rule in enumerate(RULES):
                yield f"| {kind} | {rule} | " + " | ".join(f"{a[i, 0]:.1%} / {a[i, 1]:.1%}" for a in found) + " |"
        for i, rule in enumerate(RULES):
            yield f"| mean | {rule} | " + " | ".join(f"{a:.1%} / {b:.1%}" for a, b in means[i]) + " |"
    yield "\nPower, as a share of that of Student's t\n"
    sizes = [size for size in SIZES if size >= FEWEST_CLUSTERS]
    yield "| differences | " + " | ".join(f"{size}" for size in sizes) + " |"
    yield "| --- |" + " --- |" * len(sizes)
    for kind in KINDS:
        found = [cell(kind, size, repeats, everything, grouped=False, gain=True) for size in sizes]
        yield f"| {kind} | " + " | ".join(f"{a[2, 0] / a[1, 0]:.2f}" for a in found) + " |"
    yield "\nReal differences by panel, false claims of the default pool over the average\n"
    yield "| panel | rule | " + " | ".join(f"{size}" for size in SIZES[-4:]) + " |"
    for name, population in populations.items():
        if name.endswith(f"/{DEFAULT}"):
            found = [cell("real", size, repeats // 4, [population], grouped=False, gain=False) for size in SIZES[-4:]]
            for i in (1, 2):
                shares = " | ".join(f"{a[i, 0]:.1%}" for a in found)
                yield f"| {name.split('/')[0]} | {RULES[i]} | {shares} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for line in lines(options.repeats, real_differences(options.data)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
