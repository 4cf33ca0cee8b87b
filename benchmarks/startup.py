"""How long a user waits before anything is computed."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from row import Row, at_most
from timing import interleave

ROUNDS = 31
FILE = """event,alice,bob,carol,outcome
a,0.8,0.7,0.9,1
b,0.2,0.4,0.3,0
c,0.6,0.7,0.4,1
d,0.3,0.1,0.2,0
e,0.7,0.6,,1
f,0.4,0.5,0.3,0
g,0.9,0.8,0.7,
"""


def rows() -> Iterator[Row]:
    """Measure the import, the core, and the main job on a small file, each against ``import numpy``."""
    yield against_numpy("import opinionpool", python("import opinionpool"), 1.2)
    yield against_numpy("opinionpool.Panel", python("from opinionpool import Panel"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.csv"
        file.write_text(FILE)
        command = str(Path(sys.executable).with_name("opinionpool"))
        pool = [command, "pool", str(file)]
        yield against_numpy("opinionpool pool, 7 events", pool, 4.0)
        seconds = interleave([command, "check", str(file)], pool, ROUNDS)
        longer, peer = seconds.first - seconds.second, f"pool: {seconds.second:.2f} s, check {seconds.first:.2f} s"
        yield Row("opinionpool check, 7 events: beyond pool", "<= 0.5 s", f"{longer:.2f} s", peer, kept=longer <= 0.5)


def against_numpy(what: str, command: list[str], limit: float | None = None) -> Row:
    """Return the row of a command line timed against ``import numpy``."""
    seconds = interleave(command, python("import numpy"), ROUNDS)
    peer = f"import numpy: {seconds.second * 1000:.0f} ms"
    if limit is None:
        return Row(what, "", f"{seconds.ratio:.2f} x", peer)
    return at_most(what, limit, seconds.ratio, peer)


def python(statement: str) -> list[str]:
    """Return the command line that runs one statement in a new interpreter."""
    return [sys.executable, "-c", statement]
