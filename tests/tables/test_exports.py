"""Exports whose rows or columns hold more than a forecast each, or sums of others: what is read, and what is asked."""

import io
import json

import numpy as np
import pytest

from opinionpool.errors import LayoutError, TableError
from opinionpool.tables.diagnosis import diagnose
from opinionpool.tables.read import read_forecasts

from .reading import check_offered

ORDERS = "market,trader,side,price,result\n" + "".join(
    f"m{i},{trader},{side},{price},{i % 2}\n"
    for i, sides in enumerate(("yes no", "no yes", "no no", "yes yes"))
    for trader, side, price in zip("ab", sides.split(), (0.75, 0.875), strict=True)
)
DATES = "question,forecaster,2026-01-01,2026-02-01,outcome\n" + "".join(
    f"q{i},{name},.{i + 1},.{i + 2},{i % 2}\n" for i in range(4) for name in "ab"
)
MONTHS = "question,Jan,Feb,Mar,outcome\n" + "".join(f"q{i},.{i + 1},.{i + 2},.{i + 3},{i % 2}\n" for i in range(4))
WAVES = "item,ann_w1,ann_w2,bob_w1,bob_w2,outcome\n" + "".join(
    f"i{i},.{i + 1},.{i + 2},.{i + 3},.{i + 4},{i % 2}\n" for i in range(4)
)
READERS = "case_id,R1_birads,R1_pom,R2_birads,R2_pom,truth\n" + "".join(
    f"c{i},{1 + i % 5},{10 + 9 * i},{5 - i % 5},{90 - 8 * i},{i % 2}\n" for i in range(9)
)
OPTIONS = "Question Id,User,Answer,Forecast,Created At,Correct Answer\n" + "".join(
    f"{q},{user},{answer},{share}%,2026-01-0{q + 1} 10:00:00 UTC,{answers[0]}\n"
    for q, answers in enumerate((("Less", "Same", "More"), ("Yes", "No"), ("No", "Yes")))
    for user in "uv"
    for answer, share in zip(answers, {3: (50, 30, 20), 2: (60, 40)}[len(answers)], strict=True)
)
HUB = "model_id,location,horizon,output_type,output_type_id,value\n" + "".join(
    f"{model},{place},{week},{kind},{of},{value}\n"
    for model in ("x", "y")
    for place in ("US", "CA")
    for week in (1, 2)
    for kind, of, value in (
        ("quantile", 0.25, 120), ("quantile", 0.75, 310), ("pmf", "up", 0.75), ("pmf", "down", 0.25),
    )
)  # fmt: skip
SURVEY = "\n".join(
    [
        "StartDate,Progress,ResponseId,QID1_1,QID1_2",
        'Start Date,Progress,Response ID,"Probability? - It rains, at all","Probability? - It snows"',
        *['"{""ImportId"":""a""}","{""ImportId"":""b""}","{""ImportId"":""c""}","{""ImportId"":""d""}",e'],
        *(f"2026-03-0{i} 08:00:00,100,R_{i},{20 * i},{75 - i}" for i in (1, 2, 3, 4)),
    ]
)
LIMESURVEY = "id,submitdate,lastpage,G1Q1[SQ001],G1Q1[SQ002]\n" + "".join(
    f"{i + 3},2026-04-01 12:0{i}:00,{1 + i % 2},{20 + 9 * i},{75 - 4 * i}\n" for i in range(4)
)
CODES = "qid,ann,bob,answer\n" + "".join(f"{i},{10 * i + 5},{2 + 7 * i},{(1, 2, 1, 2, 9)[i]}\n" for i in range(5))
BETS = "contractId,userId,outcome,probAfter,createdTime\n" + "".join(
    f"c{i},{user},{said},{p},{1704000000000 + 1000 * i}\n"
    for i in range(4)
    for user, said, p in (("u", "YES", 0.25 + i / 10), ("v", "NO", 0.75 - i / 10))
)


SIDES = [[0.75, 0.125], [0.25, 0.875], [0.25, 0.125], [0.75, 0.875]]
LAST = {"X": [[0.3], [0.4], [0.5], [0.6]]}


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        # A price may be that of the side that was bought, or of yes throughout: both are offered.
        (ORDERS, {"--column verdict=": {"experts": ("a", "b"), "X": [[0.75, 0.875]] * 4},
                  "--column probability=price --column verdict=side": {"X": SIDES}}),
        (BETS, {"--column verdict=": {"X": [[0.25 + i / 10, 0.75 - i / 10] for i in range(4)]},
                "--column probability=probAfter --column verdict=outcome": {}}),
        # Columns of times are no experts, and the last one counts.
        (DATES, {"--column probability=2026-02-01": {"X": [[0.2] * 2, [0.3] * 2, [0.4] * 2, [0.5] * 2]}}),
        (MONTHS, {"--column probability=Mar": LAST}),
        (MONTHS.replace("Jan,Feb,Mar", "Round 1,Round 2,Round 3"), {"--column probability=Round 3": LAST}),
        # Several columns of each are waves, or different things: one of them is offered for all.
        (WAVES, {f"--column probability=ann_w{i} --column probability=bob_w{i}": {"experts": (f"ann_w{i}", f"bob_w{i}")}
                 for i in (2, 1)}),
        (READERS, {"--column probability=R1_pom --column probability=R2_pom --percent": {},
                   "--column probability=R1_birads --column probability=R2_birads "
                   "--scale R1_birads=1-5 --scale R2_birads=1-5": {}}),
        # What distinguishes rows of one time is a class, whichever other role its name is a word for.
        (OPTIONS, {"--column class=Answer": {"experts": ("u", "v")}}),
        # Ids of respondents may be numbers; pages are no experts.
        (LIMESURVEY, {"--column expert=id --percent": {"experts": ("3", "4", "5", "6")}}),
        # No way takes forecasts away.
        (CODES, {}),
    ],
)  # fmt: skip
def test_rows_and_columns_that_hold_several_things_of_each_are_asked_about(text, commands):
    with pytest.raises(TableError):
        read_forecasts(io.BytesIO(text.encode()))
    check_offered(text, commands)


def test_numbers_above_one_half_where_answers_are_yes_are_of_yes():
    text = ORDERS.replace("no,0.75", "no,0.25").replace("no,0.875", "no,0.125")
    np.testing.assert_allclose(read_forecasts(io.BytesIO(text.encode())).X, SIDES)


def test_quantiles_are_left_out_by_the_condition_that_is_offered(tmp_path):
    (tmp_path / "hub.csv").write_text(HUB)
    with pytest.raises(LayoutError, match="'quantile' hold amounts") as raised:
        read_forecasts(tmp_path / "hub.csv")
    assert raised.value.remedies == ({"where": "output_type = 'pmf'"},)
    (way,) = diagnose(tmp_path / "hub.csv").readable
    np.testing.assert_allclose(way.forecasts.X, np.full((4, 2), 0.75))


def test_rows_that_describe_columns_are_left_out():
    (way,) = diagnose(io.BytesIO(SURVEY.encode())).readable
    found = way.forecasts
    assert (way.options.arguments(), found.experts) == (["--percent"], ("R_1", "R_2", "R_3", "R_4"))
    np.testing.assert_allclose(found.X, [[0.2, 0.4, 0.6, 0.8], [0.74, 0.73, 0.72, 0.71]])
    assert any(note.code == "descriptions" and note.count == 2 for note in found.notes)
    # A first row with a word in two columns is an event, and asked about.
    with pytest.raises(Exception, match="'skipped' is not a number"):
        read_forecasts(io.BytesIO(b"event,ann,bob\nq0,skipped,unsure\nq1,.5,.6\nq2,.4,.3\nq3,.2,.1\nq4,.2,.1\n"))


@pytest.mark.parametrize("document", [False, True])
def test_forecasts_in_an_inner_list_have_a_row_each(document):
    rows = [
        {
            "id": i,
            "resolution": "no" if i else "yes",
            "predictions": [{"user": {"id": k, "name": name}, "p": (i + k) / 10} for k, name in enumerate("abc")],
        }
        for i in range(2)
    ] + [{"id": 2, "resolution": None, "predictions": []}]
    text = json.dumps({"questions": rows} if document else rows)
    found = read_forecasts(io.BytesIO(text.encode()))
    assert (found.events, len(found.experts)) == (("0", "1", "2"), 3)
    np.testing.assert_allclose(found.X, [[0, 0.1, 0.2], [0.1, 0.2, 0.3], [np.nan] * 3])
    assert found.outcomes.tolist() == [1, 0, -1]


@pytest.mark.parametrize("column", ["respondent", "name"])
def test_the_row_of_right_answers_is_no_expert(column):
    rows = [("x@y.org", "ann", 80, 30), ("z@y.org", "bob", 70, 20), ("host@y.org", "Correct answer", 100, 0)]
    cells = [(name, *rest) if column == "respondent" else (mail, name, *rest) for mail, name, *rest in rows]
    header = f"{'' if column == 'respondent' else 'email,'}{column},q1,q2\n"
    text = header + "".join(",".join(map(str, row)) + "\n" for row in cells)
    with pytest.raises(LayoutError, match="'Correct answer' is an expert here, but holds the right answers"):
        read_forecasts(io.BytesIO(text.encode()), percent=True)
    (way,) = diagnose(io.BytesIO(text.encode())).readable
    np.testing.assert_allclose(way.forecasts.X, [[0.8, 0.7], [0.3, 0.2]])


def test_each_of_several_files_has_a_decimal_mark_of_its_own(tmp_path):
    (tmp_path / "ann.csv").write_text("question,p\nq1,0.25\nq2,0.5\n")
    (tmp_path / "bob.csv").write_text("question;p\nq1;0,75\nq2;0,5\n")
    found = read_forecasts([tmp_path / "ann.csv", tmp_path / "bob.csv"])
    assert found.experts == ("ann", "bob")
    np.testing.assert_allclose(found.X, [[0.25, 0.75], [0.5, 0.5]])


TABLE = {
    "Question": ["q1", "q2", "q3", "Total", "Average:"],
    "Anna": ["50%", "20%", "30%", "100%", "33.3%"],
    "Ben": ["60%", "60%", "90%", "210%", "70%"],
    "Mean": ["55%", "40%", "60%", "155%", "51.7%"],
    "outcome": ["yes", "no", "", "", ""],
}


def test_rows_of_totals_are_refused_with_the_condition_that_leaves_them_out(tmp_path):
    with pytest.raises(LayoutError, match="unless 'Mean' holds forecasts") as caught:
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
