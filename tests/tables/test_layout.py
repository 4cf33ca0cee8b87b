"""Columns by name, in one of a few shapes; where names leave several readings, or none, a question offers them."""

import io

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool.errors import ArgumentError, LayoutError
from opinionpool.tables.layout import find_layout
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.profile import Profile
from opinionpool.tables.read import read_forecasts
from opinionpool.tables.roles import SYNONYMS, UserRoles, normal
from opinionpool.tables.table import table_of


def table(text):
    """Rows between lines, cells between commas."""
    header, *rows = (line.split(",") for line in text.split())
    return table_of((name, [row[i] or None for row in rows]) for i, name in enumerate(header))


def layout(text, columns=None, **more):
    return find_layout(Profile(table(text)), UserRoles(dict(columns or {}), **more))


def found(text, columns=None, **more):
    """The shape, the columns of roles, and those of forecasts."""
    names, got = text.split()[0].split(","), layout(text, columns, **more)
    return got.shape.name, {role: names[i] for role, i in got.roles.items()}, [names[i] for i in got.forecasts]


LONG, WIDE = "a row per forecast", "a row per event, a column per expert"
ONE = "a row per event, one forecaster"


@pytest.mark.parametrize(
    ("text", "shape", "roles", "forecasts"),
    [
        ("event,expert,probability\nq1,a,.5\nq1,b,.25", LONG,
         {"event": "event", "expert": "expert", "probability": "probability"}, []),
        ("QuestionID,Forecaster,Prob(%),resolution,created-at,closeTime\n1,a,50,yes,2025-01-01,2025-02-01\n1,b,25,yes,"
          "2025-01-02,2025-02-01", LONG,
         {"event": "QuestionID", "expert": "Forecaster", "probability": "Prob(%)", "outcome": "resolution",
          "time": "created-at", "closes": "closeTime"}, []),
        ("question,ann,bob,y,prior\nq1,.5,.2,1,.3\nq2,.1,.4,0,.3", WIDE,
         {"event": "question", "outcome": "y", "prior": "prior"}, ["ann", "bob"]),
        # The exception: experts without a name for anything, and the one column of unique words.
        ("what,ann,bob,y\nrain,.5,.2,1\nsnow,.1,.4,0", WIDE, {"event": "what", "outcome": "y"}, ["ann", "bob"]),
        ("ann,bob,y\n.5,.2,1\n.1,.4,0", WIDE, {"outcome": "y"}, ["ann", "bob"]),
        (",ann,y\n17,.5,1\n3,.1,0", WIDE, {"event": "", "outcome": "y"}, ["ann"]),
        ("event,forecast,outcome\nq1,.5,1\nq2,.1,0", ONE, {"event": "event", "outcome": "outcome"}, ["forecast"]),
        ("match,x:home,x:away,z:home,z:away\nm,.5,.5,.2,.8\nn,.1,.9,.4,.6",
         "a row per event, a column per expert and class", {"event": "match"},
         ["x:home", "x:away", "z:home", "z:away"]),
        ("match,bookie,home,away,result\nm,x,.5,.5,home\nm,y,.1,.9,home", "a row per forecast, a column per class",
         {"event": "match", "expert": "bookie", "outcome": "result"}, ["home", "away"]),
        ("race,model,candidate,prob\nr,m,a,.5\nr,m,b,.5", "a row per forecast and class",
         {"event": "race", "expert": "model", "probability": "prob", "class": "candidate"}, []),
        ("respondent,age,q1,q2\nann,34,.5,.2\nbob,51,.1,.4", "a row per expert, a column per event",
         {"expert": "respondent"}, ["q1", "q2"]),
        ("item,judge,label,confidence,gold\n1,a,yes,.9,yes\n1,b,no,.6,yes", "a row per forecast, sure of a verdict",
         {"event": "item", "expert": "judge", "probability": "confidence", "verdict": "label", "outcome": "gold"}, []),
        ("respondent,age,Ice?(0-100),Vote_before_July?(0-100)\nann,34,5,20\nbob,51,10,40",
         "a row per expert, a column per event", {"expert": "respondent"}, ["Ice?(0-100)", "Vote_before_July?(0-100)"]),
        # Words that are never forecasts, and columns that no number fits.
        ("event,ann,stake,week,price_id,sales\nq1,.5,30,1,9,1200\nq2,.1,55,2,8,1700", WIDE, {"event": "event"},
         ["ann"]),
        # A word of several roles: where a question comes from, or who forecasts.
        ("id,label,source,m-x,m-y\n1,1,quiz,.8,.7\n2,0,law,.2,.4", WIDE, {"event": "id", "outcome": "label"},
         ["m-x", "m-y"]),
        ("question_id,question,user,p\n1,Rain?,a,.5\n1,Rain?,b,.2", LONG,
         {"event": "question_id", "expert": "user", "probability": "p", "text": "question"}, []),
        ("trade_id,event,expert,p\n1,q,a,.5\n2,q,b,.2", LONG,
         {"event": "event", "expert": "expert", "probability": "p"}, []),
    ],
)  # fmt: skip
def test_names_choose(text, shape, roles, forecasts):
    assert found(text) == (shape, roles, forecasts)
    # What is read so is read so if the user says just that.
    said = {role: name for role, name in roles.items() if name}
    said |= {"probability": tuple(forecasts)} if len(forecasts) > 1 else {}
    assert found(text, said) == (shape, roles, forecasts)


@pytest.mark.parametrize(
    "names",
    [
        "Ereignis,Experte,Wahrscheinlichkeit,Klasse,Ergebnis,Datum",
        "Événement,Expert,Probabilité(%),Classe,Résultat,Date",
        "Evento,Experto,Probabilidad,Clase,Resultado,Fecha",
    ],
)
def test_a_long_table_in_other_languages(names):
    rows = "\nq,a,.5,x,x,2025-01-01\nq,a,.5,y,x,2025-01-01"
    got = layout(names + rows)
    assert got.long
    assert dict(got.roles) == dict(event=0, expert=1, probability=2, **{"class": 3}, outcome=4, time=5)


def asked(text, columns=None):
    """The remedies of the question that a table raises."""
    with pytest.raises(LayoutError) as caught:
        layout(text, columns)
    assert caught.value.finding.code == "unclear-columns"
    return [remedy["columns"] for remedy in caught.value.remedies]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("item,a,b,correct\ni1,.2,.3,0\ni2,.7,.6,1\ni3,.9,.8,1", {"outcome": "correct"}),
        # Half-settled, too.
        ("event,ann,flag\nq1,.5,1\nq2,.2,0\nq3,.3,1\nq4,.1,0\nq5,.4,.5", {"outcome": "flag"}),
        # A status is what happened where its words are those of outcomes.
        ("Question,ann,base_rate,Status\na,.5,.2,Resolved:YES\nb,.3,.2,Resolved:NO\nc,.1,.2,Annulled",
         {"probability": "ann"}),
        ("Frage,Mia,Ole,Richtig?\nA,.7,.5,ja\nB,.2,.1,nein", {"outcome": "Richtig?"}),
        # Those who play are no events and experts, as what happened is of the rows.
        ("favorite,underdog,favorite_probability,favorite_win_flag\na,b,.6,1\na,c,.8,0\nd,b,.7,1",
         {"event": ("favorite", "underdog"), "outcome": "favorite_win_flag"}),
        # A score beside the label of each is how sure each is of it.
        ("text,true_label,model,label,score\nx y,POSITIVE,m,NEGATIVE,.6\nx y,POSITIVE,n,POSITIVE,.7\nz,NEGATIVE,m,"
          "NEGATIVE,.8\nz,NEGATIVE,n,NEGATIVE,.9".replace(" ", "_"), {"probability": "score"}),
        ("q_id,run_min,run_max,run_final\nq1,.1,.3,.2\nq2,.4,.7,.5", {"probability": "run_final"}),
        # What happened, and no forecast, beside means of the others.
        ("Company,A1,A2,Mean,Defaulted\nx,.1,.2,.15,0\ny,.6,.4,.5,1\nz,.2,.2,.2,0",
         {"outcome": "Defaulted", "probability": ("A1", "A2")}),
        # Each option is an event of its own where rows say whether it happened.
        ("group_id,option,user,p,correct\n1,a,u,.3,no\n1,b,u,.7,yes\n1,a,v,.4,no\n1,b,v,.6,yes\n"
         "2,a,u,.3,no\n2,b,u,.7,yes\n2,a,v,.4,no\n2,b,v,.6,yes",
         {"event": ("group_id", "option"), "outcome": "correct"}),
        # Ids before other words.
        ("side,finding_id,trader,price\nb,1,a,.5\ns,1,b,.2\nb,2,a,.4\ns,2,b,.6", {"event": "finding_id"}),
    ],
)  # fmt: skip
def test_what_is_offered_first(text, first):
    assert asked(text)[0] == first


def test_a_column_of_the_outcomes_words_may_be_each_ones_verdict():
    text = "asset,analyst,move,confidence,outcome\nx,ann,up,.7,up\nx,bob,down,.6,up\ny,ann,down,.8,down"
    assert asked(text, {"event": "asset"})[0] == {"verdict": "move"}


def test_amounts_are_no_outcomes():
    text = "day,station,office,pop,observed_mm\n1,x,a,.6,4.2\n1,y,b,.1,0\n2,x,b,.7,11.9\n2,y,a,.2,0"
    assert not any("observed_mm" in remedy.values() for remedy in asked(text))
    # Names of one pattern are a family, and one with a unit is of amounts.
    text = "event,x_pop,y_pop,z_pop,dew_c,cover\nx,.1,.2,.3,.4,.1\ny,.6,.4,.5,.8,.7"
    assert asked(text) == [{"probability": ("x_pop", "y_pop", "z_pop")}]


@pytest.mark.parametrize(
    ("text", "remedies"),
    [
        # A flag beside probabilities.
        ("event,ann,flag\nq1,.5,1\nq2,.2,0", [{"outcome": "flag"}]),
        # No name says that these are experts.
        ("what,ann,bob\nrain,.5,.2\nsnow,.1,.4", [{"event": "what"}]),
        # Three of a kind.
        ("event,run_min,run_max,run_final\nq1,.1,.3,.2\nq2,.4,.7,.5",
         [{"probability": ("run_min", "run_max", "run_final")}, {"probability": "run_final"}]),
        # A mean beside those it is of.
        ("event,ann,bob,mean\nq1,.2,.4,.3\nq2,.5,.7,.6",
         [{"probability": ("ann", "bob", "mean")}, {"probability": ("ann", "bob")}]),
        # Keys of two columns.
        ("Week,Q,ann\n1,Rain,.5\n1,Snow,.2\n2,Rain,.4\n2,Snow,.1", [{"event": "Q"}, {"event": ("Week", "Q")}]),
        ("project,finding_id,forecaster,p\nx,1,a,.5\nx,1,b,.2\ny,1,a,.4\ny,2,a,.1",
         [{"event": ("project", "finding_id")}]),
        ("state,pollster,dem\nOH,x,.4\nOH,y,.2\nPA,x,.7", [{"event": "state", "probability": "dem"}]),
        ("claim,rater,rating\nc,a,5\nc,b,4", [{"probability": "rating"}]),
        ("event,expert,decision,confidence\nq,a,x,.9\nr,a,y,.3", [{"verdict": None}, {"verdict": "decision"}]),
        ("question,ann\nRain?,.2\nRain?,.3", [{"event": "question"}]),
    ],
)  # fmt: skip
def test_what_names_leave_open_is_asked(text, remedies):
    offered = asked(text)
    for remedy in remedies:
        assert remedy in offered
    for remedy in offered:
        assert layout_with(text, remedy)


def layout_with(text, remedy, scale=None):
    """The layout with a remedy typed: it leads to one."""
    options = ReadOptions(columns=remedy, scale=scale)
    keyed = table(text)
    for role, names in remedy.items():
        if isinstance(names, tuple) and role != "probability":
            keyed = keyed.with_key([keyed.names.index(name) for name in names], " / ".join(names))
    profile = Profile(keyed).with_scales(options.rules.scales, options.columns)
    return find_layout(profile, UserRoles(options.keys, options.parts))


def test_the_question_shows_what_columns_hold():
    with pytest.raises(LayoutError) as caught:
        read_forecasts(io.BytesIO(b"state,pollster,dem\nOH,x,0.4\nOH,y,0.2\nPA,x,0.7\n"))
    lines = str(caught.value).splitlines()
    assert lines[0] == "the file: names of columns do not say which one is what; it may be"
    assert lines[1].endswith(": --column event=state --column probability=dem")
    assert [line.split() for line in lines[2:6]] == [
        ["column", "holds", "range", "or", "example", "would", "be"],
        ["state", "text", "2", "values", "'OH'", "event"],
        ["pollster", "text", "2", "values", "'x'", "expert"],
        ["dem", "numbers", "3", "values", "0.2", "to", "0.7", "probability"],
    ]


def test_what_the_user_says_is_final():
    text = "event,outcome,truth,ann\nq1,1,0,.5\nq2,0,1,.2"
    assert found(text, {"outcome": "truth"})[1]["outcome"] == "truth"
    assert "outcome" not in found(text, {"outcome": None, "probability": "ann"})[1]
    assert found("event,id,probability\nq,a,.5\nq,b,.2", {"expert": "id"})[1]["expert"] == "id"
    wide = "event,mean,ann\nq1,.2,.4\nq2,.5,.7"
    assert found(wide, exclude=["mean"])[2] == ["mean", "ann"]
    assert found(wide, {"probability": ("mean", "ann")})[2] == ["mean", "ann"]
    with pytest.raises(LayoutError, match=r"--column event=NAME says which one is the event"):
        layout("comment,model,label,score\nx,m,b,.7\nx,n,a,.8\ny,m,b,.9\ny,n,b,.6", {"probability": "score"})
    with pytest.raises(LayoutError, match=r"no column 'evnet'; did you mean 'event'?"):
        layout(text, {"event": "evnet"})
    with pytest.raises(ArgumentError, match=r"a column can be event, .* and not 'events'"):
        ReadOptions(columns={"events": "event"})


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("event,outcome\nq1,1\nq2,0", "no-forecast-column"),
        ("event,ann,ann\nq1,.1,.2", "same-header"),
        ("event,,ann\nq1,1,.2", "no-header"),
        ("forecaster,prediction,z\na,.5,.2\nb,.4,.3", "unclear-columns"),
    ],
)
def test_tables_that_say_too_little(text, code):
    with pytest.raises(LayoutError) as caught:
        layout(text)
    assert caught.value.finding.code == code


def test_headers_of_expert_and_class():
    text = "event,a:b:home,a:b:away,c:home,c:away,outcome\nq,.5,.4,.3,.7,{}"
    parts = (("a:b", "home"), ("a:b", "away"), ("c", "home"), ("c", "away"))
    for outcome in ("home", ""):
        assert layout(text.format(outcome)).cells == parts
    assert layout("event,ann:low,ann:medium,ann:high\nq,.2,.3,.5").cells[0] == ("ann", "low")
    for names in ("event,openai:a,other:b", "event,x:a,x:b,z"):
        assert layout(f"{names}\nq,.5,.2{',.7' * (names.count(',') - 2)}").cells[0][1] is None
    assert layout("event,prior:home,prior:away,a:home,a:away\nq,.5,.5,.2,.8").priors == {"home": 1, "away": 2}


CELLS = st.sampled_from(["words", "ids", "fractions", "percentages", "bits", "dates", "few"])
HEADERS = st.sampled_from([*(names[0] for names in SYNONYMS.values()), "name", "id", "source", "label", "confidence",
                           "ann", "bob", "mean", "win_flag", "x:a", "x:b", "Q1", "week", "p_yes"])  # fmt: skip


def column(kind, rows):
    cells = {
        "words": [f"w{i}" for i in range(rows)],
        "ids": [str(1000 + 7 * i) for i in range(rows)],
        "fractions": [str(round((0.31 * (i + 1)) % 1, 3)) for i in range(rows)],
        "percentages": [str((37 * (i + 1)) % 100) for i in range(rows)],
        "bits": [str(i % 2) for i in range(rows)],
        "dates": [f"2025-01-{i + 1:02}" for i in range(rows)],
        "few": ["ab"[i // 2 % 2] for i in range(rows)],
    }
    return cells[kind]


@settings(max_examples=20)
@given(
    st.lists(st.tuples(HEADERS, CELLS), min_size=1, max_size=6, unique_by=lambda pair: normal(pair[0])),
    st.integers(2, 8),
)
def test_a_reading_that_is_offered_is_read_when_it_is_typed(columns, rows):
    frame = table_of((name, column(kind, rows)) for name, kind in columns)
    try:
        find_layout(Profile(frame), UserRoles())
    except LayoutError as error:
        for remedy in error.remedies:
            text = "\n".join(
                ",".join(row) for row in zip(*([name, *column(kind, rows)] for name, kind in columns), strict=True)
            )
            assert layout_with(text, remedy.get("columns", {}), remedy.get("scale", {}))


def test_all_numbers_of_a_wide_table_are_accounted_for():
    with pytest.raises(LayoutError, match="unless 'hardness' holds forecasts"):
        read_forecasts(
            {"event": [*"abc"], "ann": [0.1, 0.3, 0.4], "hardness": ["easy", "0.5", "hard"], "bob": [0.2, 0.4, 0.1]}
        )
    found = read_forecasts({"event": ["a", "b"], "ann": [0.1, 0.3], "bob": [0.4, 0.2], "n": [7, 9]})
    assert found.experts == ("ann", "bob")
    np.testing.assert_allclose(found.X, [[0.1, 0.4], [0.3, 0.2]])
    assert "2 experts ('ann', 'bob')" in next(note.text for note in found.notes if note.code == "layout")


def test_american_odds_are_named_and_no_other_column_is_offered_in_their_place():
    text = "game,x,y,home_win\ng1,-150,-145,1\ng2,120,125,0\ng3,240,-110,0"
    with pytest.raises(LayoutError, match="columns 'x', 'y' hold American odds") as raised:
        layout(text)
    assert not raised.value.remedies
    assert found(text, exclude=("x", "y"), columns={"probability": "home_win"})[2] == ["home_win"]
