"""--panel: beliefs from a file, on every command that fits the Gaussian pool."""

import json

import pytest

from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.learn import learn

WIDE = """event,alice,bob,carol,outcome
a,0.8,0.7,0.9,1
b,0.2,0.4,0.3,0
c,0.6,0.7,0.4,1
d,0.3,0.1,0.2,0
e,0.7,0.6,0.8,
"""
SAID = [[0.8, 0.7, 0.9], [0.2, 0.4, 0.3], [0.6, 0.7, 0.4], [0.3, 0.1, 0.2], [0.7, 0.6, 0.8]]
PANEL = """correlation = { value = 0.4, worth = inf }
[experts.alice]
auc = 0.9
"""
BELIEFS = Beliefs(correlation=(0.4, float("inf")), experts={"alice": {"auc": 0.9}})


@pytest.fixture
def panel(file):
    return file(PANEL, "panel.toml")


def believed(outcomes=None):
    return learn(Forecasts.from_array(SAID, outcomes, experts=["alice", "bob", "carol"]), beliefs=BELIEFS)


def test_pool_answers_by_what_is_believed(file, panel, answers, command):
    records = answers("pool", file(WIDE), "--panel", panel)
    learned = believed([1, 0, 1, 0, None])
    assert [float(record["probability"]) for record in records] == pytest.approx(learned.pool(SAID), rel=1e-12)
    assert float(records[-1]["low"]) == pytest.approx(learned.interval(SAID)[0][-1], rel=1e-9)
    said = command("pool", "forecasts.csv", "--panel", panel, "--format", "json")
    assert json.loads(said.out)["summary"]["beliefs"] == {
        "correlation": {"value": 0.4, "worth": "inf"},
        "experts": {"alice": {"auc": {"value": 0.9, "worth": 20.0}}},
    }
    assert "beliefs in panel.toml: correlation 0.4 (assessed); 'alice': auc 0.9 (worth 20)\n" in said.err


def test_weights_of_other_pools_have_no_interval(file, answers):
    assert "weight_low" in answers("experts", file(WIDE))[0]
    assert "weight_low" not in answers("experts", "forecasts.csv", "--pool", "linear")[0]


def test_explain_and_compare_take_it_too(file, panel, command):
    said = command("explain", file(WIDE), "e", "--panel", panel)
    assert "beliefs in panel.toml" in said.err
    rows = "".join(f"e{i},0.{2 + 5 * (i % 2)},0.{3 + i % 5},0.{1 + i % 7},{i % 2}\n" for i in range(40))
    file(f"event,alice,bob,carol,outcome\n{rows}", "many.csv")
    plain = command("compare", "many.csv", "--pools", "gaussian", "--repeats", "1", "--format", "json")
    said = command("compare", "many.csv", "--pools", "gaussian", "--repeats", "1", "--format", "json", "--panel", panel)
    assert json.loads(said.out)["summary"]["beliefs"]["experts"]["alice"]["auc"]["value"] == 0.9
    assert json.loads(said.out)["pools"] != json.loads(plain.out)["pools"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("calibration = -1", "panel.toml: calibration: a value must be at least 0.01"),
        ("experts.alice.acc = 1", "panel.toml: experts.alice: there is no key 'acc'; did you mean 'auc'"),
        ("correlation = -0.9", "correlation: that of 3 experts must lie above -1/(N-1) = -0.5"),
        ('[experts."al\\u001b[31m"]\nx = 1', "there is no key 'x'"),
        ("experts.alice.auc = 90", "if 90% is meant, write 0.9"),
        ("experts.Alice.auc = 0.9", "something is believed of 'Alice', who made no forecast; 'alice' did"),
        ("worth = 20", "worth belongs to a belief, as in auc = { value = 0.8, worth = 50 }"),
    ],
)
def test_what_the_file_cannot_say(file, command, text, message):
    file(text, "panel.toml")
    said = command("pool", file(WIDE), "--panel", "panel.toml", status=1)
    assert said.out == ""
    assert message in said.err
    assert "\x1b" not in said.err
    assert message in " ".join(command("check", "forecasts.csv", "--panel", "panel.toml", status=1).out.split())


def test_what_check_proposes_has_the_beliefs(file, command):
    name = file("event,ann,bob,outcome\na,80%,60%,1\nb,30%,40%,0\n")
    file("auc = 0.8\n", "panel.toml")
    assert f"opinionpool pool {name} --panel panel.toml" in command("check", name, "--panel", "panel.toml").out
