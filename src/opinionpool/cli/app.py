"""The command line: ``opinionpool pool``, ``experts``, ``explain``, ``compare``, ``report``, ``paper`` and ``check``.

A command reads, asks the layers below and hands the answer to `opinionpool.report.listing`. Results go to standard
output, everything else to standard error. The exit status is 0 when done, 1 when the data do not allow it, 2 when the
command line is wrong, and 130 when interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import NoReturn

import click

from opinionpool.cli import commands, pages, status, stopped
from opinionpool.cli.output import error_line, hush, open_closed_streams, speak_utf8, tell
from opinionpool.errors import OpinionPoolError
from opinionpool.version import __version__

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=SETTINGS, invoke_without_command=True)
@click.version_option(__version__, prog_name="opinionpool", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Combine the probabilities that several experts give for the same events, learning how much to trust each.

    FILE is CSV, TSV, Parquet, JSON or a spreadsheet, text as gzip too, several files, a folder, or - for standard
    input. Either a row per forecast, with columns event, expert, probability, and outcome where it is known; or a row
    per event, with a column per expert. check FILE says how a file is read, what stands in the way, and what to type.
    """
    if context.invoked_subcommand is None:
        tell(context.get_help())
        context.exit(2)


for command in (
    commands.pool, commands.experts, commands.explain, commands.value, commands.rate, commands.compare, commands.diff,
    commands.check, pages.report, pages.open_page, pages.paper,
):  # fmt: skip
    app.add_command(command)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line on `arguments` (default: those of the process), and exit with its status."""
    open_closed_streams()
    speak_utf8()
    # Before NumPy is loaded, whatever else is set: the matrices here are small, threads that wait for each other cost
    # ten times the work, and sums in another order end in other digits.
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    code = run(arguments)
    if stopped():
        # A library may have noted the interruption for the end of the process, which would change the status.
        hush(sys.stdout)
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line on `arguments` (default: those of the process), and return the exit status."""
    # What was typed is known to commands that write it down.
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        return app.main(arguments, prog_name="opinionpool", standalone_mode=False, obj=typed) or 0
    except click.UsageError as error:
        context = error.ctx.command_path if error.ctx else "opinionpool"
        tell(error_line(error.format_message()), f"Try '{context} --help'.")
        return 2
    except OpinionPoolError as error:
        tell(error_line(str(error)))
        return 1
    except (click.Abort, KeyboardInterrupt):
        tell("opinionpool: interrupted")
        return status()
    except BrokenPipeError:
        # Whoever read the messages has gone.
        hush(sys.stdout)
        hush(sys.stderr)
        return 0
    except OSError as error:
        hush(sys.stdout)
        place = f"{error.filename}: " if error.filename else ""
        tell(error_line(f"{place}{error.strerror or error}"))
        return 1
    except Exception as error:
        if stopped():
            # A library turned the interruption into an error of its own.
            tell("opinionpool: interrupted")
            return status()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__}: {error} ({os.path.basename(frame.filename)}, line {frame.lineno})"
        tell(error_line(f"a fault of opinionpool itself, please report it: {fault}"))
        return 1
