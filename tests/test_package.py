"""What ``import opinionpool`` offers, and what it must not load."""

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import opinionpool as op
from opinionpool import extras

HEAVY = ("click", "duckdb", "matplotlib", "narwhals", "numpy", "pandas", "polars", "rich", "scipy", "sklearn")
CORE = ("errors", "forecasts", "streams.stream", "model.panel", "estimators.files", "scoring.scores", "tables.read")


def loaded_by(statements: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after `statements`."""
    code = f"import json, sys\n{statements}\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name for name in json.loads(done.stdout) if name in HEAVY}


@pytest.mark.parametrize("name", sorted(op._HOME))
def test_each_public_name_is_that_of_its_module(name):
    assert getattr(op, name) is getattr(import_module(f"opinionpool.{op._HOME[name]}"), name)
    assert name in dir(op)
    assert name in op.__all__


def test_type_checkers_see_the_same_names(root):
    stub = ast.parse((root / "src" / "opinionpool" / "__init__.pyi").read_text())
    seen = {
        (node.module.removeprefix("opinionpool."), alias.asname)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen - {("version", "__version__"), ("opinionpool", "plots")} == {
        (module, name) for name, module in op._HOME.items()
    }


def test_every_error_is_public():
    module = import_module("opinionpool.errors")
    defined = {name for name, kind in vars(module).items() if getattr(kind, "__module__", "") == module.__name__}
    assert {name for name, home in op._HOME.items() if home == "errors"} == defined - {"MissingFileError"}


def test_no_public_name_is_that_of_a_module(root):
    """Importing the module would put it in the name's place."""
    folder = root / "src" / "opinionpool"
    modules = {path.stem for path in [*folder.glob("*.py"), *folder.glob("[a-z]*/")]}
    assert not modules & set(op._HOME)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'GausianPool'"):
        op.GausianPool  # noqa: B018


def test_importing_the_package_loads_nothing():
    assert loaded_by("import opinionpool") == set()


def test_the_core_needs_numpy_alone():
    names = [name for name, module in op._HOME.items() if module in CORE]
    assert loaded_by(f"from opinionpool import {', '.join(names)}") == {"numpy"}


REPOSITORY = {"url": "https://example.org/opinionpool.git", "vcs_info": {"vcs": "git", "commit_id": "0123abc"}}


class Installed:
    """A distribution that was installed from somewhere."""

    def __init__(self, source):
        self.source = source

    def read_text(self, name):
        return None if self.source is None or name != "direct_url.json" else json.dumps(self.source)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (None, ["opinionpool[plot]"]),
        ({"url": "file:///home/a%20b/opinionpool", "dir_info": {}}, ["/home/a b/opinionpool[plot]"]),
        ({"url": "file:///src/pool", "dir_info": {"editable": True}}, ["-e", "/src/pool[plot]"]),
        ({"url": "file:///tmp/opinionpool-1.whl", "archive_info": {}}, ["/tmp/opinionpool-1.whl[plot]"]),
        (REPOSITORY, ["opinionpool[plot] @ git+https://example.org/opinionpool.git@0123abc"]),
    ],
)
def test_the_command_names_the_same_place(monkeypatch, source, words):
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: Installed(source))
    assert shlex.split(extras.install("plot")) == ["python", "-m", "pip", "install", *words]
    if words[0].startswith("opinionpool"):
        assert Requirement(words[0]).extras == {"plot"}


def test_a_copy_of_the_repository(monkeypatch, root):
    def missing(_):
        raise PackageNotFoundError

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    assert Path(shlex.split(extras.install("plot"))[-1].removesuffix("[plot]")) == root


def test_extras_that_are_named_exist(root):
    known = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = set()
    for path in (root / "src").rglob("*.py"):
        named |= set(re.findall(r"\binstall\(['\"](\w+)['\"]\)", path.read_text(encoding="utf-8")))
    assert named == set(known)
