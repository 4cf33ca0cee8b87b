"""How many resolved events until the default pool beats the simple average, on simulated panels of many kinds.

    python benchmarks/few_data.py [--repeats N] [--figure STEM]

A gain is the mean log score (natural logarithms), less that of the simple average on the same 400 new events; positive
is better. Each kind of panel is simulated anew in each repeat, its other features drawn at random (see `default_pool`).
In one line, the default pool has the forecasts on the 400 events as those on open events.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
from default_pool import KINDS, TEST, losses, panel

from opinionpool.errors import OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.pools.fit import fit_pool

Array = npt.NDArray[np.float64]

EXPERTS = (3, 12)
SIZES = (0, 1, 2, 3, 5, 8, 12, 20, 40, 80, 160, 320)
POOLS = ("gaussian", "average", "recalibrated", "linear", "log")
REPEATS = 10
# The sizes of the table.
SHOWN = (0, 5, 20, 80, 320)


def gains(kind: str, n: int, repeats: int = REPEATS, sizes: tuple[int, ...] = SIZES) -> Array:
    """Gain of each pool over the average, (repeats, sizes, pools)."""
    found = np.empty((repeats, len(sizes), len(POOLS)))
    for repeat in range(repeats):
        x, y = panel(kind, np.random.default_rng([KINDS.index(kind), n, repeat]), max(SIZES) + TEST, n)
        found[repeat] = [losses(x, y, size, POOLS) for size in sizes]
    return np.asarray(found[..., 1:2] - found)


def gains_with_open_events(kind: str, n: int, repeats: int = REPEATS) -> Array:
    """Gain of the default pool over the average if it has the forecasts on the new events, (repeats, sizes)."""
    found = np.empty((repeats, len(SIZES)))
    for repeat in range(repeats):
        x, y = panel(kind, np.random.default_rng([KINDS.index(kind), n, repeat]), max(SIZES) + TEST, n)
        each = np.array([losses(x, y, size, POOLS[:2], open_events=True) for size in SIZES])
        found[repeat] = each[:, 1] - each[:, 0]
    return found


def discriminant(kind: str, n: int, size: int, repeats: int = REPEATS) -> Array:
    """Gain of linear discriminant analysis over the average, (repeats,); NaN where it has no answer."""
    found = np.full(repeats, np.nan)
    for repeat in range(repeats):
        x, y = panel(kind, np.random.default_rng([KINDS.index(kind), n, repeat]), max(SIZES) + TEST, n)
        try:
            learned = fit_pool("gaussian", Forecasts.from_array(x[:size], y[:size]), beliefs=None, structure="full")
            p, truth = learned.pool(x[-TEST:]), y[-TEST:]
        except OpinionPoolError:
            continue
        (average,) = losses(x, y, size, ("average",))
        found[repeat] = average + np.log(np.where(truth == 1, p, 1.0 - p)).mean()
    return found


def ahead_from(mean: Array) -> str:
    """The number of events from which on the mean gain, by size, is never negative again."""
    behind = np.flatnonzero(mean < 0)
    if len(behind) == 0:
        return "0"
    return str(SIZES[behind[-1] + 1]) if behind[-1] + 1 < len(SIZES) else f"> {SIZES[-1]}"


def row(kind: str, found: dict[int, Array]) -> str:
    """One line of the table: gains of the default pool, and from where on it is ahead."""
    mean = np.mean([found[n][..., 0].mean(axis=0) for n in EXPERTS], axis=0)
    cells = [f"{mean[SIZES.index(size)]:+.3f}" for size in SHOWN]
    return "| " + " | ".join([kind, *cells, *(ahead_from(found[n][..., 0].mean(axis=0)) for n in EXPERTS)]) + " |"


def draw(path: Path, everything: Array) -> None:
    """Mean gain of the pools that learn by number of events, over all kinds; (kinds, repeats, sizes, pools)."""
    from opinionpool.plots import figures as plots

    drawing, axes = plots.figure()
    titles = {"gaussian": "default pool", "log": "logarithmic"}
    chosen = [i for i, name in enumerate(POOLS) if name != "average"]
    curves = [(titles.get(POOLS[i], POOLS[i]), everything[..., i].mean(axis=(0, 1))) for i in chosen]
    at = np.arange(len(SIZES))
    labels = ("resolved events", "mean log score gained per event, natural log")
    plots.family(axes, at, curves, labels=labels, title="mean over all kinds of panels")
    axes.axhline(0.0, color="#888888", linewidth=0.6, zorder=0)
    axes.set_ylim(-0.12, 0.09)
    axes.set_xticks(at, [str(size) for size in SIZES])
    plots.save(drawing, path)


def main() -> None:
    """Print the table, and draw the curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    total = []
    print(
        "| kind of panel | " + " | ".join(map(str, SHOWN)) + " | " + " | ".join(f"{n} experts" for n in EXPERTS) + " |"
    )
    for kind in KINDS:
        found = {n: gains(kind, n, options.repeats) for n in EXPERTS}
        print(row(kind, found), flush=True)
        total.append(np.concatenate([found[n] for n in EXPERTS]))
    everything = np.array(total)
    print("\nmean over all kinds, by pool")
    for i, name in enumerate(POOLS):
        print(f"| {name} | " + " | ".join(f"{g:+.3f}" for g in everything[..., i].mean(axis=(0, 1))) + " |")
    given = np.mean([gains_with_open_events(kind, n, options.repeats) for kind in KINDS for n in EXPERTS], axis=(0, 1))
    print("| default pool, open events given | " + " | ".join(f"{g:+.3f}" for g in given) + " |")
    for size in SHOWN[1:]:
        lda = np.concatenate([discriminant(kind, n, size, options.repeats) for kind in KINDS for n in EXPERTS])
        print(f"| discriminant analysis, {size} | {np.nanmean(lda):+.3f} | no answer: {np.isnan(lda).sum()} |")
    ahead = (everything[..., 0] > 0).mean(axis=(0, 1))
    print("| share of panels | " + " | ".join(f"{share:.0%}" for share in ahead) + " |")
    if options.figure:
        draw(options.figure, everything)


if __name__ == "__main__":
    main()
