"""Exports of survey tools and tournaments in German, French, Spanish and English: read right, or asked about."""

import unicodedata

import numpy as np
import pytest

from opinionpool.tables.diagnosis import diagnose

from .reading import NAN, read, same, texts as notes

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


PEOPLE = "Name,Q1,Q2,Q3\nAnna,0.65,0.2,0.05\nBernd,0.7,,0.1\nCara,0.4,0.35,\n"
FORM = (
    "ID,Zeitstempel,Name,Abteilung,Alter,Q1,Q2,Q3\n17,03.11.2026 09:00,Anna,Vertrieb,34,0.65,0.2,0.05\n"
    "19,03.11.2026 09:10,Bernd,Vertrieb,51,0.7,,0.1\n22,04.11.2026 09:10,Cara,IT,45,0.4,0.35,\n"
)
ANSWERS = [[0.65, 0.7, 0.4], [0.2, NAN, 0.35], [0.05, 0.1, NAN]]


@pytest.mark.parametrize("text", [PEOPLE, FORM])
def test_people_in_rows_and_questions_in_columns(text):
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
