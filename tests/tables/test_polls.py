"""Exports of survey tools and tournaments in German, French, Spanish and English: read right, or asked about."""

import unicodedata

import numpy as np
import pytest

from opinionpool.errors import ArgumentError, CellError, DuplicateError, LayoutError
from opinionpool.tables.diagnosis import diagnose
from opinionpool.tables.options import ReadOptions

from .reading import NAN, read, same, texts as notes, ways

ONE = "{};{};{}\nAnna;Streik?;80 %\nBernd;Streik?;60 %\nCara;Streik?;70 %\n"


@pytest.mark.parametrize(
    "header",
    [
        ("Teilnehmer", "Frage", "Prognose"),
        ("participant", "question", "forecast"),
        ("Befragte(r)", "Frage", "Wahrscheinlichkeit"),
        ("Répondant", "Événement", "Probabilité"),
        ("Encuestado", "Pregunta", "Probabilidad"),
        ("Wer", "Frage", "Prognose"),  # who answered shows in what the column holds
    ],
)
def test_a_poll_with_one_question_has_one_event(header):
    found = read(ONE.format(*header))
    assert found.events == ("Streik?",)
    assert found.experts == ("Anna", "Bernd", "Cara")
    same(found, [[0.8, 0.6, 0.7]])


def test_numbers_of_answers_are_no_events_beside_one_question():
    for who in ("Teilnehmer", "Wer"):
        found = read(f"ID;{who};Frage;Prognose;Status\n17;Anna;Streik?;0,8;ok\n18;Bernd;Streik?;0,6;ok\n")
        assert (found.events, found.experts) == (("Streik?",), ("Anna", "Bernd"))


@pytest.mark.parametrize("header", ["confidence", "weight", "p2"])
@pytest.mark.parametrize("questions", [("rain?", "rain?"), ("rain?", "snow?")])
def test_a_column_called_probability_is_no_expert_beside_another_number(header, questions):
    text = f"question,name,probability,{header}\n"
    rows = [(question, name) for question in dict.fromkeys(questions) for name in ("ann", "bob")]
    text += "".join(f"{question},{name},.{i + 2},.9\n" for i, (question, name) in enumerate(rows))
    found = read(text)
    assert found.events == tuple(dict.fromkeys(questions))
    assert found.experts == ("ann", "bob")
    same(found, np.array([[0.2, 0.3], [0.4, 0.5]])[: len(found.events)])
    assert notes(found)["unused-columns"] == f"not used: '{header}'"


def test_one_question_whose_answers_were_revised_is_read_where_a_name_says_who_answered():
    text = "{};Frage;Prognose;Zeitstempel\nAnna;S?;80 %;17.11.2026 09:00\nAnna;S?;20 %;03.11.2026 09:00\n"
    text += "Bernd;S?;60 %;03.11.2026 10:00\n"
    for header in ("Teilnehmer", "Wer"):
        same(read(text.format(header), duplicates="last"), [[0.8, 0.6]])
    with pytest.raises(DuplicateError, match="Say which counts: --duplicates last"):
        read(text.format("Wer"))
    with pytest.raises(LayoutError) as caught:
        read(text.format("Abteilung"))
    assert {"columns": {"expert": "Abteilung"}} in caught.value.remedies


@pytest.mark.parametrize("dates", [("2024-01-01,", "2024-01-02,"), ("", "")])
def test_one_question_on_all_rows_of_a_wide_table_is_asked_about(dates):
    text = "question,date,ann,bob\n" if dates[0] else "question,ann,bob\n"
    text += f"rain?,{dates[0]}.2,.3\nrain?,{dates[1]}.4,.3\n"
    with pytest.raises(LayoutError, match="repeat events, by 'question'") as caught:
        read(text)
    assert caught.value.remedies == ({"columns": {"event": "question"}}, {"columns": {"event": None}})
    found = read(text, columns={"event": "question"}, duplicates="last")
    assert (found.events, found.experts) == (("rain?",), ("ann", "bob"))
    same(found, [[0.4, 0.3]])
    same(read(text, columns={"event": None}), [[0.2, 0.3], [0.4, 0.3]])


# Newest row first, as many tools export.
NEWEST = "Teilnehmer;Frage;Prognose;{}\nAnna;F1;80 %;17.11.2026 09:00\nAnna;F1;20 %;03.11.2026 09:00\n"


@pytest.mark.parametrize(
    "name", ["Zeitstempel", "Horodateur", "Erstellt am", "Abgegeben am", "Submitted at", "Fecha", "Soumis le"]
)
def test_the_last_in_time_counts_where_a_name_for_times_is_known(name):
    same(read(NEWEST.format(name), duplicates="last"), [[0.8]])


def test_times_under_an_unknown_name_are_offered_and_never_overlooked():
    text = NEWEST.format("Stand")
    with pytest.raises(DuplicateError, match=r"--column time=Stand --duplicates last, .*last is the last by 'Stand'"):
        read(text)
    (by_time, found), (mean, _) = ways(text)
    assert by_time == ["--column", "time=Stand", "--duplicates", "last"]
    assert mean == ["--duplicates", "mean"]
    same(found, [[0.8]])
    with pytest.raises(
        DuplicateError, match=r"which of several .* is the last, and 'Stand' holds times: .*--column time=Stand, or"
    ):
        read(text, duplicates="last")
    same(read(text, duplicates="last-row"), [[0.2]])
    same(read(text, duplicates="last", columns={"time": None}), [[0.2]])
    with pytest.raises(LayoutError, match=r"no column is known to hold times, .* say --column time=Stand, or"):
        read(text, duplicates="time-weighted")
    for rule in ("last-row", "mean"):
        assert notes(read(text, duplicates=rule))["unused-columns"].endswith("say --column time=Stand")


def test_times_under_an_unknown_name_are_offered_where_they_are_needed():
    text = "Teilnehmer;Frage;Prognose;Stand\nAnna;F1;80 %;17.11.2026\nBernd;F1;20 %;03.11.2026\n"
    ((options, found),) = ways(text, as_of="2026-11-10")
    assert options == ["--column", "time=Stand", "--as-of", "2026-11-10"]
    same(found, [[NAN, 0.2]])


def test_when_outcomes_were_known_by_name_and_by_what_a_column_holds():
    text, outcomes = "Frage;Anna;Bernd\nF1;0,8;0,6\nF2;0,2;0,1\n", "Frage;Ergebnis;{};Ort\nF1;ja;05.12.2026;x\n"
    found = read(text, outcomes.format("Aufgelöst am"))
    assert found.times.astype(str).tolist()[0].startswith("2026-12-05")
    assert notes(found)["unused-columns"].endswith("'Ort'")
    assert (
        "'Stand' holds times: if outcomes were known then, say --column resolved_at=Stand"
        in (notes(read(text, outcomes.format("Stand")))["unused-columns"])
    )


ACCENTS = [unicodedata.normalize("NFD", word) for word in ("annulé", "retirée", "inválido", "zurückgezogen")]


@pytest.mark.parametrize(
    "word", ["zurückgezogen", "Storniert", "annulé", "anulada", "withdrawn", "entfällt", "MKT", *ACCENTS]
)
def test_retracted_questions_are_void_in_four_languages(word):
    found = read(f"Frage;Anna;Ergebnis\nF1;0,8;ja\nF2;0,3;{word}\nF3;0,2;nein\n")
    assert found.events == ("F1", "F3")
    assert found.void.events == ("F2",)


def test_a_word_for_void_can_be_named_and_one_that_is_a_class_is_a_class():
    text = "Frage;Anna;Ergebnis\nF1;0,8;ja\nF2;0,3;vertagt\nF3;0,2;nein\n"
    with pytest.raises(CellError, match=r"--missing-value vertagt, or --void-value vertagt"):
        read(text)
    assert read(text, void_values="vertagt").void.events == ("F2",)
    commands = [options for options, _ in ways(text)]
    assert commands == [["--missing-value", "vertagt"], ["--void-value", "vertagt"]]
    found = read("q,ann,outcome\na,0.8,withdrawn\nb,0.3,stays\n", positive="withdrawn")
    assert found.outcomes.tolist() == [1, 0]
    assert found.void is None
    # The opposite of the only other outcome is one.
    found = read("q,ann,outcome\na,0.8,valid\nb,0.3,invalid\n", positive="valid")
    assert found.outcomes.tolist() == [1, 0]
    with pytest.raises(LayoutError, match="the outcomes are 'invalid', 'valid': which of them"):
        read("q,ann,outcome\na,0.8,valid\nb,0.3,invalid\n")


def test_a_word_for_void_that_counts_as_a_class_is_noted():
    text = "event,ann,outcome\na,.2,approved\nb,.3,withdrawn\nc,.4,approved\n"
    found = read(text, positive="approved")
    assert found.outcomes.tolist() == [1, 0, 1]
    assert notes(found)["void-class"] == (
        "outcome 'withdrawn' counts as a class, not as void: if it is void, say --void-value withdrawn"
    )
    both = {"classes": ["rejected", "approved"], "positive": "approved"}
    for found in (
        read(text, **both),
        read(text, **both, void_values="withdrawn"),
        read(text + "d,.4,rejected\n", **both),
    ):
        assert found.void.events == ("b",)
        assert "void-class" not in notes(found)
    assert "void-class" not in notes(read(text, classes=["withdrawn", "approved"], positive="approved"))


def test_options_of_each_event_have_void_words_too():
    text = "event,expert,class,probability,outcome\na,x,p,0.4,p\na,x,q,0.6,p\nb,x,r,0.3,{0}\nb,x,s,0.7,{0}\n"
    assert read(text.format("retracted")).void.events == ("b",)
    with pytest.raises(CellError, match="--void-value moot"):
        read(text.format("moot"))
    assert read(text.format("moot"), void_values=["moot"]).void.events == ("b",)


@pytest.mark.parametrize("gap", ["", " ", "\u00a0", "\u202f", "\u2009"])
def test_per_cent_signs_after_any_blank(gap):
    same(read(f"expert;event;probability\nJean;Q1;65{gap}%\nMarie;Q1;40,5{gap}%\n"), [[0.65, 0.405]])


@pytest.mark.parametrize("question", ["Regen für München?", '"Regen?\nStichtag: März"'])
def test_a_file_that_excel_saved_is_read_by_the_command_that_is_proposed(question, tmp_path):
    path = tmp_path / "umfrage.csv"
    path.write_bytes(f"Teilnehmer;Frage;Prognose\r\nJörg;{question};80 %\r\n".encode("cp1252"))
    (way,) = diagnose(path).readable
    assert way.options.arguments() == ["--encoding", "cp1252"]
    assert way.forecasts.experts == ("Jörg",)


def test_percentages_in_one_column_and_fractions_in_another():
    text = "event;ann;bob\nq1;65;0.9\nq2;35;0.3\n"
    with pytest.raises(CellError, match=r"line 2, column 'ann': 65 .* all numbers of 'bob' are, .*: say --unit ann="):
        read(text)
    (unit, found), (exclude, without) = ways(text)
    assert unit == ["--unit", "ann=percent"]
    assert exclude == ["--exclude", "ann"]
    same(found, [[0.65, 0.9], [0.35, 0.3]])
    same(without, [[0.9], [0.3]])
    with pytest.raises(CellError, match=r"with --percent, no number of 'bob' is above 1%.*--unit bob=fraction if"):
        read(text, percent=True)
    same(read(text, percent=True, units={"bob": "fraction"}), [[0.65, 0.9], [0.35, 0.3]])
    same(read(text, percent=True, units={"bob": "percent"}), [[0.65, 0.9 / 100], [0.35, 0.3 / 100]])


def test_one_person_writes_fractions_among_percentages():
    rows = [(q, who, p) for q, base in (("q1", 35), ("q2", 70)) for who, p in (("ann", base), ("bob", base + 5))]
    rows += [("q1", "cy", 0.35), ("q2", "cy", 0.5)]
    text = "event,expert,probability\n" + "".join(f"{q},{who},{p}\n" for q, who, p in rows)
    ((options, found),) = ways(text)
    assert options == ["--percent", "--unit", "cy=fraction"]
    same(found, [[0.35, 0.4, 0.35], [0.7, 0.75, 0.5]])
    assert [options for options, _ in ways(text, percent=True)] == [
        ["--percent", "--unit", "cy=fraction"],
        ["--percent", "--unit", "cy=percent"],
    ]


def test_numbers_below_one_among_percentages_are_noted():
    text = "event,ann,bob\na,20,0.3\nb,60,4\nc,70,.5\nd,1,1\n"
    found = read(text, percent=True)
    same(found, [[0.2, 0.003], [0.6, 0.04], [0.7, 0.005], [0.01, 0.01]])
    assert notes(found)["small-percentages"] == (
        "numbers below 1 of 'bob' count as less than 1%, 0.5 as 0.5%: write 50 if 50% is meant"
    )
    assert "small-percentages" not in notes(read(text, units={"bob": "percent", "ann": "percent"}))
    assert "small-percentages" not in notes(read(text.replace("0.3", "30"), percent=True))


def test_a_prior_in_per_cent_beside_fractions_and_the_other_way_round():
    text = "event;ann;bob;prior\nq1;0,65;0,9;30\nq2;0,4;0,9;40\n"
    ((options, found),) = ways(text)
    assert options == ["--unit", "prior=percent"]
    np.testing.assert_allclose(found.prior, [0.3, 0.4])
    same(found, [[0.65, 0.9], [0.4, 0.9]])
    text = "event;ann;bob;prior\nq1;65;90;0,3\nq2;40;90;0,4\n"
    (as_fraction, _) = ways(text)
    assert as_fraction[0] == ["--percent", "--unit", "prior=fraction"]
    np.testing.assert_allclose(as_fraction[1].prior, [0.3, 0.4])


def test_units_of_classes_and_of_nobody():
    text = "event,ann:a,ann:b,ann:c,bob:a,bob:b,bob:c\nq,50,30,20,0.2,0.2,0.6\nr,10,30,60,0.1,0.1,0.8\n"
    (unit, _) = ways(text)
    assert unit[0] == ["--unit", "ann=percent"]
    np.testing.assert_allclose(unit[1].probabilities[:2], [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    with pytest.raises(LayoutError, match=r"none is called 'bod'; did you mean 'bob'"):
        read("event,ann,bob\nq,0.5,0.4\n", units={"bod": "percent"})
    with pytest.raises(ArgumentError, match=r"a unit is percent or fraction, and that of 'ann' is 'odds'"):
        ReadOptions(units={"ann": "odds"})


PEOPLE = "Name,Q1,Q2,Q3\nAnna,0.65,0.2,0.05\nBernd,0.7,,0.1\nCara,0.4,0.35,\n"
FORM = (
    "ID,Zeitstempel,Name,Abteilung,Alter,Q1,Q2,Q3\n17,03.11.2026 09:00,Anna,Vertrieb,34,0.65,0.2,0.05\n"
    "19,03.11.2026 09:10,Bernd,Vertrieb,51,0.7,,0.1\n22,04.11.2026 09:10,Cara,IT,45,0.4,0.35,\n"
)
ANSWERS = [[0.65, 0.7, 0.4], [0.2, NAN, 0.35], [0.05, 0.1, NAN]]


@pytest.mark.parametrize("text", [PEOPLE, FORM])
def test_people_in_rows_and_questions_in_columns(text):
    if text == PEOPLE:
        with pytest.raises(LayoutError) as caught:
            read(text)
        assert caught.value.remedies == ({"columns": {"expert": "Name"}},)
    by_people = read(text, columns={"expert": "Name"})
    joined = read(text, "question,outcome\nQ1,1\nQ2,\nQ3,0\n")
    for found in (by_people, joined):
        assert found.events == ("Q1", "Q2", "Q3")
        assert found.experts == ("Anna", "Bernd", "Cara")
        same(found, ANSWERS)
    assert joined.outcomes.tolist() == [1, -1, 0]
    assert "expert = Name" in notes(joined)["layout"]


@pytest.mark.parametrize(
    ("header", "values"),
    [("weight", (".5", "1.0")), ("weight", ("1.5", "1.0")), ("Gewicht", ("2", "1")), ("experience_years", ("3", "12"))],
)
@pytest.mark.parametrize("answers", [(("0.2", "0.3"), ("0.5", "0.6")), (("0.2",), ("0.5",))])
def test_weights_and_experience_of_people_are_no_questions(header, values, answers):
    text = f"respondent,{header},Q1" + ",Q2" * (len(answers[0]) - 1) + "\n"
    for name, value, own in zip(("ann", "bob"), values, answers, strict=True):
        text += ",".join([name, value, *own]) + "\n"
    found = read(text)
    assert found.events == ("Q1", "Q2")[: len(answers[0])]
    same(found, np.array(answers, dtype=float).T)
    assert notes(found)["unused-columns"] == f"not used: '{header}'"


def test_names_of_rows_may_be_those_of_events_or_of_experts():
    text = "Name,Anna,Bernd\nRegen,0.2,0.4\nSchnee,0.1,0.3\n"
    with pytest.raises(LayoutError) as caught:
        read(text)
    assert caught.value.remedies == ({"columns": {"event": "Name"}}, {"columns": {"expert": "Name"}})
    assert read(text, **caught.value.remedies[0]).events == ("Regen", "Schnee")
    # What a column calls its rows wins over how the others read.
    assert read("event,Q1,Q2\na,0.2,0.4\nb,0.1,0.3\n").experts == ("Q1", "Q2")


def test_events_that_hardly_differ_are_noted():
    names = ["Wird es – regnen?", "Wird es - regnen?", "Wird es -  regnen?", "wird es - regnen?", "Und Schnee?"]
    found = read("event,ann\n" + "".join(f"{name},0.5\n" for name in names))
    assert found.events == tuple(names)
    assert notes(found)["similar-events"].startswith("'Wird es – regnen?' and 'Wird es - regnen?' and ")
    assert "similar-events" not in notes(read("event,ann\n1-1,0.5\n11,0.4\nT 5,0.3\nT -5,0.3\n"))


def test_a_weight_is_no_expert_and_a_confidence_is_asked_about():
    text = "event,ann,bob,Confidence,Gewicht\nq1,0.8,0.7,0.9,1\nq2,0.3,0.2,0.7,0.5\n"
    with pytest.raises(LayoutError, match="'Confidence' is no forecast") as caught:
        read(text)
    assert {"columns": {"probability": ("ann", "bob")}} in caught.value.remedies
    found = read(text, columns={"probability": ["ann", "bob"]})
    assert found.experts == ("ann", "bob")
    assert notes(found)["unused-columns"] == "not used: 'Confidence', 'Gewicht'"


def test_per_cent_signs_on_some_numbers_are_asked_about():
    text = "event,ann\nq1,65 %\nq2,1\nq3,0.4\n"
    (percent, of_percent), (fraction, of_fraction) = ways(text)
    assert (percent, fraction) == (["--unit", "ann=percent"], ["--unit", "ann=fraction"])
    same(of_percent, [[0.65], [0.01], [0.004]])
    same(of_fraction, [[0.65], [1.0], [0.4]])


def test_options_that_add_up_to_less_can_be_normalised():
    text = "event,expert,class,p\na,x,r,0.50\na,x,g,0.30\na,x,b,0.15\n"
    with pytest.raises(CellError, match=r"add up to 0.95 .*--normalise divides such forecasts by their sum"):
        read(text)
    ((options, found),) = ways(text)
    assert options == ["--normalise"]
    np.testing.assert_allclose(found.probabilities, [np.array([15, 30, 50]) / 95])  # b, g, r
    assert notes(found)["normalised"] == "1 of 1 forecast did not add up to 1 (0.05 at most): normalised"
    assert ways(text.replace("0.50", "0.10")) == []  # a class may be lacking
    with pytest.raises(CellError, match="add up to 0 over"):
        read("event,expert,class,p\na,x,r,0\na,x,g,0\na,x,b,0\n", normalise=True)


def test_sums_far_below_one_are_not_normalised():
    text = "event,expert,class,p\na,x,r,.5\na,x,g,.25\na,x,b,.2\nb,x,r,.01\nb,x,g,0\nb,x,b,0\n"
    with pytest.raises(
        CellError, match=r"by 'x' on event 'b' add up to 0.01 .*line 5\); that is too little for --norm"
    ):
        read(text, normalise=True)
    enough = text.replace(".01", ".51")
    np.testing.assert_allclose(read(enough, normalise=True).probabilities[1], [0, 0, 1])
