"""The paper reproduced: experiments run, figures drawn and claims checked, written to a folder with one page."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opinionpool.arrays import Array
from opinionpool.atomic import replacing
from opinionpool.model.panel import Panel
from opinionpool.paper import datasets
from opinionpool.paper.claims import NAMES, SIGNIFICANT, TABLE, Claim, model_claims, score_claims
from opinionpool.paper.datasets import CORRELATIONS, VARIANCES, DataSet, Expected, MissingDataError, expectations
from opinionpool.paper.experiments import DEFAULT, METHODS, Curves, run
from opinionpool.plots import figures as plots
from opinionpool.plots.figures import BAND, Line, Numbers
from opinionpool.pools.logarithmic import Recalibrated
from opinionpool.report.blocks import Html, document, grid, joined, markup

# What of the work the experiments are; the rest is drawing.
EXPERIMENTS = 0.8
# Of figure 1; then the largest N and the correlations of figure 2.
PRIOR = 0.3
CALIBRATIONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
MOST = 10
SHARED = (0.0, 0.1, 0.2, 0.5, 0.9, 1.0)
LABELS = {**NAMES, "logistic": "Logistic", DEFAULT: "default pool"}
EXPERTS = "Number of experts N"
SCORE = "Mean log score S\n(0 = uninformed, 1 = perfect)"
STYLE = "\n" + Path(__file__).with_name("paper.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Section:
    """Section of the page: its title, paragraphs, pictures, claims and a table."""

    title: str
    text: tuple[str, ...] = ()  # paragraphs
    pictures: tuple[Html, ...] = ()
    claims: tuple[Claim, ...] = ()  # statements of the paper about the pictures
    # header, rows: table of further numbers, with text in the first column
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Reproduction:
    """Result of `reproduce`: the page that was written, the number of figures, and the claims checked."""

    page: Path
    figures: int
    claims: tuple[Claim, ...]
    missing: str | None  # requirement of the part left out, and how to install it


def reproduce(
    folder: Path,
    seed: int = 0,
    iterations: int = 30,
    workers: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Reproduction:
    """Run all experiments, check all claims, and write figures, numbers and a page to a folder.

    The folder is created if necessary, and files of the same names are replaced; the same seed gives the same files.
    `workers` processes share the experiments, of which there are `iterations` for each number of experts, and
    `progress` is called with the share of the work that is done. Raises OpinionPoolError without Matplotlib.
    """
    plots.figure()  # before any work, if it cannot be done
    folder.mkdir(parents=True, exist_ok=True)
    tell = progress or (lambda _: None)
    sets, missing = _sets(seed)
    curves = run(sets, iterations, seed, workers, lambda share: tell(EXPERIMENTS * share))
    about_model = model_claims(seed)
    sections = [*model_sections(folder, about_model)]
    for done, section in enumerate(score_sections(folder, curves), start=1):
        tell(EXPERIMENTS + (1.0 - EXPERIMENTS) * done / (len(VARIANCES) + 3))
        sections.append(section)
    claims = (*about_model, *(claim for section in sections[2:] for claim in section.claims))
    _write_tables(folder, curves, claims)
    sections += [default_section(curves), separation_section(curves), closing_section(about_model)]
    lead = _lead(claims, seed, iterations, missing)
    place = folder / "index.html"
    title = "“A Generative Bayesian Model for Aggregating Experts’ Probabilities”, reproduced and checked"
    with replacing(place) as file:
        file.write(page(title, lead, sections).encode())
    tell(1.0)
    return Reproduction(place, sum(len(section.pictures) for section in sections), claims, missing)


def _sets(seed: int) -> tuple[list[DataSet], str | None]:
    sets = [datasets.simulated(rho, variance, seed) for variance in VARIANCES for rho in CORRELATIONS]
    try:
        return [*sets, datasets.pima(), datasets.bupa()], None
    except MissingDataError as error:
        return sets, str(error)


def _lead(claims: Sequence[Claim], seed: int, iterations: int, missing: str | None) -> list[str]:
    holding = sum(claim.holds for claim in claims)
    lead = [
        f"The paper is by Joseph M. Kahn (UAI 2004). Of {len(claims)} statements in it that can be checked, {holding} "
        f"hold and {len(claims) - holding} do not, many of them slips of the pen; what is right stands beside "
        "them. Every verdict is computed when this page is made.",
        f"The experiments follow section 5: {iterations} iterations for each number of experts, experts drawn without "
        "replacement, half of the events for training, floors of 10⁻⁴ on experts and 10⁻⁸ on aggregates, a uniform "
        f"scoring prior, estimates as corrected. The seed is {seed}; the same seed gives the same files.",
    ]
    return [*lead, f"Figure 4 is missing: {missing}."] if missing else lead


def _write_tables(folder: Path, curves: Sequence[Curves], claims: Sequence[Claim]) -> None:
    write_csv(
        folder / "claims.csv", ["claim", "where", "says", "found", "holds", "right"],
        ((c.name, c.where, c.says, c.found, str(c.holds).lower(), c.right) for c in claims),
    )  # fmt: skip
    write_csv(
        folder / "scores.csv", ["data", "experts", "iteration", "separated", *METHODS, DEFAULT],
        (
            (c.data.name, int(n), i + 1, str(bool(c.separated[place, i])).lower(), *c.scores[:, place, i].tolist())
            for c in curves for place, n in enumerate(c.numbers) for i in range(c.scores.shape[2])
        ),
    )  # fmt: skip
    write_csv(
        folder / "separated.csv", ["data", "experts", "share", "score_by_rule", "score_in_limit", "score_gaussian"],
        separation_rows(curves),
    )  # fmt: skip


def model_sections(folder: Path, claims: Sequence[Claim]) -> list[Section]:
    """Return sections with figures 1 and 2, drawn into a folder, and the claims about them."""
    q = np.linspace(0.0, 1.0, 401)
    pool = Recalibrated()
    curve = [(f"κ = {k:g}", 100 * pool.pool(q[:, None], slope=k, prior=PRIOR)) for k in CALIBRATIONS]
    one = _curves(
        folder, "figure-1", "Figure 1", f"Calibration curves of an unbiased expert, p° = {PRIOR:g}.", 100 * q, curve,
        ("Forecast probability q (%)", "Updated probability p* (%)"), "calibration", every=80, head="forecast_percent",
    )  # fmt: skip
    n = np.arange(1, MOST + 1)
    panels = [[Panel.exchangeable(int(k), correlation=rho, accuracy=1.0) for k in n] for rho in SHARED]
    weights = [(f"ρ = {rho:g}", np.array([p.weights[0] for p in row])) for rho, row in zip(SHARED, panels, strict=True)]
    gains = [
        (f"ρ = {rho:g}", np.array([p.joint_accuracy for p in row])) for rho, row in zip(SHARED, panels, strict=True)
    ]
    a = _curves(
        folder, "figure-2a", "Figure 2a", "Weight of each of N exchangeable, calibrated experts.", n, weights,
        (EXPERTS, "Weight w of each expert"), "correlation", head="experts",
    )  # fmt: skip
    b = _curves(
        folder, "figure-2b", "Figure 2b", "Accuracy of N exchangeable experts in multiples of one expert's.", n, gains,
        (EXPERTS, "Accuracy multiplier μ*(N) / μ*(1)"), "correlation", head="experts",
    )  # fmt: skip
    return [
        Section("Figure 1: calibration", (), (one,), tuple(c for c in claims if c.figure == "1")),
        Section("Figure 2: exchangeable experts", (), (a, b), tuple(c for c in claims if c.figure == "2")),
    ]


def _curves(
    folder: Path, stem: str, label: str, caption: str, x: Numbers, curves: Sequence[tuple[str, Array]],
    labels: tuple[str, str], legend: str, *, head: str, every: int = 1,
) -> Html:  # fmt: skip
    """Draw `curves` over `x`, save picture and numbers in `folder`, and return the figure as HTML."""
    names = [name.replace(" = ", "_").replace("κ", "kappa").replace("ρ", "rho") for name, _ in curves]
    rows = zip(x.tolist(), *(y.tolist() for _, y in curves), strict=True)

    def draw(axes: Any) -> None:  # noqa: ANN401 - of Matplotlib
        plots.family(axes, x, curves, labels=labels, title=legend, every=every)

    return _drawn(folder, stem, label, caption, draw, [head, *names], rows)


def _drawn(
    folder: Path, stem: str, label: str, caption: str, draw: Callable[[Any], object], header: list[str],
    rows: Iterable[Sequence[object]],
) -> Html:  # fmt: skip
    """Draw a figure by `draw`, save it and the table of its numbers (`rows`) in `folder`, and return it as HTML."""
    drawing, axes = plots.figure()
    draw(axes)
    paths = plots.save(drawing, folder / stem)
    write_csv(folder / f"{stem}.csv", header, rows)
    return picture(label, caption, paths[0].read_bytes(), [*(path.name for path in paths), f"{stem}.csv"])


def score_sections(folder: Path, curves: Sequence[Curves]) -> Iterator[Section]:
    """Yield sections with figure 3 for either variance and with figure 4, drawn into a folder, and their claims."""
    pairs = [(c, expectations(c.data)) for c in curves]
    bands = (
        f"Bands reach {BAND:g} standard error to either side, over the draws of experts and halves. These share one "
        f"data set of {datasets.EVENTS} events, so all lines of a figure may lie off the thin ones together. Those are "
        "expected scores at known parameters, what unlimited training data would give: by quadrature for the Gaussian "
        "(and logistic) and the independent pool, by simulation for the average, which is the best linear pool of "
        "exchangeable experts."
    )
    kinds = {1.0: "as printed, underconfident experts (κ = 2)", 2.0: "as the text requires, calibrated experts (κ = 1)"}
    for variance, kind in kinds.items():
        group = [pair for pair in pairs if pair[0].data.variance == variance]
        yield _score_section(folder, f"Figure 3 with σ² = {variance:g}, {kind}", "3", (bands,), group)
    real = [pair for pair in pairs if pair[1] is None]
    if real:
        facts = tuple(f"{c.data.title}: {fact}" for c, _ in real for fact in c.data.facts)
        text = "Each covariate becomes log-odds by section 4.1, learned from the training half only. Bands as above."
        yield _score_section(folder, "Figure 4: UCI data", "4", (text, *facts), real)


def _score_section(
    folder: Path, title: str, figure: str, text: tuple[str, ...], pairs: list[tuple[Curves, Expected | None]]
) -> Section:
    pictures = tuple(_scored(folder, f"{figure}{letter}", c, e) for letter, (c, e) in zip("abc", pairs, strict=False))
    return Section(title, text, pictures, tuple(score_claims(pairs)))


def _scored(folder: Path, number: str, c: Curves, e: Expected | None) -> Html:
    """Draw a figure of scores by the number of experts into files, and return it as HTML with its numbers."""
    lines, rows = [], []
    for method in (*METHODS, DEFAULT):
        known = None if e is None or method in {DEFAULT, "logistic", "linear"} else e.of(method)
        lines.append(Line(LABELS[method], c.mean(method), c.error(method), known))
        limit = [""] * len(c.numbers) if e is None or method == DEFAULT else e.of(method).tolist()
        columns = c.numbers.tolist(), c.mean(method).tolist(), c.error(method).tolist(), limit
        rows += [(method, *row) for row in zip(*columns, strict=True)]
    stem = f"figure-{number}" if c.data.variance is None else f"figure-{number}-variance-{c.data.variance:g}"
    title = c.data.title[0].upper() + c.data.title[1:]

    def draw(axes: Any) -> None:  # noqa: ANN401 - of Matplotlib
        plots.scores(axes, c.numbers, lines, labels=(EXPERTS, SCORE))

    header = ["method", "experts", "mean", "standard_error", "known_parameters"]
    return _drawn(folder, stem, f"Figure {number}", f"{title}.", draw, header, rows)


def separation_rows(curves: Sequence[Curves]) -> list[tuple[str, int, float, float, float, float]]:
    """Rows on halves for training with separated outcomes: data set, N, share of such halves, scores of three pools.

    They are the logistic pool by this package's rule and at the limit, and the Gaussian pool. The rule is that of
    `opinionpool.estimation.logistic.logistic_fit`: posterior mode of the coefficients with a normal prior. The limit is
    that of infinite coefficients, with every answer at a floor.
    """
    rows = []
    for c in curves:
        for place in np.flatnonzero(c.separated.any(axis=1)):
            difference = c.separated[place]
            scores = [float(values[difference].mean()) for values in (
                c.of("logistic")[place], c.limit[place], c.of("gaussian")[place]
            )]  # fmt: skip
            rows.append(
                (c.data.title, int(c.numbers[place]), float(difference.mean()), scores[0], scores[1], scores[2])
            )
    return rows


def separation_section(curves: Sequence[Curves]) -> Section:
    """Return the section on separated samples, whose likelihood has no maximum: the rule for them and its scores."""
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
    """Return the section with the claims about the model that have no figure, and the meaning of words."""
    rest = tuple(c for c in claims if not c.figure)
    par = TABLE["on-par"]["tolerance"]
    words = (
        f"“On par” and “equal” mean that no mean difference in score exceeds {par:g}; “significantly”, that it exceeds "
        f"{SIGNIFICANT:g} standard errors of the paired differences. All rows are in claims.csv, all scores in "
        "scores.csv.",
    )
    return Section("The model: sections 2 to 5.4", words, claims=rest)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table as a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def default_section(curves: Sequence[Curves]) -> Section:
    """Return the section on the default pool with all experts, compared with the Gaussian pool and the best of five."""
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


def page(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """Return the page as one HTML text that needs no other file.

    Examples
    --------
    >>> text = page("A title", ["One."], [Section("Part", claims=(Claim("one", "(1)", "1 < 2", "-1", True),))])
    >>> "<td>−1</td>" in text, "1 &lt; 2" in text
    (True, True)
    """
    parts = [markup("<h1>{}</h1>", title), *(markup("<p>{}</p>", paragraph) for paragraph in lead)]
    parts += [part for section in sections for part in _section(section)]
    return document(title, STYLE, joined(parts, "\n"))


def _section(section: Section) -> Iterator[Html]:
    yield markup("<h2>{}</h2>", section.title)
    yield from (markup("<p>{}</p>", paragraph) for paragraph in section.text)
    if section.pictures:
        yield markup('<div class="pictures">{}</div>', joined(section.pictures))
    if section.claims:
        header = ("Where", "What the paper says", "What is found", "Verdict")
        yield grid(header, map(_claim, section.claims), words=4).html()
    if section.rows:
        yield grid(section.header, section.rows).html()


def picture(label: str, caption: str, svg: bytes, files: Sequence[str]) -> Html:
    """Return a figure of the page, such as "Figure 3a", with links to the files of its picture and its numbers."""
    source = base64.b64encode(svg).decode("ascii")
    links = joined([markup('<a href="{}">{}</a>', name, name) for name in files], ", ")
    return markup(
        f'<figure><img alt="{{}}: {{}}" src="data:image/svg+xml;base64,{source}">'
        "<figcaption><b>{}.</b> {} {}</figcaption></figure>",
        label, caption, label, caption, links,
    )  # fmt: skip


def _claim(claim: Claim) -> list[str]:
    kind, phrase = ("yes", "✓ holds") if claim.holds else ("no", "✗ does not hold")
    right = markup('<span class="right">{}</span>', claim.right) if claim.right else ""
    verdict = markup(f'<span class="verdict {kind}">{{}}</span>', phrase)
    return [claim.where, claim.says, markup("{}{}", claim.found, right), verdict]
