"""What if: bars are answers to changed assessments, one more expert is a panel with one more, and costs add up."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from scipy.special import logit

from opinionpool.learning.beliefs import Beliefs
from opinionpool.model.panel import Panel
from opinionpool.page import what_if
from opinionpool.page.answer import Material, answer
from opinionpool.page.assessment import Candidate, Stakes, example
from opinionpool.page.charts import Bar, tornado
from opinionpool.page.event_report import event_report
from opinionpool.page.moves import moved


def probability(a):
    return float(answer(a, Material()).why.probability)


def test_every_bar_is_the_answer_to_another_assessment():
    a = example()
    found = what_if.effects(a, Material(), answer(a, Material()), 1)
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
            assert p == pytest.approx(probability(moved(a, move)), abs=1e-12)


def test_what_is_certain_has_no_bar():
    a = example()
    for expert in (1, 2, 3):
        a = moved(a, {"do": "worth", "expert": expert, "value": "inf"})
    a = moved(a, {"do": "correlation_worth", "value": "inf"})
    found = what_if.effects(a, Material(), answer(a, Material()), 1)
    assert {effect.what for effect in found} == {"forecast", "prior"}


def test_a_larger_worth_makes_shorter_bars():
    sizes = []
    for worth in (5, 20, 200):
        a = moved(example(), {"do": "worth", "expert": 1, "value": worth})
        found = what_if.effects(a, Material(), answer(a, Material()), 1)
        sizes.append(next(e.size for e in found if e.expert == "Ana, lawyer" and e.what == "calibration"))
    assert sizes == sorted(sizes, reverse=True)


def test_one_more_expert_is_a_panel_of_one_more():
    a = replace(example(), candidate=Candidate(0.85, 0.2), everyone=Beliefs(correlation=0.4))
    found = answer(a, Material())
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
    found = answer(a, Material())
    p = float(found.why.probability)
    stake = what_if.stake(a, found, p)
    assert stake.threshold == pytest.approx(0.6)
    assert stake.act == (p > 0.6)
    assert (stake.acting, stake.waiting) == (30.0, pytest.approx(50.0 * p))
    # Acting by the panel never costs more than by the prior, nor less than knowing.
    d = stake.decision
    assert d.perfect <= d.expense <= d.climatology


def test_the_picture_says_what_it_shows():
    bars = [Bar("<b>: bias", 0.2, 0.7, "−1", "+1"), Bar("prior", 0.4, 0.4, "30%", "50%")]
    picture = tornado(bars, 0.4, 0.9, "Probability of yes")
    assert "&lt;b&gt;: bias: from 20.0% to 70.0%" in picture
    assert "<b>" not in picture
    assert picture.count('class="range"') == 2


def report_of(a):
    return event_report(a, Material(), answer(a, Material()), "on 2026-05-04", "opinionpool explain x.csv q")


def test_the_report_has_no_decision_and_no_further_expert_that_nobody_described():
    a = example()
    assert "Acting costs" not in report_of(a)
    assert "One more expert" not in report_of(a)
    assert "Acting costs 30" in report_of(replace(a, stakes=Stakes(30.0, 50.0)))
    assert "an AUC of 0.85" in report_of(replace(a, candidate=Candidate(0.85, 0.2)))


def test_the_report_lists_what_adds_up_to_the_answer():
    a = example()
    found = answer(a, Material())
    report = report_of(a).replace("−", "-")
    for contrast, adds in zip(found.why.contrast, found.why.contributions, strict=True):
        assert f"{contrast:+.3f}" in report
        assert f"{adds:+.3f}" in report
    assert logit(float(found.why.probability)) == pytest.approx(found.why.contributions.sum(), abs=1e-9)


def test_of_an_added_expert_nothing_is_assessed():
    a = moved(example(), {"do": "add", "value": "Dana 60%"})
    assert a.experts[-1].forecast == (0.6,)
    assert not a.experts[-1].beliefs.given
