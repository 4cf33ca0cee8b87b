"""Krippendorff's alpha and kappas against their definitions, pair by pair, and published examples."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionpool.forecasts import Forecasts
from opinionpool.scoring.leaderboard import rater_agreement

MISSING = float("nan")


def by_pairs(levels):
    """Alpha with the distance of ordered levels, from all pairs of judgements (Krippendorff 2011)."""
    units = [row[~np.isnan(row)] for row in levels]
    units = [unit for unit in units if len(unit) > 1]
    every = np.concatenate(units)
    counts = {level: (every == level).sum() for level in np.unique(every)}

    def distance(a, b):
        low, high = min(a, b), max(a, b)
        between = sum(count for level, count in counts.items() if low <= level <= high)
        return (between - (counts[low] + counts[high]) / 2) ** 2

    def total(values):
        return sum(distance(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j)

    observed = sum(total(unit) / (len(unit) - 1) for unit in units) / len(every)
    expected = total(every) / (len(every) * (len(every) - 1))
    return 1 - observed / expected


@given(st.lists(st.lists(st.sampled_from([1, 2, 3, 4, MISSING]), min_size=3, max_size=3), min_size=3, max_size=8))
def test_alpha_is_that_of_all_pairs(rows):
    levels = np.array(rows)
    found = rater_agreement(Forecasts.from_array(levels, scale="1-4"))
    several = (~np.isnan(levels)).sum(axis=1) > 1
    if found is None:
        assert not several.any()
        return
    assert found.events == several.sum()
    if np.isnan(found.alpha):
        assert len(np.unique(levels[several][~np.isnan(levels[several])])) == 1
    else:
        assert found.alpha == pytest.approx(by_pairs(levels))


def test_fleiss():
    # Ten events, fourteen judges, five levels: the example of Fleiss (1971) as Wikipedia has it, kappa 0.210.
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    levels = np.array([np.repeat(range(1, 6), row) for row in counts])
    assert rater_agreement(Forecasts.from_array(levels, scale="1-5")).kappa == pytest.approx(0.210, abs=0.0005)


def test_of_judges_with_one_scale_only():
    assert rater_agreement(Forecasts.from_array([[0.2, 0.3], [0.4, 0.5]])) is None
    assert (
        rater_agreement(Forecasts.from_array([[1, 1], [2, 5]], scale={"expert_1": "1-5", "expert_2": "1-10"})) is None
    )
    one = rater_agreement(Forecasts.from_array([[1, 0.2], [2, 0.5]], scale={"expert_1": "1-5"}))
    assert one is None
    same = rater_agreement(Forecasts.from_array([[1, 1], [1, 1]], scale="1-5"))
    assert np.isnan([same.alpha, same.kappa]).all()
