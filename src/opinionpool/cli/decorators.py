"""Options of commands as decorators: several handed on as one object, under a heading of the help."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

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
