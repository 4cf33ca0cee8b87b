"""``opinionpool compare`` as people and programs meet it."""

import json

import numpy as np
import pytest

from opinionpool.pools.registry import POOLS
from opinionpool.report.comparison import verdict_lines
from opinionpool.scoring.compare import Comparison, ExpertScore, PoolScore
from opinionpool.scoring.intervals import Difference
from tests.panels import panel

# Without times and levels.
USUAL = {name for name, pool in POOLS.items() if not (pool.timed or pool.of_levels)}


def crowd(events=60, experts=3, times=False):
    """A wide table of experts who share an error, with times if they are asked for."""
    f = panel(events, experts, signal=1.5, own=1.5)
    header = ["event", *(f"e{i}" for i in range(experts)), "outcome", *["closes"] * times]
    rows = [
        [f"q{t}", *(f"{x:.4f}" for x in f.X[t]), str(y), *[f"2025-01-{t % 28 + 1:02d}"] * times]
        for t, y in enumerate(f.outcomes)
    ]
    return "\n".join(",".join(row) for row in [header, *rows]) + "\n"


AVERAGE = ("average", (0.0, 0.0), (-0.2, 0.1))
FAST = ("--pools", "gaussian,linear", "--repeats", "1")


class TestTable:
    def test_pools_then_experts_then_what_follows(self, file, command, monkeypatch):
        monkeypatch.setenv("COLUMNS", "100")
        said = command("compare", file(crowd()), "--format", "table", "--repeats", "1")
        lines = said.out.splitlines()
        assert lines[0].split()[:2] == ["pool", "score"]
        assert {line.split()[0] for line in lines[1 : 1 + len(USUAL)]} == USUAL
        assert all(len(line) <= 100 for line in lines)
        assert next(line for line in lines if line.startswith("average")).endswith("reference")
        assert [line.split()[0] for line in lines[len(USUAL) + 3 : len(USUAL) + 6]] != []
        assert sum(line.startswith(("e0 ", "e1 ", "e2 ")) for line in lines) == 3
        text = " ".join(line.strip() for line in lines)
        assert "best" in text
        assert (
            "60 events scored by pools that had not learned from them (5-fold cross-validation over events, done once"
            in text
        )
        assert "95% intervals that hold for all rows of a table at once, from 60 events" in text
        assert said.err.startswith("60 events, 60 resolved; 3 experts")

    def test_of_many_experts_the_ends_are_shown(self, file, command):
        lines = command("compare", file(crowd(experts=30)), *FAST, "--format", "table").out.splitlines()
        assert "(20 experts between the first and the last 5 are in CSV and JSON)" in lines
        assert sum(line.startswith("e") and line[1].isdigit() for line in lines) == 10

    def test_one_event_is_one(self, file, command):
        rows = "".join(f"e{t},0.{3 + t % 3},0.6,2025-01-0{1 + t // 9},{t % 2}\n" for t in range(10))
        said = command("compare", file("event,a,b,time,outcome\n" + rows), "--by-time", *FAST, "--format", "table")
        assert "1 event is too few to say" in said.out or "best on this 1 event." in said.out
        assert "1 event scored by pools" in said.out
        assert "note: 1 block instead of 5" in said.err


class TestVerdicts:
    """Sentences for made-up results, so that each case is met."""

    @staticmethod
    def told(*pools, experts=()):
        """`pools` are a name and the limits of its gain on the average and on the best."""
        rows = [
            PoolScore(name, 0.5, 0.1, 0.4, 0.1, 0.9, 0.6, Difference(sum(gain) / 2, *gain), Difference(-0.1, *behind))
            for name, gain, behind in pools
        ]
        found = Comparison(tuple(rows), experts, "gaussian", 80, 80, {}, {}, "random", 5, 3, "event", 80, ())
        return " ".join(verdict_lines(found))

    @pytest.mark.parametrize(
        ("pools", "said"),
        [
            ([("linear", (0.01, 0.09), (0.0, 0.0)), ("log", (-0.1, 0.2), (-0.1, 0.1)), AVERAGE,
              ("median", (-0.3, -0.1), (-0.4, -0.2))],
             "linear is best here, and better than the simple average: +0.050 (+0.010 to +0.090). Worse than the "
             "simple average: median. Not firm, as two other outcomes could leave it open: linear, "
             "median. Worse than linear: median. Not distinguishable from it: log."),
            ([("log", (-0.1, 0.2), (0.0, 0.0)), AVERAGE],
             "log is best here, but on 80 events no pool can be distinguished from the simple average."),
            ([("log", (-0.1, 0.2), (0.0, 0.0)), ("linear", (0.01, 0.03), (-0.1, 0.1)), AVERAGE],
             "log is best here, but on 80 events it cannot be distinguished from the simple average. "
             "Better than the simple average: linear. Not firm, as two other outcomes could leave it open: linear."),
            ([("average", (0.0, 0.0), (0.0, 0.0)), ("log", (-0.3, -0.1), (-0.4, -0.05))],
             "The simple average is best on these 80 events. Worse than the simple average: log. Not firm, as two "
             "other outcomes could leave it open: log."),
        ],
    )  # fmt: skip
    def test_pools(self, pools, said):
        assert self.told(*pools) == said

    def test_experts(self):
        experts = tuple(
            ExpertScore(name, 9, 0.2, 0.1, 0, Difference(0.1, *limits))
            for name, limits in [("ann", (0.05, 0.2)), ("bob", (-0.1, 0.3)), ("cat", (-0.4, -0.1))]
        )
        told = self.told(("average", (0.0, 0.0), (0.0, 0.0)), experts=experts)
        assert told.endswith(
            "Of 3 experts, each on the events that it answered itself: 1 better (ann) than the gaussian pool, 1 worse, "
            "1 not distinguishable."
        )


class TestForPrograms:
    def test_the_seed_makes_it_the_same_again(self, file, command):
        name = file(crowd(events=20))
        one, same, other = (command("compare", name, *FAST, "--seed", seed).out for seed in (0, 0, 1))
        assert one == same != other


class TestSplits:
    def test_forward_in_time(self, file, command):
        name = file(crowd(times=True))
        random = command("compare", name, *FAST)
        assert (
            "note: the events have dates of closing or resolving, and random folds learn from later ones too; --by-time"
            in random.err
        )
        said = command("compare", name, *FAST, "--by-time", "--gap", "2d", "--format", "json")
        summary = json.loads(said.out)["summary"]
        assert (summary["by"], summary["unit"], summary["events"]) == ("time", "date", 60)
        assert summary["scored"] < 60
        assert f"note: the first {60 - summary['scored']} of 60 events in time are learned from and never" in said.err
        assert "random folds" not in said.err


@pytest.mark.parametrize(
    ("name", "columns"), [("compare", ["score", "in-sample", "gain"]), ("experts", ["bias", "weight"])]
)
def test_help_sets_out_the_columns(command, name, columns):
    lines = command(name, "--help").out.splitlines()
    for column in columns:
        assert any(line.startswith(f"  {column} ") for line in lines)


def test_a_column_is_a_rival_and_no_expert(file, command):
    rows = "".join(
        f"q{t},{0.3 + 0.4 * (t % 2)},{0.4 + 0.3 * (t % 2)},{0.2 + 0.6 * (t % 2)},{t % 2}\n" for t in range(40)
    )
    name = file("event,ann,bob,market,outcome\n" + rows)
    columns = [word for each in ("ann", "bob", "market") for word in ("--column", f"probability={each}")]
    options = [*columns, *FAST, "--format", "json"]
    found = json.loads(command("compare", name, *options, "--rival", "market").out)
    score = next(pool["score"] for pool in found["pools"] if pool["pool"] == "market")
    assert score == pytest.approx(1 + np.log2(0.8))
    assert [expert["expert"] for expert in found["summary"]["experts"]] == ["ann", "bob"]


class TestOverLives:
    def test_at_a_horizon_and_over_the_whole_life(self, file, command):
        lines = ["event,expert,probability,time,closes,outcome"]
        for t in range(40):
            for i in range(3):
                for day, p in ((1, 0.5), (5 + i, 0.3 + 0.4 * (t % 2)), (20, 0.1 + 0.8 * (t % 2))):
                    if (t + i + day) % 4:
                        lines.append(f"q{t},e{i},{p:.2f},2025-03-{day:02},2025-03-21,{t % 2}")
        options = [file("\n".join(lines) + "\n"), "--duplicates", "last", *FAST]
        early = command("compare", *options, "--horizon", "7d", "-v").err
        assert "of 40 resolved events had a forecast 7 days before closing" in early
        table = command("compare", *options, "--format", "table", "--time-averaged")
        assert "averaged over each event's life until it closed" in " ".join(table.out.split())
        assert "coverage" in table.out
