"""Files that are wide, long, or the same row again and again: time and memory of reading them, by a process of its own.

python benchmarks/reading.py
"""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from row import Row
from waits import OPINIONPOOL

COLUMNS, EVENTS, REPEATS = 3_600, 6_000_000, 20_000_000
USED = """
import resource, subprocess, sys, time
start = time.perf_counter()
status = subprocess.run(sys.argv[1:], capture_output=True).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
READ = "import opinionpool, sys; opinionpool.read_forecasts(sys.argv[1])"


def rows() -> Iterator[Row]:
    """Measure the three."""
    with tempfile.TemporaryDirectory() as folder:
        file, output = Path(folder) / "forecasts.csv", str(Path(folder) / "pooled.csv")
        wide(file)
        bare = used((sys.executable, "-c", "import opinionpool, numpy"), 0)[1]
        processor = used((sys.executable, "-c", READ, str(file)), 0)[1] - bare
        what = f"read a CSV of {COLUMNS:,} columns, 2 rows: processor"
        told = "beside the imports of opinionpool and NumPy"
        yield Row(what, "<= 1 s", f"{processor:.2f} s", told, kept=processor <= 1)
        long(file)
        seconds, processor, memory = used((*OPINIONPOOL, "pool", str(file), "--output", output), 0)
        what = f"pool a CSV of {EVENTS:,} events x 2 experts"
        yield Row(f"{what}: time", "<= 20 s", f"{seconds:.1f} s", f"{processor:.1f} s of processors", seconds <= 20)
        yield Row(f"{what}: memory", "<= 1000 MB", f"{memory:.0f} MB", "", kept=memory <= 1000)
        packed = file.with_suffix(".csv.gz")
        repeated(packed)
        seconds, _, memory = used((*OPINIONPOOL, "pool", str(packed)), 1)
        what = f"refuse {REPEATS:,} equal rows, {packed.stat().st_size / 1e6:.1f} MB: memory"
        yield Row(what, "<= 1000 MB", f"{memory:.0f} MB", f"{seconds:.1f} s", kept=memory <= 1000)


def used(command: tuple[str, ...], wanted: int) -> tuple[float, float, float]:
    """Seconds, seconds of processors and peak memory in MB of a command that ends with a status."""
    done = subprocess.run([sys.executable, "-c", USED, *command], check=True, capture_output=True, text=True)
    status, *found = map(float, done.stdout.split())
    assert status == wanted, (command, status)
    return found[0], found[1], found[2]


def wide(file: Path) -> None:
    """Two events and a column for each expert."""
    draw = random.Random(1)
    names = ",".join(f"judge{i}" for i in range(COLUMNS - 2))
    lines = [f"q{t},{','.join(f'0.{draw.randint(10, 99)}' for _ in range(COLUMNS - 2))},{'ny'[t]}" for t in range(2)]
    file.write_text(f"event,{names},outcome\n" + "\n".join(lines) + "\n")


def long(file: Path) -> None:
    """Two experts' forecasts on very many events, all resolved."""
    draw = random.Random(2)
    numbers = [f"{i / 100:.2f}" for i in range(1, 100)]
    with file.open("w") as out:
        out.write("event,ann,bob,outcome\n")
        for start in range(0, EVENTS, 100_000):
            one, other = (draw.choices(numbers, k=100_000) for _ in range(2))
            outcomes = draw.choices(("yes", "no"), (2, 3), k=100_000)
            lines = zip(range(start, start + 100_000), one, other, outcomes, strict=True)
            out.writelines(f"q{t},{a},{b},{y}\n" for t, a, b, y in lines)


def repeated(file: Path) -> None:
    """One forecast again and again."""
    with gzip.open(file, "wt", compresslevel=1) as out:
        out.write("event,expert,probability\n")
        for _ in range(REPEATS // 100_000):
            out.write("q1,ann,0.5\n" * 100_000)


if __name__ == "__main__":
    for found in rows():
        print(f"{found.what} | {found.needed} | {found.got} | {found.peer}")
