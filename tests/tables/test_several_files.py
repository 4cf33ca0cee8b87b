"""Several files as one table: whose forecasts are in which, and what is asked."""

import numpy as np
import pytest

from opinionpool.errors import DuplicateError, LayoutError
from opinionpool.tables.read import read_forecasts


@pytest.fixture
def two(tmp_path):
    def written(large, small):
        for name, text in (("large.csv", large), ("small.csv", small)):
            (tmp_path / name).write_text(text)
        return [tmp_path / "large.csv", tmp_path / "small.csv"]

    return written


def codes(found):
    return {note.code for note in found.notes}


def test_columns_of_the_same_events_in_two_files_are_experts_of_each_file(two):
    found = read_forecasts(two("event,run0,run1\nq,.1,.2\nr,.3,.4\n", "event,run0,run1\nq,.5,.6\nr,.7,\n"))
    assert found.experts == ("large run0", "small run0", "large run1", "small run1")
    np.testing.assert_allclose(found.X, [[0.1, 0.5, 0.2, 0.6], [0.3, 0.7, 0.4, np.nan]])
    assert "experts-of-files" in codes(found)


def test_an_expert_who_forecasts_an_event_in_two_files_is_two_unless_times_or_a_rule_say_which_counts(two):
    files = two("event,expert,p\nq,a,.1\nr,a,.3\n", "event,expert,p\nq,a,.5\ns,b,.6\n")
    found = read_forecasts(files)
    assert found.experts == ("large a", "small a", "small b")
    assert read_forecasts(files, duplicates="last").experts == ("a", "b")
    timed = two("event,expert,p,time\nq,a,.1,2026-01-01\n", "event,expert,p,time\nq,a,.5,2026-01-02\n")
    np.testing.assert_allclose(read_forecasts(timed, duplicates="last").X, [[0.5]])
    with pytest.raises(DuplicateError):
        read_forecasts(timed)


def test_rows_are_not_numbered_across_files(two):
    with pytest.raises(LayoutError):
        read_forecasts(two("ann,bob\n.1,.2\n", "ann,bob\n.3,.4\n"))


def test_one_column_of_forecasts_in_each_is_named_after_the_file(two):
    found = read_forecasts(
        two("id,p,logprob\nq,.1,-2\nr,.3,-1\n", "id,p,logprob\nq,.5,-3\nr,.7,-.5\n"),
        columns={"event": "id", "probability": "p"},
    )
    assert found.experts == ("large", "small")
