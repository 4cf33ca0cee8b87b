"""How far an answer depends on beliefs: by the closed form for exchangeable experts, and by simulated ranges."""

import math
from dataclasses import replace

import numpy as np
import pytest

from opinionpool.analysis.sensitivity import correlation_range, sensitivity
from opinionpool.errors import ArgumentError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.learning.learn import learn


def pooled(q, prior, kappa, rho):
    """Equal experts (24): the sum of contrasts times kappa over 1 + (n - 1) rho."""
    odds = np.log(np.array(q) / (1 - np.array(q))) - math.log(prior / (1 - prior))
    total = math.log(prior / (1 - prior)) + kappa / (1 + (len(q) - 1) * rho) * odds.sum()
    return 1 / (1 + math.exp(-total))


def test_ends_are_those_of_the_closed_form():
    q, prior = [0.7, 0.6, 0.8], 0.4
    beliefs = Beliefs(correlation=(0.5, 30), calibration=(0.8, 25), extremes=math.inf)
    found = {effect.what: effect for effect in sensitivity(Forecasts.from_array([q], [None]), 0, beliefs, prior)}
    assert set(found) == {"correlation", "calibration"}
    for rho, answer in zip(found["correlation"].values, found["correlation"].answers, strict=True):
        assert answer == pytest.approx(pooled(q, prior, 0.8, rho), abs=1e-9)
    for kappa, answer in zip(found["calibration"].values, found["calibration"].answers, strict=True):
        assert answer == pytest.approx(pooled(q, prior, kappa, 0.5), abs=1e-9)


def test_a_range_is_what_so_many_events_leave_open():
    # A common correlation estimated from n events of N experts, each with K - 1 = 1 coordinate.
    rng, n, experts, rho = np.random.default_rng(0), 200, 4, 0.5
    found = []
    for _ in range(2000):
        x = math.sqrt(rho) * rng.normal(size=(n, 1)) + math.sqrt(1 - rho) * rng.normal(size=(n, experts))
        mean_square, total = (x**2).sum() / experts, (x.sum(axis=1) ** 2).sum()
        found.append((total / mean_square / experts - 1) / (experts - 1))
    low, high = correlation_range(Belief(rho, n), experts)
    assert np.mean((np.array(found) > low) & (np.array(found) < high)) == pytest.approx(0.9, abs=0.03)


def test_the_largest_effect_is_first_and_assessed_ones_are_told_from_assumed_ones():
    f = Forecasts.from_array([[0.7, 0.6, 0.9]], [None], experts=["ann", "bob", "cy"])
    effects = sensitivity(f, 0, Beliefs(experts={"cy": {"auc": (0.9, 30)}}))
    sizes = [effect.size for effect in effects]
    assert sizes == sorted(sizes, reverse=True)
    assert {(effect.what, effect.expert): effect.assessed for effect in effects} == {
        ("correlation", ""): False, ("calibration", ""): False, ("accuracy", "cy"): True, ("prior", ""): False,
    }  # fmt: skip


def test_everything_that_is_assessed_is_varied():
    f = Forecasts.from_array([[0.7, 0.6, 0.9]], [None], experts=["ann", "bob", "cy"])
    beliefs = Beliefs(
        calibration=0.9,
        experts={
            "ann": {"bias": (0.4, 30)},
            "bob": {"relative_accuracy": 1.0},
            "cy": {"calibration": 0.7, "hit_rate": 0.8},
        },
    )
    found = {(effect.what, effect.expert): effect for effect in sensitivity(f, 0, beliefs, prior=0.5)}
    assert set(found) == {
        ("correlation", ""), ("calibration", ""), ("bias", "ann"), ("relative accuracy", "bob"), ("calibration", "cy"),
        ("accuracy", "cy"),
    }  # fmt: skip
    for effect in found.values():
        assert effect.values[0] < effect.values[1]
        assert effect.answers[0] != effect.answers[1]
    # The answer at an end is that of the panel assessed so.
    low = found["bias", "ann"].values[0]
    assessed = replace(beliefs, experts={**beliefs.experts, "ann": ExpertBeliefs(bias=(low, 30))})
    direct = learn(f, prior=0.5, beliefs=assessed).pool([0.7, 0.6, 0.9])
    assert found["bias", "ann"].answers[0] == pytest.approx(float(np.squeeze(direct)), abs=1e-12)


def test_more_classes_are_an_error():
    f = Forecasts.from_array([[[0.5, 0.3, 0.2]]], [None], classes="abc")
    with pytest.raises(ArgumentError, match="two classes"):
        sensitivity(f, 0)


@pytest.mark.parametrize(
    "beliefs",
    [
        Beliefs(auc=(0.501, 5)),
        Beliefs(calibration=(1.0, 1e-5)),
        Beliefs(auc=(0.8, 10), experts={"a": ExpertBeliefs(relative_accuracy=(1e-4, 1e-5))}),
    ],
)
def test_beliefs_that_leave_everything_open_have_answers(beliefs):
    f = Forecasts.from_array([[0.7, 0.6, 0.8]], [None], experts=["a", "b", "c"])
    answers = [answer for effect in sensitivity(f, 0, beliefs) for answer in effect.answers]
    assert len(answers) >= 6
    assert all(0 < answer < 1 for answer in answers)
