"""The command line; `main` is the entry point."""

from opinionpool.cli.app import main as main
