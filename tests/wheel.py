"""The main job with an installed wheel, in an environment that has nothing else: ``PYTHON tests/wheel.py [paper]``.

Run by ``make test-wheel``, outside the project, so that nothing of the source tree is seen.
"""

from __future__ import annotations

import csv
import importlib.metadata
import importlib.resources
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FORECASTS = "event,alice,bob,outcome\na,0.8,0.7,1\nb,0.2,0.4,0\nc,0.6,0.7,1\nd,0.3,0.1,0\ne,0.7,0.6,\n"


def run(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the installed command."""
    command = [str(Path(sys.executable).with_name("opinionpool")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != status or "Traceback" in done.stderr:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done


def as_a_command(folder: Path) -> None:
    """Pool, check, compare and look at experts."""
    file = folder / "forecasts.csv"
    file.write_text(FORECASTS)
    rows = list(csv.DictReader(run("pool", file, "--format", "csv").stdout.splitlines()))
    assert [row["event"] for row in rows] == list("abcde")
    assert all(0 < float(row["probability"]) < 1 for row in rows)
    assert float(rows[4]["probability"]) > 0.5
    assert len(json.loads(run("experts", file, "--format", "json").stdout)["experts"]) == 2
    assert "can be pooled" in run("check", file).stdout
    assert "average" in run("compare", file, "--pools", "gaussian,average", "--format", "csv").stdout
    run("pool", folder / "missing.csv", status=2)


def as_a_library() -> None:
    """Fit, pool and score."""
    import numpy as np

    import opinionpool as op

    here = Path(op.__file__).resolve()
    assert "site-packages" in here.parts, here
    assert op.__version__ == importlib.metadata.version("opinionpool")
    X, y = np.array([[0.8, 0.7], [0.2, 0.4], [0.6, np.nan], [0.3, 0.1]]), [1, 0, 1, 0]
    for asset in ("page.js", "page.css", "icon.svg"):
        assert (importlib.resources.files("opinionpool.page") / "assets" / asset).is_file()
    for name in op.__all__:
        getattr(op, name)
    assert op.GaussianPool().fit(X, y).predict_proba(X).shape == (4, 2)
    # Both weights are 1 / (1 + 0.5): odds of (7/3 * 4)^(2/3).
    odds = (7 / 3 * 4) ** (2 / 3)
    assert abs(op.Panel.exchangeable(2, correlation=0.5).pool([0.7, 0.8]) - odds / (1 + odds)) < 1e-12


def main() -> None:
    """All of it; the paper too if its extra is installed."""
    folder = Path(tempfile.mkdtemp())
    try:
        as_a_command(folder)
        as_a_library()
        if "paper" in sys.argv[1:]:
            run("paper", "-o", folder / "paper", "--iterations", 1)
            assert (folder / "paper" / "index.html").stat().st_size > 10_000
        else:
            assert "pip install" in run("paper", "-o", folder / "paper", "--iterations", 1, status=1).stderr
    finally:
        shutil.rmtree(folder)
    extras = " ".join(sys.argv[1:]) or "without extras"
    print(f"opinionpool {importlib.metadata.version('opinionpool')} works, {extras}")


if __name__ == "__main__":
    main()
