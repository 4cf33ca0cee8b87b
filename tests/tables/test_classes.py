"""Classes and outcomes: which class a probability is about is known, said, or asked; never guessed."""

from decimal import Decimal

import numpy as np
import pytest

from opinionpool.errors import CellError, LayoutError
from opinionpool.tables.classes import ClassOptions, order_classes
from opinionpool.tables.event_facts import EventColumn
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.outcomes import settle
from opinionpool.tables.table import read_frame


def settled(outcomes, stated=(), missing=(), **asked):
    """Classes and outcomes of events that have one row each."""
    table = read_frame({"y": outcomes})
    words = table.words(0)
    observed = [EventColumn(table, 0, words, np.arange(len(outcomes)))]
    events = [f"q{i}" for i in range(len(outcomes))]
    found = settle(observed, events, stated, ReadOptions(missing_values=missing, **asked))
    return found.classes, found.outcomes.tolist(), {note.code: note.text for note in found.notes}


LOANS, GAMES = ["default", "repaid", "Default"], ["home", "draw", "away"]
# Outcomes, the classes that forecasts were given for, and what the user says: the classes, and which of them happened.
SETTLED = [
    (["1", "0", "1.0", "0.0", None], (), {}, (0, 1), [1, 0, 1, 0, -1]),
    (["1.00", "0.00", "1,0", None], (), {}, (0, 1), [1, 0, 1, -1]),
    (["100%", "0%", "100.0 %"], (), {}, (0, 1), [1, 0, 1]),
    ([Decimal("1.00"), Decimal("0.00")], (), {}, (0, 1), [1, 0]),
    (["Yes", "No ", "yes", "No"], (), {}, ("No", "Yes"), [1, 0, 1, 0]),
    (["TRUE", "true", "TRUE"], (), {}, ("FALSE", "TRUE"), [1, 1, 1]),
    (["y", "n"], (), {}, ("n", "y"), [1, 0]),
    (["sí", "no"], (), {}, ("no", "sí"), [1, 0]),
    (["Si", "No"], (), {}, ("No", "Si"), [1, 0]),
    (["vrai", "faux"], (), {}, ("faux", "vrai"), [1, 0]),
    (["wahr", "falsch"], (), {}, ("falsch", "wahr"), [1, 0]),
    (["No"], (), {}, ("No", "Yes"), [0]),
    ([True, False, None], (), {}, ("False", "True"), [1, 0, -1]),
    ([1.0, 0.0, float("nan")], (), {}, (0, 1), [1, 0, -1]),
    (["", None], (), {}, (0, 1), [-1, -1]),
    # Of two named classes the positive one is asked for; it can be the other one of a known pair.
    (LOANS, (), {"positive": "default"}, ("repaid", "Default"), [1, 0, 1]),
    (LOANS, (), {"positive": "repaid"}, ("Default", "repaid"), [0, 1, 0]),
    (LOANS, (), {"classes": ("default", "repaid")}, ("Default", "repaid"), [0, 1, 0]),
    (["rain"], (), {"positive": "Rain"}, ("not rain", "rain"), [1]),
    (["dry"], (), {"positive": "rain"}, ("dry", "rain"), [0]),
    ([""], (), {"positive": "rain"}, ("not rain", "rain"), [-1]),
    (["yes", "no"], (), {"positive": "no"}, ("yes", "no"), [0, 1]),
    (["1", "0"], (), {"positive": "0"}, (1, 0), [0, 1]),
    (["Home", "draw", "void"], GAMES, {}, ("away", "draw", "home"), [2, 1, -1]),
    (["home"], GAMES, {"classes": ("home", "draw", "away")}, ("home", "draw", "away"), [0]),
    (["open", "A", "a"], ["a", "A", "open"], {}, ("A", "a", "open"), [2, 0, 1]),
    (["yes"], ["yes", "no"], {}, ("no", "yes"), [1]),
    (["1"], ["1", "0"], {}, (0, 1), [1]),
    (["dog"], ["dog", "cat"], {"positive": "dog"}, ("cat", "dog"), [1]),
    (["cat", "dog"], ["dog"], {}, ("cat", "dog"), [0, 1]),
]


@pytest.mark.parametrize(("outcomes", "stated", "said", "classes", "codes"), SETTLED)
def test_classes_are_known_or_said(outcomes, stated, said, classes, codes):
    assert settled(outcomes, stated, **said)[:2] == (classes, codes)


def test_words_for_not_resolved_are_counted_and_quoted():
    _classes, codes, notes = settled(["yes", "annulled", "VOID", "", "open", "later"], missing=("later",))
    assert codes == [1, -1, -1, -1, -1, -1]
    assert notes["unresolved"] == "3 of 4 events not resolved (blank, or marked 'later', 'open')"
    assert notes["void"] == "2 events left out as void (annulled, cancelled, n/a and the like)"


@pytest.mark.parametrize(
    ("outcomes", "stated", "said", "error", "told"),
    [
        (["1", "0.61"], (), {}, CellError,
         "row 1, column 'y': outcome '0.61' is neither 0 nor 1, as others are; an event that settled at"),
        ([0.61, 0.3], (), {}, CellError, "outcome '0.61' is neither 0 nor 1; an event that settled at a fraction"),
        (["2", "3"], (), {}, CellError, "outcome '2' is neither 0 nor 1"),
        (["1", "1,000"], (), {}, CellError, "outcome '1,000' is neither 0 nor 1"),
        (["yes", "no", "foo"], (), {}, CellError,
         "row 2, column 'y': outcome 'foo' is neither no nor yes, as others are.*value foo"),
        (["yes", "1"], (), {}, CellError, "outcome 'yes' is neither 0 nor 1, as others are"),
        (LOANS, (), {}, LayoutError, "outcomes are 'Default', 'repaid': .*--positive Default or --positive repaid"),
        (LOANS, (), {"positive": "defalt"}, LayoutError, "so the probabilities cannot be about 'defalt'"),
        (["rain", ""], (), {}, LayoutError, r"every resolved event ended as 'rain': .*--positive rain"),
        (["1", "0"], (), {"positive": "rain"}, LayoutError,
         "outcomes are '0', '1', so the probabilities cannot be about 'rain'"),
        (["a", "b", "c"], (), {"positive": "a"}, LayoutError,
         r"need two outcomes, and there are 3: 'a', 'b', 'c'.*--missing-value.*--column class=NAME"),
        (["home", "hime", "hime"], GAMES, {}, CellError,
         r"rows 1, 2, .*'hime' is none of the classes: .*mean 'home'"),
        (["home"], GAMES, {"classes": ("home", "draw", "out")}, LayoutError,
         "about classes 'away', 'draw', 'home', and not 'home', 'draw', 'out'"),
        (["home"], GAMES, {"positive": "home"}, LayoutError, "--positive is for two classes, and there are 3"),
        (["cat", "dog"], ["dog"], {"positive": "cat"}, LayoutError,
         "all forecasts are about class 'dog', so --positive cannot be cat"),
    ],
)  # fmt: skip
def test_what_is_no_outcome_or_not_known_is_asked(outcomes, stated, said, error, told):
    with pytest.raises(error, match=told):
        settled(outcomes, stated, **said)


def test_classes_of_other_names_than_all_outcomes_have_no_remedy():
    with pytest.raises(CellError, match=r"none of the classes: 'p.away', .*need the names of the classes") as found:
        settled(["home", "draw"], [f"p.{each}" for each in GAMES])
    assert not found.value.remedies


def test_classes_that_are_numbers_are_in_their_order():
    assert order_classes(["10", "9", "2"], ClassOptions()) == ("2", "9", "10")
    assert order_classes(["10", "0.5", "-1"], ClassOptions()) == ("-1", "0.5", "10")


def test_an_event_has_one_outcome_whichever_table_says_it():
    table, other = read_frame({"y": ["1", "0", ""]}), read_frame({"y": ["", "1"]})
    first = EventColumn(table, 0, table.words(0), np.array([0, 1, 1]))
    assert settle([first], ["q", "r"], (), ReadOptions()).outcomes.tolist() == [1, 0]
    second = EventColumn(other, 0, other.words(0), np.array([0, 1]))
    with pytest.raises(
        CellError, match=r"'r' has two values in column '\w+': '0' \(the table, row 1\) and '1' \(.* row 1\)"
    ):
        settle([first, second], ["q", "r"], (), ReadOptions())


def test_a_tie_settles_an_event():
    from opinionpool.tables.read import read_forecasts

    ends = ["2025-01-02", "2025-02-03", "2025-03-04"]
    table = {"event": list("abc"), "expert": ["ann"] * 3, "p": [0.3, 0.6, 0.4], "outcome": ["A", "tie", None]}
    found = read_forecasts({**table, "closes": ends}, positive="A")
    assert found.ties.tolist() == [False, True, False]
    # When an open event is answered is not known.
    assert found.asked.astype("datetime64[D]").astype(str).tolist() == [*ends[:2], "NaT"]


def test_two_events_of_one_name_are_not_answers_of_experts():
    from opinionpool.tables.read import read_forecasts

    # To say that the outcome is what experts answered would make an expert of it.
    table = {"event": ["q", "q", "r"], "ann": [0.9, 0.2, 0.5], "outcome": [1, 0, 1]}
    with pytest.raises(CellError, match=r"two values.*events need names that differ") as caught:
        read_forecasts(table)
    assert caught.value.remedies == ()
    assert read_forecasts(table, columns={"event": None}).shape == (3, 1)


def test_a_few_events_with_two_outcomes_are_named():
    from opinionpool.tables.read import read_forecasts

    who = ["ann", "bob", "eve"]
    rows = [(f"q{i}", name, 0.4, str(i % 2)) for i in range(6) for name in who]
    rows[1], rows[12] = (*rows[1][:3], "annulled"), (*rows[12][:3], "1")
    names = ["event", "expert", "probability", "outcome"]
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    told = r"'q0' has two values in column '\w+': '0' .*row 0\) and 'annulled' .*row 1\), as have 'q4'; where"
    with pytest.raises(CellError, match=told) as caught:
        read_forecasts(table)
    assert (caught.value.remedies, caught.value.count) == ((), 2)
    # What experts answered differs on more of them.
    for i in range(1, 18, 3):
        table["outcome"][i] = str(1 - i // 3 % 2)
    with pytest.raises(LayoutError, match="unless 'outcome' differs within 6 events") as asked:
        read_forecasts(table)
    assert asked.value.remedies == ({"columns": {"outcome": "outcome"}}, {"columns": {"outcome": None}})
    with pytest.raises(CellError, match="if the column is no fact on events, as what each expert answered") as caught:
        read_forecasts(table, columns={"outcome": "outcome"})
    assert caught.value.remedies == ()
