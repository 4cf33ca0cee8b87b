"""Tables of judges as people have them: scores, grades, votes and preferences, and what `check` proposes for each."""

import io
import json

import numpy as np
import pytest

from opinionpool import OpinionPoolError, read_forecasts
from opinionpool.tables.diagnosis import diagnose

RNG = np.random.default_rng(36)
N = 24
GOLD = (RNG.random(N) < 0.5).tolist()
JUDGES = ("gpt", "claude", "llama")


def score(event, top=5, low=1):
    """A score that says something of what happened."""
    share = 0.68 if GOLD[event] else 0.35
    return int(np.clip(round(low + (top - low) * (share + RNG.normal(0, 0.2))), low, top))


def words(event, low, high, *between):
    """A verdict, mostly right, with capitals as they come."""
    right = high if GOLD[event] else low
    word = RNG.choice(
        [right, *between, low if right == high else high],
        p=[0.7, *[0.1 / len(between or [1])] * len(between), 0.3 - 0.1 * bool(between)],
    )
    return str(word)


def fraction(event):
    return f"{(0.65 if GOLD[event] else 0.35) + RNG.uniform(-0.3, 0.3):.3f}"


def table(header, row):
    """A text of rows by event."""
    return "\n".join([header, *(row(t) for t in range(N))]) + "\n"


def long(header, row, judges=JUDGES):
    """A text of rows by event and judge."""
    return "\n".join([header, *(row(t, judge) for t in range(N) for judge in judges)]) + "\n"


def lines(row, judges=JUDGES):
    return "\n".join(json.dumps(row(t, judge)) for t in range(N) for judge in judges) + "\n"


SAID = {t: f"{score(t)}" for t in range(N)}
PREFERRED = {t: "tie" if t % 9 == 8 else "A" if GOLD[t] else "B" for t in range(N)}

# What a table is, its text, and how somebody who knows it would have it read.
KINDS = {
    "scores beside a gold column called grade": (
        long("item,judge,score,rationale,grade",
             lambda t, j: f't{t},{j},{score(t)},"because {t} {j}",{"pass" if GOLD[t] else "fail"}'),
        {"columns": {"probability": "score", "outcome": "grade"}, "scale": "1-5", "positive": "fail"}),
    "a gold column called grade with the levels of the judges": (
        long("item,judge,score,grade", lambda t, j: f"t{t},{j},{score(t)},{SAID[t]}"),
        {"columns": {"probability": "score", "outcome": "grade"}, "scale": "1-5"}),
    "judges in columns beside a grade of 0 and 1": (
        table("id,gpt,claude,grade", lambda t: f"i{t},{score(t)},{score(t)},{int(GOLD[t])}"),
        {"columns": {"outcome": "grade"}, "scale": "1-5"}),
    "judges in columns beside a grade in their levels": (
        table("id,gpt,claude,grade", lambda t: f"i{t},{score(t)},{score(t)},{score(t)}"),
        {"columns": {"outcome": "grade"}, "scale": "1-5"}),
    "judges beside a label in words": (
        table("question_id,gpt,claude,llama,correct",
              lambda t: f"q{t},{score(t)},{score(t)},{3 - t % 2},{'' if t > 21 else 'yes' if GOLD[t] else 'no'}"),
        {"columns": {"outcome": "correct"}, "scale": "1-5"}),
    "votes beside a label in words": (
        table("question_id,gpt,claude,llama,correct", lambda t: (
            f"q{t},{words(t, 'no', 'yes')},{words(t, 'No', 'Yes')},{words(t, 'NO', 'yes')},{('no', 'yes')[GOLD[t]]}")),
        {"columns": {"outcome": "correct"}, "scale": {"gpt": "no,yes", "claude": "No,Yes", "llama": "NO,yes"}}),
    "a number for each sample": (
        long("prompt_id,model,sample,rating,label",
             lambda t, j: "\n".join(f"p{t},{j},{k},{score(t, 10)},{int(GOLD[t])}" for k in range(3)), JUDGES[:2]),
        {"columns": {"probability": "rating"}, "scale": "1-10", "duplicates": "samples"}),
    "samples without a number": (
        long("prompt_id,model,rating,label",
             lambda t, j: "\n".join(f"p{t},{j},{score(t, 10)},{int(GOLD[t])}" for _ in range(2)), JUDGES[:2]),
        {"columns": {"probability": "rating"}, "scale": "1-10", "duplicates": "samples"}),
    "so many of five": (
        long("case,rater,rating,truth", lambda t, j: f"c{t},{j},{min(score(t), 4)}/5,{'true' if GOLD[t] else 'false'}"),
        {"columns": {"probability": "rating"}, "scale": "1-5"}),
    "verdicts in any capitals": (
        lines(lambda t, j: {"input_id": f"in-{t}", "judge": j, "human": "yes" if GOLD[t] else "no",
                            "verdict": words(t, "No", "YES") if t % 3 else words(t, "no", "yes")}),
        {"scale": "no,yes", "columns": {"probability": "verdict"}}),
    "preferences in both orders, with ties": (
        lines(lambda t, j: {"pair_id": f"pair{t}", "judge": j.partition(" ")[0], "order": j.partition(" ")[2],
                            "preference": words(t, "B", "A", "tie"), "human_preference": PREFERRED[t]},
              ("gpt AB", "gpt BA", "claude AB", "claude BA")),
        {"columns": {"event": "pair_id", "probability": "preference"}, "scale": "B,tie,A", "duplicates": "samples"}),
    "verdicts of three words": (
        long("sample_id\tscorer\tverdict\thuman_label", lambda t, j: (
            f"s{t}\t{j}\t{words(t, 'Incorrect', 'Correct', 'Partially correct')}\t{'in' * (not GOLD[t])}correct")),
        {"columns": {"probability": "verdict"}, "scale": "Incorrect,Partially correct,Correct"}),
    "a classifier called score beside judges": (
        table("id,score,gpt,claude,gold", lambda t: f"x{t},{fraction(t)},{score(t)},{score(t)},{int(GOLD[t])}"),
        {"columns": {"probability": ("score", "gpt", "claude")}, "scale": {"gpt": "1-5", "claude": "1-5"}}),
    "classifiers, scores and votes": (
        table("doc,bert,svm,gpt,claude,label",
              lambda t: f"d{t},{fraction(t)},{fraction(t)},{score(t)},{score(t, 4)},{int(GOLD[t])}"),
        {"scale": {"gpt": "1-5", "claude": "1-5"}}),
    "a classifier beside scores on their own scales and a vote": (
        table("id,clf_prob,gpt_score,claude_score_10,human_vote,outcome",
              lambda t: f"d{t},{fraction(t)},{score(t)},{score(t, 10)},{words(t, 'no', 'yes')},{int(GOLD[t])}"),
        {"scale": {"gpt_score": "1-5", "claude_score_10": "1-10", "human_vote": "no,yes"}}),
    "winners by three judges and a human": (
        table("question_id,gpt_winner,claude_winner,llama_winner,human_winner",
              lambda t: ",".join([f"q{t}", *(words(t, "model_b", "model_a", "tie") for _ in "abc"), PREFERRED[t]])),
        {"columns": {"probability": ("gpt_winner", "claude_winner", "llama_winner")}, "scale": "B,tie,A"}),
    "grades from 0 to 3": (
        table("passage;judge_1;judge_2;judge_3;gold",
              lambda t: f"p{t};{score(t, 3, 0)};{score(t, 3, 0)};{score(t, 3, 0)};{score(t, 3, 0)}"),
        {"scale": "0-3"}),
    "letters": (
        long("essay_id,grader,grade,is_good", lambda t, j: f"e{t},{j},{'FDCBA'[score(t) - 1]},{int(GOLD[t])}"),
        {"columns": {"event": "essay_id", "outcome": "is_good"}, "scale": {"grade": "F,D,C,B,A"}}),
    "scores and a grade by a human": (
        table("id,gpt_score,claude_score,gemini_score,human_grade",
              lambda t: f"i{t},{score(t)},{score(t)},{score(t)},{score(t)}"),
        {"columns": {"probability": ("gpt_score", "claude_score", "gemini_score")}, "scale": "1-5"}),
    "half points": (
        long("item,judge,score,label", lambda t, j: f"i{t},{j},{score(t, 5, 1) - 0.5 * (t % 3 == 1)},{int(GOLD[t])}"),
        {"columns": {"probability": "score"}, "scale": ",".join(f"{half / 2:g}" for half in range(11))}),
    "a word and what negates it": (
        table("id,judge_gpt,judge_claude,human",
              lambda t: ",".join([f"i{t}", *(words(t, "irrelevant", "relevant", "partial") for _ in "ab"),
                                  "ir" * (not GOLD[t]) + "relevant"])),
        {"scale": dict.fromkeys(("judge_gpt", "judge_claude"), "irrelevant,partial,relevant")}),
    "a scale for each judge": (
        long("task,evaluator,score,gold", lambda t, j: f"k{t},{j},{score(t, 5 if j == 'gpt' else 10)},{int(GOLD[t])}"),
        {"columns": {"probability": "score"}, "scale": {"gpt": "1-5", "claude": "1-10", "llama": "1-10"}}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_way_that_is_offered_is_the_true_one(kind):
    text, truth = KINDS[kind]
    expected = read_forecasts(io.BytesIO(text.encode()), **truth)
    ways = [way.forecasts for way in diagnose(io.BytesIO(text.encode())).readable]
    same = [
        way
        for way in ways
        if way.experts == expected.experts and way.events == expected.events and way.classes == expected.classes
    ]
    assert same, [(way.experts, len(way.events), way.classes) for way in ways]
    assert any(
        np.array_equal(way.X, expected.X, equal_nan=True)
        and way.happened == expected.happened
        and way.scales == expected.scales
        for way in same
    )


def stray(word, *places):
    """A table of judges with some cells of one that are no levels."""
    return table(
        "passage_id,gpt,claude,llama,gold",
        lambda i: f"d{i},{score(i)},{word if i in places else score(i)},{4 if i % 2 else 2},{int(GOLD[i])}",
    )


@pytest.mark.parametrize("word", ["7", "3.5", "10", "-2"])
def test_one_stray_number_is_named_and_leaves_the_scale_as_it_is(word):
    found = diagnose(io.BytesIO(stray(word, 10).encode()))
    assert not found.readable
    (scale,) = (fault for fault in found.faults if fault.remedies)
    assert scale.options() == [["--scale", "1-5"]]
    (cell,) = (fault for fault in found.faults if not fault.remedies)
    assert cell.text.startswith(
        f"the file, line 12, column 'claude': '{word}' is no level of the scale 1-5 of 'claude'"
    )
    assert "correct the cell" in cell.text


def test_a_word_or_a_code_that_comes_again_stands_for_no_answer():
    for word in ("unsure", "n/a", "refused"):
        (way,) = diagnose(io.BytesIO(stray(word, 10).encode())).readable
        assert way.forecasts.experts == JUDGES
        assert np.isnan(way.forecasts.X).sum() == 1
    (way,) = diagnose(io.BytesIO(stray("-1", 3, 10).encode())).readable
    assert np.isnan(way.forecasts.X).sum() == 2


def test_words_in_an_order_that_nobody_knows_are_asked_without_one():
    text = long(
        "item,judge,verdict,gold", lambda t, j: f"t{t},{j},{['red', 'green', 'blue'][score(t, 3) - 1]},{int(GOLD[t])}"
    )
    agreement = long(
        "item,judge,answer,outcome",
        lambda t, j: f"t{t},{j},{['Disagree', 'Neutral', 'Agree'][score(t, 3) - 1]},{int(GOLD[t])}",
    )
    (fault,) = diagnose(io.BytesIO(agreement.encode())).faults
    assert "--scale answer=Disagree,Neutral,Agree" in fault.text
    found = diagnose(io.BytesIO(text.encode()))
    assert not found.readable
    assert "--scale verdict=LOWEST,...,HIGHEST" in found.faults[0].text
    assert read_forecasts(io.BytesIO(text.encode()), scale={"verdict": "red,green,blue"}).experts == JUDGES


def test_a_scale_may_name_the_column_of_a_long_table():
    text = long("item,judge,verdict,gold", lambda t, j: f"t{t},{j},{words(t, 'no', 'yes')},{int(GOLD[t])}")
    by_column = read_forecasts(io.BytesIO(text.encode()), scale={"verdict": "no,yes"})
    assert {name: str(scale) for name, scale in by_column.scales.items()} == dict.fromkeys(JUDGES, "no,yes")
    np.testing.assert_array_equal(by_column.X, read_forecasts(io.BytesIO(text.encode()), scale="no,yes").X)


@pytest.mark.parametrize(
    "header", ["example_id,judge_model,score,human_label", "answer_id,judge_name,explanation,score,gold"]
)
def test_whose_score_it_is_and_why_are_no_part_of_the_event(header):
    text = long(header, lambda t, j: f"t{t},{j},{f'so {t % 2},' * ('expl' in header)}{score(t)},{int(GOLD[t])}")
    ways = [way.forecasts for way in diagnose(io.BytesIO(text.encode())).readable]
    assert [(way.experts, len(way.events)) for way in ways] == [(JUDGES, N)]


@pytest.mark.parametrize("pair", [("fail", "pass"), ("incorrect", "correct"), ("L", "W"), ("benign", "malignant")])
def test_the_better_outcome_is_offered_first(pair):
    with pytest.raises(OpinionPoolError) as raised:
        read_forecasts(io.BytesIO(f"id,a,b,label\n0,0.1,0.2,{pair[0]}\n1,0.6,0.7,{pair[1]}\n".encode()))
    assert raised.value.remedies[0] == {"positive": pair[1]}


TURNED = "q,judge,swapped,verdict\nx,k,false,A\nx,k,true,B\ny,k,false,B\ny,k,true,A\n"


SHOWN = "q,judge,answer_a,answer_b,verdict\nx,k,us,them,A\nx,k,them,us,B\ny,k,us,them,B\ny,k,them,us,A\n"


@pytest.mark.parametrize(
    ("text", "columns"), [(TURNED, {}), (TURNED, {"order": "swapped"}), (SHOWN, {"outcome": None, "event": "q"})]
)
def test_letters_that_turn_round_with_the_order_shown_are_asked_about(text, columns):
    with pytest.raises(OpinionPoolError, match="letters may be places") as raised:
        read_forecasts(io.BytesIO(text.encode()), columns=columns)
    assert not raised.value.remedies


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        # Labels of machine learning, and of questionnaires: 1 and another number are two classes.
        ("id,a,b,label\n0,0.1,0.2,-1\n1,0.6,0.7,1\n2,0.2,0.3,-1\n", {"positive": "1"}, [0, 1, 0]),
        ("id,a,b,label\n0,0.1,0.2,2\n1,0.6,0.7,1\n2,0.2,0.3,\n", {"positive": "1"}, [0, 1, -1]),
        ("id,a,b,label\n0,0.1,0.2,-1\n1,0.6,0.7,1\n2,0.2,0.3,-1\n", {"missing_values": ["-1"]}, [-1, 1, -1]),
        ("id,a,b,label\n0,0.1,0.2,-1\n1,0.6,0.7,1\n2,0.2,0.3,0\n", {}, [-1, 1, 0]),
        # Verdicts in any capitals, and 0 and 1 for what they were.
        (
            "item,judge,verdict,confidence,label\na,x,No,0.6,0\na,y,no,0.8,0\nb,x,YES,0.9,1\nb,y,yes,0.7,1\n"
            "c,x,no,0.8,-1\n",
            {},
            [0, 1, -1],
        ),
    ],
)
def test_outcomes_in_two_numbers(text, options, expected):
    assert read_forecasts(io.BytesIO(text.encode()), **options).outcomes.tolist() == expected


@pytest.mark.parametrize(
    ("text", "code", "remedy"),
    [
        ("id,a,b,label\n0,0.1,0.2,-1\n1,0.6,0.7,1\n2,0.2,0.3,-1\n", None, {"positive": "-1"}),
        ("q,user,prob\nx,kim,0.5\nx,lou,0.6\nx,TOTAL,0.55\n", "totals-of-experts", {"exclude": ("TOTAL",)}),
        ("event,ann,ann_conf,bob,bob_conf,outcome\nx,0.5,0.9,0.4,0.8,1\ny,0.3,0.7,0.2,0.6,0\n", None, None),
        (
            "id,birads,ann,bob\n" + "".join(f"c{i},{2 + i % 4},{64 - 3 * i},{18 + 5 * i}\n" for i in range(12)),
            "a-scale",
            {"exclude": ("birads",)},
        ),
        ("id,a,b,label\nx,-2,2,1\ny,-1,0,0\nz,1,1,1\nw,-2,-1,0\n", None, {"scale": {"*": "-2-2"}}),
    ],
)
def test_what_is_asked(text, code, remedy):
    with pytest.raises(OpinionPoolError) as raised:
        read_forecasts(io.BytesIO(text.encode()), percent="birads" in text)
    assert code is None or raised.value.finding.code == code
    assert remedy is None or remedy in raised.value.remedies
