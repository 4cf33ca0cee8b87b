"""The command line; `main` is the entry point."""

from __future__ import annotations

import sys

from opinionpool.cli.stopping import listen, status, stopped

# Signals are listened to before anything else is imported, typing too.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    try:
        listen()
        from opinionpool.cli.app import main as run

        run(arguments)
    except SystemExit:
        raise
    except BaseException:
        # Compiled modules may turn the interruption into an error of theirs.
        if not stopped():
            raise
        sys.exit(status())
