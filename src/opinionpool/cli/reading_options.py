"""The argument FILE and the options that say how to read it, as decorators that hand on a `Reading`."""

from __future__ import annotations

import functools
import os
from typing import Any

import click

from opinionpool.cli.arguments import Reading
from opinionpool.cli.help import READING
from opinionpool.cli.options import Command, Decorator, stack
from opinionpool.cli.values import existing_files, some_files
from opinionpool.errors import ArgumentError
from opinionpool.findings import option_name
from opinionpool.tables.options import OPTIONS, Option, ReadOptions, read_options
from opinionpool.text import typed

# A file of this name beside the data holds options.
OPTIONS_FILE = "opinionpool.toml"
# What may be typed to say how files are read; `compare` has the options of scores.
_TYPED = {name: option for name, option in OPTIONS.items() if not option.scored}


def reading(command: Command) -> Command:
    """Give a command the argument FILE and the options that say how to read it, as ``reading``."""
    return stack(_reading_options(required=True), _gather_reading(command), READING)


def optional_reading(command: Command) -> Command:
    """Like `reading`, with FILE optional; without it ``reading`` is None."""

    @functools.wraps(command)
    def wrapper(reading: Reading | None, **given: object) -> object:
        if reading is not None and "-" in reading.files:
            raise click.UsageError("FILE is read again by the page, and standard input can be read once")
        return command(reading=reading, **given)

    found = _none_without_files(wrapper, "FILE, and there is none")
    return stack(_reading_options(required=False), _gather_reading(found), READING)


def pair_reading(command: Command) -> Command:
    """Give a command the option --files OLD_FILE NEW_FILE and the read options, as ``reading``."""
    files = click.option(
        "--files",
        nargs=2,
        metavar="OLD_FILE NEW_FILE",
        type=click.Path(exists=True),
        help="Two files of forecasts: what OLD and what NEW would answer about them. Not needed for the open events "
        "that the saved pools keep.",
    )
    found = _none_without_files(command, "files, and there are none: --files OLD NEW")
    return stack([files, *_reading_options(required=False)[1:]], _gather_reading(found), READING)


def _none_without_files(command: Command, what: str) -> Command:
    """Pass ``reading`` as None to a command without files; read options are errors then."""

    @functools.wraps(command)
    def wrapper(reading: Reading, **given: object) -> object:
        if not reading.files and reading.words:
            raise click.UsageError(f"{reading.words[0]} says how to read {what}")
        return command(reading=reading if reading.files else None, **given)

    return wrapper


def _reading_options(*, required: bool) -> list[Decorator]:
    file = click.Path(exists=True, dir_okay=False, allow_dash=True)
    return [
        click.argument(
            "files",
            metavar="FILE..." if required else "[FILE]...",
            type=click.Path(allow_dash=True),
            nargs=-1,
            callback=some_files if required else existing_files,
        ),
        click.option(
            "--outcomes",
            metavar="FILE",
            type=file,
            help="Outcomes in a file of their own, with columns event and outcome.",
        ),
        *(_declared(name, option) for name, option in _TYPED.items()),
        click.option(
            "--topic",
            metavar="COLUMN",
            help="The same as --column topic=COLUMN: what each event is about. The default pool learns how topics "
            "differ. A column named topic is used without this option, too (unless --column topic=).",
        ),
        click.option(
            "--options-file",
            metavar="FILE.toml",
            type=click.Path(exists=True, dir_okay=False),
            help="Settings of this section (--column, --dates, ...) in a file that check --write-options has saved; "
            f"the command line wins. Default: {OPTIONS_FILE} beside FILE.",
        ),
    ]


def _declared(name: str, option: Option) -> Decorator:
    """An option of reading as click declares it."""
    flag = "--" + option_name(name, option.repeated)
    if option.kind == "flag":
        return click.option(flag, name, is_flag=True, help=option.help)
    kind = click.Choice(option.choices) if option.choices else None

    def value(_context: click.Context, _parameter: click.Parameter, given: Any) -> Any:  # noqa: ANN401 - text
        words = given if option.repeated else () if given is None else (given,)
        try:
            read = option.from_words(words) if option.repeated or (words and option.kind == "classes") else given
            return option.value(read, name)
        except ArgumentError as error:
            raise click.BadParameter(str(error)) from None

    return click.option(
        flag, name, metavar=option.metavar, type=kind, multiple=option.repeated, callback=value, help=option.help
    )


def _gather_reading(command: Command) -> Command:
    """Hand a command how to read its files, as ``reading``."""

    @functools.wraps(command)
    def wrapper(**given: Any) -> object:  # noqa: ANN401 - what options hold
        own = {name: given.pop(name) for name in ("outcomes", *_TYPED)} | {
            name: given.pop(name) for name, option in OPTIONS.items() if option.scored and name in given
        }
        files, file, topic = given.pop("files") or (), given.pop("options_file"), given.pop("topic")
        file = file or (_options_beside(files[0]) if files else None)
        reading = _reading(files, file, own, topic)
        if file is not None:
            from opinionpool.report.listing import printable

            words = " ".join(map(typed, reading.options.arguments())) or "no options"
            click.echo(f"reading with {printable(file)}: {printable(words)}", err=True)
        return command(**given, reading=reading)

    return wrapper


def _options_beside(file: str) -> str | None:
    """The file of options in the folder of the data, if there is one."""
    folder = file if os.path.isdir(file) else os.path.dirname(file)
    path = os.path.join(folder, OPTIONS_FILE)
    return path if file != "-" and os.path.isfile(path) else None


def _reading(files: tuple[str, ...], file: str | None, own: dict[str, Any], topic: str | None) -> Reading:
    """A `Reading` of the options on the command line and, where these are absent, in a file of options."""
    context = click.get_current_context()
    named = {name for name in own if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}
    if topic is not None:
        own["columns"] = own["columns"] | {"topic": topic}
        named.add("columns")
    try:
        kept = {} if file is None else read_options(file)
        merged = own | {name: value for name, value in kept.items() if name not in named}
        for name in {"columns", "units", "scale"} & kept.keys() & named:
            merged[name] = kept[name] | own[name]
        outcomes = merged.pop("outcomes")
        options = ReadOptions(**merged)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    return Reading(files, outcomes, options, file)
