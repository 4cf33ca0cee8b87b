"""What all tests share."""

import contextlib
import gc
import importlib
import os
import runpy
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# The same examples each time; `make fuzz` draws new ones, and what it finds becomes an explicit example.
settings.register_profile("same", deadline=None, derandomize=True, print_blob=True, max_examples=40)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


# What collecting makes stays until the end: looking through it for garbage, again and again, finds none.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def on_a_terminal(program: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run the command, or a script of Python, with its output and messages on one terminal, in this process.

    A process takes half a second to start; `tests/cli/test_process.py` has those that tests cannot do without.

    Returns
    -------
    The exit status of the command, 0 of a script; and what appears on the terminal.
    """
    # Not everywhere, as terminals are not.
    import pty

    from opinionpool.cli import app as cli

    ours, theirs = pty.openpty()
    shown = []

    def read() -> None:
        # Reading fails, on Linux, when nobody has the terminal open any more.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                shown.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "FORCE_COLOR"}}
    with (
        open(theirs, "w", encoding="utf-8") as screen,
        contextlib.redirect_stdout(screen),
        contextlib.redirect_stderr(screen),
        mock.patch.dict(os.environ, kept | {"TERM": "xterm-256color"} | environment, clear=True),
    ):
        if program == "opinionpool":
            status = cli.run(list(arguments))
        else:
            with mock.patch.object(sys, "argv", [program, *arguments]):
                runpy.run_path(program, run_name="__main__")
            status = 0
    reader.join()
    os.close(ours)
    return status, b"".join(shown).decode().replace("\r\n", "\n")


@pytest.fixture(scope="session")
def terminal() -> Callable[..., tuple[int, str]]:
    """`on_a_terminal`, for tests."""
    return on_a_terminal


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the project."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder ``shared`` beside the project: real forecasts and worked cases. Tests that need it skip without it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("there is no folder 'shared' beside the project")
    return folder


@pytest.fixture(scope="session")
def study(root) -> Callable[[str], ModuleType]:
    """A module of ``benchmarks``, by its name."""
    folder = str(root / "benchmarks")

    def load(name: str) -> ModuleType:
        sys.path.insert(0, folder)
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(folder)

    return load
