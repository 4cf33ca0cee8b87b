"""What commands are given: one frozen object for reading, writing, pooling, saving and comparing."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from opinionpool.pools import WEIGHTED
from opinionpool.text import listed

if TYPE_CHECKING:
    from opinionpool.arrays import Array
    from opinionpool.forecasts import Forecasts
    from opinionpool.learning.beliefs import Beliefs
    from opinionpool.streams.trained import TrainedPool
    from opinionpool.tables.options import ReadOptions


# Notes that are printed unless more, or none, are asked for.
NOTES = 3

# Endings of names that say nothing wrong about what is in the file.
WRITTEN = ("", ".csv", ".json", ".txt")


# Probabilities as given, each with the class it is for, if one is named.
PriorOption: TypeAlias = tuple[tuple[str | None, float], ...]


@dataclass(frozen=True)
class Reading:
    """How to read files of forecasts, as given on the command line and in a file of options."""

    files: tuple[str, ...]
    outcomes: str | None
    options: ReadOptions
    options_file: str | None = None

    @property
    def source(self) -> str | list[str]:
        """Return the name of the file, or the list of names if there are several."""
        return self.files[0] if len(self.files) == 1 else list(self.files)

    @property
    def name(self) -> str:
        """Return the name of the first file, and the number of further files."""
        return self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more"

    @property
    def words(self) -> tuple[str, ...]:
        """The options, as they are typed; without the files."""
        outcomes = () if self.outcomes is None else ("--outcomes", self.outcomes)
        return (*outcomes, *self.options.arguments())

    @property
    def again(self) -> bool:
        """Return True if the files can be read a second time."""
        return "-" not in self.files

    @property
    def inputs(self) -> list[str]:
        """The files that are read."""
        named = (*self.files, self.outcomes, self.options_file)
        return [name for name in named if name not in (None, "-")]


@dataclass(frozen=True)
class Writing:
    """Where results go and in which form, as given on the command line."""

    output: str | None
    format: str | None
    verbose: bool = False
    quiet: bool = False

    @property
    def most_notes(self) -> int | None:
        """How many notes are printed; None for all."""
        return 0 if self.quiet else None if self.verbose else NOTES

    def chosen(self, *, people: bool = False) -> str:
        """The format: as given, else by the file's name, else a table on a terminal and CSV elsewhere.

        What is meant for people is a table wherever it goes, unless a file's name says otherwise.
        """
        if self.format is not None:
            return self.format
        ending = "" if self.output is None else os.path.splitext(self.output)[1].lower()
        if ending in {".csv", ".json"}:
            return ending[1:]
        return "table" if people or (self.output is None and sys.stdout.isatty()) else "csv"

    def check(self, inputs: list[str]) -> None:
        """Refuse an output that cannot be written, or that is an input, before any work is done."""
        if self.output is None:
            return
        if not self.output:
            raise click.UsageError("the name of the file to write is empty")
        path = os.path.realpath(self.output)
        ending = os.path.splitext(self.output)[1].lower()
        if self.format is None and ending not in WRITTEN and (os.path.isfile(path) or not os.path.exists(path)):
            raise click.UsageError(
                f"{self.output}: results are written as .csv, .json or .txt, or to a name without an ending, and not "
                f"as {ending}; say --format if a file of that name is wanted all the same"
            )
        folder = os.path.dirname(path)
        if os.path.isdir(path) or not os.path.isdir(folder):
            what = "is a directory" if os.path.isdir(path) else f"cannot be written: there is no directory {folder}"
            raise click.UsageError(f"{self.output} {what}")
        device = os.path.exists(path) and not os.path.isfile(path)
        if not os.access(path if device else folder, os.W_OK):
            raise click.UsageError(f"{self.output} cannot be written: permission denied")
        if any(os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name) for name in inputs):
            raise click.UsageError(f"{self.output} is read from, so it cannot be the output too")


@dataclass(frozen=True)
class Pooling:
    """Which pool, with which prior and beliefs, as given on the command line."""

    pool: str
    prior: PriorOption
    panel: str | None
    weights: dict[str, float] | None = None

    @property
    def inputs(self) -> list[str]:
        """The files that are read."""
        return [] if self.panel is None else [self.panel]

    def options(self, beliefs: Beliefs | None) -> dict[str, Any]:
        """Return the options of the pool's constructor: weights or beliefs."""
        if self.weights is None:
            return {} if beliefs is None else {"beliefs": beliefs}
        if self.pool not in WEIGHTED:
            raise click.UsageError(
                f"--weight is for the pools {', '.join(WEIGHTED)}, and the pool is {self.pool}; --pool linear makes a "
                "weighted mean of probabilities, --pool log one of log-odds"
            )
        return {"weights": self.weights}

    def belief_file(self) -> BeliefFile:
        """Return the beliefs of --panel; refused unless the pool is Gaussian."""
        if self.panel is not None and self.pool != "gaussian":
            raise click.UsageError(f"--panel says what the gaussian pool is to believe, and the pool is {self.pool}")
        return BeliefFile.of(self.panel)


@dataclass(frozen=True)
class Keeping:
    """Which file the pool is from, and which it goes to, as given on the command line."""

    model: str | None
    save: str | None

    @property
    def inputs(self) -> list[str]:
        """The files that are read."""
        return [] if self.model is None else [self.model]

    def check(self, inputs: list[str], writing: Writing, pooling: Pooling) -> None:
        """Refuse a file that cannot be written, or is another one of these, and options that contradict each other."""
        if self.save == "-":
            raise click.UsageError("--save takes the name of a file: results go to standard output; ./- is a file too")
        Writing(self.save, "json").check(inputs)
        places = [os.path.realpath(name) for name in (self.save, writing.output) if name is not None]
        if len(places) > len(set(places)):
            raise click.UsageError(f"{self.save} cannot be the output and the saved pool too")
        if self.model is not None and pooling.panel is not None:
            raise click.UsageError("--panel says what to believe when learning begins, and --model has begun")
        if self.model is not None and pooling.weights is not None:
            raise click.UsageError("--weight is given when a pool is made, and the one of --model is there already")

    def begin(
        self, reading: Reading, pooling: Pooling, writing: Writing
    ) -> tuple[BeliefFile, tuple[str, TrainedPool] | None]:
        """Return the beliefs of --panel and the pool of --model, after all options and files are checked."""
        inputs = [*reading.inputs, *pooling.inputs, *self.inputs]
        writing.check(inputs)
        self.check(inputs, writing, pooling)
        return pooling.belief_file(), self.read(pooling)

    def load(self) -> tuple[str, TrainedPool] | None:
        """The file of --model, and the pool that it holds."""
        if self.model is None:
            return None
        from opinionpool.estimators.files import load
        from opinionpool.streams.trained import TrainedPool

        return self.model, TrainedPool.of(load(self.model))

    def read(self, pooling: Pooling) -> tuple[str, TrainedPool] | None:
        """Return the file of --model and its pool, after checking that --pool and --prior fit."""
        found = self.load()
        if found is None:
            return None
        trained = found[1]
        source = click.get_current_context().get_parameter_source("pool")
        if source is click.core.ParameterSource.COMMANDLINE and pooling.pool != trained.name:
            raise click.UsageError(f"--pool is {pooling.pool}, and the pool in {self.model} is {trained.name}")
        if self.save is not None and pooling.prior:
            raise click.UsageError("--prior is settled when a pool first learns, so it cannot change as it goes on")
        return found


@dataclass(frozen=True)
class Earlier:
    """The saved pools that a report is about: the one that answers, and the one since which changes are listed."""

    model: str | None
    since: str | None

    @property
    def keeping(self) -> Keeping:
        """The pool that answers, as other commands take it."""
        return Keeping(self.model, None)

    @property
    def inputs(self) -> list[str]:
        """The files that are read."""
        return [name for name in (self.model, self.since) if name is not None]


@dataclass(frozen=True)
class Listing:
    """Which answers are listed, in which order."""

    only_open: bool
    sort: str


@dataclass(frozen=True)
class BeliefFile:
    """The beliefs of a panel file, and the file's name; both None if there is no file."""

    file: str | None = None
    beliefs: Beliefs | None = None

    @classmethod
    def of(cls, panel: str | None) -> BeliefFile:
        """Return the beliefs in the file of --panel; empty if the option is not given."""
        if panel is None:
            return cls()
        from opinionpool.learning.panel_file import read_beliefs

        return cls(panel, read_beliefs(panel))


@dataclass(frozen=True)
class Comparing:
    """Which pools to compare, and how events are split, as given on the command line."""

    pools: tuple[str, ...] | None
    by: str | None  # as `opinionpool.scoring.compare` calls it
    gap: str
    folds: int
    repeats: int | None
    seed: int
    prior: PriorOption
    panel: str | None
    rival: tuple[str, ...] = ()

    @property
    def inputs(self) -> list[str]:
        """The files that are read."""
        return [] if self.panel is None else [self.panel]

    def without_rivals(self, forecasts: Forecasts) -> tuple[Forecasts, dict[str, Array]]:
        """Return the forecasts without the rivals, and each rival's probabilities, (T,) or (T, K)."""
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

    def belief_file(self) -> BeliefFile:
        """Return the beliefs of --panel; refused unless the Gaussian pool is among --pools."""
        if self.panel is not None and self.pools is not None and "gaussian" not in self.pools:
            raise click.UsageError("--panel says what the gaussian pool is to believe, and it is not among --pools")
        return BeliefFile.of(self.panel)


def prior_option(option: str, given: PriorOption, forecasts: Forecasts) -> float | Array | None:
    """A prior or base rate as pools take it: one number for binary events, else one per class, which add up to 1."""
    if not given:
        return None
    if forecasts.options is not None:
        raise click.UsageError(
            f"{option}: each event has options of its own, so no number can be for all events; a column prior can give "
            "one for each option of an event"
        )
    labels = [str(label) for label in forecasts.classes]
    named = {label: p for label, p in given if label is not None}
    unknown = [label for label in named if label not in labels]
    if unknown:
        from opinionpool.text import meant

        near = meant(unknown[0], labels)
        raise click.UsageError(f"{option}: {unknown[0]!r} is not a class; the classes are {', '.join(labels)}{near}")
    if len(labels) == 2:
        if len(given) > 1:
            raise click.UsageError(f"{option}: events of two classes need one number, and there are {len(given)}")
        label, p = given[0]
        return 1.0 - p if label == labels[0] else p
    if len(named) != len(labels) or len(given) != len(labels):
        example = " ".join(f"{option} {label}={1 / len(labels):.2g}" for label in labels[:2])
        raise click.UsageError(f"{option}: events of {len(labels)} classes need a number for each, as in {example} ...")
    total = math.fsum(named.values())
    if abs(total - 1.0) > 1e-4:
        raise click.UsageError(f"{option}: the numbers of the classes must add up to 1, and they add up to {total:.6g}")
    import numpy as np

    return np.array([named[label] for label in labels]) / total
