"""Whatever command is offered keeps every forecast that is not named as at fault, and leaves some."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool import read_forecasts
from opinionpool.cli import app as cli
from opinionpool.errors import CellError, DuplicateError, LayoutError
from opinionpool.tables.diagnosis import diagnose

from .reading import read

CELLS = st.sampled_from(["0.1", "0.5", "0.25", "0.9", "0.75"])
FAULTY = st.sampled_from(["-1", "8", "55", "n.v.", "?"])


@settings(max_examples=15, derandomize=True, deadline=None)
@given(st.data())
def test_offered_commands_keep_forecasts_that_are_not_at_fault(data):
    events, experts = data.draw(st.integers(4, 8)), ["ann", "bob", "cyd"]
    cells = [[data.draw(CELLS) for _ in experts] for _ in range(events)]
    faults = {
        (data.draw(st.integers(0, events - 1)), data.draw(st.integers(0, 2))): data.draw(FAULTY) for _ in range(2)
    }
    for (i, j), word in faults.items():
        cells[i][j] = word
    lines = [f"q{i},{','.join(row)},{i % 2}" for i, row in enumerate(cells)]
    text = "\n".join([f"event,{','.join(experts)},outcome", *lines]) + "\n"
    for way in diagnose(io.BytesIO(text.encode())).readable:
        found = way.forecasts
        assert found.events == tuple(f"q{i}" for i in range(events))
        for i, row in enumerate(cells):
            for j, cell in enumerate(row):
                if (i, j) not in faults:
                    np.testing.assert_allclose(found.X[i, found.experts.index(experts[j])], float(cell))


def test_options_are_those_of_the_forecasts_that_count():
    rows = ["q1,ann,a,.5,2026-01-01", "q1,ann,gone,.5,2026-01-01", "q1,ann,a,.4,2026-01-02", "q1,ann,b,.6,2026-01-02"]
    text = "\n".join(["event,expert,option,p,time", *rows, "q2,ann,c,.3,2026-01-01", "q2,ann,d,.7,2026-01-01"])
    found = read(text, duplicates="last", options="event")
    assert found.options == (("a", "b"), ("c", "d"))
    np.testing.assert_allclose(found.probabilities, [0.6, 0.7])
    # What came too late supersedes nothing.
    late = text.replace("time", "time,closes").replace("2026-01-01", "2026-01-01,2026-01-01T12:00")
    late = late.replace("2026-01-02", "2026-01-02,2026-01-01T12:00")
    assert read(late, duplicates="last", options="event").options == (("a", "gone"), ("c", "d"))


FORECASTS = "event,expert,p\nq1,a,.7\nq1,b,.6\nq2,a,.2\nq2,b,.3\n"


def test_a_condition_is_of_the_file_of_outcomes_where_that_alone_has_its_columns():
    outcomes = "event,outcome,version\nq1,1,1\nq1,0,2\nq2,1,2\n"
    with pytest.raises(CellError, match="two values in column"):
        read(FORECASTS, outcomes)
    assert read(FORECASTS, outcomes, where="version = 2").outcomes.tolist() == [0, 1]
    assert read(FORECASTS, "event,outcome\nq1,1\nq2,0\n", where="expert = 'a'").experts == ("a",)
    both = read(FORECASTS, outcomes, where="expert = 'a' and (version = 2 or version = 3)")
    assert (both.experts, both.outcomes.tolist()) == (("a",), [0, 1])
    with pytest.raises(LayoutError, match="'version', which is not there"):
        read(FORECASTS, outcomes, where="expert = 'a' or version = 2")
    with pytest.raises(LayoutError, match="'nothing', which is not there"):
        read(FORECASTS, outcomes, where="nothing = 2")


RATERS = "case_id,rater,birads,malignancy_pct,pathology\n" + "".join(
    f"C{case},{rater},{case % 4 + 1},{20 * case + 7},{'malignant' if case > 2 else 'benign'}\n"
    for case in range(5)
    for rater in "xyz"
)
WORDS = ("pass", "fail")
JUDGES = "prompt_id,judge_model,verdict,confidence,latency_ms,temperature,gold\n" + "".join(
    f"p{i},{judge},{WORDS[(i + k) % 2]},.{6 + k}5,{900 + 37 * (3 * i + k) % 50},.{k},{WORDS[i % 2]}\n"
    for i in range(6)
    for k, judge in enumerate(["gpt", "llama", "other"])
)
SURVEY = "ifq_id\tstate\tuser_id\tforecast_id\tteam\tanswer_option\tvalue\n" + "".join(
    f"10{q}-0\topen\t{user}\t{2 * q + user}\t{user}\t{option}\t{value}\n"
    for q in range(4)
    for user in (1, 2)
    for option, value in zip("ab", (0.75, 0.25), strict=True)
)
STATION = "day,icon,gfs,temp,rain_seen\n" + "".join(
    f"202401{day:02d},{10 + 7 * day % 50},{15 + 9 * day % 60},{day - 9.5},{day % 2}\n" for day in range(1, 20)
)
CLASSES = "image_id,model,cat,dog,top1,label\n" + "".join(
    f"i{i},{model},.{25 + i},.{75 - i},.{75 - i},{('cat', 'dog')[i % 2]}\n"
    for i in range(4)
    for model in ("vit", "res")
)
PRICES = "date,market_slug,outcome,price,volume_usd,resolved_outcome\n" + "".join(
    f"2025-03-0{day},m{i},{side},{price},{(97 * i + 31 * day + 7 * k) % 1000},{('Yes', 'No')[i % 2]}\n"
    for i in range(4)
    for day in (1, 2)
    for k, (side, price) in enumerate((("Yes", 0.75), ("No", 0.25)))
)
LOANS = "obligor,agency_pd_bps,own_pd_bps,default_flag\n" + "".join(
    f"O{i},{264 + 70 * i},{830 - 55 * i},{i % 2}\n" for i in range(6)
)
STATES = "state,candidate,a,b,winner\n" + "".join(
    f"{state},{name},.{2 + i}5,.{8 - i}5,{i % 2}\n"
    for i, (state, name) in enumerate((state, name) for state in ("OH", "PA") for name in ("Smith", "Jones"))
)
READERS = "patient_id,reader_a,reader_b,biopsy_result,los_days\n" + "".join(
    f"P{i},.{i + 1},.{8 - i},{('benign', 'malignant')[i % 2]},{3 * i % 7}\n" for i in range(6)
)
TOXIC = "tweet_id,annotator,toxic,confidence,gold_toxic\n" + "".join(
    f"{17 + i}5,{name},{(i + k) % 2},0.{6 + 2 * k},{i % 2}\n" for i in range(4) for k, name in enumerate("ab")
)
FRAUD = "txn,amount_eur,score_v1,score_v2,is_fraud,reviewed\n" + "".join(
    f"T{i},{70 - 9 * i}.5,.{2 + i}5,.{8 - i}5,{i % 2},{i // 2 % 2}\n" for i in range(6)
)
LOGITS = "idx,m1_logit,y\n" + "".join(f"{i},{1.75 * i - 4},{i % 2}\n" for i in range(6))
ODDS = "Date,HomeTeam,AwayTeam,FTR,B365H,B365D\n" + "".join(
    f"0{i + 1}/08/2024,T{i % 3},T{i % 2 + 3},{'HDA'[i % 3]},{1.5 + i / 3:.2f},{3.25 + i / 8:.2f}\n" for i in range(6)
)
MARKETS = "market_slug,outcome,best_bid,best_ask,last_trade,resolved_to\n" + "".join(
    f"m{i},{side},{p - 0.01:.2f},{p + 0.01:.2f},{p},{('Yes', 'No')[i % 2]}\n"
    for i in range(4)
    for side, p in (("Yes", 0.75), ("No", 0.25))
)
DELPHI = "Expert,Question,Lowest,Highest,Best,Confidence\n" + "".join(
    f"{name},Q{i},{10 + i},{60 + 3 * i},{30 + 7 * i + k},{60 + 10 * k}\n"
    for i in range(5)
    for k, name in enumerate("ab")
)
PREFERENCES = "example_id,judge,verdict,logprob,people\n" + "".join(
    f"e{i},{name},{'AB'[(i + k) % 2]},-{i + k}.25,{'AB'[i % 3 % 2]}\n" for i in range(6) for k, name in enumerate("gc")
)
ANSWERS = "question,model,answer_prob,answer,gold\n" + "".join(
    f"q{i},{name},.{5 + i}5,{WORDS[(i + k) % 2]},{WORDS[i % 2]}\n" for i in range(5) for k, name in enumerate("ab")
)
STAGES = "item,participant,stage,probability,truth\n" + "".join(
    f"i{i},{name},{stage},.{i + 1 + k}5,{i % 2}\n"
    for i in range(4)
    for name in "ab"
    for k, stage in enumerate(("pre", "post"))
)
ARENA = "pair_id,model_a,model_b,judge,winner,human_winner\n" + "".join(
    f"q{i},x,y,{name},{('model_a', 'model_b', 'tie')[(i + k) % 3]},{('model_a', 'model_b')[i % 2]}\n"
    for i in range(6)
    for k, name in enumerate("jk")
)
SPORTS = "match_id,elo_H,elo_D,elo_A,poisson_H,poisson_D,poisson_A,FTR\n" + "".join(
    f"m{i},.{5 - i},.3,.{2 + i},.{4 - i},.2,.{4 + i},{'HDA'[i % 3]}\n" for i in range(4)
)
PARTIES = "race,Left_WinProbability,Right_WinProbability,Left_Won,Right_Won\n" + "".join(
    f"r{i},.{3 + i},.{7 - i},{i % 2},{1 - i % 2}\n" for i in range(4)
)
CHURN = "customer_id,tenure,charges,proba_lr,proba_rf,proba_xgb,pred_xgb,Churn\n" + "".join(
    f"c{i},{3 * i + 1},{29.5 + i},.{2 + i},.{3 + i},.{1 + i},{i // 3},{('No', 'Yes')[i % 2]}\n" for i in range(5)
)
QUANTILES = "expert,question,p5,p50,p95,unit\n" + "".join(
    f"{name},{question},.1,.{3 + k},.9,share\n" for k, name in enumerate("ab") for question in ("turnout", "wells")
)
CUSTOMERS = "city,shop,phone,lines,online,backup,Contract,model,probability\n" + "".join(
    f"{','.join(f'{word}{(i + k) % 3}' for k, word in enumerate('abcdef'))},month,{'xy'[i // 2]},.{i + 2}\n"
    for i in range(4)
)
MEANS = "event,ann,bob,kim\n" + "".join(f"q{i},.{i}2,.{i}8,.{i}5\n" for i in range(1, 9))
ENDINGS = "model,maker,model_id,ending_id,ending,family,tier,probability\n" + "".join(
    f"m{k},M{k},x-{k},{i * i + 1},word {i},fam {i},t{i % 2},.{i + k + 1}\n" for k in range(3) for i in range(5)
)
CONFLICTS = "country,year,model,prob_conflict,conflict\n" + "".join(
    f"c{c},{year},{name},.{2 + c + k},{c}\n" for c in range(2) for year in (2019, 2020) for k, name in enumerate("ab")
)


def test_neither_milliseconds_nor_a_temperature_is_a_forecast_or_tells_rows_apart():
    assert set(read(JUDGES).experts) == {"gpt", "llama", "other"}


@pytest.mark.parametrize(
    ("text", "outcomes", "offered"),
    [
        # Of two columns of winners, the one that differs within events holds verdicts.
        (ARENA, None, [{"probability": "winner"}]),
        (ARENA.replace("human_winner", "length"), None, [{"probability": "winner"}]),
        ("question,worker,answer\nq,v,1\nq,w,0\nr,v,1\nr,w,1\n", None, [{"probability": "answer"}]),
        # Where nothing else names events, days that come again do.
        ("date,model,probability,outcome\n" + "".join(
            f"2026-01-0{d},{name},.{d + k},{d % 2}\n" for d in (1, 2, 3) for k, name in enumerate("ab")
        ), None, [{"event": "date"}]),
        # The finding is the outcome of a case, and no event; a column in per cent is one of several that may be meant.
        (RATERS, None, [{"probability": "birads"}, {"probability": "malignancy_pct"}]),
        # Codes with a hyphen are names, and a column of one word is none.
        (SURVEY, "ifq_id,state,outcome\n100-0,open,a\n101-0,open,b\n", [{"event": "ifq_id"}]),
        # Among percentages, 0 and 1 may be what happened, or anything, as no name says so.
        (STATION, None, []),
        # Columns called as the outcomes are classes, whatever other number stands beside them.
        (CLASSES, None, [{"probability": ("cat", "dog")}]),
        # A flag is what happened, and no judge.
        (LOANS, None, []),
        # A key may be made of two columns.
        (STATES, None, [{"event": ("state", "candidate")}, {"event": None}]),
        # Two words under a header that ends in result may be the outcome; days are no forecasts.
        (READERS, None, [{"outcome": "biopsy_result"}]),
        # Beside confidence, 0 and 1 that differ within events are verdicts.
        (TOXIC, None, [{"event": "tweet_id", "verdict": "toxic"}]),
        # Flags beside scores are no experts, and no outcomes unless a name says so.
        (FRAUD, None, []),
        (FRAUD.replace("is_fraud", "fraud_result"), None,
         [{"outcome": "fraud_result", "probability": ("score_v1", "score_v2")}]),
        # Log-odds and odds are recognised, and are no probabilities.
        (LOGITS, None, []),
        (ODDS, None, []),
        # What each row of an event is about may be called outcome, and is a class.
        (MARKETS, None, [{"class": "outcome"}]),
        # Confidence is a forecast, or how sure somebody is of the one beside it.
        (DELPHI, None, [{"probability": "Best"}, {"probability": "Confidence"}]),
        (DELPHI.replace("Best", "Median"), None, [{"probability": "Median"}, {"probability": "Confidence"}]),
        # Beside verdicts, the same word throughout each event may be what happened.
        (PREFERENCES, None, [{"outcome": "people"}]),
        # A probability beside the answer of each may be that of the answer.
        (ANSWERS, None, [{"probability": "answer_prob"}]),
        # What comes again may be an event by its name, unless outcomes differ within all of them.
        (STAGES, None, [{"event": "item"}, {"event": ("item", "stage")}]),
        # Columns that add up to 1 are classes, whatever their names; their last words are those of the outcome.
        (SPORTS, None, [{"outcome": "FTR"}]),
        (PARTIES, None, [{"probability": "Left_WinProbability", "outcome": "Left_Won"}]),
        # Columns that begin alike are a family, beside which others are none; what was predicted did not happen.
        (CHURN, None, [{"outcome": "Churn"}]),
        # Amounts are no probabilities, and many columns of words are those of features.
        (QUANTILES, None, []),
        (CUSTOMERS, None, []),
        # The mean of others in every row is made from them, whatever its name; ids of experts are no events.
        (MEANS, None, [{"probability": ("ann", "bob")}, {"probability": ("ann", "bob", "kim")}]),
        (ENDINGS, None, [{"event": "ending_id"}]),
        # What is 0 or 1 for each event may have happened.
        (CONFLICTS, None, [{"event": ("country", "year"), "outcome": "conflict"}]),
    ],
)  # fmt: skip
def test_what_is_offered_has_each_column_in_a_role_that_it_may_play(text, outcomes, offered):
    with pytest.raises(LayoutError) as raised:
        read(text, outcomes)
    found = [remedy["columns"] for remedy in raised.value.remedies]
    assert found[: len(offered) or None] == offered


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("item,p5,p50,p95\na,.1,.2,.3\nb,.2,.4,.6\n", "'p50' is quantiles of an amount"),
        ("zone,risk_2,risk_6,risk_10\na,.3,.2,.1\nb,.6,.5,.1\n", "are thresholds or times, and no experts"),
        ("question,person,estimate,unit\na,x,.1,share\na,y,.2,share\nb,x,.3,share\n", "'unit' says what"),
        ("a,home,draw,away,forecast\nx,.5,.3,.2,.1\ny,.4,.4,.2,.3\nz,.2,.5,.3,.2\n", "'home', 'draw', 'away' add up"),
        ("Risk,Anna,Bert,Mitigated\na,.2,.1,0\nb,.4,.3,1\nc,.3,.3,1\n", "'Mitigated' is the outcome"),
        ("id,oof_a,oof_b,final_score\na,61,62,63\nb,71,75,70\nc,80,82,79\nd,55,59,51\n", "hold scores"),
    ],
)  # fmt: skip
def test_what_might_do_harm_is_not_offered_and_has_a_reason(text, reason):
    with pytest.raises(LayoutError) as raised:
        read(text)
    assert reason in str(raised.value)
    assert not raised.value.remedies


def test_what_has_a_scale_of_its_own_is_not_offered_beside_percentages():
    rows = [f"{name},{20 * i},{90 - 15 * i},{(4, 3, 5, 4)[i - 1]}" for i, name in enumerate("abcb", 1)]
    with pytest.raises(LayoutError) as raised:
        read("\n".join(["Your name,How likely (0-100) is A?,How likely (0-100) is B?,How sure (1-5)?", *rows]))
    (way,) = raised.value.remedies
    assert way["columns"] == {"probability": ("How likely (0-100) is A?", "How likely (0-100) is B?")}


def test_times_of_forecasts_differ_within_an_event():
    rows = [f"q{i},{name},.{i + 3},2026-01-0{i + 1},2026-02-0{k + 1}" for i in range(3) for k, name in enumerate("ab")]
    found = read("\n".join(["question_id,forecaster,probability_yes,created_at,forecast_timestamp", *rows]))
    assert {str(time)[:7] for time in found.made} == {"2026-02"}


@pytest.mark.parametrize("header", ["q,judge,score\n", "q,ann,bob\n"])
def test_scores_are_no_percentages_whatever_is_typed(header):
    rows = [
        f"q{i},{'ab'[k] if 'judge' in header else k + i % 4 + 1},{(i + k) % 5 + 1}\n" for i in range(15) for k in (0, 1)
    ]
    text = header + "".join(rows if "judge" in header else rows[::2])
    with pytest.raises(CellError, match="are a scale, and no percentages") as raised:
        read(text, percent=True, columns={"probability": "score"} if "judge" in header else {})
    assert {*raised.value.remedies[-1]["scale"].values()} == {"1-5"}


@pytest.mark.parametrize(("text", "kind"), [(LOGITS, "log-odds? write 1 / (1 + exp(-x))"), (ODDS, "decimal odds?")])
def test_numbers_that_are_no_probabilities_are_named(text, kind):
    with pytest.raises(LayoutError) as raised:
        read(text)
    assert kind in str(raised.value)
    assert "--scale" not in str(raised.value)


def test_rows_that_a_class_distinguishes_are_not_merged_and_amounts_name_no_event():
    (way,) = diagnose(io.BytesIO(PRICES.encode())).readable
    assert way.options.arguments() == ["--column", "class=outcome", "--duplicates", "last"]
    assert (way.forecasts.events, way.forecasts.X.tolist()) == (("m0", "m1", "m2", "m3"), [[0.75]] * 4)


def test_names_of_columns_in_two_rows_are_to_be_written_in_one():
    with pytest.raises(LayoutError, match=r"in two rows.*Write each in one row, such as 'A best'"):
        read("hazard,A,,B,\n,low,best,low,best\nh1,.1,.2,.3,.4\nh2,.2,.3,.4,.5\n")
    for header in ("p,p,p", "p,p.1,p.2"):
        with pytest.raises(LayoutError, match="such as 'p bob'"):
            read(f",{header},outcome\nwho,ann,bob,cyd,first\n1,.1,.2,.3,1\n2,.2,.3,.4,0\n")


def test_the_order_of_two_answers_is_no_event():
    text = "prompt_id,judge,order,verdict\n" + "".join(
        f"p{i},{judge},{order},{'AB'[i % 2]}\n" for i in range(4) for judge in "gc" for order in ("AB", "BA")
    )
    ways = diagnose(io.BytesIO(text.encode())).readable
    assert [way.options.columns for way in ways] == [{"order": "order"}]
    assert ways[0].forecasts.events == ("p0", "p1", "p2", "p3")


@pytest.mark.parametrize("name", ["proba", "confidence"])
def test_a_number_below_a_half_wherever_the_verdict_is_no_is_that_of_yes(name):
    cells = [(i, who, (3 * i + 4 * k) % 9 / 10 + 0.07) for i in range(6) for k, who in enumerate("ab")]
    lines = [f"s{i},{who},{int(p > 0.5)},{p:.2f},{i % 2}" for i, who, p in cells]
    found = diagnose(io.BytesIO("\n".join([f"sample_id,model,y_pred,{name},y_true", *lines]).encode())).readable
    assert found
    assert all(way.forecasts.X[0, 0] == 0.07 for way in found)


def test_a_verdict_and_how_sure_by_their_names_are_a_pair():
    rows = [("yes", 0.9, "no", 0.7, "yes"), ("No", 0.8, "yes", 0.6, ""), ("yes", 0.6, "n/a", None, "no")]
    names = ["gpt_verdict", "gpt_confidence", "answer_b", "certainty_b", "gold"]
    table = {"id": ["a", "b", "c"], **{name: [row[i] for row in rows] for i, name in enumerate(names)}}
    found = read_forecasts(table)
    assert (found.experts, found.classes) == (("gpt", "b"), ("No", "yes"))
    np.testing.assert_allclose(found.X, [[0.9, 0.3], [0.2, 0.6], [0.6, np.nan]])
    named = {"verdict": ["gpt_verdict", "answer_b"], "probability": ["gpt_confidence", "certainty_b"]}
    np.testing.assert_array_equal(read_forecasts(table, columns=named).X, found.X)
    with pytest.raises(CellError, match="without its verdict"):
        read_forecasts({**table, "certainty_b": [0.7, 0.6, 0.5]})
    # Below a half it may be a forecast of its own.
    with pytest.raises(LayoutError) as raised:
        read_forecasts({**table, "gpt_confidence": [0.2, 0.8, 0.6]})
    assert raised.value.remedies[0]["columns"]["verdict"] == ("gpt_verdict", "answer_b")


def test_a_saved_pool_names_the_columns_of_its_experts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},.{1 + i % 9},{i % 5 + 1},{('ok', 'bad')[i % 2]},a{i % 2},{i % 2}" for i in range(20)]
    (tmp_path / "f.csv").write_text("\n".join(["id,forest_prob,gpt,regex,annotator,gold", *rows]))
    named = [word for name in ("forest_prob", "gpt", "regex") for word in ("--column", f"probability={name}")]
    scales = ["--scale", "gpt=1-5", "--scale", "regex=bad,ok", "--column", "expert=", "--column", "outcome=gold"]
    assert cli.run(["pool", "f.csv", *named, *scales, "--save", "p.json", "--format", "csv", "-q"]) == 0
    first = capsys.readouterr().out.splitlines()[1:3]
    (tmp_path / "new.csv").write_text("\n".join(["id,annotator,forest_prob,gpt,regex", "n,b,.1,1,ok", "m,c,.2,2,bad"]))
    assert cli.run(["pool", "new.csv", "--model", "p.json", "--format", "csv", "-q"]) == 0
    again = capsys.readouterr().out.splitlines()[1:]
    p, wanted = (np.array([line.split(",")[1:5] for line in lines], dtype=float) for lines in (again, first))
    np.testing.assert_allclose(p, wanted)


def test_scores_by_criterion_are_those_of_a_judge_each_or_of_other_things(tmp_path):
    rows = [(i, judge, what) for i in range(8) for judge in ("g", "c") for what in ("helpful", "safe")]
    lines = [f"x{i},{judge},{what},{(i + len(what)) % 5 + 1},{('no', 'yes')[i % 2]}" for i, judge, what in rows]
    text = "\n".join(["id,judge,criterion,score,human_ok", *lines])
    (tmp_path / "f.csv").write_text(text, encoding="utf-8")
    offered = [way.options.columns for way in diagnose(tmp_path / "f.csv").readable]
    assert offered[0]["expert"] == ("judge", "criterion")
    assert offered[1]["event"] == ("id", "criterion")
    assert len(offered) == len({str(columns) for columns in offered})
    found = read(text, columns={"expert": ["judge", "criterion"], "probability": "score"}, scale="1-5")
    assert found.experts == ("g / helpful", "g / safe", "c / helpful", "c / safe")


def rows(header, *lines):
    return "\n".join([header, *lines]) + "\n"


PASSAGES = rows("qid,pid,score", *(f"{q},{100 * q + 7 * i},.{i + q}5" for q in (1, 2, 3) for i in (1, 2, 4)))
AHEAD = rows(
    "made,asset,horizon,horizon_days,target_date,p_up,model",
    *(
        f"2026-08-{day:02d},{asset},{n}d,{n},2026-08-{day + n:02d},.{n + day + k}5,m"
        for day in (1, 2)
        for k, asset in enumerate(("A1", "A2"))
        for n in (1, 3)
    ),
)
RACES = rows(
    "state,candidate,p,result",
    *("OH,Lee,.6,Win", "OH,Kay,.3,Lose", "OH,Orr,.1,Loss", "PA,Fox,.2,Lose", "PA,Gil,.5,Win", "PA,Hay,.3,Loss"),
)
SIDES = rows("game_id,team,win_prob,won", "g1,Leeds,.62,1", "g1,Hull,.38,0", "g2,Stoke,.45,0", "g2,Derby,.55,1")
DAILY = rows(
    "date,ticker,model,p_up,up",
    *(f"2026-01-0{day},{t},m,.{day + k}5,{(day + k) % 2}" for day in (1, 2) for k, t in enumerate(("X", "Y"))),
)
CUSTOMERS = rows(
    "event,plan,city,expert,p,timestamp",
    *("base,a,Rome,rf,.3,2026-01-01T10:00", "base,b,Oslo,rf,.6,2026-01-01T10:05", "plus,a,Oslo,rf,.2,2026-01-02T10:00"),
    "base,b,Rome,knn,.5,2026-01-01T11:00",
)
NO_WORD = rows("event,ann,bob,outcome", "a,.1,.2,yes", "b,.3,.4,no", "c,.5,.6,rained off", "d,.7,.8,nobody came")
NO_OUTCOME = rows("event,class,p,outcome", "a,x,.4,dunno", "a,y,.6,dunno", "b,x,.7,dunno", "b,y,.3,dunno")
REVISED = rows(
    "event,expert,p,note,time", "a,ann,.2,new poll,2026-01-02", "a,ann,.3,,2026-01-01", "b,ann,.4,,2026-01-01"
)


@pytest.mark.parametrize(
    ("text", "distinguishing", "resolved"),
    [
        (PASSAGES, {"pid"}, 0), (AHEAD, {"horizon", "horizon_days", "target_date"}, 0), (RACES, {"candidate"}, 2),
        (SIDES, {"team"}, 2), (DAILY, set(), 0), (CUSTOMERS, {"plan", "city"}, 0), (NO_WORD, set(), 2),
        (NO_OUTCOME, set(), 1), (REVISED, set(), 0), (STAGES, {"stage"}, 4), (PRICES, {"outcome"}, 4),
        (MARKETS, {"outcome"}, 4),
    ],
)  # fmt: skip
def test_whatever_is_offered_keeps_rows_that_a_column_distinguishes_and_outcomes(
    text, distinguishing, resolved, tmp_path
):
    (tmp_path / "f.csv").write_text(text)
    table = list(csv.DictReader(io.StringIO(text)))
    for way in diagnose(tmp_path / "f.csv").readable:
        options, found = way.options, way.forecasts
        name, _, value = (options.where or "").partition(" = ")
        kept = [row for row in table if not name or row[name] == value.strip("'")]
        words = " ".join(way.options.arguments())
        if options.duplicates:
            assert not distinguishing or any(f"={each}" in words or each == name for each in distinguishing), words
        else:
            sizes = [len(labels) for labels in found.options or ()] or [len(found.classes) if "class=" in words else 1]
            assert sum(sizes[event % len(sizes)] for event in found.event_index) >= len(kept), words
        assert (found.outcomes >= 0).sum() >= (resolved if "outcome" not in options.columns else 0), words


LEVELS = "event,expert,quantile,value\n" + "".join(
    f"q{event},{expert},{level},{(level + event) / 4}\n"
    for event in (0, 1, 2)
    for expert in "ab"
    for level in (0.25, 0.5, 0.75)
)
ROW_IDS = (
    "event,expert,forecast_id,p,time,outcome\nq,a,1,.7,2026-01-01,1\nq,a,2,.75,2026-01-01,1\nq,b,3,.2,2026-01-01,1\n"
    "r,a,4,.1,2026-01-01,0\n"
)


@pytest.mark.parametrize(
    ("text", "options", "names", "remedies"),
    [
        (LEVELS, {}, "'quantile' distinguishes", [{"where": f"quantile = '{q}'"} for q in (0.5, 0.25, 0.75)]),
        (
            LEVELS.replace("quantile", "round"),
            {},
            "'round'",
            [{"where": f"round = '{q}'"} for q in (0.5, 0.25, 0.75)],
        ),
        # What numbers the rows distinguishes all of them, and says nothing.
        (ROW_IDS, {"duplicates": "last"}, "none is the last", [{"duplicates": "last-row"}, {"duplicates": "mean"}]),
        # The last round first, in which everybody has a forecast, if not on every event; words that come again after
        # a time are no subjects of their own.
        ("event,expert,round,p\nq,a,1,.7\nq,a,2,.6\nq,b,1,.2\nr,a,1,.1\nr,a,2,.3\nr,b,1,.4\nr,b,2,.5\n", {}, "'round'",
         [{"where": f"round = '{i}'"} for i in (2, 1)]),
        ("event,expert,cause,p,time\nq,a,new,.7,2026-01-01\nq,a,old,.6,2026-01-02\nr,a,old,.7,2026-01-01\n"
         "r,a,new,.6,2026-01-02\nr,a,old,.6,2026-01-03\n", {}, "'time'", [{"duplicates": "last"}]),
        # A round in which only some answered is not one to keep.
        ("event,expert,round,p\nq,a,1,.7\nq,a,2,.6\nq,b,1,.2\n", {}, "'round' distinguishes them", []),
    ],
)  # fmt: skip
def test_what_distinguishes_rows_of_one_forecast_is_named(text, options, names, remedies):
    with pytest.raises(DuplicateError, match=names) as raised:
        read(text, **options)
    assert list(raised.value.remedies) == remedies


def test_a_way_that_is_offered_leaves_forecasts(tmp_path):
    for text in (LEVELS, ROW_IDS):
        (tmp_path / "f.csv").write_text(text)
        ways = diagnose(tmp_path / "f.csv").readable
        assert ways
        assert all(len(way.forecasts.probabilities) for way in ways)


def test_a_cell_without_a_remedy_hides_no_other_fault():
    table = {"event": [f"q{i}" for i in range(8)], "ann": ["<1%", *["20%"] * 7], "bob": [*[0.5] * 7, 1.7]}
    found = diagnose(table)
    assert ["'<1%'" in fault.text for fault in found.faults] == [True, False]
    assert not found.readable
