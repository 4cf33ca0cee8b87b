"""The reference of the command line, written from the commands themselves.

How each is called, what it says about itself, and its options. Those that several commands share are described once, in
groups.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

import click

from opinionpool.cli.app import app as program
from opinionpool.cli.options import Comparing, Pooling, Writing, given
from opinionpool.cli.reading import reading

GROUPS = {
    "Reading": (reading, "How FILE is read."),
    "Pooling": (given(Pooling, "pooling"), "Which pool, and what it is to believe."),
    "Comparing": (given(Comparing, "comparing"), "What is compared, and how events are split."),
    "Writing": (given(Writing, "writing"), "Where results go."),
}


def commands(group: click.Group = program) -> str:
    """The reference of all commands, in Markdown."""
    options = {title: _own_options(decorator) for title, (decorator, _) in GROUPS.items()}
    lines: list[str] = []
    for name, command in sorted(group.commands.items()):
        lines += _command(name, command, options)
    lines += ["## Options that commands share", ""]
    for title, (_, what) in GROUPS.items():
        lines += [f"### {title}", "", what, "", *_table(options[title]), ""]
    return "\n".join(lines)


def _own_options(decorator: Any) -> list[click.Option]:  # noqa: ANN401 - what click's decorators are
    """The options that a decorator gives a command."""
    bare = click.command()(decorator(lambda **_: None))
    return [parameter for parameter in bare.params if isinstance(parameter, click.Option)]


def _command(name: str, command: click.Command, groups: dict[str, list[click.Option]]) -> Iterator[str]:
    context = click.Context(command, info_name=f"opinionpool {name}")
    yield from [f"## opinionpool {name}", "", "```text", " ".join(command.get_usage(context).split()), "```", ""]
    yield from [*_prose(inspect.cleandoc(command.help or "")), ""]
    own = {option.opts[-1]: option for option in command.params if isinstance(option, click.Option)}
    shared = []
    for title, options in groups.items():
        names = [option.opts[-1] for option in options]
        if all(option in own for option in names):
            shared.append(title)
            own = {option: kept for option, kept in own.items() if option not in names}
    if own:
        yield from [*_table(list(own.values())), ""]
    if shared:
        links = [f"[{title.lower()}](#{title.lower()})" for title in shared]
        yield from [f"Shared options: {', '.join(links)}.", ""]


def _prose(text: str) -> Iterator[str]:
    """Help: paragraphs, and tables of words and what they mean, which click leaves as they are for a backspace."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            rows = [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in paragraph.splitlines()[1:]]
            yield from ["| word | means |", "| --- | --- |"]
            yield from [f"| {' | '.join(map(_escaped, row))} |" for row in rows]
            yield ""
        else:
            yield from [_escaped(" ".join(paragraph.split())), ""]


def _table(options: Sequence[click.Option]) -> list[str]:
    rows = [f"| {_names(option)} | {_escaped(_help(option))} |" for option in options]
    return ["| option | means |", "| --- | --- |", *rows]


def _names(option: click.Option) -> str:
    value = "" if option.is_flag else f" {option.make_metavar(click.Context(program))}"
    return ", ".join(f"`{name}{value}`" for name in option.opts).replace("|", "\\|")


def _help(option: click.Option) -> str:
    record = " ".join((option.help or "").split())
    return f"{record} (required)" if option.required else record


def _escaped(text: str) -> str:
    """Words as they are, whatever they would mean in Markdown; options are code."""
    for sign in "\\[]<>*_`|":
        text = text.replace(sign, f"\\{sign}")
    return re.sub(r"(?<!\S)--[a-z][a-z-]*", r"`\g<0>`", text)
