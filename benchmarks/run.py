"""Run the benchmarks and print what was needed, what was measured and against what.

``python benchmarks/run.py [NAME ...]`` runs the named modules of this folder, or all that define ``rows()``, a function
that yields a `Row` for each thing measured. When all are run, docs/benchmarks.md is written anew.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from row import Row


def measured(name: str) -> Iterator[Row]:
    """Yield the rows of one module; a command that fails is a broken promise, and the other modules still run."""
    module = importlib.import_module(name)
    if not hasattr(module, "rows"):
        return
    try:
        yield from module.rows()
    except subprocess.CalledProcessError as error:
        text = error.stderr if isinstance(error.stderr, str) else error.stderr.decode(errors="replace")
        said = text.strip().splitlines() or [""]
        yield Row(f"{name}: a command failed", "", "", said[-1], kept=False)


def main() -> int:
    """Print every row as it is measured; the status is 1 if a promise is broken."""
    here = Path(__file__)
    names = sys.argv[1:] or sorted(path.stem for path in here.parent.glob("*.py") if path != here)
    broken = 0
    found: dict[str, list[Row]] = {}
    print(f"{'what':<52} | {'needed':<10} | {'got':<12} | peer", flush=True)
    for name in names:
        for row in measured(name):
            found.setdefault(name, []).append(row)
            broken += not row.kept
            mark = "" if row.kept else "   <-- BROKEN"
            print(f"{row.what:<52} | {row.needed:<10} | {row.got:<12} | {row.peer}{mark}", flush=True)
    if not sys.argv[1:]:
        from page import write_page

        write_page(here.parent.parent / "docs" / "benchmarks.md", found)
    return 1 if broken else 0


def as_installed() -> None:
    """Start again where the kernel of the linear algebra was fixed, or where Python keeps no byte code.

    Measured are then the kernel for this processor, and start-up as it is where the package is installed.
    """
    fixed = [
        name for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE") if name in os.environ
    ]
    if fixed:
        environment = {name: value for name, value in os.environ.items() if name not in fixed}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)


if __name__ == "__main__":
    as_installed()
    sys.exit(main())
