"""Results arrive whole, or not at all, and a reader who leaves early is no fault."""

import os
import stat

import pytest

from opinionpool.cli.output import destination


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "out.csv"
    with destination(str(path)) as out:
        out.write("half")
        out.flush()
        assert not path.exists()
        out.write(" é\n")
    assert path.read_bytes() == "half é\n".encode()
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def fail():
        with destination(str(path)) as out:
            out.write("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_permissions_are_those_of_other_files(tmp_path):
    (tmp_path / "plain").touch()
    with destination(str(tmp_path / "new")):
        pass
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "new").chmod(0o640)
    with destination(str(tmp_path / "new")):
        pass
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "there" / "real")
    with destination(str(tmp_path / "link")) as out:
        out.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "real").read_text() == "new"


def test_devices_are_written_to_as_they_are():
    with destination(os.devnull) as out:
        out.write("x")
    assert not os.path.isfile(os.devnull)
