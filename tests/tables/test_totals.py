"""Rows and columns that sum up the others are no events and no experts."""

import pytest

from opinionpool.errors import LayoutError
from opinionpool.tables.read import read_forecasts

TABLE = {
    "Question": ["q1", "q2", "q3", "Total", "Average:"],
    "Anna": ["50%", "20%", "30%", "100%", "33.3%"],
    "Ben": ["60%", "60%", "90%", "210%", "70%"],
    "Mean": ["55%", "40%", "60%", "155%", "51.7%"],
    "outcome": ["yes", "no", "", "", ""],
}


def test_rows_of_totals_are_refused_with_the_condition_that_leaves_them_out(tmp_path):
    with pytest.raises(LayoutError, match="if 'Mean' is no forecast") as caught:
        read_forecasts(TABLE)
    assert [remedy["columns"]["probability"] for remedy in caught.value.remedies] == [
        ("Anna", "Ben"),
        ("Anna", "Ben", "Mean"),
    ]
    with pytest.raises(LayoutError, match=r"'Total', 'Average:' \(the table, rows 3, 4\), .* no events") as caught:
        read_forecasts(TABLE, exclude=["Mean"])
    assert caught.value.remedies == ({"where": "not Question in ('Total', 'Average:')"},)
    file = tmp_path / "t.csv"
    file.write_text("\n".join(",".join(row) for row in zip(*[[k, *v] for k, v in TABLE.items()], strict=True)) + "\n")
    found = read_forecasts(file, **caught.value.remedies[0], exclude=["Mean"])
    assert (found.events, found.experts) == (("q1", "q2", "q3"), ("Anna", "Ben"))


@pytest.mark.parametrize(
    ("names", "forecasts", "outcomes"),
    [
        (["Mean"], ["0.5"], ["0.67"]),  # an event has a forecast of 0.5, and keeps it
        (["Total"], ["1.4"], ["2"]),
        (["N"], ["3"], ["3"]),
        (["Grand total"], [""], ["2"]),
        (["Total", "Average"], ["9", "0.5"], ["9", "0.67"]),
    ],
)
def test_totals_are_found_before_their_numbers_are_judged(names, forecasts, outcomes):
    table = {
        "event": ["q1", "q2", "q3", *names],
        "ann": ["0.8", "0.2", "0.5", *forecasts],
        "bob": ["0.7", "0.4", "0.3", *forecasts],
        "outcome": ["1", "0", "1", *outcomes],
    }
    with pytest.raises(LayoutError, match="at the end of the table") as caught:
        read_forecasts(table)
    (remedy,) = caught.value.remedies
    left = {role: cells[:3] for role, cells in table.items()}
    assert list(remedy) == ["where"]
    found = read_forecasts(table, **remedy)
    assert found.events == ("q1", "q2", "q3")
    assert found.X.tolist() == read_forecasts(left).X.tolist()


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": ["yes", "no", "", "no", "yes"]},  # what has an outcome is an event
        {"Question": ["Total", "Mean", "q1", "q2", "q3"]},  # and so is what stands above others
        {"Question": ["q1", "q2", "q3", "Total recall?", "Mean reversion"]},
    ],
)
def test_events_that_are_called_alike_stay(changes):
    table = {**TABLE, "Ben": TABLE["Anna"], **changes}
    assert len(read_forecasts(table, exclude=["Mean"]).events) == 5
