"""Evidence on a file: beliefs beside outcomes, and how good the pool is, computed in the background."""

import functools
import time
from dataclasses import replace

import numpy as np
import pytest

from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.page import session as evidence
from opinionpool.page.answer import PageData, answer
from opinionpool.page.assessment import acted
from opinionpool.page.session import Look, PageInputs, Session, start_of
from opinionpool.page.views import events as events_view, evidence as evidence_view, matching, notes, top
from opinionpool.report.blocks import rendered
from opinionpool.report.findings import find
from opinionpool.scoring.splits import Splits
from opinionpool.tables.read import read_forecasts

from .test_handover import forecasts_file


@pytest.fixture
def data(tmp_path):
    return PageData(read_forecasts(forecasts_file(tmp_path)))


def scene_of(a, data, view="evidence"):
    return PageInputs(a, Look(view), data, answer(a, data))


def test_beliefs_stand_beside_what_was_learned(data):
    a = acted(start_of(data, None), {"do": "accuracy", "expert": 1, "unit": "auc", "value": 0.7})
    html = evidence_view(scene_of(a, data))
    state = data.learned(a)
    before = data.before(a)
    assert "0.70 → " in html
    for i in range(3):
        assert f"{before[i]:.2f} → {state.weights[i]:.2f}" in html


def test_what_takes_long_comes_later(data, monkeypatch):
    monkeypatch.setattr(evidence, "find", functools.partial(find, splits=Splits(repeats=1)))
    found = evidence.Evidence(data)
    inputs = scene_of(start_of(data, None), data)
    first = found.now(inputs)
    assert first["again"]
    deadline = time.monotonic() + 120
    while found.now(inputs)["again"] and time.monotonic() < deadline:
        time.sleep(0.1)
    html = found.now(inputs)["html"]
    assert [html.count(f'<section id="{section}"') for section in evidence.SHOWN] == [1, 1, 1]
    assert " style=" not in html
    found.close()


def test_events_are_found_and_ordered(data):
    pooled = data.pooled()
    p = pooled.probabilities
    assert matching(pooled, "", "file").tolist() == list(range(32))
    assert matching(pooled, "Q3 ", "file").tolist() == [t for t in range(32) if "q3" in pooled.forecasts.events[t]]
    assert (np.diff(p[matching(pooled, "", "high")]) <= 0).all()
    assert (np.diff(p[matching(pooled, "", "low")]) >= 0).all()
    assert matching(pooled, "", "open")[:2].tolist() == [30, 31]
    assert matching(pooled, "", "few")[0] == 31
    assert matching(pooled, "nowhere", "high").tolist() == []


def test_a_hundred_thousand_events_are_searched_quickly():
    rng = np.random.default_rng(0)
    f = Forecasts.from_array(rng.uniform(0.1, 0.9, (100_000, 2)), events=[f"question {i}" for i in range(100_000)])
    pooled = PageData(f).pooled()
    busy = time.thread_time()
    assert len(matching(pooled, "99 question", "high")) == sum("99" in str(i) for i in range(100_000))
    assert time.thread_time() - busy < 1.0


def test_who_is_chosen_first_and_what_a_choice_keeps(data):
    session = Session(data, start_of(data, None))
    session.act({"do": "worth", "expert": 1, "value": "50"})
    session.act({"do": "event", "value": 0})
    assert session.present.question == "q0"
    assert session.present.experts[0].beliefs.given
    assert [note.code for note in session.inputs().found.notes][-1] == "in-sample"
    session.act({"do": "undo"})
    assert session.present.question == "q30"


def test_questions_stand_in_the_words_of_the_file():
    f = Forecasts.from_array([[0.2, 0.4]], [None], events=["q1"])
    data = PageData(replace(f, texts=("Will it <rain>?",)))
    inputs = scene_of(start_of(data, None), data)
    assert inputs.question == "Will it <rain>?"
    for html in (top(inputs), events_view(inputs, data.pooled())):
        assert "Will it &lt;rain&gt;?" in html
        assert "<bdi>q1</bdi>" in html
    assert matching(data.pooled(), "RAIN", "file").tolist() == [0]


def test_notes_that_matter_most_come_first_and_the_others_are_folded(data):
    inputs = scene_of(start_of(data, None), data)
    found = replace(inputs.found, notes=(Note("recency", "x"), Note("topics", "y"), Note("clones", "z", serious=True)))
    first, second, folded = rendered(notes(inputs, found)).split("\n")
    assert (first, second) == ('<p class="note">Z.</p>', '<p class="note">X.</p>')
    assert "1 more note" in folded
    assert "Y." in folded
