"""The parts of the page about the paper: figures drawn and written, with the claims and tables that belong to them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opinionpool.arrays import Array
from opinionpool.atomic import replacing
from opinionpool.model.panel import Panel
from opinionpool.paper import datasets
from opinionpool.paper.datasets import VARIANCES
from opinionpool.paper.experiments import DEFAULT, METHODS, Curves
from opinionpool.paper.page import Claim, Picture, Section
from opinionpool.paper.score_claims import PAR, SIGNIFICANT, Expected, separation_rows
from opinionpool.plots import figures as plots
from opinionpool.plots.figures import BAND, Line, Numbers
from opinionpool.pools.logarithmic import Recalibrated

# Of figure 1; then the largest N and the correlations of figure 2.
PRIOR = 0.3
CALIBRATIONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
MOST = 10
SHARED = (0.0, 0.1, 0.2, 0.5, 0.9, 1.0)
LABELS = {
    "gaussian": "Gaussian",
    "logistic": "Logistic",
    "independent": "IndOps",
    "linear": "LinOps",
    "average": "AvgOps",
    DEFAULT: "default pool",
}
EXPERTS = "Number of experts N"
SCORE = "Mean log score S\n(0 = uninformed, 1 = perfect)"


def model_sections(folder: Path, claims: Sequence[Claim]) -> list[Section]:
    """Figures 1 and 2, drawn into a folder, with the claims about them."""
    q = np.linspace(0.0, 1.0, 401)
    curve = [(f"κ = {k:g}", 100 * _calibrated(q, k)) for k in CALIBRATIONS]
    one = _drawn(
        folder, "figure-1", "Figure 1", f"Calibration curves of an unbiased expert, p° = {PRIOR:g}.", 100 * q, curve,
        ("Forecast probability q (%)", "Updated probability p* (%)"), "calibration", every=80, head="forecast_percent",
    )  # fmt: skip
    n = np.arange(1, MOST + 1)
    panels = [[Panel.exchangeable(int(k), correlation=rho, accuracy=1.0) for k in n] for rho in SHARED]
    weights = [(f"ρ = {rho:g}", np.array([p.weights[0] for p in row])) for rho, row in zip(SHARED, panels, strict=True)]
    gains = [
        (f"ρ = {rho:g}", np.array([p.joint_accuracy for p in row])) for rho, row in zip(SHARED, panels, strict=True)
    ]
    a = _drawn(
        folder, "figure-2a", "Figure 2a", "Weight of each of N exchangeable, calibrated experts.", n, weights,
        (EXPERTS, "Weight w of each expert"), "correlation", head="experts",
    )  # fmt: skip
    b = _drawn(
        folder, "figure-2b", "Figure 2b", "Accuracy of N exchangeable experts in multiples of one expert's.", n, gains,
        (EXPERTS, "Accuracy multiplier μ*(N) / μ*(1)"), "correlation", head="experts",
    )  # fmt: skip
    return [
        Section("Figure 1: calibration", (), (one,), tuple(c for c in claims if _about(c) == "1")),
        Section("Figure 2: exchangeable experts", (), (a, b), tuple(c for c in claims if _about(c) == "2")),
    ]


def _about(claim: Claim) -> str:
    """The figure of the model that a claim is about; empty if none."""
    if claim.where.startswith(("3.1", "(13)")):
        return "1"
    return "2" if claim.where.startswith(("4.3", "(24)", "(25)", "after (25)")) else ""


def _calibrated(q: Array, kappa: float) -> Array:
    return Recalibrated().pool(q[:, None], slope=kappa, prior=PRIOR)


def _drawn(
    folder: Path,
    stem: str,
    label: str,
    caption: str,
    x: Numbers,
    curves: Sequence[tuple[str, Array]],
    labels: tuple[str, str],
    legend: str,
    *,
    head: str,
    every: int = 1,
) -> Picture:
    """A figure of curves, drawn, and its numbers."""
    drawing, axes = plots.figure()
    plots.family(axes, x, curves, labels=labels, title=legend, every=every)
    paths = plots.save(drawing, folder / stem)
    names = [name.replace(" = ", "_").replace("κ", "kappa").replace("ρ", "rho") for name, _ in curves]
    write_csv(folder / f"{stem}.csv", [head, *names], zip(x.tolist(), *(y.tolist() for _, y in curves), strict=True))
    return Picture(label, caption, paths[0].read_bytes(), (*(path.name for path in paths), f"{stem}.csv"))


@dataclass(frozen=True)
class Group:
    """Figures that belong together."""

    title: str
    key: str
    text: tuple[str, ...]
    members: list[tuple[str, Curves, Expected | None]]


def groups(curves: Sequence[Curves], expected: Sequence[Expected | None]) -> Iterable[Group]:
    """Groups of learning curves: figure 3 with either variance, and figure 4."""
    pairs = list(zip(curves, expected, strict=True))
    bands = (
        f"Bands reach {BAND:g} standard error to either side, over the draws of experts and halves. These share one "
        f"data set of {datasets.EVENTS} events, so all lines of a figure may lie off the thin ones together. Those are "
        "expected scores at known parameters, what unlimited training data would give: by quadrature for the Gaussian "
        "(and logistic) and the independent pool, by simulation for the average, which is the best linear pool of "
        "exchangeable experts."
    )
    kinds = {1.0: "as printed, underconfident experts (κ = 2)", 2.0: "as the text requires, calibrated experts (κ = 1)"}
    for variance in VARIANCES:
        members = [
            (f"3{letter}", c, e)
            for letter, (c, e) in zip("abc", [p for p in pairs if p[0].data.variance == variance], strict=True)
        ]
        title = f"Figure 3 with σ² = {variance:g}, {kinds[variance]}"
        yield Group(title, f"figure 3, σ² = {variance:g}", (bands,), members)
    real = [p for p in pairs if p[1] is None]
    if real:
        facts = tuple(f"{c.data.title}: {fact}" for c, _ in real for fact in c.data.facts)
        text = "Each covariate becomes log-odds by section 4.1, learned from the training half only. Bands as above."
        members = [(f"4{letter}", c, e) for letter, (c, e) in zip("ab", real, strict=True)]
        yield Group("Figure 4: UCI data", "", (text, *facts), members)


def score_section(folder: Path, group: Group, claims: Sequence[Claim]) -> Section:
    """The figures of a group, drawn into a folder, with the claims about them."""
    pictures = tuple(_scored(folder, number, c, e) for number, c, e in group.members)
    titles = [c.data.title for _, c, e in group.members if e is None]
    about = tuple(
        claim
        for claim in claims
        if (group.key and claim.where.endswith(group.key)) or any(title in claim.where for title in titles)
    )
    return Section(group.title, group.text, pictures, about)


def _scored(folder: Path, number: str, c: Curves, e: Expected | None) -> Picture:
    """A figure of scores, drawn, and its numbers."""
    lines, rows = [], []
    for method in (*METHODS, DEFAULT):
        known = None if e is None or method in {DEFAULT, "logistic", "linear"} else e.of(method)
        lines.append(Line(LABELS[method], c.mean(method), c.error(method), known))
        limit = [""] * len(c.numbers) if e is None or method == DEFAULT else e.of(method).tolist()
        columns = c.numbers.tolist(), c.mean(method).tolist(), c.error(method).tolist(), limit
        rows += [(method, *row) for row in zip(*columns, strict=True)]
    drawing, axes = plots.figure()
    plots.scores(axes, c.numbers, lines, labels=(EXPERTS, SCORE))
    stem = f"figure-{number}" if c.data.variance is None else f"figure-{number}-variance-{c.data.variance:g}"
    paths = plots.save(drawing, folder / stem)
    write_csv(folder / f"{stem}.csv", ["method", "experts", "mean", "standard_error", "known_parameters"], rows)
    title = c.data.title[0].upper() + c.data.title[1:]
    files = (*(path.name for path in paths), f"{stem}.csv")
    return Picture(f"Figure {number}", f"{title}.", paths[0].read_bytes(), files)


def separation_section(curves: Sequence[Curves]) -> Section:
    """Section on separated samples, where the likelihood has no maximum: the rule for them and its scores."""
    rows = tuple(
        (title, f"{n}", f"{100 * share:.0f} %", f"{rule:.3f}", f"{limit:.3f}", f"{gaussian:.3f}")
        for title, n, share, rule, limit, gaussian in separation_rows(curves)
    )
    text = (
        "Where some weights put every outcome of a training half on its side, the likelihood of logistic regression "
        "has no maximum: it grows with the weights without end. The paper does not say what it did then. The rule here "
        "is that of the logarithmic pool everywhere in opinionpool: the most probable weights under normal beliefs, "
        "each weight 1/N ± 1/√N, the intercept 0 ± 1. It is used only on separated halves; on halves that are nearly "
        "separated the maximum exists, with large weights, and scores suffer.",
        "Beside the score under this rule stand, on the same halves, the score of weights that separate them "
        "multiplied without end, where every answer is at a floor, and that of the Gaussian pool.",
    )
    header = ("Data", "N", "Separated halves", "Score by the rule", "Multiplied without end", "Gaussian")
    return Section("LogOps where there is no maximum", text, header=header, rows=rows)


def closing_section(claims: Sequence[Claim]) -> Section:
    """The claims about the model that no figure shows, and what words mean."""
    rest = tuple(c for c in claims if not _about(c))
    words = (
        f"“On par” and “equal” mean that no mean difference in score exceeds {PAR:g}; “significantly”, that it exceeds "
        f"{SIGNIFICANT:g} standard errors of the paired differences. All rows are in claims.csv, all scores in "
        "scores.csv.",
    )
    return Section("The model: sections 2 to 5.4", words, claims=rest)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def default_section(curves: Sequence[Curves]) -> Section:
    """Section on the default pool with all experts, compared with the Gaussian pool and the best of the five."""
    text = (
        "The paper compares five methods: its Gaussian model in the full structure, logistic regression (LogOps), the "
        "independent pool (IndOps), the linear pool of maximum likelihood (LinOps) and the average (AvgOps). The sixth "
        "line is opinionpool’s default pool, which adds to what the training half says what is believed of any panel: "
        "that experts are about calibrated and depend on each other. Where they do not, that costs something; the "
        "table says how much, with all experts.",
    )
    rows = []
    for c in curves:
        gain, error = c.gain(DEFAULT, "gaussian")
        best = max(METHODS, key=lambda method: c.mean(method)[-1])
        rows.append(
            (
                c.data.title, f"{c.numbers[-1]}", f"{c.mean('gaussian')[-1]:.3f}", f"{c.mean(DEFAULT)[-1]:.3f}",
                f"{gain[-1]:+.3f} ± {error[-1]:.3f}", f"{c.mean(best)[-1]:.3f} ({LABELS[best]})",
            )
        )  # fmt: skip
    header = ("Data", "N", "Gaussian", "Default pool", "Difference", "Best of the five")
    return Section("The default pool beside the five", text, header=header, rows=tuple(rows))
