"""What is typed after options and arguments, checked and turned into values."""

from __future__ import annotations

import math
import os

import click

from opinionpool.cli.arguments import PriorOption
from opinionpool.pools import NAMES


def read_prior(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> PriorOption:
    """Probabilities strictly between 0 and 1, such as 0.01, 1%, or CLASS=0.01."""
    found = []
    for value in given:
        label, sign, text = value.rpartition("=")
        text = text.strip()
        try:
            if "_" in text or not text.isascii():  # Python would take these for digits
                raise ValueError
            p = float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
        except ValueError:
            raise click.BadParameter(f"{text!r} is not a number; write 0.01 or 1%") from None
        if not 0.0 < p < 1.0:
            hint = f"; for {text} per cent write {text}%" if 1.0 <= p < 100.0 and not text.endswith("%") else ""
            raise click.BadParameter(f"{text} does not lie strictly between 0 and 1{hint}")
        found.append((label.strip() if sign else None, p))
    return tuple(found)


def read_weights(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, float] | None:
    """Texts of the form EXPERT=W, split at the last equals sign."""
    found: dict[str, float] = {}
    for value in given:
        expert, sign, text = value.rpartition("=")
        try:
            weight = float(text) if sign and text.strip().isascii() and "_" not in text else math.nan
        except ValueError:
            weight = math.nan
        if not expert.strip() or not math.isfinite(weight):
            raise click.BadParameter(f"{value!r} is not of the form EXPERT=W, such as ann=0.5")
        if expert.strip() in found:
            raise click.BadParameter(f"{expert.strip()!r} has two weights")
        found[expert.strip()] = weight
    return found or None


def read_pools(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Names of pools, separated by commas."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in NAMES:
            from opinionpool.text import suggestion

            raise click.BadParameter(f"no pool is called {name!r}; {suggestion(name, NAMES, 'there are')}")
    return names


def existing_files(_context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse names of files and folders that are not there; a pattern may stand for several."""
    import glob

    for name in names:
        if name != "-" and not os.path.exists(name) and not glob.glob(name):
            raise click.BadParameter(f"there is no file {name}")
    if "-" in names and len(names) > 1:
        raise click.BadParameter("standard input, -, cannot be read together with files")
    return names


def some_files(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Like `existing_files`, with at least one file required."""
    if not names and not context.resilient_parsing:
        others = [each for each in context.command.params if isinstance(each, click.Argument) and each is not parameter]
        missing = next((each.name for each in others if each.name), "file").upper()
        raise click.UsageError(f"Missing argument '{missing}'.", context)
    return existing_files(context, parameter, names)
