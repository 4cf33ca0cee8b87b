"""What commands refuse: one message on standard error, the status for it, and nothing printed or written."""

import shlex

import pytest

from opinionpool.cli import app as cli

FILES = {
    "f.csv": "event,alice,bob,carol,outcome\nqa,0.8,0.7,0.9,1\nqb,0.2,0.4,0.3,0\nqc,0.6,0.7,,1\nqd,0.3,0.1,0.2,\n",
    "open.csv": "event,ann,bob\nx,0.7,0.6\ny,0.4,0.1\n",
    "three.csv": "event,expert,class,probability\nx,ann,a,0.5\nx,ann,b,0.3\nx,ann,c,0.2\n",
    "panel.toml": "[experts.alice]\nauc = 0.9\n",
    "nobody.toml": "correlation = 0.5\n",
}
USAGE = [
    ("pool f.csv --prior 0", "does not lie strictly between 0 and 1"), ("pool f.csv --prior 20", "20%"),
    ("pool f.csv --prior x", "not a number"), ("pool f.csv --prior 0.2 --prior 0.3", "one number"),
    ("pool f.csv --prior maybe=0.2", "not a class"), ("pool f.csv --pool gausian", "did you mean 'gaussian'?"),
    ("pool f.csv --prior 0_1.0", "not a number"), ("pool f.csv --prior ０.５", "not a number"),
    ("pool f.csv --include dave", "dave"), ("pool f.csv --exclude dave", "dave"),
    ("pool f.csv --include alice --exclude alice", "no expert is left"), ("pool f.csv --duplicates first", "first"),
    ("pool f.csv --as-of soon", "--as-of"), ("pool f.csv --decimal ';'", ";"),
    ("pool f.csv --encoding klingon", "klingon"), ("pool f.csv --column event", "ROLE=NAME"),
    ("pool f.csv --column colour=red", "colour"),
    ("pool f.csv --column prior=event --column prior=alice", "prior is named twice"),
    ("pool f.csv --column event= --column event=alice", "event is given no column, and one too"),
    ("pool f.csv --silence 2", "silence is a probability"), ("pool f.csv --dates ymd", "--dates can be dmy"),
    ("pool f.csv --silence loud", "silence is a probability"),
    ("pool f.csv --unit alice=odds", "a unit is percent or fraction, and that of 'alice' is 'odds'"),
    ("pool f.csv --outcomes nowhere.csv", "nowhere.csv"), ("pool f.csv --format xml", "xml"),
    ("pool f.csv --output f.csv", "read from"), ("pool f.csv --output .", "directory"),
    ("pool f.csv --output out.xlsx", ".csv, .json or .txt, or to a name without an ending, and not as .xlsx"),
    ("pool f.csv --output out.csv.gz", "not as .gz"), ("pool f.csv --output out.parquet", "not as .parquet"),
    ("pool f.csv --output no/where.csv", "no directory"), ("pool f.csv --frobnicate", "frobnicate"),
    ("pool f.csv -o ''", "name of the file to write is empty"), ("pool f.csv --classes red", "two or more"),
    ("pool f.csv -o panel.toml --format csv --panel panel.toml", "is read from"),
    ("pool f.csv --weight alice=2", "--pool linear"), ("pool f.csv --pool linear --weight alice", "EXPERT=W"),
    ("pool f.csv --pool linear --weight alice=many", "EXPERT=W"),
    ("pool f.csv --pool linear --weight alice=1 --weight alice=2", "two weights"),
    ("pool f.csv --panel panel.toml --pool linear",
     "--panel says what the gaussian pool is to believe, and the pool is linear"),
    ("pool f.csv --panel none.toml", "does not exist"),
    ("pool f.csv --save ''", "name of the file to write is empty"), ("pool f.csv --save -", "takes the name of a file"),
    ("pool f.csv --save f.csv", "cannot be"), ("pool f.csv --model m.json --save m.json", "cannot be"),
    ("pool f.csv --save x.json -o x.json", "cannot be"), ("pool f.csv --save x.json -o ./x.json", "cannot be"),
    ("pool f.csv --save no/such/place.json", "cannot be"), ("pool f.csv --model m.json --panel panel.toml", "--panel"),
    ("pool f.csv --model m.json --pool trimmed", "--pool is trimmed, and the pool in m.json is gaussian"),
    ("pool f.csv --model m.json --save n.json --prior 0.2", "--prior is settled"),
    ("experts f.csv --model m.json --panel panel.toml", "--model has begun"),
    ("compare f.csv --panel panel.toml --pools linear,log", "it is not among --pools"),
    ("compare f.csv --by-time", "cannot be ordered in time"), ("compare f.csv --by-group", "there are no groups"),
    ("compare f.csv --by-time --by-group", "exclude each other"), ("compare f.csv --gap 3", "forward in time"),
    ("compare f.csv --by-time --gap soon", "a gap is a span of time"), ("compare f.csv --folds 0", "--folds"),
    ("compare f.csv --pools gaussian,mean", "no pool is called 'mean'"), ("compare f.csv --repeats 0", "--repeats"),
    ("compare f.csv --folds 1", "at least 2 folds"), ("compare f.csv --rival mark", "no column or expert is called so"),
    ("compare f.csv --horizon 7d --time-averaged", "give one of the two"),
    ("report f.csv", "Missing option '-o'"), ("report f.csv -o page.csv", "ends in .html"),
    ("report f.csv -o nowhere/page.html", "there is no directory"), ("report f.csv -o page.html --pool no", "no"),
    ("report f.csv -o page.html --by-time --by-group", "exclude each other"),
    ("report f.csv -o page.html --by-time", "--column time=NAME"), ("value", "give a FILE of forecasts"),
    ("value f.csv --experts 3", "--experts says how many"), ("value --experts 3 --prior 1", "prior"),
    ("explain f.csv", "EVENT"), ("explain f.csv Qa", "no event is called 'Qa'; did you mean 'qa'?"),
    ("diff m.json m.json --percent", "--percent says how to read files, and there are none"),
    ("diff m.json m.json -o m.json", "is read from"), ("paper -o f.csv", "is not a directory"),
    ("paper -o ''", "-o needs the name of a folder"),
]  # fmt: skip
DATA = [
    ("pool f.csv --pool linear --weight alice=1", "'bob' has none"),
    ("pool f.csv --pool linear --weight alice=-1 --weight bob=1 --weight carol=1", "at least 0"),
    ("pool f.csv --model f.csv", "cannot be read as a saved pool"),
    ("diff f.csv m.json", "cannot be read as a saved pool"),
    ("compare open.csv", "takes at least 2"), ("rate f.csv --pool linear", "does not say how sure it is"),
    ("explain f.csv qa --pool median", "the median pool's answer is not a sum"), ("value three.csv", "two classes"),
    ("value --panel nobody.toml", "--experts N"),
]  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The bytes of a pool that has learned from ``f.csv``."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "f.csv").write_text(FILES["f.csv"])
    assert cli.run(["pool", str(folder / "f.csv"), "--save", str(folder / "m.json")]) == 0
    return (folder / "m.json").read_bytes()


@pytest.mark.parametrize(("line", "told"), USAGE + DATA)
def test_one_message_and_nothing_written(file, command, tmp_path, saved, line, told):
    for name, content in {**FILES, "m.json": saved}.items():
        file(content, name)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    status = 2 if (line, told) in USAGE else 1
    said = command(*shlex.split(line), status=status)
    assert said.out == ""
    (message,) = (part for part in said.err.splitlines() if part.startswith("opinionpool: error: "))
    assert told in message
    if status == 2:
        assert said.err.splitlines()[-1] == f"Try 'opinionpool {line.split()[0]} --help'."
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
