"""Input of commands: the argument FILE, the options on how to read it, and faults that prevent reading it."""

from __future__ import annotations

import functools
import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from opinionpool.cli.options import COMPARISON, EXISTING, READING, Command, Decorator, beliefs_of, listed_in
from opinionpool.cli.output import progress
from opinionpool.errors import ArgumentError, OpinionPoolError, TableError
from opinionpool.report.listing import printable
from opinionpool.tables.options import OPTIONS, Option, ReadOptions, read_options
from opinionpool.text import shown, typed

if TYPE_CHECKING:
    from opinionpool.forecasts import Forecasts
    from opinionpool.report.check import Examination
    from opinionpool.streams.trained import TrainedPool
    from opinionpool.tables.parts import Parts

# Name of the file of options that is read from the folder of the data.
OPTIONS_FILE = "opinionpool.toml"


@dataclass(frozen=True)
class InputFiles:
    """Names of the files of forecasts, and the options to read them, from the command line or a file of options."""

    files: tuple[str, ...]
    outcomes: str | None
    options: ReadOptions
    options_file: str | None = None

    @property
    def source(self) -> str | list[str]:
        """Name of the file, or list of names if there are several files."""
        return self.files[0] if len(self.files) == 1 else list(self.files)

    @property
    def name(self) -> str:
        """Name of the first file, with the number of other files."""
        return self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more"

    @property
    def words(self) -> tuple[str, ...]:
        """Options on reading as the words of a command line, without file names."""
        outcomes = () if self.outcomes is None else ("--outcomes", self.outcomes)
        return (*outcomes, *self.options.arguments())

    @property
    def inputs(self) -> list[str]:
        """Names of all files that the command reads; standard input is left out."""
        named = (*self.files, self.outcomes, self.options_file)
        return [name for name in named if name not in (None, "-")]


def reading(command: Command) -> Command:
    """Add the argument FILE and the options on reading to a command, which gets both as its argument ``reading``."""
    return _with_options(_gather_reading(command), _files("FILE...", _some_files))


def optional_reading(command: Command) -> Command:
    """Add the argument FILE and options on reading to a command; ``reading`` is None if no file is given."""

    @functools.wraps(command)
    def wrapper(reading: InputFiles | None, **given: object) -> object:
        if reading is not None and "-" in reading.files:
            raise click.UsageError("FILE is read again by the page, and standard input can be read once")
        return command(reading=reading, **given)

    found = _none_without_files(wrapper, "FILE, and there is none")
    return _with_options(_gather_reading(found), _files("[FILE]...", _existing_files))


def pair_reading(command: Command) -> Command:
    """Add --files OLD_FILE NEW_FILE and the options on reading to a command, which gets them as ``reading``."""
    files = click.option(
        "--files",
        nargs=2,
        metavar="OLD_FILE NEW_FILE",
        type=click.Path(exists=True),
        help="Two files of forecasts: what OLD and what NEW would answer about them. Not needed for the open events "
        "that the saved pools keep.",
    )
    found = _none_without_files(command, "files, and there are none: --files OLD NEW")
    return _with_options(_gather_reading(found), files)


def scored(command: Command) -> Command:
    """Add to a command those options on reading that only matter for scores."""
    for name, option in OPTIONS.items():
        command = command if option.flag is None else listed_in(COMPARISON, _declared(name, option))(command)
    return command


def _none_without_files(command: Command, what: str) -> Command:
    """Wrap a command: ``reading`` is None without files; options on reading are then an error about `what`."""

    @functools.wraps(command)
    def wrapper(reading: InputFiles, **given: object) -> object:
        if not reading.files and reading.words:
            raise click.UsageError(f"{reading.words[0]} says how to read {what}")
        return command(reading=reading if reading.files else None, **given)

    return wrapper


def _files(metavar: str, check: Command) -> Decorator:
    return click.argument("files", metavar=metavar, type=click.Path(allow_dash=True), nargs=-1, callback=check)


def _existing_files(_context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return `names`; a BadParameter if one is neither a file, a folder nor a pattern that matches a file."""
    import glob

    for name in names:
        if name != "-" and not os.path.exists(name) and not glob.glob(name):
            raise click.BadParameter(f"there is no file {name}")
    if "-" in names and len(names) > 1:
        raise click.BadParameter("standard input, -, cannot be read together with files")
    return names


def _some_files(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return `names` if there are some and each exists; otherwise click's own error for a missing or wrong argument."""
    if not names and not context.resilient_parsing:
        others = [each for each in context.command.params if isinstance(each, click.Argument) and each is not parameter]
        missing = next((each.name for each in others if each.name), "file").upper()
        raise click.UsageError(f"Missing argument '{missing}'.", context)
    return _existing_files(context, parameter, names)


def _with_options(command: Command, files: Decorator) -> Command:
    """Add the argument or option for `files`, and the options on how to read them, to a command."""
    options: list[Decorator] = [
        files,
        click.option(
            "--outcomes",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, allow_dash=True),
            help="Outcomes in a file of their own, with columns event and outcome.",
        ),
        *(_declared(name, option) for name, option in OPTIONS.items() if option.flag is None),
        click.option(
            "--topic",
            metavar="COLUMN",
            help="The same as --column topic=COLUMN: what each event is about. The default pool learns how topics "
            "differ. A column named topic is used without this option, too (unless --column topic=).",
        ),
        click.option(
            "--options-file",
            metavar="FILE.toml",
            type=EXISTING,
            help="Settings of this section (--column, --dates, ...) in a file that check --write-options has saved; "
            f"the command line wins. Default: {OPTIONS_FILE} beside FILE.",
        ),
    ]
    for option in reversed(options):
        command = listed_in(READING, option)(command)
    return command


def _declared(name: str, option: Option) -> Decorator:
    """Return the click decorator that adds the option on reading called `name` to a command."""
    flag = option.flag or f"--{option.typed}"
    if option.kind == "flag":
        return click.option(flag, name, is_flag=True, help=option.help)
    kind = click.Choice(option.choices) if option.choices else None

    def value(_context: click.Context, _parameter: click.Parameter, given: Any) -> Any:  # noqa: ANN401 - text
        words = given if option.repeated else () if given is None else (given,)
        try:
            read = option.from_words(words) if option.repeated or (words and option.kind == "classes") else given
            return option.value(read)
        except ArgumentError as error:
            raise click.BadParameter(str(error)) from None

    return click.option(
        flag, name, metavar=option.metavar, type=kind, multiple=option.repeated, callback=value, help=option.help
    )


def _gather_reading(command: Command) -> Command:
    """Wrap a command so that files and options on reading are passed to it as one object, ``reading``."""

    @functools.wraps(command)
    def wrapper(**given: Any) -> object:  # noqa: ANN401 - what options hold
        own = {name: given.pop(name) for name in ("outcomes", *OPTIONS) if name in given}
        files, file, topic = given.pop("files") or (), given.pop("options_file"), given.pop("topic")
        file = file or (_options_beside(files[0]) if files else None)
        reading = _reading(files, file, own, topic)
        if file is not None:
            words = " ".join(map(typed, reading.options.arguments())) or "no options"
            click.echo(f"reading with {printable(file)}: {printable(words)}", err=True)
        return command(**given, reading=reading)

    return wrapper


def _options_beside(file: str) -> str | None:
    """Path of the file of options in the folder of the data `file`; None if there is none."""
    folder = file if os.path.isdir(file) else os.path.dirname(file)
    path = os.path.join(folder, OPTIONS_FILE)
    return path if file != "-" and os.path.isfile(path) else None


def _reading(files: tuple[str, ...], file: str | None, own: dict[str, Any], topic: str | None) -> InputFiles:
    """Files and options on reading: `own` options of the command line win over those in `file`; `topic`: a column."""
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
    return InputFiles(files, outcomes, options, file)


def options_for(reading: InputFiles, model: tuple[str, TrainedPool] | None) -> ReadOptions:
    """Options on reading; if a saved pool is given as `model`, completed by its experts, classes and scales."""
    if model is None:
        return reading.options
    from opinionpool.scales import scale_of, scales_given

    options, file, trained = reading.options, *model
    scales, given = scales_given(trained.scales), scales_given(options.scale)
    for name, scale in scales.items():
        other = scale_of(given, name)
        if other is not None and other.facing(trained.classes) != scale:
            raise click.UsageError(
                f"--scale says {other} of {shown(name)}, and the pool in {file} learned from {scale}"
            )
    grade, own = trained.at_least, options.at_least
    if grade is not None and own not in {None, grade}:
        raise click.UsageError(f"--at-least says {own}, and the pool in {file} learned from events of {grade} or more")
    learned = {name: scale for name, scale in scales.items() if scale_of(given, name) is None}
    options = replace(options, known_experts=trained.experts, known_scales=learned, at_least=own or grade)
    if model[1].unnamed:
        return options
    from opinionpool.labels import label_text

    return replace(options, classes=[label_text(label) for label in model[1].classes])


def read(reading: InputFiles, model: tuple[str, TrainedPool] | None = None) -> Forecasts:
    """Read the files as forecasts, with the classes of a saved pool `model`, if any; a TableError lists all faults."""
    with ExitStack() as stack:
        forecasts = next(read_parts(stack, reading, model, divided=False).forecasts())
    if model is None:
        return forecasts
    from opinionpool.streams.trained import matched

    return matched(forecasts, model[1], model[0])


def read_parts(
    stack: ExitStack, reading: InputFiles, model: tuple[str, TrainedPool] | None, divided: bool = True
) -> Parts:
    """Return the forecasts in files, in parts if one large file is `divided`; `stack` closes the files when it ends."""
    from opinionpool.tables.parts import open_parts, wants_parts

    options = options_for(reading, model)
    divided = divided and wants_parts(reading.source, options)
    try:
        with progress(f"reading {reading.name}") as advance:
            return stack.enter_context(open_parts(reading.source, reading.outcomes, options, advance, divided))
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    except TableError as error:
        raise _all_faults(reading, options, error) from None


def _all_faults(reading: InputFiles, options: ReadOptions, error: TableError) -> TableError:
    """Return `error` with all other faults that prevent reading, and with command lines that would read the files."""
    from opinionpool.tables.diagnosis import diagnose
    from opinionpool.tables.engine import is_large

    if "-" in reading.files or not error.remedies or any(map(is_large, reading.files)):
        return error
    found = diagnose(reading.source, reading.outcomes, options)
    faults = [fault.text for fault in found.faults if not fault.proposed]
    if str(error) in faults:
        faults.remove(str(error))
    lines = [str(error), *(f"further: {text}" for text in faults)]
    commands = [" ".join(map(typed, typed_again(reading, way.options))) for way in found.readable]
    lines += ["try one of these:" if len(commands) > 1 else "try:"] if commands else []
    return type(error)("\n".join([*lines, *(f"  {command}" for command in commands)]))


def typed_again(reading: InputFiles, way: ReadOptions) -> list[str]:
    """Return the words of the present command line, with `way` in place of its options on reading."""
    name, arguments, options = _typed()
    return ["opinionpool", name, *reading.files, *arguments, *replace(reading, options=way).words, *options]


def examine_files(
    reading: InputFiles, panel: str | None = None, model: tuple[str, TrainedPool] | None = None
) -> Examination:
    """Return what the command check reports: contents of the files, model checks, and obstacles to pooling."""
    from opinionpool.report.check import examine, examined_in_parts
    from opinionpool.tables.diagnosis import diagnose
    from opinionpool.tables.parts import open_parts, wants_parts

    options, contents, found = options_for(reading, model), None, None
    try:
        with progress(f"reading {reading.name}") as advance:
            if model is None and reading.outcomes is None and wants_parts(reading.source, options):
                with suppress(TableError), open_parts(reading.source, None, options, advance) as parts:
                    found = examined_in_parts(parts, options)
            # What stands in the way is looked for in all of the file.
            diagnosis, contents = found or (diagnose(reading.source, reading.outcomes, options, advance), None)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    beside = {"--panel": panel, "--model": None if model is None else model[0]}
    last = [word for name, file in beside.items() if file for word in (name, file)]
    ways = [replace(way.options, classes=reading.options.classes) for way in diagnosis.readable]
    lines = [["opinionpool", "pool", *reading.files, *replace(reading, options=way).words, *last] for way in ways]
    commands = [" ".join(map(typed, line)) for line in lines]
    try:
        beliefs = beliefs_of(panel)
    except OpinionPoolError as error:
        findings = examine(diagnosis, commands, contents=contents)
        return replace(findings, obstacles=(*findings.obstacles, str(error)))
    return examine(diagnosis, commands, beliefs, model, contents)


def _typed() -> tuple[str, list[str], list[str]]:
    """Words of the present command: its name, its arguments without FILE, and its options without those on reading."""
    context = click.get_current_context()
    line = list(context.find_root().obj or [])
    raw, _, _ = context.command.make_parser(context).parse_args(line[1:])
    arguments, options = [], []
    for parameter in context.command.params:
        value = raw.get(parameter.name or "")
        if value is None or getattr(parameter, "section", None) == READING or not isinstance(value, str | bool | list):
            continue
        if isinstance(parameter, click.Argument):
            arguments += [value] if isinstance(value, str) and parameter.name != "files" else []
            continue
        flag = parameter.opts[-1]
        for each in value if isinstance(value, list) else [value]:
            options += [flag] if isinstance(each, bool) else [flag, str(each)]
    return context.info_name or "pool", arguments, options
