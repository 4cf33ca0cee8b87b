"""What if: bars are answers to changed assessments, costs add up; and the evidence on a file, in the background."""

import functools
import time
from dataclasses import replace
from datetime import UTC, datetime
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import logit

from opinionpool.analysis.sensitivity import Effect
from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs, ExpertBeliefs
from opinionpool.model.panel import Panel
from opinionpool.page import answer as what_if, handover, session as evidence
from opinionpool.page.answer import PageData, answer
from opinionpool.page.assessment import Assessment, Candidate, Expert, Stakes, acted, example
from opinionpool.page.session import Look, PageInputs, Session, start_of
from opinionpool.page.views import decision, events as events_view, evidence as evidence_view, matching, notes, top
from opinionpool.report.blocks import rendered
from opinionpool.report.charts import tornado
from opinionpool.report.findings import find
from opinionpool.scoring.splits import Splits
from opinionpool.tables.read import read_forecasts

from .test_handover import forecasts_file


def probability(a):
    return float(answer(a, PageData()).why.probability)


def test_every_bar_is_the_answer_to_another_assessment():
    a = example()
    found = what_if.effects(a, PageData(), answer(a, PageData()), 1)
    assert [effect.size for effect in found] == sorted((effect.size for effect in found), reverse=True)
    assert len(found) == 3 * 4 + 2
    keys = {each.name: each.key for each in a.experts}
    for effect in found:
        for value, p in zip(effect.values, effect.answers, strict=True):
            if effect.what == "forecast":
                move = {"do": "forecast", "expert": keys[effect.expert], "value": 100 * value}
            elif effect.what == "prior":
                move = {"do": "prior", "value": 100 * value}
            elif effect.what == "bias":
                move = {"do": "bias", "expert": keys[effect.expert], "value": value}
            else:
                continue
            assert p == pytest.approx(probability(acted(a, move)), abs=1e-12)


def test_what_is_certain_has_no_bar():
    a = example()
    for expert in (1, 2, 3):
        a = acted(a, {"do": "worth", "expert": expert, "value": "inf"})
    a = acted(a, {"do": "correlation_worth", "value": "inf"})
    found = what_if.effects(a, PageData(), answer(a, PageData()), 1)
    assert {effect.what for effect in found} == {"forecast", "prior"}


def test_one_more_expert_is_a_panel_of_one_more():
    a = replace(example(), candidate=Candidate(0.85, 0.2), everyone=Beliefs(correlation=0.4))
    found = answer(a, PageData())
    more = what_if.one_more(a, found)
    known = found.state.panel
    size = len(known)
    correlation = np.eye(size + 1)
    correlation[:size, :size] = known.correlation
    correlation[size, :size] = correlation[:size, size] = 0.2
    accuracy = [*what_if.worth(found).accuracy, NormalDist().inv_cdf(0.85) ** 2]
    larger = Panel.from_features(calibration=1.0, correlation=correlation, accuracy=accuracy)
    assert more.gain.after == pytest.approx(larger.joint_accuracy, rel=1e-9)


def test_costs_of_a_decision():
    a = replace(example(), stakes=Stakes(30.0, 50.0))
    found = answer(a, PageData())
    p = float(found.why.probability)
    stake = what_if.stake(a, found)
    assert stake.threshold == pytest.approx(0.6)
    assert (stake.acting, stake.waiting) == (30.0, pytest.approx(50.0 * p))
    # Acting by the panel never costs more than by the prior, nor less than knowing.
    d = stake.decision
    assert d.perfect <= d.expense <= d.climatology


@pytest.mark.parametrize(("action", "verdict"), [(10.0, "Act."), (70.0, "Not clear."), (95.0, "Do not act.")])
def test_to_act_is_said_only_where_the_whole_interval_says_so(action, verdict):
    a = replace(example(), stakes=Stakes(action, 100.0))
    found = answer(a, PageData())
    low, high = (float(end) for end in found.interval)
    assert (low > action / 100, low <= action / 100 < high, high <= action / 100).index(True) == [
        "Act.", "Not clear.", "Do not act."
    ].index(verdict)  # fmt: skip
    assert f"<b>{verdict}</b>" in rendered(decision(a, found))


def test_the_share_above_the_threshold_is_that_of_draws():
    a = replace(example(), stakes=Stakes(65.0, 100.0))
    found = answer(a, PageData())
    p, (low, high) = float(found.why.probability), (float(end) for end in found.interval)
    z = NormalDist().inv_cdf(0.95)
    draws = np.random.default_rng(0).normal(size=200_000)
    spread = np.where(draws < 0, logit(p) - logit(low), logit(high) - logit(p)) / z
    expected = np.mean(logit(p) + spread * draws > logit(0.65))
    assert what_if.stake(a, found).sure == pytest.approx(expected, abs=0.005)


shares, worths = st.floats(0.55, 0.97), st.sampled_from([5.0, 20.0, 100.0])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(shares, st.floats(0.5, 1.6), worths), min_size=1, max_size=5), st.integers(1, 3))
def test_who_is_not_assessed_counts_no_more_than_the_average_of_those_who_are(assessed, others):
    experts = [
        Expert(i, f"assessed {i}", (0.7,), ExpertBeliefs(auc=(area, worth), calibration=(kappa, worth)))
        for i, (area, kappa, worth) in enumerate(assessed)
    ]
    experts += [Expert(100 + i, f"other {i}", (0.6,)) for i in range(others)]
    a = Assessment("Q?", experts=tuple(experts), prior=(0.5,))
    weights = np.asarray(answer(a, PageData()).why.weights)
    assert (weights[len(assessed) :] <= weights[: len(assessed)].mean() + 1e-6).all()


def test_what_is_assumed_is_varied_and_marked_like_the_rest():
    a = acted(example(), {"do": "add", "value": "Dana 60%"})
    a = acted(a, {"do": "correlation_worth", "value": ""})
    found = what_if.effects(a, PageData(), answer(a, PageData()), 1)
    assumed = {(effect.expert, effect.what) for effect in found if not effect.assessed}
    assert assumed == {("Dana", "accuracy"), ("Dana", "calibration"), ("", "correlation")}
    picture = tornado([effect for effect in found if not effect.assessed], 0.7, None, "Probability of yes")
    assert "calibration of Dana (assumed)" in picture


def test_the_picture_says_what_it_shows():
    effects = [Effect("bias", "<b>", True, (-1.0, 1.0), (0.2, 0.7)), Effect("prior", "", False, (0.3, 0.5), (0.4, 0.4))]
    picture = tornado(effects, 0.4, 0.9, "Probability of yes")
    assert "bias of &lt;b&gt;: from 20.0% to 70.0%" in picture
    assert "<b>" not in picture
    assert picture.count('class="range') == 2
    assert picture.count('class="range assumed"') == 1


def report_of(a):
    found = answer(a, PageData())
    return handover.report(PageInputs(a, Look(), PageData(), found), found, datetime(2026, 5, 4, tzinfo=UTC))


def test_the_report_has_no_decision_and_no_further_expert_that_nobody_described():
    a = example()
    for costs in (a, acted(a, {"do": "action", "value": "20"})):
        assert what_if.stake(costs, answer(costs, PageData())) is None
    for text in ("Act.", "acting begins to pay", "One more expert"):
        assert text not in report_of(a)
    assert "is above 60%" in report_of(replace(a, stakes=Stakes(30.0, 50.0)))
    assert "an AUC of 0.85" in report_of(replace(a, candidate=Candidate(0.85, 0.2)))


@pytest.fixture
def data(tmp_path):
    return PageData(read_forecasts(forecasts_file(tmp_path)))


def scene_of(a, data, view="evidence"):
    return PageInputs(a, Look(view), data, answer(a, data))


def test_beliefs_stand_beside_what_was_learned(data):
    a = acted(start_of(data, None), {"do": "accuracy", "expert": 1, "unit": "auc", "value": 0.7})
    html = evidence_view(scene_of(a, data))
    state = data.learned(a)
    before = data.before(a)
    assert "0.70 → " in html
    for i in range(3):
        assert f"{before[i]:.2f} → {state.weights[i]:.2f}" in html


def test_what_takes_long_comes_later(data, monkeypatch):
    monkeypatch.setattr(evidence, "find", functools.partial(find, splits=Splits(repeats=1)))
    found = evidence.Evidence(data)
    inputs = scene_of(start_of(data, None), data)
    first = found.now(inputs)
    assert first["again"]
    deadline = time.monotonic() + 120
    while found.now(inputs)["again"] and time.monotonic() < deadline:
        time.sleep(0.1)
    html = found.now(inputs)["html"]
    assert [html.count(f'<section id="{section}"') for section in evidence.SHOWN] == [1, 1, 1]
    assert " style=" not in html
    found.close()


def test_events_are_found_and_ordered(data):
    pooled = data.pooled()
    p = pooled.probabilities
    assert matching(pooled, "", "file").tolist() == list(range(32))
    assert matching(pooled, "Q3 ", "file").tolist() == [t for t in range(32) if "q3" in pooled.forecasts.events[t]]
    assert (np.diff(p[matching(pooled, "", "high")]) <= 0).all()
    assert (np.diff(p[matching(pooled, "", "low")]) >= 0).all()
    assert matching(pooled, "", "open")[:2].tolist() == [30, 31]
    assert matching(pooled, "", "few")[0] == 31
    assert matching(pooled, "nowhere", "high").tolist() == []


def test_a_hundred_thousand_events_are_searched_quickly():
    rng = np.random.default_rng(0)
    f = Forecasts.from_array(rng.uniform(0.1, 0.9, (100_000, 2)), events=[f"question {i}" for i in range(100_000)])
    pooled = PageData(f).pooled()
    busy = time.thread_time()
    assert len(matching(pooled, "99 question", "high")) == sum("99" in str(i) for i in range(100_000))
    assert time.thread_time() - busy < 1.0


def test_who_is_chosen_first_and_what_a_choice_keeps(data):
    session = Session(data, start_of(data, None))
    session.act({"do": "worth", "expert": 1, "value": "50"})
    session.act({"do": "event", "value": 0})
    assert session.present.question == "q0"
    assert session.present.experts[0].beliefs.given
    assert [note.code for note in session.inputs().found.notes][-1] == "in-sample"
    session.act({"do": "undo"})
    assert session.present.question == "q30"


def test_questions_stand_in_the_words_of_the_file():
    f = Forecasts.from_array([[0.2, 0.4]], [None], events=["q1"])
    data = PageData(replace(f, texts=("Will it <rain>?",)))
    inputs = scene_of(start_of(data, None), data)
    assert inputs.question == "Will it <rain>?"
    for html in (top(inputs), events_view(inputs, data.pooled())):
        assert "Will it &lt;rain&gt;?" in html
        assert "<bdi>q1</bdi>" in html
    assert matching(data.pooled(), "RAIN", "file").tolist() == [0]


def test_notes_that_matter_most_come_first_and_the_others_are_folded(data):
    inputs = scene_of(start_of(data, None), data)
    found = replace(inputs.found, notes=(Note("recency", "x"), Note("topics", "y"), Note("clones", "z", serious=True)))
    first, second, folded = rendered(notes(inputs, found)).split("\n")
    assert (first, second) == ('<p class="note">Z.</p>', '<p class="note">X.</p>')
    assert "1 more note" in folded
    assert "Y." in folded
