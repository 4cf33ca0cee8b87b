"""The options that commands share, as decorators: each hands its command one object of `opinionpool.cli.arguments`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

import click

from opinionpool.cli.arguments import Comparing, Earlier, Keeping, Listing, Pooling, Writing
from opinionpool.cli.help import ANSWERS, COMPARISON, FILES, POOL, RESULTS
from opinionpool.cli.values import read_pools, read_prior, read_weights
from opinionpool.pools import NAMES, ROWS, WEIGHTED
from opinionpool.report import SORTS

FORMATS = ("table", "csv", "json")
# A function that click makes a command of, and one that adds an option to it.
Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]


def gather(kind: type[Any], name: str) -> Decorator:
    """Hand a command one object in place of the options that are its fields."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(**given: object) -> object:
            own = {field.name: given.pop(field.name) for field in fields(kind)}
            return command(**given, **{name: kind(**own)})

        return wrapper

    return decorate


def stack(options: Sequence[Decorator], command: Command, section: str) -> Command:
    """Give a command options, which its help has in a section."""
    for option in reversed(options):
        command = option(command)
        # click keeps them here until it makes a command of the function.
        command.__click_params__[-1].section = section  # type: ignore[attr-defined]
    return command


def writing(
    command: Command,
    default: str = "Default: as the name after -o ends (.csv or .json); else a table on a terminal and CSV elsewhere.",
) -> Command:
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
            help=default,
        ),
        click.option("-v", "--verbose", is_flag=True, help="Print all notes, not only those that matter most."),
        click.option("-q", "--quiet", is_flag=True, help="Print no notes."),
    ]
    return stack(options, gather(Writing, "writing")(command), RESULTS)


def writing_for_people(command: Command) -> Command:
    """Like `writing`, for commands whose default is a table even in a pipe (`Writing.chosen`)."""
    return writing(command, "Default: as the name after -o ends (.csv or .json); else a table.")


def pooling(command: Command) -> Command:
    """Give a command the options that say which pool and which prior, as ``pooling``."""
    options: list[Decorator] = [
        click.option(
            "--pool",
            type=click.Choice(NAMES),
            metavar="NAME",
            default="gaussian",
            help="Default: gaussian. " + "; ".join(f"{row.name}: {row.text}" for row in ROWS) + ".",
        ),
        _prior,
        panel_option,
        click.option(
            "--weight",
            "weights",
            metavar="EXPERT=W",
            callback=read_weights,
            multiple=True,
            help="A weight that is given and not learned, such as ann=2; give one for every expert. For the pools "
            f"{', '.join(WEIGHTED)}. log takes the numbers as they are: a sum above 1 moves answers further from the "
            "prior, one below 1 towards it. In the others only ratios matter. Repeatable.",
        ),
    ]
    return stack(options, gather(Pooling, "pooling")(command), POOL)


def model_option(command: Command) -> Command:
    """Give a command the option --model."""
    return click.option(
        "--model",
        type=click.Path(exists=True, dir_okay=False),
        metavar="POOL.json",
        help="Answer by a pool that pool --save wrote, as it is, instead of learning from FILE.",
    )(command)


def earlier(command: Command) -> Command:
    """Give a command the options that name saved pools of a report, as ``earlier``."""
    since = click.option(
        "--since",
        type=click.Path(exists=True, dir_okay=False),
        metavar="OLD.json",
        help="A pool that pool --save wrote earlier: add what changed since then, and why answers moved.",
    )
    return stack([model_option, since], gather(Earlier, "earlier")(command), FILES)


def keeping(command: Command) -> Command:
    """Give a command the options that say where a pool is from and where it goes, as ``keeping``."""
    file = click.Path(exists=True, dir_okay=False)
    options: list[Decorator] = [
        click.option(
            "--model",
            type=file,
            metavar="POOL.json",
            help="Answer by a pool that --save wrote, instead of learning from FILE. With --save it goes on learning: "
            "FILE may be the whole table, grown since then; no event is learned from twice.",
        ),
        click.option(
            "--save",
            metavar="POOL.json",
            help="Write the pool to this file, with its open events and what it needs to go on learning.",
        ),
    ]
    return stack(options, gather(Keeping, "keeping")(command), FILES)


def listing(command: Command) -> Command:
    """Give a command the options that say which answers are listed, as ``listing``."""
    options: list[Decorator] = [
        click.option("--open", "only_open", is_flag=True, help="List only open events that have a forecast."),
        click.option(
            "--sort",
            type=click.Choice(SORTS),
            default="file",
            help="Order of the answers: as in the file (default), by name, the first to close, most probable, least "
            "certain or most disputed first.",
        ),
    ]
    return stack(options, gather(Listing, "listing")(command), ANSWERS)


def _by(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    """Merge the flags --by-time and --by-group into ``by``."""
    before = context.params.get("by")
    if given and before is not None:
        raise click.UsageError("--by-time and --by-group exclude each other")
    context.params["by"] = str(parameter.name).removeprefix("by_") if given else before


def split_by(command: Command) -> Command:
    """Give a command the options that say how events are split, as ``by``."""
    texts = {
        "--by-time": "Score events by pools that learned only from their past.",
        "--by-group": "Score events by pools that did not learn from their own groups (column group).",
    }
    for flag, text in reversed(texts.items()):
        command = click.option(flag, is_flag=True, expose_value=False, callback=_by, help=text)(command)
    return command


def repeats_option(command: Command) -> Command:
    """Give a command the option --repeats."""
    return click.option(
        "--repeats",
        type=click.IntRange(1),
        metavar="N",
        help="How often the cross-validation is repeated. Default: until the random variation between repeats is "
        "negligible, at most 20 times.",
    )(command)


def comparing(command: Command) -> Command:
    """Give a command the options that say what to compare and how, as ``comparing``."""
    options: list[Decorator] = [
        click.option(
            "--pools",
            metavar="A,B,...",
            callback=read_pools,
            help=f"Some of {', '.join(NAMES)}. Default: all of them; for thousands of experts "
            "with few forecasts each, all but linear and log. The average is always there.",
        ),
        click.option(
            "--rival",
            metavar="COLUMN",
            multiple=True,
            help="Compare the pools with this column, such as a platform's own aggregate, which then is no expert. For "
            "several, give it several times.",
        ),
        split_by,
        click.option(
            "--gap",
            metavar="SPAN",
            default="0",
            help="With --by-time: how long an outcome must be known before pools learn from it: a number of days, "
            "such as 30, or with a unit, such as 4w or 36h.",
        ),
        click.option(
            "--horizon",
            metavar="SPAN",
            help="Score each forecast as it stood this long before its event closed: a number of days, such "
            "as 7, or with a unit, such as 4w or 36h.",
        ),
        click.option(
            "--time-averaged",
            "history",
            is_flag=True,
            help="Average scores over each event's life, from its first forecast until it closed.",
        ),
        click.option(
            "--folds",
            type=click.IntRange(1),
            default=5,
            metavar="N",
            help="Folds of the cross-validation, or blocks of time. Default: 5.",
        ),
        repeats_option,
        click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Random seed. Default: 0."),
        _prior,
        panel_option,
    ]
    return stack(options, gather(Comparing, "comparing")(command), COMPARISON)


def _prior(command: Command) -> Command:
    """Give a command the option --prior."""
    return click.option(
        "--prior",
        metavar="P",
        callback=read_prior,
        multiple=True,
        help="Probability of each event before any forecast, such as 0.01 or 1%, from which all experts are taken to "
        "start. Default: about the share of resolved events that happened, 0.5 if none is resolved. More than two "
        "classes: CLASS=P for each.",
    )(command)


def panel_option(command: Command) -> Command:
    """Give a command the option --panel."""
    return click.option(
        "--panel",
        metavar="PANEL.toml",
        type=click.Path(exists=True, dir_okay=False),
        help="Beliefs about the experts, for the gaussian pool: a line such as calibration = 0.9 for all; under a line "
        "[experts.NAME], one such as auc = 0.8 (0.5 is guessing, 1 perfect). How many events a belief counts "
        "for is its worth, as in auc = { value = 0.8, worth = 50 }; correlation, bias and the other keys are in "
        "docs/beliefs.md. Default: what is assumed of any panel.",
    )(command)


def base_rate_option(command: Command) -> Command:
    """Give a command the option --base-rate."""
    return click.option(
        "--base-rate",
        metavar="P",
        callback=read_prior,
        multiple=True,
        help="Only where events that happened were picked for FILE more or less often than the others, such as 50 of "
        "each: how often the event really happens; answers are shifted to it. What you expect before the forecasts is "
        "--prior.",
    )(command)
