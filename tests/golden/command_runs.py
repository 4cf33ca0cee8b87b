"""The JSON of commands on six small files, run in this process."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from simulated import days, long_table, panel

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("pool", "linear", "check", "experts", "explain", "compare", "value", "diff")
LISTED = 12  # entries of a list that are kept


def example(name: str) -> Any:
    """A module of ``examples``."""
    spec = importlib.util.spec_from_file_location(f"golden_{name}", ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judges() -> tuple[Sequence[str], list[Sequence[str]]]:
    """Five judges, in a row per answer."""
    module = example("judges")
    return [*module.HEADER[:-1], "outcome"], module.table()[75:225]


def tournament() -> tuple[Sequence[str], list[Sequence[str]]]:
    """A row per forecast, with times."""
    module = example("tournament")
    return module.HEADER, list(module.rows())


def wide() -> tuple[Sequence[str], list[Sequence[str]]]:
    """A row per event, with groups and missing cells."""
    q, y = panel(200, 60, 4, missing=0.2)
    rows = [[f"q{i}", *_cells(q[i]), f"g{i // 4}", "" if np.isnan(y[i]) else str(int(y[i]))] for i in range(len(q))]
    return ["event", "ann", "bob", "cy", "dan", "group", "outcome"], rows


def classes() -> tuple[Sequence[str], list[Sequence[str]]]:
    """A row per probability of three classes."""
    q, y = panel(201, 40, 3, 3, missing=0.1)
    rows = [
        [f"q{i}", f"e{j}", "abc"[c], repr(float(q[i, j, c])), "" if np.isnan(y[i]) else "abc"[int(y[i])]]
        for i, j in np.ndindex(q.shape[:2])
        for c in range(3)
        if not np.isnan(q[i, j, c])
    ]
    return ["event", "expert", "class", "probability", "outcome"], rows


def options() -> tuple[Sequence[str], list[Sequence[str]]]:
    """A row per probability of an option that is its event's own."""
    q, y = panel(202, 40, 3, 3, missing=0.1)
    rows = []
    for i, j in np.ndindex(q.shape[:2]):
        count = 2 + i % 2
        if np.isnan(q[i, j, 0]):
            continue
        share = q[i, j, :count] / q[i, j, :count].sum()
        outcome = "" if np.isnan(y[i]) else f"{i}-{int(y[i]) % count}"
        rows += [[f"q{i}", f"e{j}", f"{i}-{c}", repr(float(share[c])), outcome] for c in range(count)]
    return ["event", "expert", "class", "probability", "outcome"], rows


def topics() -> tuple[Sequence[str], list[Sequence[str]]]:
    """A row per forecast, with times and topics."""
    q, y = panel(203, 50, 4, missing=0.2)
    table = long_table(q, y, days(203, 50, 4), topic=[f"t{i % 3}" for i in range(50)])
    return list(table), [list(map(str, row)) for row in zip(*table.values(), strict=True)]


FILES: dict[str, Callable[[], tuple[Sequence[str], list[Sequence[str]]]]] = {
    each.__name__: each for each in (judges, tournament, wide, classes, options, topics)
}


def _cells(row: Iterable[float]) -> list[str]:
    return ["" if np.isnan(value) else repr(float(value)) for value in row]


def run(file: str, command: str) -> dict[str, Any]:
    """What a command prints about a file, and its exit status."""
    header, rows = FILES[file]()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        _write("forecasts.csv", header, rows)
        extra = ["--duplicates", "last"] if file == "tournament" else []
        if command == "diff":
            events = list(dict.fromkeys(row[0] for row in rows))
            known = set(events[: 3 * len(events) // 4])
            _write("earlier.csv", header, [row for row in rows if row[0] in known])
            _json("pool", "earlier.csv", "--save", "old.json", *extra)
            _json("pool", "forecasts.csv", "--save", "new.json", *extra)
            return _json("diff", "old.json", "new.json")
        arguments = {
            "linear": ["pool", "forecasts.csv", "--pool", "linear"],
            "explain": ["explain", "forecasts.csv", rows[len(rows) // 2][0]],
            "compare": ["compare", "forecasts.csv", "--repeats", "1", "--folds", "3", "--pools", "gaussian,linear,log"],
        }.get(command, [command, "forecasts.csv"])
        return _json(*arguments, *extra)


def _write(name: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with open(name, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def _json(*arguments: str) -> dict[str, Any]:
    from opinionpool.cli import app as cli

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        status = cli.run([*arguments, "--format", "json"])
    found = json.loads(said.getvalue()) if said.getvalue() else None
    return {"status": status, "printed": _shortened(found)}


def _shortened(value: Any) -> Any:
    """Some entries of long lists, spread over all; notes by their codes, and no sentences."""
    if isinstance(value, dict):
        return {key: _shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(each, dict) and "code" in each and "p" not in each for each in value):
            return sorted({each["code"] for each in value})
        if len(value) > LISTED and all(isinstance(each, dict) for each in value):
            value = [value[i] for i in np.linspace(0, len(value) - 1, LISTED).round().astype(int)]
        return [_shortened(each) for each in value]
    return "a sentence" if isinstance(value, str) and " " in value else value
