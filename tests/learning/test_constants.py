"""The table of constants: every row has a unit or meaning and a study, grids have probabilities that sum to 1."""

import inspect
import re

import pytest

from opinionpool.learning import constants


def test_no_more_than_thirty_rows_each_with_its_meaning_and_study():
    table = inspect.getsource(constants).split('guide: str = "agreement"', 1)[1]
    rows = re.findall(r"((?:^#.*\n)+)((?:^[^#\n].*\n)+)", table, flags=re.M)
    assert 20 <= len(rows) <= 30
    for meaning, values in rows:
        assert re.search(r"Simulated|Reasoning|[Ss]imulated\b|benchmarks/\w+\.py", meaning), values
    named = {name for _, values in rows for name in re.findall(r"^([A-Z_, ]+) = ", values, flags=re.M)}
    every = {name for each in named for name in each.split(", ")}
    assert every == {name for name in vars(constants) if name.isupper()}


def test_probabilities_sum_to_one():
    grids = [values for name, values in vars(constants).items() if name.endswith("PROBABILITIES")]
    assert grids
    for each in (*grids, constants.MEMBERS, [kind.probability for kind in constants.DEPENDENCE]):
        assert sum(each) == pytest.approx(1.0)
