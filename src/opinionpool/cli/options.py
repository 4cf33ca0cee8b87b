"""The options that commands share, as decorators: each hands its command one object of `opinionpool.cli.arguments`."""

from __future__ import annotations

import functools
import math
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

import click

from opinionpool.cli.arguments import (
    SORTS,
    Comparing,
    Earlier,
    Keeping,
    Listing,
    Pooling,
    PriorOption,
    Reading,
    Writing,
)
from opinionpool.cli.help import ANSWERS, COMPARISON, FILES, POOL, READING, RESULTS
from opinionpool.pools import NAMES, WEIGHTED

# A file of this name beside the data holds options.
OPTIONS_FILE = "opinionpool.toml"

FORMATS = ("table", "csv", "json")

# A function that click makes a command of, and one that adds an option to it.
Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]


def reading(command: Command) -> Command:
    """Give a command the argument FILE and the options that say how to read it, as ``reading``."""
    return _stack(_reading_options(required=True), _gather_reading(command), READING)


def optional_reading(command: Command) -> Command:
    """The same where FILE may be left out, and ``reading`` then is None."""

    @functools.wraps(command)
    def wrapper(reading: Reading, **given: object) -> object:
        if not reading.files and reading.words:
            raise click.UsageError(f"{reading.words[0]} says how to read FILE, and there is none")
        if "-" in reading.files:
            raise click.UsageError("FILE is read again by the page, and standard input can be read once")
        return command(reading=reading if reading.files else None, **given)

    return _stack(_reading_options(required=False), _gather_reading(wrapper), READING)


def pair_reading(command: Command) -> Command:
    """Give a command the option --files OLD_FILE NEW_FILE and those that say how to read them, as ``reading``."""

    @functools.wraps(command)
    def wrapper(reading: Reading, **given: object) -> object:
        if not reading.files and reading.words:
            raise click.UsageError(f"{reading.words[0]} says how to read files, and there are none: --files OLD NEW")
        return command(reading=reading if reading.files else None, **given)

    files = click.option(
        "--files",
        nargs=2,
        metavar="OLD_FILE NEW_FILE",
        type=click.Path(exists=True),
        help="The forecasts as OLD and as NEW pooled them.",
    )
    return _stack([files, *_reading_options(required=False)[1:]], _gather_reading(wrapper), READING)


def _reading_options(*, required: bool) -> list[Decorator]:
    file = click.Path(exists=True, dir_okay=False, allow_dash=True)
    return [
        click.argument(
            "files",
            metavar="FILE...",
            type=click.Path(allow_dash=True),
            nargs=-1,
            callback=_files if required else _given_files,
        ),
        click.option("--outcomes", metavar="FILE", type=file, help="Outcomes in a file of their own."),
        click.option("--positive", metavar="CLASS", help="The outcome that the probabilities are about."),
        click.option(
            "--classes",
            metavar="CLASS,CLASS,...",
            callback=_listed_classes,
            help="All classes in their order, where the file does not show them all or their order matters; of two, "
            "probabilities are about the last.",
        ),
        click.option(
            "--column",
            "columns",
            metavar="ROLE=NAME",
            callback=_assignments,
            multiple=True,
            help="The column that holds the event, expert, probability, class, verdict (which of two outcomes "
            "the probability is of), outcome, time, closes, resolved_at, expires (when a forecast ends), prior, group, "
            "topic or text, where its name does not say so. Nothing after = means: no column. Repeatable; event or "
            "expert named twice: the columns together are the name.",
        ),
        click.option(
            "--topic",
            metavar="COLUMN",
            help="The column that says what each event is about: the default pool learns how topics differ.",
        ),
        click.option(
            "--options",
            type=click.Choice(["event", "shared"]),
            help="Which outcomes there are to choose from: a list of its own for each event (event), or the same "
            "classes for all (shared). Default: as the file shows; if the lists overlap in part, an error asks.",
        ),
        click.option("--include", metavar="EXPERT", multiple=True, help="Use only this expert. Repeatable."),
        click.option("--exclude", metavar="EXPERT", multiple=True, help="Leave this expert out. Repeatable."),
        click.option(
            "--where",
            metavar="CONDITION",
            help="Rows to read, such as \"type <> 'bot' and rating >= 3\": columns, values in single quotes, = <> < <= "
            "> >=, in (...), is blank, and, or, not, parentheses.",
        ),
        click.option(
            "--duplicates",
            type=click.Choice(["last", "mean", "time-weighted"]),
            help="Which of several forecasts by one expert on one event counts: the last, their mean, or their mean "
            "over the time that each stood.",
        ),
        click.option("--as-of", metavar="TIME", help="Use what was known at this time, such as 2025-03-01T12:00Z."),
        click.option(
            "--dates",
            metavar="dmy|mdy|FORMAT",
            help="Whether days or months come first in dates such as 3/4/2025, or a format such as %d.%m.%Y.",
        ),
        click.option("--percent", is_flag=True, help="Probabilities are percentages, 0 to 100."),
        click.option("--decimal", type=click.Choice([".", ","]), help="The decimal mark."),
        click.option(
            "--encoding", metavar="NAME", callback=_encoding, help="The text's encoding if not UTF-8, such as cp1252."
        ),
        click.option(
            "--missing-value",
            "missing_values",
            metavar="V",
            multiple=True,
            help="A word or number for no answer. Repeatable.",
        ),
        click.option(
            "--merge-names", is_flag=True, help="Experts whose names differ in case, spaces or Unicode form are one."
        ),
        click.option(
            "--silence",
            metavar="P",
            help="Treat a missing forecast as this probability, such as 10%. Default: missing.",
        ),
        click.option(
            "--drop-incomplete",
            is_flag=True,
            help="Leave out forecasts that lack a class or option, such as one added later.",
        ),
        click.option(
            "--expert-from-name",
            is_flag=True,
            help="Each FILE is one expert's, named after it. Default for several files with one column of forecasts "
            "and none for the expert.",
        ),
        click.option(
            "--options-file",
            metavar="FILE.toml",
            type=click.Path(exists=True, dir_okay=False),
            help=f"A file of settings for this section, as check --write-options writes it; the command line wins. "
            f"Default: {OPTIONS_FILE} beside FILE.",
        ),
    ]


def _listed_classes(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Classes between commas; one that has a comma stands in double quotes."""
    if value is None:
        return ()
    import csv

    found = tuple(each.strip() for each in next(csv.reader([value], skipinitialspace=True), []))
    if len(found) < 2 or "" in found or len(set(found)) < len(found):
        raise click.BadParameter(f"two or more different classes between commas are wanted, not {value!r}")
    return found


def _gather_reading(command: Command) -> Command:
    """Hand a command how to read its files, as ``reading``."""

    @functools.wraps(command)
    def wrapper(**given: Any) -> object:  # noqa: ANN401 - what options hold
        from opinionpool.tables.options import ReadOptions

        names = ["outcomes", *(field.name for field in fields(ReadOptions) if field.name in given)]
        own = {name: given.pop(name) for name in names}
        files, file = given.pop("files") or (), given.pop("options_file")
        topic = given.pop("topic")
        file = file or (_options_beside(files[0]) if files else None)
        reading = _reading(files, file, own, topic)
        if file is not None:
            from opinionpool.report.listing import printable

            typed = shlex.join(reading.options.arguments()) or "no options"
            click.echo(f"reading with {printable(file)}: {printable(typed)}", err=True)
        return command(**given, reading=reading)

    return wrapper


def _options_beside(file: str) -> str | None:
    """The file of options in the folder of the data, if there is one."""
    folder = file if os.path.isdir(file) else os.path.dirname(file)
    path = os.path.join(folder, OPTIONS_FILE)
    return path if file != "-" and os.path.isfile(path) else None


def _reading(files: tuple[str, ...], file: str | None, own: dict[str, Any], topic: str | None) -> Reading:
    """How to read some files: as a file of options says, where the command line says nothing."""
    from opinionpool.errors import ArgumentError
    from opinionpool.tables.options import ReadOptions, read_options

    context = click.get_current_context()
    typed = {name for name in own if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}
    if topic is not None:
        own["columns"] = own["columns"] | {"topic": topic}
        typed.add("columns")
    try:
        kept = {} if file is None else read_options(file)
        merged = own | {name: value for name, value in kept.items() if name not in typed}
        if "columns" in kept and "columns" in typed:
            merged["columns"] = kept["columns"] | own["columns"]
        outcomes = merged.pop("outcomes")
        if merged["as_of"] is not None:
            from opinionpool.tables.times import as_time

            merged["as_of"] = as_time(merged["as_of"], "--as-of")
        options = ReadOptions(**merged)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    return Reading(files, outcomes, options, file)


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
    ]
    return _stack(options, _gather(Writing, "writing")(command), RESULTS)


def writing_for_people(command: Command) -> Command:
    """The same for what is a table in a pipe too (`Writing.chosen`)."""
    return writing(command, "Default: as the name after -o ends (.csv or .json); else a table.")


def pooling(command: Command) -> Command:
    """Give a command the options that say which pool and which prior, as ``pooling``."""
    options: list[Decorator] = [
        click.option(
            "--pool",
            type=click.Choice(NAMES),
            metavar="NAME",
            default="gaussian",
            help="gaussian (default): corrects bias and overconfidence, and discounts experts who repeat each other. "
            "linear, log: means of probabilities, of log-odds, with learned weights. average, median; "
            "recent-median: newer forecasts count for more; trimmed: the mean without the extremes. geometric: the "
            "mean of log-odds; extremized: moved away from the prior; recalibrated: with slope and intercept learned. "
            "beta-linear: the linear pool, corrected by a learned curve (a beta distribution). independent: adds up "
            "all forecasts as if their errors were unrelated.",
        ),
        _prior,
        panel_option,
        click.option(
            "--weight",
            "weights",
            metavar="EXPERT=W",
            callback=_weights,
            multiple=True,
            help=f"What this expert's forecast counts for, instead of learning it: one for each expert, in the pools "
            f"{', '.join(WEIGHTED)}. Repeatable.",
        ),
    ]
    return _stack(options, _gather(Pooling, "pooling")(command), POOL)


def model_option(command: Command) -> Command:
    """Give a command the option --model."""
    return click.option(
        "--model",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Take the pool that pool --save has written, as it is.",
    )(command)


def earlier(command: Command) -> Command:
    """Give a command the options that name saved pools of a report, as ``earlier``."""
    since = click.option(
        "--since",
        type=click.Path(exists=True, dir_okay=False),
        metavar="OLD",
        help="Add what changed since pool --save has written this pool, and why answers moved.",
    )
    return _stack([model_option, since], _gather(Earlier, "earlier")(command), FILES)


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
    return _stack(options, _gather(Keeping, "keeping")(command), FILES)


def listing(command: Command) -> Command:
    """Give a command the options that say which answers are listed, as ``listing``."""
    options: list[Decorator] = [
        click.option("--open", "only_open", is_flag=True, help="List only open events, of those with a forecast."),
        click.option(
            "--sort",
            type=click.Choice(SORTS),
            default="file",
            help="Order of the answers: as in the file (default), by name, the first to close, most probable, least "
            "certain or most disputed first.",
        ),
    ]
    return _stack(options, _gather(Listing, "listing")(command), ANSWERS)


def comparing(command: Command) -> Command:
    """Give a command the options that say what to compare and how, as ``comparing``."""
    options: list[Decorator] = [
        click.option(
            "--pools",
            metavar="A,B,...",
            callback=_pools,
            help=f"Some of {', '.join(NAMES)}. Default: all of them; for thousands of experts "
            "with few forecasts each, all but linear and log. The average is always there.",
        ),
        click.option("--by-time", is_flag=True, help="Learn only from the past of the scored events."),
        click.option(
            "--gap",
            metavar="SPAN",
            default="0",
            help="With --by-time: how long after an outcome was known pools may learn from it: days, or 4w, 36h.",
        ),
        click.option("--by-group", is_flag=True, help="Never learn from the scored events' own groups."),
        click.option(
            "--horizon",
            metavar="SPAN",
            help="Score each forecast as it stood this long before its event closed: days, or as in 4w, 36h.",
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
        click.option(
            "--repeats",
            type=click.IntRange(1),
            metavar="N",
            help="How often the cross-validation is repeated. Default: until the random variation between repeats is "
            "negligible, at most 20 times.",
        ),
        click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Random seed. Default: 0."),
        _prior,
        panel_option,
    ]
    return _stack(options, _gather(Comparing, "comparing")(command), COMPARISON)


def _prior(command: Command) -> Command:
    """Give a command the option --prior."""
    return click.option(
        "--prior",
        metavar="P",
        callback=read_prior,
        multiple=True,
        help="Probability of each event before any forecast, such as 0.01 or 1%, from which all experts are taken to "
        "start. Default: about the share of resolved events that happened. More than two classes: CLASS=P for each.",
    )(command)


def panel_option(command: Command) -> Command:
    """Give a command the option --panel."""
    return click.option(
        "--panel",
        metavar="PANEL.toml",
        type=click.Path(exists=True, dir_okay=False),
        help="Beliefs about the experts, such as calibration = 0.9, or below [experts.NAME] auc = 0.8 (0.5 is "
        "guessing, 1 perfect), for the gaussian pool. Default: what is assumed of any panel (docs/beliefs.md).",
    )(command)


def _pools(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Names of pools, separated by commas."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in NAMES:
            from opinionpool.text import suggestion

            raise click.BadParameter(f"no pool is called {name!r}; {suggestion(name, NAMES, 'there are')}")
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


def _stack(options: Sequence[Decorator], command: Command, section: str) -> Command:
    """Give a command options, which its help has in a section."""
    for option in reversed(options):
        command = option(command)
        # click keeps them here until it makes a command of the function.
        command.__click_params__[-1].section = section  # type: ignore[attr-defined]
    return command


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


def _given_files(_context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse names of files and folders that are not there; a pattern may stand for several."""
    import glob

    for name in names:
        if name != "-" and not os.path.exists(name) and not glob.glob(name):
            raise click.BadParameter(f"there is no file {name}")
    if "-" in names and len(names) > 1:
        raise click.BadParameter("standard input, -, cannot be read together with files")
    return names


def _files(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """The same where there must be one; what stands after it, as an event, is taken first."""
    if not names and not context.resilient_parsing:
        others = [each for each in context.command.params if isinstance(each, click.Argument) and each is not parameter]
        missing = next((each.name for each in others if each.name), "file").upper()
        raise click.UsageError(f"Missing argument '{missing}'.", context)
    return _given_files(context, parameter, names)


def _assignments(
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


def _weights(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, float] | None:
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


def _encoding(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """Refuse names that no encoding has."""
    if name is not None:
        try:
            "".encode(name)
        except (LookupError, ValueError):
            raise click.BadParameter(f"no text encoding is called {name!r}; cp1252 and utf-16 are usual") from None
    return name
