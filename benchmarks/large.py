"""A file of many forecasts: the memory that pooling it takes beside interpreter and reading engine, and the time.

python benchmarks/large.py [EVENTS]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
from row import Row

EVENTS, EXPERTS = 500_000, 20
MEMORY = 50.0
PEAK = "import resource, sys; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)"
POOL = """
from opinionpool.cli import app
from opinionpool.tables import engine
engine.LARGE = 0
app.run(["pool", {file!r}, "--output", {output!r}])
"""
# The same modules, the same engine with the same file, gone through in the same parts, and nothing else done.
READ = """
from opinionpool.cli import app, pool
from opinionpool.tables import parts
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.read import open_file
with open_file({file!r}, ReadOptions(), on_disk=True) as table:
    rows = parts.CELLS // 20
    spans = parts._grouped_spans(table, 0, rows)
    for first, size in spans:
        part = table.rows_from(first, size, {{}})
        part.numbers(range(1, 21), frozenset())
        part.connection.close()
"""


def rows() -> Iterator[Row]:
    """Measure both."""
    yield from measured(EVENTS)


def measured(events: int) -> Iterator[Row]:
    """Rows of a Parquet file of so many events."""
    with tempfile.TemporaryDirectory() as folder:
        file, output = Path(folder) / "forecasts.parquet", Path(folder) / "pooled.csv"
        generate(file, events)
        reader, _ = run(READ, file, output)
        own, seconds = run(POOL, file, output)
        cells = events * EXPERTS
        above = own - reader
        told = f"interpreter and reader: {reader:.0f} MB"
        what = f"pool FILE of {cells:.0e} forecasts"
        yield Row(f"{what}: memory above", f"<= {MEMORY:g} MB", f"{above:.0f} MB", told, kept=above <= MEMORY)
        size = file.stat().st_size / 1e6
        yield Row(
            f"{what}: time", "", f"{seconds:.1f} s", f"{cells / seconds / 1e6:.2f} million a second, {size:.0f} MB"
        )


def run(code: str, file: Path, output: Path) -> tuple[float, float]:
    """Peak memory in MB and seconds of a process of its own."""
    start = time.perf_counter()
    script = code.format(file=str(file), output=str(output)) + PEAK
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return float(done.stderr.split()[-1]), time.perf_counter() - start


def generate(file: Path, events: int) -> None:
    """A wide table of correlated experts, an event in ten unresolved."""
    noise = "(random() + random() + random() + random() - 2) * 1.7"
    experts = ", ".join(f"round(1 / (1 + exp(-(shared + {noise} + sign))), 3) AS e{i}" for i in range(EXPERTS))
    with duckdb.connect() as engine:
        engine.execute("SELECT setseed(0.3)")
        engine.execute(
            f"COPY (SELECT 'q' || i AS event, {experts}, CASE WHEN random() < 0.1 THEN NULL ELSE y END AS outcome FROM "
            f"(SELECT i, y, {noise} AS shared, 2 * y - 1 AS sign FROM (SELECT i, CAST(random() < 0.3 AS INTEGER) AS y "
            f"FROM range({events}) AS r(i)))) TO '{file}' (FORMAT parquet)"
        )


if __name__ == "__main__":
    for found in measured(int(float(sys.argv[1])) if len(sys.argv) > 1 else EVENTS):
        print(f"{found.what} | {found.needed} | {found.got} | {found.peer}")
