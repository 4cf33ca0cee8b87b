"""The same file gives the same bytes, wherever and however often; the order of its rows matters to rounding alone."""

import os
import subprocess
import sys

import numpy as np

THREADS = {f"{library}_NUM_THREADS": "2" for library in ("OPENBLAS", "OMP", "MKL")}
# They differ in everything; where there is no locale of that name, the second has that of the machine.
SETTINGS = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "1"},
    THREADS | {"LC_ALL": "de_DE.UTF-8", "TZ": "America/St_Johns", "PYTHONHASHSEED": "77"},
]
# Two commands in one process, as the shell begins each.
BOTH = """
import sys
from opinionpool.cli import main
for command in (["pool"], ["check", "--format", "json"]):
    try:
        main([*command, sys.argv[1]])
    except SystemExit as ended:
        assert not ended.code
"""


def crowd(events=200, experts=50):
    """So many experts that a matrix product is shared among threads."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, events)
    x = rng.normal(size=(events, experts)) + rng.normal(size=(events, 1)) + (2 * y - 1)[:, None]
    cells = np.round(1 / (1 + np.exp(-x)), 4).astype(str)
    cells[rng.random(cells.shape) < 0.05] = ""
    names = [f"é{i}" for i in range(experts)]
    rows = [
        [f"q{t}", f"2025-01-{t % 28 + 1:02d}T00:00", *cells[t], "" if t % 5 == 0 else str(y[t])] for t in range(events)
    ]
    return ["event", "closes", *names, "outcome"], rows


def written(path, header, rows):
    path.write_text("\n".join(map(",".join, [header, *rows])) + "\n", encoding="utf-8")
    return str(path)


def test_threads_locale_zone_and_hash_seed_play_no_part(root, tmp_path):
    file = written(tmp_path / "crowd.csv", *crowd())
    base = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LC_ALL", "TZ"}}
    base |= {"PYTHONPATH": str(root / "src")} | dict.fromkeys(THREADS, "1")
    seen = set()
    for setting in SETTINGS:
        ran = subprocess.run([sys.executable, "-c", BOTH, file], env=base | setting, capture_output=True, check=True)
        assert b"event,probability" in ran.stdout
        assert b'"summary"' in ran.stdout
        seen.add((ran.stdout, ran.stderr))
    assert len(seen) == 1
