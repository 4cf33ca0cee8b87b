"""What a release needs says the same everywhere: version, dependencies, Pythons; pages for others run."""

import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml

from opinionpool.version import __version__


@pytest.fixture(scope="module")
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def recipe(root):
    return yaml.safe_load((root / "conda" / "recipe.yaml").read_text())


def test_version_is_one(root, recipe):
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    assert citation["version"] == __version__ == recipe["context"]["version"]


def test_conda_asks_for_the_same_packages(project, recipe):
    asked = {name.replace(" ", "").replace("python-duckdb", "duckdb") for name in recipe["requirements"]["run"]}
    assert asked - {f"python{project['requires-python']}"} == set(project["dependencies"])


def test_workflow_runs_the_gate_on_the_oldest_and_the_newest_python(root, project):
    job = yaml.safe_load((root / ".github" / "workflows" / "ci.yml").read_text())["jobs"]["ci"]
    versions = re.findall(r"Python :: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
    assert job["strategy"]["matrix"]["python"] == [versions[0], versions[-1]]
    assert any(step.get("run") == ".ci/run" for step in job["steps"])


def test_documents_of_a_release_name_no_address(root):
    for name in ("RELEASING.md", "SECURITY.md", "SKILL.md"):
        assert "://" not in (root / name).read_text(encoding="utf-8")


def test_lines_of_r_run(root, tmp_path):
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("R is not installed")
    (block,) = re.findall(r"```r\n(.*?)```", (root / "docs" / "r.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block.count("\n") <= 15
    script = tmp_path / "lines.R"
    script.write_text(block, encoding="utf-8")
    there = subprocess.run([rscript, "-e", "library(reticulate)"], capture_output=True, check=False)
    if there.returncode:
        pytest.skip("reticulate is not installed")
    done = subprocess.run(
        [rscript, str(script)], env={"RETICULATE_PYTHON": sys.executable}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_oldest_releases_are_those_allowed(root):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # Spark is tested apart, with the releases of requirements/spark.txt.
    extras = [each for name, each in project["optional-dependencies"].items() if name != "spark"]
    wanted = [*project["dependencies"], *(each for extra in extras for each in extra)]
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)", (root / "requirements" / "lowest.in").read_text(), re.MULTILINE))
    locked = dict(re.findall(r"^([\w-]+)==([\d.]+)", (root / "requirements" / "lowest.txt").read_text(), re.MULTILINE))
    for each in wanted:
        name, least = re.fullmatch(r"([\w-]+)[>=]=([\d.]+)", each).groups()
        assert re.fullmatch(rf"{re.escape(least)}(\.0)*", pinned[name]), each
        assert locked[name] == pinned[name]
