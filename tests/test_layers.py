"""The layers of pyproject.toml hold, and what breaks them is found."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LINT = "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache', '--no-logo'])"


def lint(folder: Path, source: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(source), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-c", LINT], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_layers_hold(root):
    done = lint(root, root / "src")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tree_that_contributors_see_names_every_package(root):
    shown = (root / "CONTRIBUTING.md").read_text().partition("```text\n")[2].partition("```")[0]
    folder = root / "src" / "opinionpool"
    places = {path.stem for path in [*folder.glob("[a-z]*.py"), *folder.glob("[a-z]*/")]} - {"__pycache__"}
    assert {place for place in places if re.search(rf"\b{place}\b", shown)} == places


@pytest.mark.parametrize(
    "broken",
    [
        [
            ("logodds", "from opinionpool.forecasts import Forecasts", "opinionpool.logodds is not allowed to import"),
            ("logodds", "from opinionpool import Panel", "opinionpool.logodds -> opinionpool"),
            ("forecasts", "import scipy.special", "opinionpool.forecasts -> scipy"),
            ("errors", "import pandas", "opinionpool.errors -> pandas"),
            ("forecasts", "import rich", "opinionpool.forecasts -> rich"),
        ],
        [("stray", "", "not listed as layers")],
    ],
    ids=["imports", "a module without a place"],
)
def test_what_breaks_the_layers_is_found(root, tmp_path, broken):
    shutil.copytree(
        root / "src" / "opinionpool", tmp_path / "opinionpool", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(root / "pyproject.toml", tmp_path)
    for module, line, _ in broken:
        with (tmp_path / "opinionpool" / f"{module}.py").open("a") as file:
            file.write(f"\n{line}\n")
    done = lint(tmp_path, tmp_path)
    assert done.returncode == 1
    assert all(told in done.stdout for *_, told in broken)
