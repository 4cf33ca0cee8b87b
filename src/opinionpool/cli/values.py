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


def read_classes(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Classes between commas; one that has a comma stands in double quotes."""
    if value is None:
        return ()
    import csv

    found = tuple(each.strip() for each in next(csv.reader([value], skipinitialspace=True), []))
    if len(found) < 2 or "" in found or len(set(found)) < len(found):
        raise click.BadParameter(f"two or more different classes between commas are wanted, not {value!r}")
    return found


def read_columns(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, str | tuple[str, ...] | None]:
    """Texts of the form ROLE=NAME, split at the first equals sign; a role named again has a key of columns."""
    found: dict[str, list[str]] = {}
    for value in given:
        role, sign, name = value.partition("=")
        if not sign or not role.strip():
            raise click.BadParameter(f"{value!r} is not of the form ROLE=NAME, such as event=question")
        found.setdefault(role.strip(), []).append(name.strip())
    for role, names in found.items():
        if len(names) > 1 and "" in names:
            raise click.BadParameter(f"{role} is given no column, and one too")
    return {role: (names[0] or None) if len(names) == 1 else tuple(names) for role, names in found.items()}


def read_units(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Texts of the form NAME=percent or NAME=fraction, split at the last equals sign."""
    found: dict[str, str] = {}
    for value in given:
        name, _, unit = value.rpartition("=")
        if not name.strip() or unit.strip() not in {"percent", "fraction"}:
            raise click.BadParameter(f"{value!r} is not of the form NAME=percent or NAME=fraction")
        found[name.strip()] = unit.strip()
    return found


def read_encoding(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """Refuse names that no encoding has."""
    if name is not None:
        try:
            "".encode(name)
        except (LookupError, ValueError):
            raise click.BadParameter(f"no text encoding is called {name!r}; cp1252 and utf-16 are usual") from None
    return name


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
    """The same where there must be one; what stands after it, as an event, is taken first."""
    if not names and not context.resilient_parsing:
        others = [each for each in context.command.params if isinstance(each, click.Argument) and each is not parameter]
        missing = next((each.name for each in others if each.name), "file").upper()
        raise click.UsageError(f"Missing argument '{missing}'.", context)
    return existing_files(context, parameter, names)
