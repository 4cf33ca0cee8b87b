"""Findings: texts come from the table of messages, numbers add up over parts, and errors have codes and remedies."""

import re
from string import Formatter

import pytest

from opinionpool import errors
from opinionpool.findings import Place, Remedy, added_up, fault, finding, messages


def test_texts_have_numbers_with_nouns_names_that_are_cut_and_verbs():
    found = finding("where", count=1200, total=4000)
    assert found.text == "1,200 of 4,000 rows left out by --where"
    assert (found.code, found.count, found.serious) == ("where", 1200, False)


def test_the_note_on_a_whole_is_the_sum_of_those_on_its_parts():
    parts = [finding("where", count=n, total=10) for n in (1, 2, 3)]
    whole = added_up([*parts, finding("sheet", file="a.xlsx", sheet="S", others=("T",))])
    assert [note.text for note in whole] == ["6 of 30 rows left out by --where", "a.xlsx: sheet 'S' read, and not 'T'"]
    assert whole[0].count == 6


def test_notes_on_different_things_stay_apart():
    notes = [finding("sheet", file=file, sheet="S", others=()) for file in ("a", "b", "a")]
    assert [note.params["file"] for note in added_up(notes)] == ["a", "b"]


def test_a_place_names_lines_rows_and_further_files():
    further = Place("b.csv", (3,))
    assert str(Place("a.csv", (2, 7), column="p", others=(further,))) == "a.csv, lines 2, 7; b.csv, line 3, column 'p'"
    assert str(Place("the table", (0,), "row")) == "the table, row 0"


def test_an_error_has_its_class_code_place_and_remedies():
    place = Place("f.csv", (3,), value="0xe9")
    error = fault("not-utf-8", place, [Remedy({"encoding": "cp1252"})], use="Windows, western Europe")
    assert type(error) is errors.TableError
    assert error.finding.code == "not-utf-8"
    assert error.finding.place.rows == (3,)
    assert error.remedies == ({"encoding": "cp1252"},)
    assert str(error) == (
        "f.csv, line 3: the byte 0xe9 is not UTF-8. Say which encoding the file has, such as --encoding cp1252 "
        "(Windows, western Europe) or --encoding latin-1."
    )


def test_a_sentence_on_a_remedy_that_is_not_offered_is_left_out():
    assert str(fault("not-utf-8", Place("f.csv", (3,), value="0xe9"))) == "f.csv, line 3: the byte 0xe9 is not UTF-8."


@pytest.mark.parametrize("message", messages().values(), ids=list(messages()))
def test_templates_are_well_formed_and_kinds_are_classes_of_errors(message):
    assert message.text
    assert message.kind in {"", "serious"} or hasattr(errors, message.kind)
    for part in Formatter().parse(message.text + message.do):
        assert not part[1] or re.fullmatch(r"\w+", part[1])
