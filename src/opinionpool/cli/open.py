"""``opinionpool open``: a page in the browser to assess experts, watch the answer move, and defend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opinionpool.cli.arguments import Keeping, Pooling, Reading, Writing
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.inputs import read
from opinionpool.cli.output import tell
from opinionpool.cli.reading_options import optional_reading
from opinionpool.errors import ArgumentError
from opinionpool.extras import install
from opinionpool.report.listing import printable

if TYPE_CHECKING:
    from opinionpool.page.answer import Material
    from opinionpool.page.assessment import Assessment

# What the page needs beyond the package itself.
NEEDED = ("starlette", "uvicorn")


@click.command(name="open", cls=SectionedCommand, short_help="A page to assess experts and watch the answer move.")
@optional_reading
@click.option(
    "--panel",
    metavar="PANEL.toml",
    type=click.Path(exists=True, dir_okay=False),
    help="Begin with what this file says of the experts.",
)
@click.option(
    "--model",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Answer by the pool that pool --save has written, as it is.",
)
@click.option(
    "--keep", metavar="FILE", help="Keep what is assessed in this file (JSON), and offer it again at the next start."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: one that is free.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
def open_page(
    reading: Reading | None, panel: str | None, model: str | None, keep: str | None, port: int, no_browser: bool
) -> None:
    """Open a page in the browser: assess experts, watch the answer move, and defend it.

    Without FILE the page begins with three example advisers. With FILE it begins with the file's events and forecasts,
    and learns from those that are resolved. It runs on this machine alone, at an address that is printed, and ends with
    Ctrl-C, or a minute after its last page was closed. It writes no file but that of --keep. Needs the extra page
    (python -m pip install '.[page]' in a copy of the repository).
    """
    _check_installed()
    inputs = [*([] if reading is None else reading.inputs), *(name for name in (panel, model) if name is not None)]
    if keep is not None:
        Writing(keep, "json").check(inputs)
    if panel is not None and model is not None:
        raise click.UsageError("--panel says what to believe when learning begins, and --model has begun")
    material, given = _material(reading, panel, model)
    from opinionpool.page.server import Server

    try:
        server = Server(material, given, keep=keep, port=port)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"--port: {port} cannot be used: {error.strerror}") from None
    click.echo(server.address)
    tell("the page runs until Ctrl-C, or a minute after its last page was closed")
    if not no_browser:
        _browse(server.address)
    server.run()


def _check_installed() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in NEEDED):
        raise ArgumentError(f"the page needs Starlette and uvicorn: {install('page')}")


def _browse(address: str) -> None:
    """Open the browser, in a thread, as some wait until it is closed."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _material(reading: Reading | None, panel: str | None, model: str | None) -> tuple[Material, Assessment | None]:
    """The data source of the page, and its first assessment; None if the page itself makes one."""
    from opinionpool.learning.panel_file import read_beliefs
    from opinionpool.page.actions import with_beliefs
    from opinionpool.page.answer import Material, Source
    from opinionpool.page.assessment import blank
    from opinionpool.page.session import start_of

    if model is not None:
        material = _saved(reading, model)
        return material, None if reading is not None else blank(material.experts, material.classes)
    source = Source() if reading is None else Source(reading.files, reading.words)
    material = Material(None if reading is None else read(reading, None), source=source)
    if panel is None:
        return material, None
    beliefs = read_beliefs(panel)
    base = start_of(material, None) if reading is not None else blank()
    try:
        return material, with_beliefs(base, beliefs)
    except ArgumentError as error:
        raise click.UsageError(f"{printable(panel)}: {error}") from None


def _saved(reading: Reading | None, model: str) -> Material:
    """A saved pool, with the forecasts of a file if there is one."""
    from opinionpool.cli.kept import keep as kept_for
    from opinionpool.learning.fitted import FittedPanel
    from opinionpool.page.answer import Material, Source

    trained = Keeping(model, None).read(Pooling("gaussian", (), None))
    assert trained is not None
    state = trained[1].learned
    if not isinstance(state, FittedPanel):
        raise click.UsageError(
            f"--model: the page shows the gaussian pool, and the pool in {model} is {trained[1].name}"
        )
    if reading is None:
        return Material(trained=state, source=Source(model=model))
    kept = kept_for(read(reading, trained), "gaussian", None, {}, trained, learning=False)
    return Material(kept.forecasts, state, kept.reference, Source(reading.files, reading.words, model))
