"""What is handed over: the command answers what the page answers, to the last digit."""

import json
import math
import shlex
import subprocess
import tomllib
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from opinionpool.cli import app as cli
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs, ExpertBeliefs, beliefs_of_mapping
from opinionpool.page import handover
from opinionpool.page.answer import PageData, Source, answer
from opinionpool.page.assessment import Assessment, Expert, acted, example, from_dict, to_dict, to_toml, with_beliefs
from opinionpool.page.session import Look, PageInputs, start_of
from opinionpool.streams.trained import TrainedPool

WHEN = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
HOSTILE = [
    "<script>alert(1)</script>", "=1+1", "NA", 'O\'Hara "x" \\', "ärzte, 医者", "a;b|c:d%", "--prior", "true", "7",
]  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """The answer of a command line, in the folder where the files lie."""
    monkeypatch.chdir(tmp_path)

    def call(line):
        words = shlex.split(line)
        assert words[0] == "opinionpool"
        status = cli.run([words[1], "--format", "json", *words[2:]])
        out, err = capsys.readouterr()
        assert status == 0, err
        return json.loads(out)["summary"]["probability"]

    return call


def hand_over(a, data, folder):
    """Write all files but the report, and give the command line and the page's answer."""
    found = answer(a, data)
    for name in handover.names(a, data, found):
        if name != handover.REPORT:
            (folder / name).write_bytes(handover.content(name, PageInputs(a, Look(), data, found), found, WHEN))
    return handover.command_line(a, data), found


def same(probability, found):
    p = np.atleast_1d(found.why.probability).tolist()
    given = [probability] if len(p) == 1 else list(probability.values())
    return given == p


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_binary_panel(run, tmp_path, draws):
    names = draws.draw(st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=6, unique=True))
    share, feature = st.floats(0.0, 1.0), st.floats(0.3, 2.5)
    worth = st.sampled_from([3.0, 20.0, 77.7, math.inf])
    experts = []
    for key, name in enumerate(names, 1):
        own = ExpertBeliefs(
            auc=draws.draw(st.none() | st.tuples(st.floats(0.55, 0.95), worth)),
            calibration=draws.draw(st.none() | st.tuples(feature, worth)),
            bias=draws.draw(st.none() | st.tuples(st.floats(-1.5, 1.5), worth)),
        )
        experts.append(Expert(key, name, draws.draw(st.none() | share.map(lambda p: (p,))) if key > 1 else (0.3,), own))
    a = Assessment(
        draws.draw(st.sampled_from(["Q?", "-q", "=1+1", "Größe “x” <b>"])),
        experts=tuple(experts),
        everyone=Beliefs(correlation=draws.draw(st.none() | st.tuples(st.floats(0.0, 0.9), worth))),
        prior=(draws.draw(st.floats(0.01, 0.99)),),
        base_rate=draws.draw(st.none() | st.floats(0.01, 0.99).map(lambda p: (p,))),
    )
    line, found = hand_over(a, PageData(), tmp_path)
    assert same(run(line), found), line


def test_who_is_not_assessed_is_assumed_and_the_command_says_the_same(run, tmp_path):
    a = acted(example(), {"do": "add", "value": "Dana 60%"})
    line, found = hand_over(a, PageData(), tmp_path)
    assert same(run(line), found)
    assert "# assumed" in (tmp_path / "panel.toml").read_text()
    report = handover.content(handover.REPORT, PageInputs(a, Look(), PageData(), found), found, WHEN).decode()
    assert f"{a.assumed['auc'].value:.2f} (assumed)" in report


def test_nothing_handed_over_would_move_a_terminal(tmp_path):
    f = Forecasts.from_array([[0.2, 0.7]], [None], events=["q\x1b[31m"], experts=["a", "b"])
    data = PageData(f, source=Source(("file.csv",)))
    a = start_of(data, None)
    line, _ = hand_over(a, data, tmp_path)
    assert line == r"opinionpool explain file.csv $'q\x1b[31m'"
    assert "\x1b" not in (tmp_path / "command.txt").read_text()
    shell = subprocess.run(["bash", "-c", f"printf %s {line.split()[-1]}"], capture_output=True, check=True)
    assert shell.stdout.decode() == f.events[0]


def test_three_outcomes(run, tmp_path):
    a = acted(example(), {"do": "outcomes", "value": "north, 10, =x"})
    for expert in (1, 2):
        for place, value in enumerate((61, 7.3)):
            a = acted(a, {"do": "forecast", "expert": expert, "class": place, "value": value + expert})
    a = acted(a, {"do": "prior", "class": 2, "value": 41})
    a = acted(a, {"do": "base_rate", "class": 0, "value": 13})
    line, found = hand_over(a, PageData(), tmp_path)
    assert found.why.experts == ("Ana, lawyer", "Ben, banker")
    assert same(run(line), found)
    report = handover.content(handover.REPORT, PageInputs(a, Look(), PageData(), found), found, WHEN).decode()
    assert "The same for =x" in report
    assert "the event is this frequent: " in report


def forecasts_file(folder, classes=("no", "yes"), prior=False):
    """A file with 30 resolved events and two open ones, of which expert c has no forecast on the last."""
    rng = np.random.default_rng(5)
    rows = []
    for t in range(32):
        y = int(rng.integers(2))
        own = round(float(rng.uniform(0.2, 0.8)), 3)
        for i, name in enumerate("abc"):
            q = 1.0 / (1.0 + math.exp(-(1.2 * (2 * y - 1) + rng.normal(0, 1.3 + 0.2 * i))))
            if t == 31 and name == "c":
                continue
            row = {"event": f"q{t}", "expert": name, "probability": q, "outcome": classes[y] if t < 30 else None}
            rows.append(row | ({"prior": own} if prior else {}))
    path = folder / "file.csv"
    keys = list(rows[0])
    lines = [",".join("" if row[key] is None else str(row[key]) for key in keys) for row in rows]
    path.write_text("\n".join([",".join(keys), *lines]) + "\n")
    return path


def read(path, *options):
    from opinionpool.tables.read import read_forecasts

    positive = options[options.index("--positive") + 1] if "--positive" in options else None
    return read_forecasts(path, positive=positive)


@pytest.mark.parametrize(("classes", "prior"), [(("no", "yes"), False), (("win", "loss"), True)])
def test_a_file_as_it_is_and_altered(run, tmp_path, classes, prior):
    path = forecasts_file(tmp_path, classes, prior)
    options = ("--positive", classes[1]) if classes[1] == "loss" else ()
    data = PageData(read(path, *options), source=Source(("file.csv",), options))
    a = start_of(data, None)
    assert a.question == "q30"
    line, found = hand_over(a, data, tmp_path)
    assert line == shlex.join(["opinionpool", "explain", *options, "file.csv", "q30"])
    assert same(run(line), found)
    steps = [
        {"do": "worth", "expert": 1, "value": "50"},
        {"do": "accuracy", "expert": 1, "unit": "auc", "value": 0.9},
        {"do": "correlation", "value": 0.3},
        {"do": "prior", "value": 37},
        {"do": "base_rate", "value": 8},
        {"do": "forecast", "expert": 2, "value": 12.3},
        {"do": "add", "value": "Dana: 81%"},
        {"do": "clear", "expert": 3},
    ]
    for step in steps:
        a = acted(a, step)
        line, found = hand_over(a, data, tmp_path)
        assert same(run(line), found), line


def test_a_saved_pool(run, tmp_path):
    from opinionpool.estimators.files import load, save

    path = forecasts_file(tmp_path)
    forecasts = read(path)
    save(TrainedPool.fit("gaussian", forecasts), tmp_path / "saved.json")
    state = TrainedPool.of(load(tmp_path / "saved.json")).learned
    data = PageData(forecasts, state, None, Source(("file.csv",), (), "saved.json"))
    a = start_of(data, None)
    for step in ({"do": "prior", "value": 30}, {"do": "forecast", "expert": 1, "value": 66}):
        line, found = hand_over(a, data, tmp_path)
        assert same(run(line), found), line
        a = acted(a, step)
    line, found = hand_over(a, data, tmp_path)
    assert same(run(line), found), line


def test_the_panel_file_says_the_same():
    beliefs = Beliefs(
        calibration=0.9,
        correlation=(1 / 3, 12.5),
        extremes=4.0,
        experts={
            name: {"relative_accuracy": 2.0} if i % 2 else {"auc": (0.1 + 0.6, 7), "bias": -0.25}
            for i, name in enumerate([*HOSTILE, "tab\tnew\nline\x7f"])
        },
    )
    assert beliefs_of_mapping(tomllib.loads(to_toml(beliefs))).to_dict() == beliefs.to_dict()
    a = with_beliefs(example(), Beliefs(correlation=0.2, experts={"Dana": {"auc": 0.9}}))
    assert [each.name for each in a.experts][-1] == "Dana"
    assert tomllib.loads(handover.panel_file(a, WHEN))["experts"]["Dana"]["auc"]["value"] == 0.9
    assert from_dict(json.loads(json.dumps(to_dict(a)))) == a


def test_the_report_escapes_and_tells_who_and_when():
    a = acted(example(), {"do": "question", "value": "<script>alert(1)</script>"})
    a = acted(a, {"do": "name", "expert": 1, "value": "<img src=x onerror=alert(2)>"})
    a = acted(a, {"do": "assessor", "value": "Jo & Kim"})
    found = answer(a, PageData())
    page = handover.content(handover.REPORT, PageInputs(a, Look(), PageData(), found), found, WHEN).decode()
    assert "<script" not in page
    assert "<img" not in page
    assert "Jo &amp; Kim on 2026-05-04 at 09:30 UTC" in page
    assert f"{float(found.why.probability)!r}" in page
