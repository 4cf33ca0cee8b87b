"""``opinionpool open``: what it refuses, and what it begins with."""

import pytest

from opinionpool.cli import app as cli, pages as command
from opinionpool.page import handover, server
from opinionpool.page.session import start_of

from .test_handover import forecasts_file


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """What a page would be opened with."""
    monkeypatch.chdir(tmp_path)
    started = []

    class Recorded(server.Server):
        def run(self):
            self._socket.close()
            started.append(self)

    monkeypatch.setattr(server, "Server", Recorded)

    def run(*words):
        status = cli.run(["open", "--no-browser", *map(str, words)])
        return status, started[-1]._parts if started else None

    return run


def test_with_nothing_it_has_three_advisers(opened):
    status, (data, given) = opened()
    assert (status, data.forecasts, given) == (0, None, None)


def test_a_panel_file_brings_its_experts(opened, tmp_path):
    (tmp_path / "panel.toml").write_text("correlation = 0.3\n[experts.ann]\nauc = 0.8\n")
    status, (_, given) = opened("--panel", "panel.toml")
    assert status == 0
    assert [each.name for each in given.experts] == ["ann"]
    assert given.everyone.correlation.value == 0.3


def test_a_file_and_its_options_are_for_the_command_handed_over(opened, tmp_path):
    forecasts_file(tmp_path, ("win", "loss"))
    status, (data, _) = opened("file.csv", "--positive", "loss", "--exclude", "a", "--column", "event=event")
    assert status == 0
    assert data.forecasts.experts == ("b", "c")
    assert data.source.files == ("file.csv",)
    assert data.source.reading == ("--column", "event=event", "--positive", "loss", "--exclude", "a")


def test_a_saved_pool_answers_as_it_is(opened, tmp_path, capsys):
    forecasts_file(tmp_path)
    assert cli.run(["pool", "file.csv", "--save", "pool.json", "-o", "out.csv"]) == 0
    status, (data, given) = opened("--model", "pool.json")
    assert (status, given.prior) == (0, None)
    assert data.trained.experts == ("a", "b", "c")
    status, (data, given) = opened("file.csv", "--model", "pool.json")
    assert (status, given) == (0, None)
    assert len(data.forecasts.events) == 32


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--positive", "yes"], 2, "there is none"), (["--keep", "folder/kept.json"], 2, "no directory"),
        (["--keep", "file.csv", "file.csv"], 2, "read from"), (["--keep", "out.txt"], 2, "no file of assessments"),
        (["nowhere.csv"], 2, "no file nowhere.csv"), (["--port", "70000"], 2, "range"),
        (["--panel", "bad.toml"], 1, "not TOML"),
    ],
)  # fmt: skip
def test_what_it_refuses(opened, tmp_path, capsys, words, status, message):
    forecasts_file(tmp_path)
    (tmp_path / "bad.toml").write_text("correlation = ")
    (tmp_path / "out.txt").write_text("precious")
    assert opened(*words)[0] == status
    assert message in capsys.readouterr().err
    assert (tmp_path / "out.txt").read_text() == "precious"


def test_it_says_what_to_install(opened, monkeypatch, capsys):
    monkeypatch.setattr(command, "NEEDED", ("nothing_of_that_name",))
    assert opened()[0] == 1
    assert "pip install" in capsys.readouterr().err


def test_several_files_are_named_in_the_command(opened, tmp_path):
    rows = forecasts_file(tmp_path).read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join(rows[:50]) + "\n")
    (tmp_path / "two.csv").write_text("\n".join([rows[0], *rows[50:]]) + "\n")
    status, (data, _) = opened("one.csv", "two.csv")
    assert status == 0
    a = start_of(data, None)
    line = handover.command_line(a, data)
    assert line == "opinionpool explain one.csv two.csv q30"
