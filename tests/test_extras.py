"""The command that installs an extra works where opinionpool was installed from."""

import json
import re
import shlex
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from opinionpool import extras

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
