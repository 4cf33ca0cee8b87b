"""Columns recognised by name, long or wide; what is ambiguous is asked about, nothing is dropped unseen."""

import pytest

from opinionpool.errors import ArgumentError, LayoutError
from opinionpool.tables.contents import Contents
from opinionpool.tables.frames import FrameTable
from opinionpool.tables.layout import layout_notes, split_classes
from opinionpool.tables.recognise import recognise
from opinionpool.tables.roles import SYNONYMS, check_columns, normal


def frame(names, words=""):
    """A table of four rows: some columns hold words, those called "" nothing, others what their names promise."""
    columns = []
    for i, name in enumerate(names.split(",")):
        role = next((role for role, synonyms in SYNONYMS.items() if normal(name) in synonyms), "")
        cells = [round((0.13 + 0.29 * i + 0.23 * row) % 0.97 + 0.01, 3) for row in range(4)]
        if name in words.split(",") or role in {"event", "expert", "class"} or name in {"id", "q", "who"}:
            cells = [f"{name}{row}" for row in range(4)]
        if role in {"time", "closes", "resolved_at", "expires"}:
            cells = [f"2025-01-0{row + 1}" for row in range(4)]
        if role == "outcome" and name not in words.split(","):
            cells = [0, 1, 1, 0]
        columns.append((name, [None] * 4 if not name and i else cells))
    return FrameTable(columns)


def layout(names, words="", columns=None):
    """The layout of such a table."""
    return recognise(Contents(frame(names, words)), check_columns(columns))


def roles(names, **more):
    found = layout(names, **more)
    return {role: names.split(",")[i] for role, i in found.roles.items()}


def test_a_long_table_by_its_own_names_and_by_synonyms():
    own = "event,expert,probability,class,outcome,time,closes,resolved_at,prior,group"
    found = layout(own)
    assert found.long
    assert list(found.roles) == own.split(",")
    assert roles("Question ID,Forecaster,Prob (%),resolution,created-at,closeTime") == {
        "event": "Question ID",
        "expert": "Forecaster",
        "probability": "Prob (%)",
        "outcome": "resolution",
        "time": "created-at",
        "closes": "closeTime",
    }


@pytest.mark.parametrize(
    "names",
    [
        "Ereignis,Experte,Wahrscheinlichkeit,Klasse,Ergebnis,Datum",
        "Événement,Expert,Probabilité (%),Catégorie,Résultat,Date",
        "Evento,Experto,Probabilidad,Clase,Resultado,Fecha",
    ],
)
def test_a_long_table_in_other_languages(names):
    found = layout(names)
    assert found.long
    assert dict(found.roles) == dict(event=0, expert=1, probability=2, **{"class": 3}, outcome=4, time=5)


def test_an_expert_column_by_name_makes_a_long_table_or_none():
    with pytest.raises(LayoutError, match=r"'Chance' was named as the expert's, .*--column probability=NAME"):
        layout("Event,Who,Chance,outcome", words="Event,Who", columns={"expert": "Chance"})
    assert layout("event,id,probability", columns={"expert": "id"}).long


def test_no_name_stands_for_two_roles():
    names = [name for role, synonyms in SYNONYMS.items() for name in synonyms if role != "text"]
    assert len(names) == len(set(names))


def test_a_wide_table():
    found = layout("question,ann,bob,y,prior", words="question")
    assert not found.long
    assert found.experts == (1, 2)
    assert found.cells == (("ann", None), ("bob", None))
    assert found.roles == {"event": 0, "outcome": 3, "prior": 4}


def test_the_event_of_a_wide_table_without_such_a_name():
    assert layout("ann,what,title", words="what,title").roles == {"event": 1, "text": 2}
    assert layout(",ann,y").roles == {"event": 0, "outcome": 2}
    found = layout("ann,bob,y")
    assert found.roles == {"outcome": 2}
    assert "no event column, so rows are numbered" in layout_notes(found, ["ann", "bob", "y"])[0].text


def test_one_unnamed_expert_is_a_wide_table():
    assert layout("event,forecast,outcome", words="event").cells == (("forecast", None),)


def test_words_that_are_neither_event_nor_forecast_are_reported():
    found = layout("id,remark,ann", words="remark")
    assert found.unused == (1,)
    assert [note.text for note in layout_notes(found, ["id", "remark", "ann"])][1] == "not used: 'remark'"
    assert layout("event,expert,p,comment", words="comment").unused == (3,)


def test_its_own_name_wins_and_an_id_wins_among_synonyms():
    assert roles("event,id,expert,p")["event"] == "event"
    assert roles("question,question_id,expert,p")["event"] == "question_id"
    # Two columns that tell the same rows apart are one key in other words.
    assert roles("question,item,expert,p")["event"] == "question"
    table = FrameTable(
        [("question", ["a", "a", "b"]), ("item", ["x", "y", "x"]), ("expert", list("klm")), ("p", [0.1, 0.2, 0.3])]
    )
    with pytest.raises(
        LayoutError, match=r"columns 'question', 'item' could each be the event; .* --column event="
    ) as raised:
        recognise(Contents(table))
    assert raised.value.remedies == ({"columns": {"event": "question"}}, {"columns": {"event": "item"}})


def test_a_second_column_of_outcomes_or_priors_is_no_expert():
    found = layout("event,ann,outcome,result,prior,reference-prior")
    assert found.experts == (1,)
    assert found.unused == (3, 5)
    assert (
        "not used: 'result', 'reference-prior'"
        in layout_notes(found, ["event", "ann", "outcome", "result", "prior", "reference-prior"])[1].text
    )
    assert layout("event,ann,outcome,truth", columns={"outcome": "truth"}).unused == (2,)
    assert layout("event,x,y,outcome").experts == (1, 2)  # one letter may well be an expert
    assert layout("event,ann,result", columns={"outcome": None}).experts == (1, 2)  # as the user says


def test_columns_that_the_user_names():
    assert roles("q,item,who,p,x", columns={"event": "q", "expert": "who", "prior": "x"}) == {
        "event": "q",
        "expert": "who",
        "probability": "p",
        "prior": "x",
    }
    assert layout("event,prior,ann", columns={"prior": None}).cells == (("prior", None), ("ann", None))
    numbers = FrameTable([("event", ["a", "b"]), ("model", [0.2, 0.7]), ("p", [0.1, 0.3]), ("y", [0, 1])])
    assert recognise(Contents(numbers), {"expert": None}).cells == (("model", None), ("p", None))
    with pytest.raises(LayoutError, match=r"no column 'questoin'; did you mean 'question'?"):
        layout("question,ann", columns={"event": "questoin"})
    with pytest.raises(ArgumentError, match=r"a column can be event, .* and not 'events'"):
        layout("question,ann", columns={"events": "question"})
    with pytest.raises(LayoutError, match="column 'a' cannot be both the event and the expert"):
        layout("a,p", columns={"event": "a", "expert": "a"})


@pytest.mark.parametrize(
    ("names", "words", "told"),
    [
        ("forecaster,prediction,z", "", "none for the event among 'forecaster', 'prediction', 'z'; .* event=NAME"),
        ("event,forecaster,x,rating", "forecaster", "none for the probability among .* probability=NAME"),
        ("event,outcome", "", "no column holds forecasts. A table has a row per forecast, with columns event"),
        ("event,ann,ann", "", "two columns are called 'ann'"),
    ],
)
def test_tables_that_say_too_little(names, words, told):
    with pytest.raises(LayoutError, match=told):
        layout(names, words)


def test_columns_without_a_name():
    assert layout("event,,ann,").experts == (2,)
    assert layout("event,expert,p,").unused == ()
    with pytest.raises(LayoutError, match="column 2 has no name, and holds something"):
        recognise(Contents(FrameTable([("event", ["a"]), ("", [1]), ("ann", [0.5])])))


def test_headers_of_expert_and_class():
    wide = layout("event,a:b:home,a:b:away,c:home,c:away,outcome", words="event,outcome")
    parts = (("a:b", "home"), ("a:b", "away"), ("c", "home"), ("c", "away"))
    assert split_classes(wide, ["home"]).cells == parts
    assert split_classes(wide, []).cells == parts
    assert split_classes(wide, ["0", "1"]) is wide
    names = ["event", "a:b:home", "a:b:away", "c:home", "c:away", "outcome"]
    assert "2 experts ('a:b', 'c') by class ('home', 'away')" in layout_notes(split_classes(wide, []), names)[0].text


def test_colons_in_names_of_experts():
    for names in ("event,openai:a,other:b", "event,x:a,x:b,z"):
        wide = layout(names)
        assert split_classes(wide, []) is wide


def test_a_class_that_one_expert_lacks():
    wide = layout("event,a:home,a:away,c:home,outcome")
    with pytest.raises(
        LayoutError, match="expert 'c' has no column for class 'away': there should be one called 'c:away'"
    ):
        split_classes(wide, ["home"])
    assert split_classes(wide, []) is wide


def test_prior_columns_by_class():
    assert layout("event,prior:home,prior:away,a:home,a:away").priors == {"home": 1, "away": 2}
