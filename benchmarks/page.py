"""The page of measurements, docs/benchmarks.md."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from row import Row

LIBRARIES = ("numpy", "scipy", "scikit-learn", "duckdb")
HEAD = """# Benchmarks

Written by `make bench`, which measures what is compared in alternation, takes medians, and prints what the other side
took and what is not promised as well. A line that ends in **broken** falls short of the promise. {date}, on {machine},
with {versions}.
"""


def write_page(path: Path, found: Mapping[str, Sequence[Row]]) -> None:
    """Write all rows, by module."""
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    lines = [HEAD.format(date=date, machine=machine(), versions=f"Python {platform.python_version()}, {versions}")]
    for name, rows in found.items():
        title = (importlib.import_module(name).__doc__ or name).strip().partition("\n")[0]
        lines += [f"## {title}", "", "| what | needed | got |", "| --- | --- | --- |"]
        for row in (row for row in rows if row.needed):
            got = cell(row.got) + ("" if row.kept else " **broken**")
            lines.append(f"| {cell(row.what)} | {cell(row.needed)} | {got} |")
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")


def cell(text: str) -> str:
    """Text that fits into a cell of a table."""
    return text.replace("|", "\\|")


def machine() -> str:
    """Processor and number of them."""
    import os

    name = platform.processor() or platform.machine()
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        found = [
            line.partition(":")[2].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")
        ]
        name = found[0] if found else name
    return f"{os.cpu_count()} processors, {name}"
