"""Options of commands: one frozen object for each group of options, with a field for each option.

A field that `option` makes is filled by click. `given` hands a command the object of a class.
"""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from opinionpool.pools import NAMES, ROWS, WEIGHTED
from opinionpool.report import SORTS
from opinionpool.text import listed

if TYPE_CHECKING:
    from opinionpool.arrays import Array
    from opinionpool.forecasts import Forecasts
    from opinionpool.learning.beliefs import Beliefs
    from opinionpool.streams.trained import TrainedPool

OWN, POOL, COMPARISON, FILES, ANSWERS, RESULTS, READING = SECTIONS = (
    "Options", "Pool", "Comparison", "Pools in files", "Which answers", "Results", "Reading FILE",
)  # fmt: skip
# Notes that are printed unless more, or none, are asked for.
NOTES = 3
# Endings of file names that fit any output format.
WRITTEN = ("", ".csv", ".json", ".txt")
# Typed probabilities as pairs (class or None, p).
PriorOption: TypeAlias = tuple[tuple[str | None, float], ...]
# A function that click makes a command of, and one that adds an option to it.
Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]
EXISTING = click.Path(exists=True, dir_okay=False)


class _Text(click.types.StringParamType):
    """Option type for text, decoded as UTF-8 in any locale; file names keep the system's encoding."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        text = super().convert(value, param, ctx)
        try:
            return text.encode("utf-8", "surrogateescape").decode("utf-8")
        except UnicodeError:
            self.fail(f"{text!r} is no text in UTF-8", param, ctx)


class _Choice(click.Choice):  # type: ignore[type-arg]
    """Option type for one of several words; the error for another word suggests the most similar one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            from opinionpool.text import meant

            raise click.BadParameter(error.message.rstrip(".") + meant(str(value), self.choices), ctx, param) from None


# Placeholders of file names in help.
_FILES = ("FILE", "DIR", "PAGE")


class SectionedCommand(click.Command):
    """Command whose help lists options by section: its own options first, those on reading files last."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        for parameter in self.params:
            if parameter.type is click.STRING and not (parameter.metavar or "").startswith(_FILES):
                parameter.type = _Text()
            elif type(parameter.type) is click.Choice:
                parameter.type = _Choice(parameter.type.choices)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options to the help, section by section."""
        found: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
            if record is not None:
                found[getattr(parameter, "section", OWN)].append(record)
        for section, records in found.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)


def option(section: str, *flags: str, **settings: Any) -> Any:  # noqa: ANN401 - the default of a field
    """Return a dataclass field for a command-line option with `flags`; `section` is the help's heading for it."""
    return field(metadata={"section": section, "flags": flags, "settings": settings})


pool_option, comparison_option, file_option, answer_option, result_option = (
    functools.partial(option, section) for section in (POOL, COMPARISON, FILES, ANSWERS, RESULTS)
)


def listed_in(section: str, decorator: Decorator) -> Decorator:
    """Return the click `decorator` changed so that help lists its option or argument under the heading `section`."""

    def decorate(command: Command) -> Command:
        command = decorator(command)
        # click keeps them here until it makes a command of the function.
        command.__click_params__[-1].section = section  # type: ignore[attr-defined]
        return command

    return decorate


def given(kind: type[Any], name: str) -> Decorator:
    """Decorator that adds an option for each field of `kind`, and passes an object of `kind` as argument `name`."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(**typed: object) -> object:
            own = {each.name: typed.pop(each.name) for each in fields(kind)}
            return command(**typed, **{name: kind(**own)})

        found: Command = wrapper
        for each in reversed(fields(kind)):
            found = listed_in(
                each.metadata["section"],
                click.option(*each.metadata["flags"], each.name, **each.metadata["settings"]),
            )(found)
        return found

    return decorate


class Inputs:
    """Base class of groups of options that name files to read."""

    @property
    def inputs(self) -> list[str]:
        """Names of all files that these options make the command read."""
        options: Any = self
        names = [each.name for each in fields(options) if each.metadata["settings"].get("type") is EXISTING]
        return [name for name in (getattr(self, each) for each in names) if name is not None]


@dataclass(frozen=True)
class Writing:
    """Options on where results are written, and in which format."""

    output: str | None = result_option(
        "-o",
        "--output",
        metavar="FILE",
        callback=lambda _context, _parameter, name: None if name == "-" else name,
        help="Write to this file instead of standard output; its old content stays until all is done.",
    )
    format: str | None = result_option(
        "--format",
        type=click.Choice(("table", "csv", "json")),
        help="Default: as the name after -o ends (.csv or .json); else a table on a terminal (for check "
        "anywhere) and CSV elsewhere.",
    )
    verbose: bool = result_option(
        "-v", "--verbose", is_flag=True, help="Print all notes, not only those that matter most."
    )
    quiet: bool = result_option("-q", "--quiet", is_flag=True, help="Print no notes.")

    @property
    def most_notes(self) -> int | None:
        """Largest number of notes that are printed; None prints all."""
        return 0 if self.quiet else None if self.verbose else NOTES

    def kind(self, *, people: bool = False) -> str:
        """Output format: as given, else by file name, else "table" on a terminal or for `people`, else "csv"."""
        if self.format is not None:
            return self.format
        ending = "" if self.output is None else os.path.splitext(self.output)[1].lower()
        if ending in {".csv", ".json"}:
            return ending[1:]
        return "table" if people or (self.output is None and sys.stdout.isatty()) else "csv"

    def check(self, inputs: Sequence[str | None]) -> None:
        """Raise a UsageError, before any work is done, if the output cannot be written or is a file in `inputs`."""
        check_output(self.output, inputs, any_ending=self.format is not None)


def check_output(output: str | None, inputs: Sequence[str | None], *, any_ending: bool = True) -> None:
    """Raise a UsageError if `output` cannot be written, is in `inputs` or, if not `any_ending`, has a wrong ending."""
    if output is None:
        return
    if not output:
        raise click.UsageError("the name of the file to write is empty")
    path = os.path.realpath(output)
    ending = os.path.splitext(output)[1].lower()
    if not any_ending and ending not in WRITTEN and (os.path.isfile(path) or not os.path.exists(path)):
        raise click.UsageError(
            f"{output}: results are written as .csv, .json or .txt, or to a name without an ending, and not as "
            f"{ending}; say --format if a file of that name is wanted all the same"
        )
    folder = os.path.dirname(path)
    if os.path.isdir(path) or not os.path.isdir(folder):
        what = "is a directory" if os.path.isdir(path) else f"cannot be written: there is no directory {folder}"
        raise click.UsageError(f"{output} {what}")
    device = os.path.exists(path) and not os.path.isfile(path)
    if not os.access(path if device else folder, os.W_OK):
        raise click.UsageError(f"{output} cannot be written: permission denied")
    there = [name for name in inputs if name is not None and os.path.exists(name)] if os.path.exists(path) else []
    if any(os.path.samefile(path, name) for name in there):
        raise click.UsageError(f"{output} is read from, so it cannot be the output too")


def read_prior(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> PriorOption:
    """Return pairs (class or None, p) from words such as 0.01, 1% or CLASS=0.01; BadParameter unless 0 < p < 1."""
    found = []
    for value in given:
        label, sign, text = value.rpartition("=")
        text = text.strip()
        p = _number(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        if math.isnan(p):
            raise click.BadParameter(f"{text!r} is not a number; write 0.01 or 1%")
        if not 0.0 < p < 1.0:
            hint = f"; for {text} per cent write {text}%" if 1.0 <= p < 100.0 and not text.endswith("%") else ""
            raise click.BadParameter(f"{text} does not lie strictly between 0 and 1{hint}")
        found.append((label.strip() if sign else None, p))
    return tuple(found)


def _number(text: str) -> float:
    """Return `text` as a number; NaN if it is none, or has characters that only Python reads as digits."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def read_weights(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, float] | None:
    """Return weights by expert from words EXPERT=W (split at the last equals sign); None if there is no word."""
    found: dict[str, float] = {}
    for value in given:
        expert, _, text = value.rpartition("=")
        weight = _number(text.strip())
        if not expert.strip() or not math.isfinite(weight):
            raise click.BadParameter(f"{value!r} is not of the form EXPERT=W, such as ann=0.5")
        if expert.strip() in found:
            raise click.BadParameter(f"{expert.strip()!r} has two weights")
        found[expert.strip()] = weight
    return found or None


def read_pools(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Return the names of pools between commas in `text`; None if it is None; a BadParameter for an unknown name."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in NAMES:
            from opinionpool.text import suggestion

            raise click.BadParameter(f"no pool is called {name!r}; {suggestion(name, NAMES, 'there are')}")
    return names


PRIOR: dict[str, Any] = {
    "metavar": "P",
    "callback": read_prior,
    "multiple": True,
    "help": "Probability of each event before any forecast, such as 0.01 or 1%, from which all experts are taken to "
    "start. Default: about the share of resolved events that happened, 0.5 if none is resolved. More than two "
    "classes: CLASS=P for each.",
}
PANEL: dict[str, Any] = {
    "metavar": "PANEL.toml",
    "type": EXISTING,
    "help": "Beliefs about the experts, for the gaussian pool: a line such as calibration = 0.9 for all; under a line "
    "[experts.NAME], one such as auc = 0.8 (0.5 is guessing, 1 perfect). How many events a belief counts "
    "for is its worth, as in auc = { value = 0.8, worth = 50 }; correlation, bias and the other keys are in "
    "docs/beliefs.md. Default: what is assumed of any panel.",
}
panel_option = click.option("--panel", **PANEL)


def beliefs_of(panel: str | None) -> Beliefs | None:
    """Return the beliefs in the file `panel`; None if no file is given."""
    if panel is None:
        return None
    from opinionpool.learning.beliefs import read_beliefs

    return read_beliefs(panel)


def load_pool(model: str | None, panel: str | None = None) -> tuple[str, TrainedPool] | None:
    """Return the path `model` and the pool saved there; None if `model` is None; UsageError if `panel` is given too."""
    if model is None:
        return None
    if panel is not None:
        raise click.UsageError("--panel says what to believe when learning begins, and --model has begun")
    from opinionpool.estimators.files import load
    from opinionpool.streams.trained import TrainedPool

    return model, TrainedPool.of(load(model))


@dataclass(frozen=True)
class Pooling(Inputs):
    """Options on the pool: its name, prior, beliefs and weights, or the file of a saved pool."""

    pool: str = pool_option(
        "--pool",
        type=click.Choice(NAMES),
        metavar="NAME",
        default="gaussian",
        help="Default: gaussian. " + "; ".join(f"{row.name}: {row.text}" for row in ROWS) + ".",
    )
    prior: PriorOption = pool_option("--prior", **PRIOR)  # noqa: RUF009 - a field
    panel: str | None = pool_option("--panel", **PANEL)
    weights: dict[str, float] | None = pool_option(  # noqa: RUF009 - a field
        "--weight",
        metavar="EXPERT=W",
        callback=read_weights,
        multiple=True,
        help="A weight that is given and not learned, such as ann=2; give one for every expert. For the pools "
        f"{', '.join(WEIGHTED)}. log takes the numbers as they are: a sum above 1 moves answers further from the "
        "prior, one below 1 towards it. In the others only ratios matter. Repeatable.",
    )
    model: str | None = file_option(
        "--model",
        type=EXISTING,
        metavar="POOL.json",
        help="Answer by a pool that pool --save wrote, as it is, instead of learning from FILE.",
    )

    def options(self, beliefs: Beliefs | None) -> dict[str, Any]:
        """Keyword arguments for the pool's constructor: `weights` or `beliefs` if given, else an empty dict."""
        if self.weights is None:
            return {} if beliefs is None else {"beliefs": beliefs}
        if self.pool not in WEIGHTED:
            raise click.UsageError(
                f"--weight is for the pools {', '.join(WEIGHTED)}, and the pool is {self.pool}; --pool linear makes a "
                "weighted mean of probabilities, --pool log one of log-odds"
            )
        return {"weights": self.weights}

    def beliefs(self) -> Beliefs | None:
        """Beliefs in the file of --panel; None without it; a UsageError if --pool is not gaussian."""
        if self.panel is not None and self.pool != "gaussian":
            raise click.UsageError(f"--panel says what the gaussian pool is to believe, and the pool is {self.pool}")
        return beliefs_of(self.panel)

    def begin(self) -> tuple[Beliefs | None, tuple[str, TrainedPool] | None]:
        """Beliefs of --panel, and path and pool of --model, if given; a UsageError if options exclude each other."""
        if self.model is not None and self.weights is not None:
            raise click.UsageError("--weight is given when a pool is made, and the one of --model is there already")
        beliefs, found = self.beliefs(), load_pool(self.model, self.panel)
        source = click.get_current_context().get_parameter_source("pool")
        named = source is click.core.ParameterSource.COMMANDLINE
        if found is not None and named and self.pool != found[1].name:
            raise click.UsageError(f"--pool is {self.pool}, and the pool in {self.model} is {found[1].name}")
        return beliefs, found


@dataclass(frozen=True)
class Answering(Pooling):
    """Options on the pool, and the base rate: how often such events really happen."""

    base_rate: PriorOption = pool_option(  # noqa: RUF009 - a field
        "--base-rate",
        metavar="P",
        callback=read_prior,
        multiple=True,
        help="Only where events that happened were picked for FILE more or less often than the others, such as 50 of "
        "each: how often the event really happens; answers are shifted to it. What you expect before the forecasts is "
        "--prior.",
    )


@dataclass(frozen=True)
class Listing(Answering):
    """Options on the pool, a file to save it in, and which answers are listed in which order."""

    model: str | None = file_option(
        "--model",
        type=EXISTING,
        metavar="POOL.json",
        help="Answer by a pool that --save wrote, instead of learning from FILE. With --save it goes on learning: "
        "FILE may be the whole table, grown since then; no event is learned from twice.",
    )
    save: str | None = file_option(
        "--save",
        metavar="POOL.json",
        help="Write the pool to this file, with its open events and what it needs to go on learning.",
    )
    only_open: bool = answer_option("--open", is_flag=True, help="List only open events that have a forecast.")
    sort: str = answer_option(
        "--sort",
        type=click.Choice(SORTS),
        default="file",
        help="Order of the answers: as in the file (default), by name, the first to close, most probable, least "
        "certain or most disputed first.",
    )

    def check(self, inputs: Sequence[str | None], writing: Writing) -> None:
        """Raise a UsageError if --save cannot be written or is an input, or if --prior is for a pool to be updated."""
        if self.save == "-":
            raise click.UsageError("--save takes the name of a file: results go to standard output; ./- is a file too")
        check_output(self.save, inputs)
        places = [os.path.realpath(name) for name in (self.save, writing.output) if name is not None]
        if len(places) > len(set(places)):
            raise click.UsageError(f"{self.save} cannot be the output and the saved pool too")
        if self.model is not None and self.save is not None and self.prior:
            raise click.UsageError("--prior is settled when a pool first learns, so it cannot change as it goes on")


@dataclass(frozen=True)
class Splitting(Inputs):
    """Options on cross-validation: how events are split so that pools are scored on events not learned from."""

    by_time: bool = comparison_option(
        "--by-time", is_flag=True, help="Score events by pools that learned only from their past."
    )
    by_group: bool = comparison_option(
        "--by-group",
        is_flag=True,
        help="Score events by pools that did not learn from their own groups (column group).",
    )
    repeats: int | None = comparison_option(
        "--repeats",
        type=click.IntRange(1),
        metavar="N",
        help="How often the cross-validation is repeated. Default: until the random variation between repeats is "
        "negligible, at most 20 times.",
    )

    def __post_init__(self) -> None:
        if self.by_time and self.by_group:
            raise click.UsageError("--by-time and --by-group exclude each other")

    @property
    def by(self) -> str | None:
        """What events are split by: "time", "group", or None for at random."""
        return "time" if self.by_time else "group" if self.by_group else None


@dataclass(frozen=True)
class Comparing(Splitting):
    """Options on which pools are compared, and on cross-validation."""

    pools: tuple[str, ...] | None = comparison_option(
        "--pools",
        metavar="A,B,...",
        callback=read_pools,
        help=f"Some of {', '.join(NAMES)}. Default: all of them; for thousands of experts "
        "with few forecasts each, all but linear and log. The average is always there.",
    )
    rival: tuple[str, ...] = comparison_option(
        "--rival",
        metavar="COLUMN",
        multiple=True,
        help="Compare the pools with this column, such as a platform's own aggregate, which then is no expert. For "
        "several, give it several times.",
    )
    gap: str = comparison_option(
        "--gap",
        metavar="SPAN",
        default="0",
        help="With --by-time: how long an outcome must be known before pools learn from it: a number of days, such as "
        "30, or with a unit, such as 4w or 36h.",
    )
    folds: int = comparison_option(
        "--folds",
        type=click.IntRange(1),
        default=5,
        metavar="N",
        help="Folds of the cross-validation, or blocks of time. Default: 5.",
    )
    seed: int = comparison_option(
        "--seed", type=click.IntRange(0), default=0, metavar="N", help="Random seed. Default: 0."
    )
    prior: PriorOption = comparison_option("--prior", **PRIOR)  # noqa: RUF009 - a field
    panel: str | None = comparison_option("--panel", **PANEL)

    def without_rivals(self, forecasts: Forecasts) -> tuple[Forecasts, dict[str, Array]]:
        """Forecasts without the experts of --rival, and the probabilities of each rival by name, (T,) or (T, K)."""
        if self.rival and forecasts.history is not None:
            raise click.UsageError("--rival and --time-averaged exclude each other: a rival has one answer to an event")
        for name in self.rival:
            if name not in forecasts.experts:
                raise click.UsageError(
                    f"--rival {name}: no column or expert is called so; there are {listed(forecasts.experts)}"
                )
        experts = [name for name in forecasts.experts if name not in self.rival]
        if not experts:
            raise click.UsageError("--rival leaves no expert to pool")
        rivals = {name: forecasts.select_experts([name]).X[:, 0] for name in self.rival}
        return (forecasts.select_experts(experts) if rivals else forecasts), rivals

    def beliefs(self) -> Beliefs | None:
        """Beliefs in the file of --panel; None without it; a UsageError if gaussian is not among --pools."""
        if self.panel is not None and self.pools is not None and "gaussian" not in self.pools:
            raise click.UsageError("--panel says what the gaussian pool is to believe, and it is not among --pools")
        return beliefs_of(self.panel)


def prior_option(name: str, typed: PriorOption, forecasts: Forecasts) -> float | Array | None:
    """A typed prior or base rate as pools take it: one number for two classes, (K,) for more; None if not typed."""
    if not typed:
        return None
    if forecasts.options is not None:
        raise click.UsageError(
            f"{name}: each event has options of its own, so no number can be for all events; a column prior can give "
            "one for each option of an event"
        )
    labels = [str(label) for label in forecasts.classes]
    named = {label: p for label, p in typed if label is not None}
    unknown = [label for label in named if label not in labels]
    if unknown:
        from opinionpool.text import meant

        near = meant(unknown[0], labels)
        raise click.UsageError(f"{name}: {unknown[0]!r} is not a class; the classes are {', '.join(labels)}{near}")
    if len(labels) == 2:
        if len(typed) > 1:
            raise click.UsageError(f"{name}: events of two classes need one number, and there are {len(typed)}")
        label, p = typed[0]
        return 1.0 - p if label == labels[0] else p
    if len(named) != len(labels) or len(typed) != len(labels):
        example = " ".join(f"{name} {label}={1 / len(labels):.2g}" for label in labels[:2])
        raise click.UsageError(f"{name}: events of {len(labels)} classes need a number for each, as in {example} ...")
    total = math.fsum(named.values())
    if abs(total - 1.0) > 1e-4:
        raise click.UsageError(f"{name}: the numbers of the classes must add up to 1, and they add up to {total:.6g}")
    import numpy as np

    return np.array([named[label] for label in labels]) / total
