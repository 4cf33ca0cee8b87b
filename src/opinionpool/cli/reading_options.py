"""The argument FILE and the options that say how to read it, as decorators that hand on a `Reading`."""

from __future__ import annotations

import functools
import os
from dataclasses import fields
from typing import Any

import click

from opinionpool.cli.arguments import Reading
from opinionpool.cli.help import READING
from opinionpool.cli.options import Command, Decorator, stack
from opinionpool.cli.values import existing_files, read_classes, read_columns, read_encoding, read_units, some_files

# A file of this name beside the data holds options.
OPTIONS_FILE = "opinionpool.toml"


def reading(command: Command) -> Command:
    """Give a command the argument FILE and the options that say how to read it, as ``reading``."""
    return stack(_reading_options(required=True), _gather_reading(command), READING)


def optional_reading(command: Command) -> Command:
    """The same where FILE may be left out, and ``reading`` then is None."""

    @functools.wraps(command)
    def wrapper(reading: Reading | None, **given: object) -> object:
        if reading is not None and "-" in reading.files:
            raise click.UsageError("FILE is read again by the page, and standard input can be read once")
        return command(reading=reading, **given)

    found = _none_without_files(wrapper, "FILE, and there is none")
    return stack(_reading_options(required=False), _gather_reading(found), READING)


def pair_reading(command: Command) -> Command:
    """Give a command the option --files OLD_FILE NEW_FILE and those that say how to read them, as ``reading``."""
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
    """Give a command None in place of options that say how to read no file; to say how is then an error."""

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
        click.option(
            "--positive",
            metavar="CLASS",
            help="Of two outcomes, the one that the probabilities are about, such as yes.",
        ),
        click.option(
            "--classes",
            metavar="CLASS,CLASS,...",
            callback=read_classes,
            help="All classes in their order, where the file does not show them all or their order matters; of two, "
            "probabilities are about the last.",
        ),
        click.option(
            "--column",
            "columns",
            metavar="ROLE=NAME",
            callback=read_columns,
            multiple=True,
            help="The column that holds the event, expert, probability, class, verdict (which of two outcomes the "
            "probability is of), outcome, time (of the forecast), closes (when the event does), resolved_at "
            "(when the outcome was known), expires (when the forecast does), prior (of the event), group (of "
            "events whose outcomes are related), topic or text (the question), where its name does not say so. "
            "Nothing after = means: no column. Repeatable; event or expert named twice: the columns together "
            "are the name.",
        ),
        click.option(
            "--topic",
            metavar="COLUMN",
            help="The same as --column topic=COLUMN: what each event is about. The default pool learns how topics "
            "differ. A column named topic is used without this option, too (unless --column topic=).",
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
            type=click.Choice(["last", "last-row", "mean", "time-weighted"]),
            help="Which of several forecasts by one expert on one event counts: the last (by time; in the order of the "
            "file if there are no times), the same and of several at one time the last row, their mean, or their mean "
            "over the time that each stood. Default: an error.",
        ),
        click.option(
            "--as-of",
            metavar="TIME",
            help="Leave out forecasts and outcomes from after this time, such as 2025-03-01T12:00Z.",
        ),
        click.option(
            "--dates",
            metavar="dmy|mdy|FORMAT",
            help="Whether days or months come first in dates such as 3/4/2025, or a format such as %d.%m.%Y.",
        ),
        click.option("--percent", is_flag=True, help="Probabilities are percentages, 0 to 100."),
        click.option(
            "--unit",
            "units",
            metavar="NAME=percent|fraction",
            callback=read_units,
            multiple=True,
            help="What the numbers of one expert, or in one column, are, where others differ. Repeatable.",
        ),
        click.option(
            "--decimal", type=click.Choice([".", ","]), help="The decimal mark. Default: as each column shows."
        ),
        click.option(
            "--encoding",
            metavar="NAME",
            callback=read_encoding,
            help="The text's encoding if not UTF-8, such as cp1252.",
        ),
        click.option(
            "--missing-value",
            "missing_values",
            metavar="V",
            multiple=True,
            help="A word or number in the file that stands for no answer. Repeatable.",
        ),
        click.option(
            "--void-value",
            "void_values",
            metavar="WORD",
            multiple=True,
            help="A word among outcomes that says that the event is void, besides annulled, withdrawn and the like. "
            "Repeatable.",
        ),
        click.option(
            "--merge-names",
            is_flag=True,
            help="Take experts whose names differ only in case, spaces or Unicode form for one.",
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
            "--normalise",
            is_flag=True,
            help="Divide probabilities over classes that do not add up to 1, as 0.95, by their sum.",
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
            help="Settings of this section (--column, --dates, ...) in a file that check --write-options has saved; "
            f"the command line wins. Default: {OPTIONS_FILE} beside FILE.",
        ),
    ]


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
            from opinionpool.text import typed

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
        for name in {"columns", "units"} & kept.keys() & typed:
            merged[name] = kept[name] | own[name]
        outcomes = merged.pop("outcomes")
        if merged["as_of"] is not None:
            from opinionpool.tables.times import as_time, check_dates

            check_dates(merged["dates"])
            merged["as_of"] = as_time(merged["as_of"], "--as-of", merged["dates"])
        options = ReadOptions(**merged)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    return Reading(files, outcomes, options, file)
