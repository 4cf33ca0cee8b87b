"""The options that commands share, as decorators: each hands its command one object of `opinionpool.arguments`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

import click

from opinionpool.arguments import Chances, Comparing, Keeping, Pooling, Reading, Writing

POOLS = (
    "gaussian",
    "linear",
    "log",
    "independent",
    "average",
    "geometric",
    "median",
    "trimmed",
    "extremized",
    "recalibrated",
    "beta-linear",
)
FORMATS = ("table", "csv", "json")

# A function that click makes a command of, and one that adds an option to it.
Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]


def reading(command: Command) -> Command:
    """Give a command the argument FILE and the options that say how to read it, as ``reading``."""
    file = click.Path(exists=True, dir_okay=False, allow_dash=True)
    options = [
        click.argument("file", type=file),
        click.option("--outcomes", metavar="FILE", type=file, help="Outcomes in a file of their own."),
        click.option("--positive", metavar="CLASS", help="The outcome that the probabilities are about."),
        click.option(
            "--column",
            metavar="ROLE=NAME",
            callback=_assignments,
            multiple=True,
            help="The column that holds the event, expert, probability, class, outcome, time, closes, resolved_at, "
            "prior or group, where its name does not say so. Nothing after = means: no column. Repeatable.",
        ),
        click.option(
            "--options",
            type=click.Choice(["event", "shared"]),
            help="Whether each event has options of its own, or all share their classes. Default: its own where "
            "different sets have no class in common; where they do, this is asked.",
        ),
        click.option("--include", metavar="EXPERT", multiple=True, help="Hear this expert only. Repeatable."),
        click.option("--exclude", metavar="EXPERT", multiple=True, help="Do not hear this expert. Repeatable."),
        click.option(
            "--duplicates",
            type=click.Choice(["last", "mean"]),
            help="Which of several forecasts by one expert on one event counts.",
        ),
        click.option("--as-of", metavar="TIME", help="Use what was known at this time, such as 2025-03-01T12:00Z."),
        click.option("--percent", is_flag=True, help="Probabilities are percentages, 0 to 100."),
        click.option("--decimal", type=click.Choice([".", ","]), help="The decimal mark."),
        click.option(
            "--encoding", metavar="NAME", callback=_encoding, help="The text's encoding if not UTF-8, such as cp1252."
        ),
        click.option("--missing-value", metavar="V", multiple=True, help="A word or number for no answer. Repeatable."),
    ]
    return _stack(options, _gather(Reading, "reading")(command))


def writing(command: Command) -> Command:
    """Give a command the options that say where results go, as ``writing``."""
    options = [
        click.option(
            "-o",
            "--output",
            metavar="FILE",
            callback=lambda _context, _parameter, name: None if name == "-" else name,
            help="Write to this file instead of standard output; its old content stays until all is done.",
        ),
        click.option(
            "--format",
            type=click.Choice(FORMATS),
            help="Default: a table on a terminal, else CSV; JSON where FILE ends in .json.",
        ),
    ]
    return _stack(options, _gather(Writing, "writing")(command))


def pooling(command: Command) -> Command:
    """Give a command the options that say which pool and which prior, as ``pooling``."""
    options: list[Decorator] = [
        click.option(
            "--pool",
            type=click.Choice(POOLS),
            metavar="NAME",
            default="gaussian",
            help=f"One of {', '.join(POOLS)}. Default: gaussian.",
        ),
        _prior,
        _panel,
    ]
    return _stack(options, _gather(Pooling, "pooling")(command))


def keeping(command: Command) -> Command:
    """Give a command the options that say where a pool is from and where it goes, as ``keeping``."""
    file = click.Path(exists=True, dir_okay=False)
    options: list[Decorator] = [
        click.option(
            "--model",
            type=file,
            metavar="FILE",
            help="Use the pool that --save has written, as it is; with --save, let it go on learning.",
        ),
        click.option(
            "--save", metavar="FILE", help="Write the pool, and what it needs to go on learning, to this file (JSON)."
        ),
    ]
    return _stack(options, _gather(Keeping, "keeping")(command))


def comparing(command: Command) -> Command:
    """Give a command the options that say what to compare and how, as ``comparing``."""
    options: list[Decorator] = [
        click.option(
            "--pools",
            metavar="A,B,...",
            callback=_pools,
            help=f"Some of {', '.join(POOLS)}. Default: all of them; for thousands of experts "
            "with few forecasts each, all but linear and log. The average is always there.",
        ),
        click.option("--by-time", is_flag=True, help="Learn from the past of the scored events alone."),
        click.option(
            "--gap",
            metavar="SPAN",
            default="0",
            help="With --by-time: how long before an event may help to forecast others: days, or as in 4w, 36h.",
        ),
        click.option("--by-group", is_flag=True, help="Never learn from the scored events' own groups."),
        click.option(
            "--folds", type=click.IntRange(1), default=5, metavar="N", help="Parts, or blocks of time. Default: 5."
        ),
        click.option(
            "--repeats",
            type=click.IntRange(1),
            metavar="N",
            help="How often events are dealt anew. Default: until it hardly matters, at most 20 times.",
        ),
        click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Of all chance. Default: 0."),
        _prior,
        _panel,
    ]
    return _stack(options, _gather(Comparing, "comparing")(command))


def _prior(command: Command) -> Command:
    """Give a command the option --prior."""
    return click.option(
        "--prior",
        metavar="P",
        callback=read_chances,
        multiple=True,
        help="How likely an event is before any expert is heard, such as 0.01 or 1%; the experts are taken to "
        "share it. Default: Laplace's estimate from the resolved events. More than two classes: CLASS=P for each.",
    )(command)


def _panel(command: Command) -> Command:
    """Give a command the option --panel."""
    return click.option(
        "--panel",
        metavar="PANEL.toml",
        type=click.Path(exists=True, dir_okay=False),
        help="What is believed of the experts, such as calibration = 0.9, or below [experts.NAME] auc = 0.8, for the "
        "gaussian pool. Default: what is assumed of any panel.",
    )(command)


def _pools(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Names of pools, separated by commas."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in POOLS:
            raise click.BadParameter(f"no pool is called {name!r}; there are {', '.join(POOLS)}")
    return names


def _gather(kind: type[Any], name: str) -> Decorator:
    """Hand a command one object in place of the options that are its fields."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(**given: object) -> object:
            own = {field.name: given.pop(field.name) for field in fields(kind)}
            return command(**given, **{name: kind(**own)})

        return wrapper

    return decorate


def _stack(options: Sequence[Decorator], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def read_chances(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> Chances:
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


def _assignments(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Texts of the form ROLE=NAME, taken apart at the first equals sign."""
    found: list[tuple[str, str]] = []
    for value in given:
        role, sign, name = value.partition("=")
        if not sign or not role.strip():
            raise click.BadParameter(f"{value!r} is not of the form ROLE=NAME, such as event=question")
        if role.strip() in dict(found):
            raise click.BadParameter(f"{role.strip()} is named twice; one column can be it")
        found.append((role.strip(), name.strip()))
    return tuple(found)


def _encoding(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """Refuse names that no encoding has."""
    if name is not None:
        try:
            "".encode(name)
        except LookupError:
            raise click.BadParameter(f"no text encoding is called {name!r}; cp1252 and utf-16 are usual") from None
    return name
