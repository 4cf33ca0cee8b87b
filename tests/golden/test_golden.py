"""Answers, weights, intervals, notes and what commands print are as `problems.py` keeps them."""

import problems
import pytest

KEPT = problems.load()
AGAIN = "python tests/golden/problems.py --compare shows all that moved, --write keeps it where that is meant"


@pytest.mark.parametrize("group", problems.groups())
def test_answers_are_as_kept(group):
    moved = []
    for name in problems.groups()[group]:
        found = problems.failures(name, problems.compute(name), KEPT[name])
        moved += [f"{name}  {each.path}  {each.size:.1e}  {each.text}" for each in found[:3]]
    assert not moved, "\n".join([AGAIN, *moved])


def test_every_problem_is_kept():
    assert KEPT.keys() == problems.PROBLEMS.keys()
    assert len(KEPT) >= 300


@pytest.mark.parametrize(
    ("new", "old", "sizes"),
    [
        ({"a": [1.0, None]}, {"a": [1.0, None]}, []), ({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]}, [0.2]),
        ({"a": [1.0]}, {"a": [1.0, 2.0]}, [float("inf")]), ({"n": ["x"]}, {"n": ["x", "y"]}, [float("inf")]),
        ({"a": None}, {"a": 1.0}, [float("inf")]), ({"a": True}, {"a": 1}, []), ({}, {"a": 1}, [float("inf")]),
        ({"log_likelihood": -0.4}, {"log_likelihood": -0.5}, []), ({"a": "yes"}, {"a": "no"}, [float("inf")]),
        ({"log_likelihood": -0.75}, {"log_likelihood": -0.5}, [0.25]), ({"a": "1 word"}, {"a": "2 words"}, []),
    ],
)  # fmt: skip
def test_what_differs_is_found(new, old, sizes):
    assert [each.size for each in problems.differences(new, old)] == sizes
