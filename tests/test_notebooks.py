"""The notebooks of `examples` print what they show.

``python tests/test_notebooks.py`` writes what they print now into them.
"""

import ast
import contextlib
import io
import json
import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent / "examples"


def shown(source, names):
    """What a cell prints, and the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs = []
    if out.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": out.getvalue().splitlines(keepends=True)})
    if value is not None:
        outputs.append(
            {
                "data": {"text/plain": repr(value).splitlines(keepends=True)},
                "execution_count": None, "metadata": {}, "output_type": "execute_result",
            }
        )  # fmt: skip
    return outputs


def refreshed(path, folder):
    """The notebook with what its cells show now, run in `folder` beside the other examples."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for example in HERE.glob("*.py"):
        (folder / example.name).write_bytes(example.read_bytes())
    names = {}
    with contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = shown("".join(cell["source"]), names)
    return notebook


@pytest.mark.parametrize("name", ["judges", "tournament"])
def test_notebook_shows_what_it_prints(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    path = HERE / f"{name}.ipynb"
    assert refreshed(path, tmp_path) == json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    import sys
    import tempfile

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for found in sorted(HERE.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as there:
            sys.path.insert(0, there)
            made = refreshed(found, Path(there))
            sys.path.remove(there)
        found.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
