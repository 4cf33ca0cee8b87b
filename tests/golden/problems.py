"""Problems whose answers are kept in ``golden.json.gz``: what a change of the code must not change by accident.

``python tests/golden/problems.py --compare [--only PATTERN]``
    Compute them and print the largest difference of each kind of number, and the problems that moved.
``python tests/golden/problems.py --write [--only PATTERN]``
    Keep what is computed now, and print what moved from what was kept. Saved pools in ``saved/`` are not rewritten.

Forecasts are rounded to four digits, so that what is simulated is the same on every machine. Numbers are compared
relative to their size, or to 1 where they are smaller: to 1e-9 for closed forms and Newton's method; to 1e-6 for what
stops by a tolerance of its own, with a likelihood that is no worse by 1e-9. Codes of notes are
compared as sets, and sentences not at all.
"""

from __future__ import annotations

import argparse
import fnmatch
import gzip
import json
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

HERE = Path(__file__).resolve().parent
KEPT = HERE / "golden.json.gz"
EXACT = 1e-9

Record = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """How a record is made, and how closely it must be met."""

    make: Callable[[], Record]
    tolerance: float = EXACT


PROBLEMS: dict[str, Problem] = {}


def problem(name: str, make: Callable[[], Record], tolerance: float = EXACT) -> None:
    """Add a problem, whose group is the part of its name before the last stroke."""
    assert name not in PROBLEMS, name
    PROBLEMS[name] = Problem(make, tolerance)


def groups() -> dict[str, list[str]]:
    """The names of problems by group."""
    found = defaultdict(list)
    for name in PROBLEMS:
        found[name.rpartition("/")[0]].append(name)
    return dict(found)


def compute(name: str) -> Record:
    """The record of a problem, in what JSON can hold; an error is recorded by its name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            record = PROBLEMS[name].make()
        except ValueError as error:
            record = {"error": type(error).__name__}
    return {key: plain(value) for key, value in record.items()}


def plain(value: Any) -> Any:
    """What JSON can hold: numbers to 13 digits, None where there is none."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (float, np.floating)) and not isinstance(value, bool):
        return float(f"{value:.13g}") if np.isfinite(value) else (None if np.isnan(value) else str(value))
    return value


def load() -> dict[str, Record]:
    """The records that are kept."""
    return json.loads(gzip.decompress(KEPT.read_bytes())) if KEPT.exists() else {}


def keep(records: Mapping[str, Record]) -> None:
    """Write records, the same bytes for the same ones."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(records[name])}" for name in sorted(records))
    KEPT.write_bytes(gzip.compress(f"{{\n{lines}\n}}\n".encode(), 9, mtime=0))


# Comparing.


@dataclass(frozen=True)
class Difference:
    """Where a record differs from the one that is kept."""

    path: str  # such as "answers" or "events/probability"
    size: float  # relative to the number, or to 1; infinite if it is not a matter of numbers
    text: str


def differences(new: Any, old: Any, path: str = "") -> Iterator[Difference]:
    """Everything that differs, indices left out of paths."""
    if isinstance(new, dict) and isinstance(old, dict):
        for key in sorted(new.keys() | old.keys()):
            where = f"{path}/{key}".lstrip("/")
            if key in new and key in old:
                yield from differences(new[key], old[key], where)
            else:
                yield Difference(where, np.inf, "is new" if key in new else "is gone")
    elif isinstance(new, list) and isinstance(old, list):
        if len(new) != len(old) or any(isinstance(each, str) for each in (*new, *old)):
            if new != old:
                yield Difference(path, np.inf, f"{_short(old)} -> {_short(new)}")
            return
        for left, right in zip(new, old, strict=True):
            yield from differences(left, right, path)
    elif _number(new) and _number(old):
        size = abs(new - old) / max(1.0, abs(old))
        if path.endswith("log_likelihood"):
            size = max(0.0, old - new) / max(1.0, abs(old))
        if size > 0:
            yield Difference(path, size, f"{old!r} -> {new!r}")
    elif new != old and not (_sentence(new) and _sentence(old)):
        yield Difference(path, np.inf, f"{_short(old)} -> {_short(new)}")


def allowed(name: str, path: str) -> float:
    """How large a difference may be."""
    return EXACT if path.endswith("log_likelihood") else PROBLEMS[name].tolerance


def failures(name: str, new: Record, old: Record) -> list[Difference]:
    """The differences that are too large, the worst first."""
    found = [each for each in differences(new, old) if each.size > allowed(name, each.path)]
    return sorted(found, key=lambda each: -each.size)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _sentence(value: Any) -> bool:
    return isinstance(value, str) and " " in value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 160 else text[:157] + "..."


def main() -> None:
    """Compare or write, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep what is computed now")
    parser.add_argument("--compare", action="store_true", help="print differences from what is kept")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="problems whose name has this in it, or fits it")
    given = parser.parse_args()
    chosen = [n for n in PROBLEMS if given.only in n or fnmatch.fnmatch(n, given.only)]
    kept, records = load(), {name: compute(name) for name in chosen}
    wrong = show(records, kept, whole=len(chosen) == len(PROBLEMS))
    if given.write:
        keep({name: each for name, each in (kept | records).items() if name in PROBLEMS})
        print(f"{KEPT.name}: {KEPT.stat().st_size:,} bytes")
    elif wrong:
        sys.exit(1)


def show(records: Mapping[str, Record], kept: Mapping[str, Record], whole: bool) -> int:
    """Print how records differ from those kept; how many do by more than they may."""
    worst: dict[str, tuple[float, str]] = {}
    wrong = 0
    for name, record in records.items():
        if name not in kept:
            print(f"new      {name}")
            wrong += 1
            continue
        for each in differences(record, kept[name]):
            kind = f"{PROBLEMS[name].tolerance:g} {each.path.split('/')[-1]}"
            worst[kind] = max(worst.get(kind, (0.0, "")), (each.size, name))
        found = failures(name, record, kept[name])
        wrong += bool(found)
        largest: dict[str, Difference] = {}
        for each in found:
            largest.setdefault(each.path, each)
        for each in largest.values():
            print(f"{'changed' if np.isinf(each.size) else f'{each.size:7.1e}'}  {name}  {each.path}: {each.text}")
    if whole:
        gone = kept.keys() - records.keys()
        wrong += len(gone)
        for name in sorted(gone):
            print(f"gone     {name}")
    print(f"{len(records)} problems, {wrong} that moved by more than they may; the largest differences by kind:")
    for kind, (size, name) in sorted(worst.items(), key=lambda each: -each[1][0]):
        print(f"  {size:8.1e}  {kind:40}  {name}")
    return wrong


import cases  # noqa: E402 - after the number of threads is set

cases.add_all(problem)

if __name__ == "__main__":
    main()
