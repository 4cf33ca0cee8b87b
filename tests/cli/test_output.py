"""Results arrive whole, or not at all, and a reader who leaves early is no fault."""

import os

from opinionpool.cli.output import destination


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
