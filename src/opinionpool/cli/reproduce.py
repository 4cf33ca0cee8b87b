"""``opinionpool paper``: the paper that the model is from, reproduced."""

from __future__ import annotations

import os

import click

from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.output import (
    destination,
    progress,
    tell,
)


@click.command(cls=SectionedCommand, short_help="Reproduce the paper that the model is from.")
@click.option("-o", "--output", "folder", required=True, metavar="DIR", help="Where to write; made if it is not there.")
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Random seed. Default: 0.")
@click.option(
    "--iterations",
    type=click.IntRange(1),
    default=30,
    metavar="N",
    help="Random draws of experts, and of the half of the events to learn from, for each number of experts. "
    "Default: 30, as in the paper.",
)
def paper(folder: str, seed: int, iterations: int) -> None:
    """Reproduce the paper that the model is from, and say which of its claims hold.

    Writes every figure as SVG and PNG, the numbers as CSV, and index.html, which shows all of it with what the paper
    says beside what is found. The same seed gives the same files. Needs the extra paper
    (python -m pip install '.[paper]' in a copy of the repository).
    """
    if not folder:
        raise click.UsageError("-o needs the name of a folder, and it is empty; . is the one you are in")
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise click.UsageError(f"{folder} is not a directory")
    from pathlib import Path

    from opinionpool.blocks import processors
    from opinionpool.paper.reproduce import reproduce

    with progress("reproducing the paper", log=True) as advance:
        done = reproduce(Path(folder), seed, iterations, processors(), advance)
    with destination(None) as out:
        out.write(f"{done.page}\n")
    assumed = sum(claim.holds for claim in done.claims)
    count = len(done.claims)
    missing = [] if done.missing is None else [f"{done.missing}; then run this again"]
    tell(
        f"{done.figures} figures; of {count} claims that can be checked {assumed} hold, {count - assumed} do not",
        *missing,
    )
