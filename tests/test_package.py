"""What ``import opinionpool`` offers, and what it must not load."""

import ast
import json
import subprocess
import sys
from importlib import import_module

import pytest

import opinionpool as op

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
