"""Files of Parquet summed up by Spark, by the same function without it, and by the command line in one process.

make bench-spark, or python benchmarks/spark.py [FORECASTS] in an environment with pyspark and Java 17
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from row import Row

FORECASTS, EXPERTS, FILES = 100_000_000, 20, 40
# The least share of the rate without Spark that is needed, and that is aimed at; megabytes of the driver.
NEEDED, AIM, MEMORY = 0.5, 0.8, 300.0
# Forecasts that the command line is given, as it takes minutes for more.
COMMAND = 10_000_000
NAMES = tuple(f"expert_{i}" for i in range(EXPERTS))
ROWS = 10_000


def generate(folder: Path, forecasts: int) -> None:
    """Files of forecasts with three digits, rows of ids and outcomes."""
    rng = np.random.default_rng(0)
    size = forecasts // EXPERTS // FILES
    for number in range(FILES):
        y = rng.integers(0, 2, size)
        common = rng.normal(0.0, 0.8, (size, 1)) + (2.0 * y[:, None] - 1.0)
        q = 1.0 / (1.0 + np.exp(-(common + rng.normal(0.0, 1.0, (size, EXPERTS)))))
        columns: dict[str, object] = dict(zip(NAMES, q.round(3).T, strict=True))
        columns |= {"outcome": y, "id": [f"event-{number * size + i}" for i in range(size)]}
        pq.write_table(pa.table(columns), folder / f"part-{number:03}.parquet")


def without_spark(folder: str) -> dict[str, float]:
    """The partition function fed from the files, by one core."""
    from opinionpool.spark.layout import Layout
    from opinionpool.spark.summary import Summary, _merged, state_of

    layout = Layout(NAMES, (0, 1), False, False, ("event", "outcome"), ())
    start, used = time.perf_counter(), time.process_time()
    states, packing = [], 0.0
    for file in sorted(Path(folder).glob("*.parquet")):
        found = pq.ParquetFile(file).iter_batches(ROWS, columns=[*NAMES, "outcome", "id"], use_threads=False)
        batches = list(found)
        packing -= time.process_time()
        batches = list(map(packed, batches))
        packing += time.process_time()
        states.append(state_of(batches, layout, partial(Summary, NAMES, {})))
    stream = _merged(states).stream(by_name=False)
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - used - packing,
        "events": float(stream.count),
        "state": max(map(len, states)),
    }


def packed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Columns as Spark hands them over, which is its work."""
    cells = np.stack(batch.columns[:EXPERTS], axis=1).ravel()
    p = pa.FixedSizeListArray.from_arrays(pa.array(cells), EXPERTS).cast(pa.list_(pa.float64()))
    return pa.RecordBatch.from_arrays([p, *batch.columns[EXPERTS:]], ["p", "outcome", "event"])


def cluster(folder: str, workers: int) -> dict[str, float]:
    """Spark on so many workers of one core; without any, an application that does nothing."""
    from pyspark.sql import SparkSession

    import opinionpool.spark as ops

    builder = SparkSession.builder.master(f"local-cluster[{max(workers, 1)},1,1024]")
    settings = {
        "spark.driver.memory": "512m",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.read.parquet(folder).limit(1).collect()
    found = {}
    if workers:
        # Workers that have started, and Java that has compiled what it runs: the rate is that of long work.
        ops.summarize(spark.read.parquet(folder), NAMES, outcome="outcome")
        start, used = time.perf_counter(), executors_seconds()
        stream = ops.summarize(spark.read.parquet(folder), NAMES, outcome="outcome")
        found = {
            "seconds": time.perf_counter() - start,
            "events": float(stream.count),
            "cpu": executors_seconds() - used,
        }
    # Both processes of the driver: this one, and Java's.
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    status = Path(f"/proc/{java}/status").read_text(encoding="ascii")
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    found["memory"] = (peak + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024
    spark.stop()
    return found


def executors_seconds() -> float:
    """Seconds of processors that the executors below this process have used, with their Python workers."""
    parents, own, names = {}, {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            names[int(folder.name)] = (folder / "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        own[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def lineage(process: int) -> list[int]:
        found = [process]
        while found[-1] in parents:
            found.append(parents[found[-1]])
        return found

    total = 0.0
    for process, used in own.items():
        above = lineage(process)
        if os.getpid() in above and any("CoarseGrainedExecutorBackend" in names.get(each, "") for each in above):
            total += used
    return total


def command_line(folder: str) -> dict[str, float]:
    """``opinionpool pool FILE`` of some of the files, as one."""
    files = sorted(Path(folder).glob("*.parquet"))
    table = pa.concat_tables([pq.read_table(file) for file in files])
    table = table.slice(0, COMMAND // EXPERTS)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "forecasts.parquet"
        pq.write_table(table, file)
        start = time.perf_counter()
        command = [sys.executable, "-m", "opinionpool", "pool", str(file), "--output", f"{scratch}/pooled.csv"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "seconds": time.perf_counter() - start,
            "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "forecasts": float(table.num_rows * EXPERTS),
        }


PARTS = {
    "nothing": partial(cluster, workers=0),
    "one": partial(cluster, workers=1),
    "two": partial(cluster, workers=2),
    "without": without_spark,
    "command": command_line,
}


def part(name: str, folder: Path) -> dict[str, float]:
    """One measurement, in a process of its own."""
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, name, str(folder)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(name, found, file=sys.stderr, flush=True)
    return found


def measured(forecasts: int) -> list[Row]:
    """All measurements on files of so many forecasts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder, forecasts)
        found = {each: part(each, folder) for each in PARTS}
    cells = found["without"]["events"] * EXPERTS
    single = cells / found["without"]["cpu"]
    rows = [
        Row(
            "the partition function without Spark, of a core",
            "",
            f"{single / 1e6:.2f} million/s",
            f"{cells:.1e} forecasts",
        )
    ]
    for each, workers in (("one", 1), ("two", 2)):
        # Of the time of processors, as other work goes on beside this.
        rate = cells / found[each]["cpu"]
        rows.append(
            Row(
                f"Spark, {workers} worker{'s' * (workers > 1)}, of a core",
                f">= {NEEDED:g} of that, aim {AIM:g}",
                f"{rate / single:.2f}",
                f"{rate / 1e6:.2f} million/s; {found[each]['seconds']:.0f} s by the clock",
                kept=rate / single >= NEEDED,
            )
        )
    above = found["two"]["memory"] - found["nothing"]["memory"]
    rows.append(
        Row(
            "memory of the driver above an application that does nothing",
            f"<= {MEMORY:g} MB",
            f"{above:.0f} MB",
            f"{found['nothing']['memory']:.0f} MB without",
            kept=above <= MEMORY,
        )
    )
    command = found["command"]
    rate = command["forecasts"] / command["cpu"]
    rows.append(
        Row(
            "opinionpool pool FILE, learning and answers, of a core",
            "",
            f"{rate / 1e6:.2f} million/s",
            f"{command['forecasts']:.0e} forecasts",
        )
    )
    rows.append(Row("state of a partition", "", f"{found['without']['state'] / 1e6:.2f} MB", f"{EXPERTS} experts"))
    return rows


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(PARTS[sys.argv[1]](sys.argv[2])))
    else:
        for row in measured(int(float(sys.argv[1])) if len(sys.argv) > 1 else FORECASTS):
            mark = "" if row.kept else "   <-- BROKEN"
            print(f"{row.what:<60} | {row.needed:<24} | {row.got:<16} | {row.peer}{mark}", flush=True)
