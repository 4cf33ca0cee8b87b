"""Exports of survey tools and tournaments in German, French, Spanish and English: read right, or asked about."""

import io

import numpy as np
import pytest

from opinionpool.errors import CellError, DuplicateError, LayoutError
from opinionpool.tables.diagnosis import diagnose
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.read import read_forecasts

NAN = float("nan")


def read(text, outcomes=None, **options):
    other = None if outcomes is None else io.BytesIO(outcomes.encode())
    return read_forecasts(io.BytesIO(text.encode()), outcomes=other, **options)


def notes(found):
    return {note.code: note.text for note in found.notes}


def ways(text, outcomes=None, **options):
    """The options of each command that ``check`` would print, and the forecasts that it leads to."""
    other = None if outcomes is None else io.BytesIO(outcomes.encode())
    found = diagnose(io.BytesIO(text.encode()), other, ReadOptions(**options))
    return [(way.options.arguments(), way.forecasts) for way in found.readable]


def told(text, outcomes=None, **options):
    found = diagnose(io.BytesIO(text.encode()), None if outcomes is None else io.BytesIO(outcomes.encode()))
    return " ".join(fault.text for fault in found.faults)


def same(found, x):
    np.testing.assert_allclose(found.X, x, atol=1e-12)


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


def test_one_question_whose_answers_were_revised_is_read_or_asked_about():
    text = "{};Frage;Prognose;Zeitstempel\nAnna;S?;80 %;17.11.2026 09:00\nAnna;S?;20 %;03.11.2026 09:00\n"
    text += "Bernd;S?;60 %;03.11.2026 10:00\n"
    found = read(text.format("Teilnehmer"), duplicates="last")
    same(found, [[0.8, 0.6]])
    with pytest.raises(LayoutError, match=r"'Frage' has one question on every row.*--column expert=Wer$"):
        read(text.format("Wer"), duplicates="last")
    ((options, found),) = ways(text.format("Wer"))
    assert options == ["--column", "expert=Wer", "--duplicates", "last"]
    same(found, [[0.8, 0.6]])


def test_one_question_and_nobody_named_is_an_error():
    with pytest.raises(LayoutError, match=r"no column is known to say whose: name it with --column expert=NAME"):
        read("Nr;Frage;Prognose\n1;S?;0,8\n2;S?;0,6\n")


# Newest row first, as many tools export.
NEWEST = "Teilnehmer;Frage;Prognose;{}\nAnna;F1;80 %;17.11.2026 09:00\nAnna;F1;20 %;03.11.2026 09:00\n"


@pytest.mark.parametrize(
    "name",
    "Zeitstempel Horodateur|Erstellt am|Abgegeben am|Submitted at|Fecha|Marca temporal|Soumis le|Recorded Date".split("|"),
)
def test_the_last_in_time_counts_where_a_name_for_times_is_known(name):
    for each in name.split(" ") if name.startswith("Zeitstempel") else [name]:
        same(read(NEWEST.format(each), duplicates="last"), [[0.8]])


def test_times_under_an_unknown_name_are_offered_and_never_overlooked():
    text = NEWEST.format("Stand")
    with pytest.raises(DuplicateError, match=r"--column time=Stand --duplicates last for the last by 'Stand'"):
        read(text)
    (by_time, found), (mean, _) = ways(text)
    assert by_time == ["--column", "time=Stand", "--duplicates", "last"]
    assert mean == ["--duplicates", "mean"]
    same(found, [[0.8]])
    with pytest.raises(DuplicateError, match=r"last row of .* is not the latest by 'Stand', .*--column time=Stand, or"):
        read(text, duplicates="last")
    same(read(text, duplicates="last-row"), [[0.2]])
    same(read(text, duplicates="last", columns={"time": None}), [[0.2]])
    with pytest.raises(LayoutError, match=r"no column is known to hold times, .* say --column time=Stand, or"):
        read(text, duplicates="time-weighted")
    for rule in ("last-row", "mean"):
        assert notes(read(text, duplicates=rule))["unused-columns"].endswith("say --column time=Stand")


def test_rows_in_the_order_of_their_times_need_no_word():
    head, late, early = NEWEST.format("Stand").splitlines()
    found = read("\n".join([head, early, late]), duplicates="last")
    same(found, [[0.8]])
    assert "the last row of the file, which is also the latest by 'Stand', counts" in notes(found)["duplicates"]


def test_times_of_events_are_no_times_of_forecasts():
    text = "Frage;Teilnehmer;Prognose;Stichtag\nF1;Anna;0,8;01.12.2026\nF1;Anna;0,2;01.12.2026\nF2;Anna;0,5;02.12.2026\n"
    found = read(text, duplicates="last")
    assert notes(found)["unused-columns"] == "not used: 'Stichtag'"
    assert "the last row of the file counts" in notes(found)["duplicates"]


def test_when_outcomes_were_known_by_name_and_by_what_a_column_holds():
    text, outcomes = "Frage;Anna;Bernd\nF1;0,8;0,6\nF2;0,2;0,1\n", "Frage;Ergebnis;{};Ort\nF1;ja;05.12.2026;x\n"
    found = read(text, outcomes.format("Aufgelöst am"))
    assert found.times.astype(str).tolist()[0].startswith("2026-12-05")
    assert notes(found)["unused-columns"].endswith("'Ort'")
    assert "'Stand' holds times: if outcomes were known then, say --column resolved_at=Stand" in (
        notes(read(text, outcomes.format("Stand")))["unused-columns"]
    )


@pytest.mark.parametrize("word", ["zurückgezogen", "Storniert", "annulé", "anulada", "withdrawn", "void", "entfällt"])
def test_retracted_questions_are_void_in_four_languages(word):
    found = read(f"Frage;Anna;Ergebnis\nF1;0,8;ja\nF2;0,3;{word}\nF3;0,2;nein\n")
    assert found.events == ("F1", "F3")
    assert found.void.events == ("F2",)


def test_a_word_for_void_can_be_named_and_one_that_is_a_class_is_a_class():
    text = "Frage;Anna;Ergebnis\nF1;0,8;ja\nF2;0,3;vertagt\nF3;0,2;nein\n"
    with pytest.raises(CellError, match=r"--missing-value vertagt; .* void, --void-value vertagt"):
        read(text)
    assert read(text, void_values="vertagt").void.events == ("F2",)
    commands = [options for options, _ in ways(text)]
    assert commands == [["--missing-value", "vertagt"], ["--void-value", "vertagt"]]
    found = read("q,ann,outcome\na,0.8,withdrawn\nb,0.3,stays\n", positive="withdrawn")
    assert found.outcomes.tolist() == [1, 0]
    assert found.void is None


def test_options_of_each_event_have_void_words_too():
    text = "event,expert,class,probability,outcome\na,x,p,0.4,p\na,x,q,0.6,p\nb,x,r,0.3,{0}\nb,x,s,0.7,{0}\n"
    assert read(text.format("retracted")).void.events == ("b",)
    with pytest.raises(CellError, match="--void-value moot"):
        read(text.format("moot"))
    assert read(text.format("moot"), void_values=["moot"]).void.events == ("b",)


@pytest.mark.parametrize("gap", ["", " ", "\u00a0", "\u202f", "\u2009"])
def test_per_cent_signs_after_any_blank(gap):
    same(read(f"expert;event;probability\nJean;Q1;65{gap}%\nMarie;Q1;40,5{gap}%\n"), [[0.65, 0.405]])


def test_dates_with_dots_have_days_first():
    found = read("event,expert,p,time\na,x,0.2,03.11.2026\na,x,0.6,04.10.2026\n", duplicates="last")
    same(found, [[0.2]])
    assert "days first" in notes(found)["dates"]
    with pytest.raises(CellError, match="--dates dmy"):
        read("event,expert,p,time\na,x,0.2,03/11/2026\na,x,0.6,04/10/2026\n", duplicates="last")


def test_multiple_choice_with_a_column_of_options():
    text = "Teilnehmer;Frage;Option;Wahrscheinlichkeit;Datum\n"
    text += "".join(
        f"{who};F1;{label};{p};03.11.2026\n"
        for who, ps in (("Anna", (50, 30, 20)), ("Bernd", (60, 30, 10)))
        for label, p in zip("ABC", ps, strict=True)
    )
    found = read(text, percent=True)
    assert found.classes == ("A", "B", "C")
    np.testing.assert_allclose(found.probabilities, [[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]])


@pytest.mark.parametrize("question", ["Regen für München?", '"Regen?\nStichtag: März"'])
def test_a_file_that_excel_saved_is_read_by_the_command_that_is_proposed(question, tmp_path):
    path = tmp_path / "umfrage.csv"
    path.write_bytes(f"Teilnehmer;Frage;Prognose\r\nJörg;{question};80 %\r\n".encode("cp1252"))
    (way,) = diagnose(path).readable
    assert way.options.arguments() == ["--encoding", "cp1252"]
    assert way.forecasts.experts == ("Jörg",)
