"""The paper reproduced: experiments run, figures drawn, claims checked, and all of it written to a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opinionpool.atomic import replacing
from opinionpool.paper import datasets
from opinionpool.paper.datasets import CORRELATIONS, VARIANCES, DataSet, MissingDataError
from opinionpool.paper.experiments import DEFAULT, METHODS, Curves, run
from opinionpool.paper.model_claims import model_claims
from opinionpool.paper.page import Claim, page
from opinionpool.paper.score_claims import expectations, score_claims, separation_rows
from opinionpool.paper.sections import (
    closing_section,
    default_section,
    groups,
    model_sections,
    score_section,
    separation_section,
    write_csv,
)
from opinionpool.plots import figures as plots

# What of the work the experiments are; the rest is drawing.
EXPERIMENTS = 0.8


@dataclass(frozen=True)
class Reproduction:
    """The files written: the page and the number of figures, with the claims checked."""

    page: Path
    figures: int
    claims: tuple[Claim, ...]
    missing: str | None  # what stands in the way of the rest, and how to get it


def reproduce(
    folder: Path,
    seed: int = 0,
    iterations: int = 30,
    workers: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Reproduction:
    """Run, draw and check everything, and write figures, numbers and the page to a folder.

    Parameters
    ----------
    folder : Path
        Made if it is not there; files of the same names are replaced.
    seed : int, default 0
        The same seed gives the same files.
    iterations : int, default 30
        For each number of experts.
    workers : int, default 1
        Processes that share the experiments.
    progress : function of a float, optional
        Called with the share of the work that is done.

    Raises
    ------
    OpinionPoolError
        If Matplotlib is not installed.
    OSError
        If the folder cannot be written to.
    """
    plots.figure()  # before any work, if it cannot be done
    folder.mkdir(parents=True, exist_ok=True)
    tell = progress or (lambda _: None)
    sets, missing = _sets(seed)
    curves = run(sets, iterations, seed, workers, lambda share: tell(EXPERIMENTS * share))
    expected = [expectations(c.data) for c in curves]
    about_scores, about_model = score_claims(curves, expected), model_claims(seed)
    claims = (*about_model, *about_scores)
    _write_tables(folder, curves, claims)
    sections = [*model_sections(folder, about_model)]
    for done, group in enumerate(groups(curves, expected), start=1):
        tell(EXPERIMENTS + (1.0 - EXPERIMENTS) * done / (len(VARIANCES) + 3))
        sections.append(score_section(folder, group, about_scores))
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
        "them. Every "
        "verdict is computed when this page is made.",
        f"The experiments follow section 5: {iterations} iterations for each number of experts, experts drawn without "
        "replacement, half of the events for training, floors of 10⁻⁴ on experts and 10⁻⁸ on aggregates, a uniform "
        f"scoring prior, estimates as corrected. The seed is {seed}; the same seed gives the same files.",
    ]
    return [*lead, f"Figure 4 is missing: {missing}."] if missing else lead


def _write_tables(folder: Path, curves: Sequence[Curves], claims: Sequence[Claim]) -> None:
    write_csv(
        folder / "claims.csv", ["where", "says", "found", "holds", "right"],
        ((c.where, c.says, c.found, str(c.holds).lower(), c.right) for c in claims),
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
