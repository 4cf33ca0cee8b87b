"""Levels of scales: what they are taken as, from files, frames and arrays, and through every door."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.base import clone

import opinionpool as op
from opinionpool.cli import app as cli
from opinionpool.errors import ArgumentError, CellError, LayoutError, ProbabilityError, ShapeError
from opinionpool.learning.learn import learn
from opinionpool.pools.fit import fit_pool
from opinionpool.report.view import levels_by_outcome
from opinionpool.scales import Scale, scales_given
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.parts import open_parts

CLASSES = [each for name in op.__all__ if name.endswith("Pool") for each in [getattr(op, name)]]
SCORES = np.array([[1, 5], [2, 4], [5, 2], [4, np.nan], [3, 3], [1, 1]])
OUTCOMES = [0, 0, 1, 1, None, None]
WIDE = "event,ann,bob,cy,outcome\na,4,7,yes,1\nb,1,2,no,0\nc,5,10,yes,1\nd,2,,no,\ne,3,4,yes,0\n"
LONG = "event,judge,score,outcome\na,x,4,1\na,y,5,1\nb,x,1,0\nb,y,2,0\nc,x,3,\nc,y,4,\n"


def read(text, **options):
    return op.read_forecasts(io.BytesIO(text.encode()), **options)


class TestScale:
    @given(st.integers(-20, 20), st.integers(1, 30))
    def test_ranges_are_written_as_they_are_read(self, low, more):
        scale = Scale.of(f"{low}-{low + more}")
        assert Scale.of(str(scale)) == scale
        assert len(scale.levels) == more + 1
        p = scale.probabilities(range(low, low + more + 1))
        assert p == pytest.approx((np.arange(more + 1) + 0.5) / (more + 1))
        assert [scale.nearest(each) for each in p.tolist()] == list(scale.levels)

    def test_words_and_numbers(self):
        scale = Scale.of(("No", "unsure", "YES"))
        assert scale.probabilities([" no ", "yes", None, float("nan")])[:2] == pytest.approx([1 / 6, 5 / 6])
        assert np.isnan(scale.probabilities([None, float("nan"), ""])).all()
        assert Scale.of("1-5").probabilities(np.array([4.0, 5.0])) == pytest.approx([0.7, 0.9])
        assert Scale.of("0..3").levels == ("0", "1", "2", "3")
        assert Scale.of("1-5").probabilities(["4/5", "5", 3.0, " 2"]) == pytest.approx([0.7, 0.9, 0.5, 0.3])
        assert Scale.of("1-5").place("4/10") == -1

    @pytest.mark.parametrize("scale", ["0-1", "no,yes", (False, True), "f,t"])
    def test_no_false_and_0_are_one_word(self, scale):
        words = np.array([["no", "True"], [False, 1], ["0", "y"]], dtype=object)
        assert Scale.of(scale).probabilities(words) == pytest.approx(np.array([[0.25, 0.75]] * 3))
        assert Scale.of(scale).facing(["yes", "no"]).probabilities(["yes"]) == pytest.approx([0.25])

    @pytest.mark.parametrize("wrong", ["5", "5-1", "1-1", "1-500", "a,a", "a,", ("x",), 3, ("a=b", "c"), {"a", "b"}])
    def test_what_is_no_scale(self, wrong):
        with pytest.raises(ArgumentError):
            Scale.of(wrong)

    def test_what_is_no_level(self):
        with pytest.raises(ProbabilityError, match="'6' by ann is no level of the scale 1-5"):
            Scale.of("1-5").probabilities([1, 6], "ann")

    def test_of_all_and_of_some(self):
        assert list(scales_given("1-5")) == ["*"]
        assert str(scales_given({"ann": ("no", "yes")})["ann"]) == "no,yes"
        assert scales_given(None) == {}


class TestFiles:
    def test_scores_and_votes_beside_each_other(self):
        f = read(WIDE, scale={"ann": "1-5", "bob": "1-10", "cy": "no,yes"})
        assert f.experts == ("ann", "bob", "cy")
        expected = [[0.7, 0.65, 0.75], [0.1, 0.15, 0.25], [0.9, 0.95, 0.75], [0.3, np.nan, 0.25], [0.5, 0.35, 0.75]]
        np.testing.assert_allclose(f.X, expected)
        assert {name: str(scale) for name, scale in f.scales.items()} == {"ann": "1-5", "bob": "1-10", "cy": "no,yes"}

    def test_long_tables_with_scores_or_verdicts(self):
        f = read(LONG, scale="1-5")
        np.testing.assert_allclose(f.X, [[0.7, 0.9], [0.1, 0.3], [0.5, 0.7]])
        verdicts = LONG.replace("score", "verdict")
        for number, word in (("4", "yes"), ("5", "yes"), ("1", "no"), ("2", "no"), ("3", "no")):
            verdicts = verdicts.replace(f"x,{number},", f"x,{word},").replace(f"y,{number},", f"y,{word},")
        np.testing.assert_allclose(read(verdicts, scale=("no", "yes")).X, [[0.75, 0.75], [0.25, 0.25], [0.25, 0.75]])

    def test_one_column_by_judges_with_and_without_a_scale(self):
        text = (
            LONG.replace("score", "probability").replace("y,5", "y,0.8").replace("y,2", "y,0.3").replace("y,4", "y,NA")
        )
        f = read(text, scale={"x": "1-5"})
        np.testing.assert_allclose(f.X, [[0.7, 0.8], [0.1, 0.3], [0.5, np.nan]])
        with pytest.raises(CellError, match="'5' is not between 0 and 1"):
            read(text.replace("y,0.8", "y,5"), scale={"x": "1-5"})

    def test_a_level_outside_the_scale_names_line_judge_and_value(self):
        with pytest.raises(CellError, match=r"line 4, column 'ann'.*'5' is no level of the scale 1-4 of 'ann'"):
            op.read_forecasts(io.BytesIO(WIDE.encode()), scale={"ann": "1-4", "bob": "1-10", "cy": "no,yes"})
        assert np.isnan(read(LONG, scale="2-5", missing_values=["1"]).X[1, 0])

    @pytest.mark.parametrize("scale", ["1-3", {"x": "1-5", "y": "1-3"}])
    def test_so_it_is_in_one_column_of_scores(self, scale):
        with pytest.raises(
            CellError, match=r"line [23], column 'score'.*'[45]' is no level of the scale 1-3 of '[xy]'"
        ):
            read(LONG, scale=scale)
        np.testing.assert_allclose(
            read(LONG, scale={"x": "1-5", "y": "1-10"}).X, [[0.7, 0.45], [0.1, 0.15], [0.5, 0.35]]
        )

    @pytest.mark.parametrize(
        "text",
        [
            "event,x,y,outcome\na,3,.7,1\nb,2,.2,0\nc,5,.4,\n",
            "event,judge,probability,outcome\na,x,3,1\na,y,.7,1\nb,x,2,0\nb,y,.2,0\nc,x,5,\nc,y,.4,\n",
        ],
    )
    def test_a_scale_beside_probabilities_is_no_percentage(self, text, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "f.csv").write_text(text)
        assert cli.run(["pool", "f.csv"]) == 1
        error = capsys.readouterr().err
        assert error.count("percent") == 1
        assert "opinionpool pool f.csv --scale x=1-5" in error
        np.testing.assert_allclose(read(text, scale={"x": "1-5"}).X, [[0.5, 0.7], [0.3, 0.2], [0.9, 0.4]])

    LOG = "sample_id,epoch,score_qa,score_fact,human\n" + "".join(
        f"s{i},1,{'CI'[i % 3 == 0]},{'CI'[i % 2]},{i % 3 and 1}\n" for i in range(12)
    )

    def test_columns_of_verdicts_are_asked_about_and_read(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "f.csv").write_text(self.LOG)
        assert cli.run(["pool", "f.csv"]) == 1
        way = "--scale score_qa=I,C --scale score_fact=I,C"
        assert way in capsys.readouterr().err
        assert cli.run(["pool", "f.csv", *way.split(), "-q"]) == 0
        for scale in ("I,C", {"score_qa": "I,C", "score_fact": "I,C"}):
            f = read(self.LOG, scale=scale)
            assert f.experts == ("score_qa", "score_fact")
            assert f.outcomes.tolist() == [i % 3 and 1 for i in range(12)]
        (tmp_path / "g.csv").write_text(WIDE)
        assert cli.run(["pool", "g.csv", "--scale", "ann=1-5", "--scale", "bob=1-10"]) == 0
        assert "--scale cy=no,yes" in capsys.readouterr().err


ROLES = {"outcome": "gold"}
GRADES = (
    "item,judge,score,gold\na,x,3,3\na,y,2,3\nb,x,0,0\nb,y,1,0\nc,x,1,1\nc,y,2,1\nd,x,2,2\nd,y,2,2\ne,x,2,\ne,y,1,-1\n"
)


class TestGrades:
    """Outcomes that are levels of a scale too."""

    def test_at_least_a_grade(self):
        f = read(GRADES.replace("e,y,1,-1", "e,y,1,"), scale="0-3", at_least=2, columns=ROLES)
        assert f.classes == (0, 1)
        assert f.outcomes.tolist() == [1, 0, 0, 1, -1]
        np.testing.assert_allclose(f.X[0], [0.875, 0.625])
        assert read(GRADES, scale="0-3", at_least="2", columns=ROLES).outcomes.tolist() == [1, 0, 0, 1, -1]
        words = GRADES.replace(",-1", ",")
        for number, word in zip("0123", ("bad", "poor", "fair", "good"), strict=True):
            words = words.replace(f",{number}", f",{word}")
        f = read(words, scale="bad,poor,fair,good", at_least="Fair", columns=ROLES)
        assert f.outcomes.tolist() == [1, 0, 0, 1, -1]
        with pytest.raises(ArgumentError, match="--at-least is a number, or a level"):
            read(GRADES, scale="0-3", at_least="fair", columns=ROLES)

    @pytest.mark.parametrize("given", ["0-3", {"x": "0-3", "y": "0-3"}])
    def test_levels_are_classes_in_order(self, given):
        f = read(GRADES.replace(",-1", ","), scale=given, columns={**ROLES, "probability": "score"})
        assert f.classes == ("0", "1", "2", "3")
        assert f.outcomes.tolist() == [3, 0, 1, 2, -1]
        assert f.probabilities.argmax(axis=1).tolist() == [3, 2, 0, 1, 1, 2, 2, 2, 2, 1]
        # The log-probability falls by as much for each level between.
        steps = np.diff(np.log(f.X[0, 0]))
        assert steps == pytest.approx(np.full(3, steps[0]))
        levels = [[3, 2], [0, 1], [1, 2], [2, 2], [2, 1]]
        g = op.Forecasts.from_array(levels, [3, 0, 1, 2, None], scale="0-3")
        assert g.classes == (0, 1, 2, 3)
        np.testing.assert_allclose(g.X, f.X)
        assert op.Forecasts.from_array(levels, [1, 0, 0, 1, None], scale="0-3").X.shape == (5, 2)

    def test_probabilities_are_no_levels_of_classes(self):
        text = "item,x,y,gold\na,.8,3,3\nb,.1,0,0\nc,.2,1,1\n"
        with pytest.raises(LayoutError, match="outcomes are levels of the scale 0-3, and 'x' gives probabilities"):
            read(text, scale={"y": "0-3"}, columns={**ROLES, "event": "item", "probability": ("x", "y")})

    def test_ordered_classes_predict_better_than_classes_without_an_order(self):
        rng = np.random.default_rng(0)
        latent = rng.normal(size=500)
        gold = np.digitize(latent, [-0.8, 0.1, 0.9])
        scores = np.digitize(latent[:, None] + 0.9 * rng.normal(size=(500, 4)), [-0.8, 0.1, 0.9])
        known = [int(c) if t < 60 else None for t, c in enumerate(gold)]
        f = op.Forecasts.from_array(scores, known, scale="0-3")
        plain = replace(f, probabilities=np.where(f.probabilities == f.probabilities.max(1, keepdims=True), 0.7, 0.1))
        p = [op.GaussianPool().fit(each).predict_proba(each)[60:] for each in (f, plain)]
        mine, other = (-np.log(each[np.arange(440), gold[60:]]).mean() for each in p)
        assert mine < other


VERDICTS = (
    "item,judge,verdict,winner\nm,x,A>B,A\nm,y,A,A\nn,x,tie,B\nn,y,B>A,B\no,x,A=B,model_a\no,y,B,A\np,x,A,\np,y,a,\n"
)


class TestVerdicts:
    def test_preferences(self):
        f = read(VERDICTS)
        assert f.classes == ("B", "A")
        assert f.outcomes.tolist() == [1, 0, 1, -1]
        np.testing.assert_allclose(f.X, [[5 / 6, 5 / 6], [0.5, 1 / 6], [0.5, 1 / 6], [5 / 6, 5 / 6]])
        renamed = VERDICTS.replace("verdict", "said")
        np.testing.assert_array_equal(read(renamed, columns={"verdict": "said"}).X, f.X)
        (note,) = (note for note in f.notes if note.code == "verdicts")
        assert note.text == "column 'verdict' holds verdicts, and no probabilities: levels of the scale 'B,tie,A'"

    TIED = VERDICTS.replace("B>A,B", "B>A,tie").replace("tie,B", "tie,tie")

    def test_ties_are_half_an_outcome_of_each_or_void(self, tmp_path):
        f = read(self.TIED)
        assert f.classes == ("B", "A")
        assert f.outcomes.tolist() == [1, -1, 1, -1]
        assert f.ties.tolist() == [False, True, False, False]
        assert f.happened == ["A", "tie", "A", None]
        assert any(note.code == "ties" and note.count == 1 for note in f.notes)
        assert read(self.TIED, void_values=["tie"]).events == ("m", "o", "p")
        levels = [["A", "A"], ["tie", "B"], ["tie", "B"], ["A", "A"]]
        g = op.Forecasts.from_array(levels, ["A", "A=B", "A", None], scale="B,tie,A", classes=["B", "A"])
        np.testing.assert_array_equal(g.ties, f.ties)
        np.testing.assert_allclose(g.X, f.X)
        probabilities = self.TIED.replace("verdict", "probability").replace("model_a", "A")
        for word, number in ("A>B", 0.8), ("B>A", 0.3), ("A=B", 0.5), ("tie", 0.5), ("A", 0.7), ("B", 0.2), ("a", 0.7):
            probabilities = probabilities.replace(f"x,{word},", f"x,{number},").replace(f"y,{word},", f"y,{number},")
        assert read(probabilities, positive="A").ties.tolist() == f.ties.tolist()

    @pytest.mark.parametrize("pool", ["gaussian", "log", "average", "dawid-skene", "recalibrated"])
    def test_a_tie_counts_as_two_events_of_half_the_weight(self, pool):
        rng = np.random.default_rng(0)
        levels = rng.integers(0, 3, (40, 3))
        words = np.array(["B", "tie", "A"])
        happened = words[np.clip(levels[:, 0] + rng.integers(-1, 2, 40), 0, 2)].tolist()
        f = op.Forecasts.from_array(words[levels], happened, scale="B,tie,A")
        tied = [t for t, each in enumerate(happened) if each == "tie"]
        doubled, again = [each.replace("tie", "A") for each in happened], ["B"] * len(tied)
        g = op.Forecasts.from_array(words[np.concatenate([levels, levels[tied]])], [*doubled, *again], scale="B,tie,A")
        weight = np.append(np.where(np.isin(np.arange(40), tied), 0.5, 1.0), np.full(len(tied), 0.5))
        expected = fit_pool(pool, g, sample_weight=weight).pool_forecasts(f)
        np.testing.assert_allclose(fit_pool(pool, f).pool_forecasts(f), expected, atol=1e-9)
        if pool in {"gaussian", "log"}:
            kind = {"gaussian": op.GaussianPool, "log": op.LogPool}[pool](scale="B,tie,A")
            np.testing.assert_allclose(kind.fit(words[levels], happened).predict_proba(words[levels])[:, 1], expected)
            kind = clone(kind)
            for rows in (slice(0, 15), slice(15, 40)):
                kind.partial_fit(words[levels[rows]], happened[rows], classes=["A", "B"])
            np.testing.assert_allclose(kind.predict_proba(words[levels])[:, 1], expected)
            stream = op.Stream(f.classes)
            stream.add(f)
            np.testing.assert_allclose(stream.fit(pool).pool_forecasts(f), expected)

    def test_a_tie_scores_half_as_either_outcome(self):
        f = read(self.TIED.replace("m,x,A>B,A\nm,y,A,A\n", "m,x,A>B,A\nm,y,A,A\nq,x,B,B\nq,y,B,B\n"))
        found = op.compare_pools(f, ["average"], folds=2, repeats=1)
        assert found.scored == 4
        p = found.answers["average"]
        both = [op.log_score([p[f.events.index("n")]], [y])[0] for y in (0, 1)]
        assert found.scores["average"][f.events.index("n")] == pytest.approx(np.mean(both))

    def test_commands_know_ties(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        rng = np.random.default_rng(0)
        latent = rng.normal(size=(60, 1))
        happened, *given = np.array(["B", "tie", "A"])[
            np.digitize(latent + 0.7 * rng.normal(size=(60, 4)), [-0.3, 0.3])
        ].T
        rows = [f"i{t},j{j},{v},{happened[t]}" for j, own in enumerate(given) for t, v in enumerate(own)]
        (tmp_path / "f.csv").write_text("\n".join(["item,judge,verdict,winner", *rows]))
        answers = []
        for more in (["--save", "pool.json"], ["--model", "pool.json"], ["--positive", "B"]):
            assert cli.run(["pool", "f.csv", *more, "--format", "csv", "-q"]) == 0
            lines = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
            answers.append([float(line[1]) for line in lines])
            assert [line[5] for line in lines] == happened.tolist()
        assert answers[1] == pytest.approx(answers[0], abs=1e-9)
        assert answers[2] == pytest.approx([1 - p for p in answers[0]], abs=1e-6)
        assert cli.run(["report", "f.csv", "--repeats", "1", "-o", "r.html"]) == 0

    def test_first_and_second_are_told_by_the_order_shown(self):
        rows = ["m,x,first,AB,A", "m,x,second,BA,A", "n,x,first,AB,B", "n,x,left,BA,B", "o,x,right,AB,B"]
        text = "\n".join(["item,judge,verdict,shown,winner", *rows, "o,x,first,BA,B"])
        m, n, o = read(text, columns={"order": "shown"}).X[:, 0]
        assert m > n > o
        assert n == pytest.approx(0.5)
        assert m == pytest.approx(1 - o)
        with pytest.raises(CellError, match="'as is' does not say which of A and B was shown first"):
            read(text.replace("AB", "as is"), columns={"order": "shown"})
        with pytest.raises(CellError, match="'first' is a place, and outcomes are A and B"):
            read("item,judge,verdict,winner\nq1,g,first,A\nq2,g,second,B\nq3,g,first,\n")

    def test_a_scale_for_all_is_not_that_of_a_column_that_counts_the_rows(self):
        rows = ["1,5,4,1", "2,1,2,0", "3,3,4,1", "4,2,2,0", "5,4,5,"]
        assert read("\n".join(["doc,a,b,outcome", *rows]), scale="1-5").experts == ("a", "b")

    def test_levels_speak_of_the_classes_that_they_name(self):
        words = [["accept", "accept"], ["reject", "reject"], ["accept", "reject"]] * 4
        happened = ["accept", "reject", "accept"] * 4
        for classes in (None, ["accept", "reject"], ["reject", "accept"]):
            f = op.Forecasts.from_array(words, happened, classes=classes, scale="reject,accept")
            assert (f.X[0] == (0.75 if f.classes[1] == "accept" else 0.25)).all()
        pool = op.GaussianPool(scale="reject,accept").fit(words, happened)
        assert pool.predict(words[:2]).tolist() == happened[:2]
        assert (
            op.GaussianPool(scale="reject,accept").partial_fit(words, happened).predict(words[:2]).tolist()
            == happened[:2]
        )
        text = "item,judge,score,final\na,x,accept,accept\na,y,accept,accept\nb,x,reject,reject\nb,y,accept,reject\n"
        f = read(text, scale="reject,accept", columns={"outcome": "final"}, positive="reject")
        assert f.classes == ("accept", "reject")
        np.testing.assert_allclose(f.X, [[0.25, 0.25], [0.75, 0.25]])
        assert op.explain_event(f, 1, learn(f)).given_levels == ("reject of accept,reject", "accept of accept,reject")

    @pytest.mark.parametrize("name", ["label", "Label", "answer", "verdict", "decision"])
    @pytest.mark.parametrize("outcome", [{}, {"outcome": 0}])
    @pytest.mark.parametrize("yes_no", ["10", ("yes", "no")])
    def test_what_happened_beside_judges_in_columns_is_no_verdict(self, name, outcome, yes_no):
        yes, no = yes_no
        text = f"item,gpt,claude,{name}\na,.9,.8,{yes}\nb,.2,.3,{no}\nc,.7,.4,\nd,.6,.7,{yes}\n"
        try:
            f = read(text, columns=dict.fromkeys(outcome, name))
        except LayoutError:
            assert not outcome  # a question, where nobody says what the column is
        else:
            assert f.experts == ("gpt", "claude")
            np.testing.assert_array_equal(f.outcomes, [1, 0, -1, 1])


class TestSamples:
    """Several statements by one judge on one item."""

    @staticmethod
    def table(values):
        """Rows of values by item, judge and sample, (T, N, n); NaN where there is none."""
        rows = [f"i{t},j{j},{v:.12f}" for (t, j, _), v in np.ndenumerate(values) if v == v]
        return "\n".join(["item,judge,probability", *rows])

    def test_they_count_as_surely_as_so_many_are(self):
        rng = np.random.default_rng(0)
        own = rng.normal(size=(3000, 2, 1)) + np.array([0.4, -0.8])[:, None]
        odds = own + rng.normal(size=(3000, 2, 4))
        f = read(self.table(1 / (1 + np.exp(-odds))), duplicates="samples")
        centre = odds.mean(axis=(0, 2))
        expected = centre + (odds.mean(axis=2) - centre) / (0.5 + 0.5 / 4)
        np.testing.assert_allclose(np.log(f.X / (1 - f.X)), expected, rtol=0.05, atol=0.02)

    def test_one_sample_counts_as_it_is_and_order_means_nothing(self):
        values = np.array([[[0.2, 0.4], [0.5, np.nan]], [[0.7, 0.9], [0.6, 0.3]], [[0.1, 0.1], [0.9, np.nan]]])
        f = read(self.table(values), duplicates="samples")
        assert f.X[0, 1] == 0.5
        assert f.X[2, 1] == 0.9
        assert f.X[1, 0] > 0.8
        lines = self.table(values).split("\n")
        turned = read("\n".join([lines[0], *lines[:0:-1]]), duplicates="samples")
        for event in f.events:
            for name in f.experts:
                one = f.X[f.events.index(event), f.experts.index(name)]
                assert turned.X[turned.events.index(event), turned.experts.index(name)] == one

    def test_both_orders_are_one_statement(self):
        rows = ["m,x,A,AB,A", "m,x,A,BA,A", "m,y,A,AB,A", "m,y,B,BA,A", "n,x,B,AB,B", "n,x,B,BA,B", "n,y,tie,AB,B"]
        text = "\n".join(["item,judge,verdict,shown,winner", *rows, "n,y,B,BA,B"])
        f = read(text, columns={"order": "shown"})
        assert f.experts == ("x", "y")
        assert f.X.shape == (2, 2)
        assert f.X[0, 0] > f.X[0, 1] > f.X[1, 1] > f.X[1, 0]
        np.testing.assert_array_equal(f.X, read(text, columns={"order": "shown"}, duplicates="samples").X)


class TestCommands:
    @pytest.fixture
    def run(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "f.csv").write_text(WIDE)

        def run(*arguments):
            assert cli.run([*arguments, "-q"]) == 0
            return capsys.readouterr().out

        return run

    SCALES = ("--scale", "ann=1-5", "--scale", "bob=1-10", "--scale", "cy=no,yes")

    def test_answers_are_those_from_python(self, run):
        pooled = json.loads(run("pool", "f.csv", *self.SCALES, "--format", "json"))
        f = read(WIDE, scale={"ann": "1-5", "bob": "1-10", "cy": "no,yes"})
        expected = op.GaussianPool().fit(f).predict_proba(f)[:, 1]
        assert [event["probability"] for event in pooled["events"]] == pytest.approx(expected)

    def test_an_explanation_shows_levels(self, run):
        why = json.loads(run("explain", "f.csv", "a", *self.SCALES, "--format", "json"))
        levels = {row["expert"]: row["level"] for row in why["experts"]}
        assert levels == {"ann": "4 of 1-5", "bob": "7 of 1-10", "cy": "yes of no,yes"}

    def test_options_files(self, run, tmp_path):
        typed = run("pool", "f.csv", *self.SCALES)
        (tmp_path / "own.toml").write_text('[scale]\nann = "1-5"\nbob = "1-10"\ncy = ["no", "yes"]\n')
        assert run("pool", "f.csv", "--options-file", "own.toml") == typed
        run("check", "f.csv", *self.SCALES, "--write-options", "written.toml")
        assert run("pool", "f.csv", "--options-file", "written.toml") == typed


class TestEstimators:
    def test_columns_with_scales_of_their_own(self):
        pandas = pytest.importorskip("pandas")
        x = pandas.DataFrame({"vote": ["no", "no", "yes", "yes", None, "no"], "p": [0.2, 0.1, 0.6, 0.7, 0.4, 0.3]})
        pool = op.GaussianPool(scale={"vote": ("no", "yes")}).fit(x, OUTCOMES)
        q = x.assign(vote=x["vote"].map({"no": 0.25, "yes": 0.75})).to_numpy()
        f = op.Forecasts.from_array(q, OUTCOMES, experts=["vote", "p"])
        f = replace(f, scales={"vote": Scale.of("no,yes")})
        np.testing.assert_allclose(pool.predict_proba(x), op.GaussianPool().fit(f).predict_proba(f))

    def test_what_is_no_level_or_no_expert(self):
        with pytest.raises(ProbabilityError, match="'5' by expert_1 is no level"):
            op.GaussianPool(scale="1-4").fit(SCORES, OUTCOMES)
        for door in (op.Forecasts.from_array, lambda x, scale: op.LogPool(scale=scale).fit(x, OUTCOMES)):
            with pytest.raises(ArgumentError, match="scale is given for 'cy'"):
                door(SCORES, scale={"cy": "1-5"})
        with pytest.raises(ShapeError, match="two axes"):
            op.GaussianPool(scale="1-5").fit(np.ones((6, 2, 2)), OUTCOMES)

    @pytest.mark.parametrize("kind", CLASSES)
    def test_every_estimator_takes_levels(self, kind, tmp_path):
        rng = np.random.default_rng(0)
        x, y = rng.integers(1, 6, (30, 2)), rng.integers(0, 2, 30)
        pool = kind(scale=range(1, 6)).fit(x, y)
        f = op.Forecasts.from_array(x, y, scale="1-5")
        np.testing.assert_allclose(pool.predict_proba(x), kind().fit(f).predict_proba(f))
        op.save(pool, tmp_path / "pool.json")
        np.testing.assert_array_equal(op.load(tmp_path / "pool.json").predict_proba(SCORES), pool.predict_proba(SCORES))

    def test_grades_are_classes_of_estimators_too(self):
        pandas = pytest.importorskip("pandas")
        levels, grades = np.array([[3, 2], [0, 1], [1, 2], [2, 2], [2, 1]]), [3, 0, 1, 2, None]
        f = op.Forecasts.from_array(levels, grades, scale="0-3")
        expected = op.GaussianPool().fit(f).predict_proba(f)
        pool = op.GaussianPool(scale="0-3").fit(levels, grades)
        assert pool.classes_.tolist() == [0, 1, 2, 3]
        np.testing.assert_allclose(pool.predict_proba(levels), expected)
        frame = pandas.DataFrame(levels, columns=["ann", "bob"])
        np.testing.assert_allclose(op.GaussianPool(scale="0-3").fit(frame, grades).predict_proba(frame), expected)


class TestStreams:
    """Levels that arrive one after another."""

    VOTES = (SCORES > 2).astype(int)

    @pytest.mark.parametrize(("levels", "scale"), [(SCORES, "1-5"), (VOTES, "0-1")])
    def test_learned_in_parts_as_at_once(self, levels, scale):
        f = op.Forecasts.from_array(levels, OUTCOMES, scale=scale)
        expected = op.GaussianPool().fit(f).predict_proba(f)
        first, second = op.Stream(), op.Stream()
        first.add(f.select_events(np.arange(3)))
        second.add(f.select_events(np.arange(3, 6)))
        np.testing.assert_allclose(second.merge(first).learn().pool_forecasts(f), expected[:, 1])
        pool = op.GaussianPool(scale=scale)
        for rows in (slice(0, 3), slice(3, 6)):
            pool.partial_fit(levels[rows], OUTCOMES[rows], classes=[0, 1])
        resolved = op.GaussianPool(scale=scale).fit(levels[:4], OUTCOMES[:4])
        np.testing.assert_allclose(pool.predict_proba(levels), resolved.predict_proba(levels))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (GRADES.replace(",-1", ","), {"scale": "0-3", "columns": ROLES}),
        (GRADES, {"scale": "0-3", "at_least": "2", "columns": ROLES}),
        (VERDICTS, {}),
    ],
)
def test_large_files_are_read_in_parts_as_at_once(text, options, tmp_path):
    (tmp_path / "f.csv").write_text(text)
    once = op.read_forecasts(tmp_path / "f.csv", **options)
    with open_parts(tmp_path / "f.csv", None, ReadOptions(**options)) as parts:
        (part,) = parts.forecasts()
    assert part.classes == once.classes
    assert part.outcomes.tolist() == once.outcomes.tolist()
    np.testing.assert_array_equal(part.X, once.X)
    assert part.scales == once.scales


def test_the_report_says_what_judges_say_by_outcome(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text(WIDE)
    scales = {"ann": "1-5", "bob": "1-10", "cy": "no,yes"}
    assert levels_by_outcome(read(WIDE, scale=scales)) == {
        "ann": ("4.5", "2"), "bob": ("8.5", "3"), "cy": ("100% yes", "50% yes")
    }  # fmt: skip
    assert cli.run(["report", "f.csv", *TestCommands.SCALES, "-o", "r.html"]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "says where it happens" in page
    assert (
        "says 4.5 of 5 where it happens, 2 where not." in page
        or "says 8.5 of 10 where it happens, 3 where not." in page
    )
    assert "8.5" in page


def test_agreement_stands_in_check_and_with_experts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text(LONG)

    def run(*arguments):
        assert cli.run([*arguments, "f.csv", "--scale", "1-5", "-q"]) == 0
        return capsys.readouterr().out

    assert "Krippendorff's alpha 0." in run("check")
    found = [json.loads(run(command, "--format", "json"))["summary"]["agreement"] for command in ("check", "experts")]
    assert found[0] == found[1]
    assert found[0]["events"] == 3
    assert 0 < found[0]["alpha"] < 1


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:opinionpool.OpinionPoolWarning")
@pytest.mark.parametrize("begun", [False, True])
def test_a_pool_that_learned_from_levels_wants_levels(begun, tmp_path):
    levels = [[0, 1], [-2, 2], [1, 1], [2, -1]] * 5
    f = op.Forecasts.from_array(levels, [1, 0, 1, 0] * 5, scale="-2-2")
    pool = op.GaussianPool()
    pool.partial_fit(f) if begun else pool.fit(f)
    pool.save(tmp_path / "p.json")
    named = op.GaussianPool(scale=dict.fromkeys(f.experts, "-2-2")).fit(levels, [1, 0, 1, 0] * 5)
    for each in (pool, op.load(tmp_path / "p.json"), named):
        np.testing.assert_allclose(each.predict_proba(levels), pool.predict_proba(f))
        with pytest.raises(ProbabilityError, match=r"'0.9' by expert_1 is no level of the scale -2-2"):
            each.predict_proba([[0.9, 0.2]])
    again = pool.fit([[0.1, 0.2], [0.8, 0.9]], [0, 1])
    assert again.predict_proba([[0.9, 0.8]])[0, 1] > 0.5


class TestConflicts:
    """Scales that contradict other options, or what a saved pool learned from."""

    def test_a_scale_of_nobody_and_percentages_beside_a_scale_of_all_are_errors(self):
        with pytest.raises(
            LayoutError, match="--scale is of an expert or a column of forecasts, and none is called 'ant'"
        ) as caught:
            read(WIDE, scale={"ann": "1-5", "bob": "1-10", "cy": "no,yes", "ant": "1-5"})
        assert "did you mean 'ann'?" in str(caught.value)
        with pytest.raises(ArgumentError, match="percent says that numbers are percentages, and scale"):
            read(LONG, scale="1-5", percent=True)
        text = LONG.replace("y,5", "y,80").replace("y,2", "y,30").replace("y,4", "y,25%")
        f = read(text, scale={"x": "1-5"}, columns={"probability": "score"}, percent=True)
        np.testing.assert_allclose(f.X, [[0.7, 0.8], [0.1, 0.3], [0.5, 0.25]])

    def test_a_saved_pool_goes_by_its_scales_and_grades(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        grades = GRADES.replace(",-1", ",")
        (tmp_path / "f.csv").write_text(grades)
        (tmp_path / "open.csv").write_text("\n".join(line.rpartition(",")[0] for line in grades.splitlines()) + "\n")
        column = ["--column", "probability=score"]
        for more, least in (([], None), (["--at-least", "2"], "2")):
            assert cli.run(["pool", "f.csv", *column, "--scale", "0-3", *more, "--save", "p.json", "-q"]) == 0
            assert op.load("p.json").at_least == least
            answers = []
            for name in ("f.csv", "open.csv"):
                capsys.readouterr()
                assert cli.run(["pool", name, *column, "--model", "p.json", "--format", "csv", "-q"]) == 0
                rows = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
                answers.append([row[1:3] if least is None else row[1:2] for row in rows])
            assert answers[0] == answers[1]
            assert cli.run(["pool", "f.csv", *column, "--model", "p.json", "--scale", "y=1-4"]) == 2
            assert "--scale says 1-4 of 'y', and the pool in p.json learned from 0-3" in capsys.readouterr().err
        assert cli.run(["pool", "f.csv", *column, "--model", "p.json", "--at-least", "1"]) == 2
        assert "the pool in p.json learned from events of 2 or more" in capsys.readouterr().err
        (tmp_path / "one.csv").write_text("item,judge,score\na,x,3\nb,x,0\n")
        assert cli.run(["pool", "one.csv", *column, "--model", "p.json", "-q"]) == 0

    def test_errors_in_python_say_what_options_are_there(self):
        with pytest.raises(CellError) as caught:
            read("event,ann,outcome\na,4,1\nb,1,0\nc,5,1\n")
        (note,) = caught.value.__notes__
        assert note == "In Python: scale='1-5'"
        with pytest.raises(LayoutError) as caught:
            read("item,who_knows,x\na,b,c\n")
        assert caught.value.__notes__ == ["In Python: columns={'ROLE': 'NAME'}"]


class TestStreamsOfLevels:
    """Streams that take levels themselves."""

    def test_a_stream_takes_levels(self, tmp_path):
        rng = np.random.default_rng(0)
        y = rng.random(60) < 0.5
        levels = np.clip(np.round(3 + 1.2 * (2 * y[:, None] - 1) + rng.normal(size=(60, 3))), 1, 5).astype(int)
        known = [int(each) if t < 40 else None for t, each in enumerate(y)]
        f = op.Forecasts.from_array(
            levels, known, scale="1-5", experts=["a", "b", "c"], events=[f"e{t}" for t in range(60)]
        )
        other, stream = op.Stream(), op.Stream(scale="1-5")
        other.add(f)
        for t, row in enumerate(levels.tolist()):
            stream.forecast(f"e{t}", dict(zip("abc", row, strict=True)))
            stream.resolve(f"e{t}", known[t]) if t < 40 else None
        op.save(stream, tmp_path / "s.json")
        for each in (stream, op.load(tmp_path / "s.json")):
            assert each.fingerprint == other.fingerprint
            p = each.learn().pool_forecasts(each.forecasts())
            np.testing.assert_allclose(p, other.learn().pool_forecasts(other.forecasts()), atol=1e-12)
            with pytest.raises(ProbabilityError, match="'7' by a is no level of the scale 1-5"):
                each.forecast("new", {"a": 7})

    def test_rows_of_levels(self):
        stream = op.Stream(scale={"a": "1-5", "b": "no,yes"})
        stream.add_rows([[5, "yes"], [1, "no"], [2, None]], [1, 0, 0], experts=["a", "b"])
        np.testing.assert_allclose(np.sort(stream.sample()[0].X, 0), [[0.1, 0.25], [0.3, 0.75], [0.9, np.nan]])
        grades = op.Stream((0, 1, 2, 3), scale="0-3")
        grades.add_rows([[3, 2], [0, 0], [1, 2]], [3, 0, 1])
        f = op.Forecasts.from_array([[3, 2], [0, 0], [1, 2]], [3, 0, 1], scale="0-3", classes=(0, 1, 2, 3))
        np.testing.assert_allclose(grades.learn().pool_forecasts(f), learn(f).pool_forecasts(f), atol=1e-9)
        with pytest.raises(ArgumentError, match="of more than two classes levels are these"):
            op.Stream(("a", "b", "c"), scale="0-3")
