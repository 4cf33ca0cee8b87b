"""Tables, each read with some options: what comes of it, or which error, and what the ways that are offered lead to."""

import pytest

from opinionpool.errors import ArgumentError, CellError, DuplicateError, ExpertError, LayoutError, TableError

from .reading import NAN, as_expected, check_offered, notes, read

TWO = "event,expert,class,p,outcome\nq1,A,cat,.2,dog\nq1,A,dog,.8,dog\n"
LABELS = (
    "item_id,annotator_id,label,confidence,gold\ni1,a,yes,0.9,yes\ni1,b,yes,0.6,yes\ni2,a,no,0.75,no\n"
    "i2,b,no,0.5,no\ni3,a,no,1,yes\n"
)
EXPIRED = (
    "event,expert,p,time,expires,closes\nq,a,.9,2025-01-01,2025-03-01,2025-02-01\n"
    "q,a,.6,2025-01-02,2025-01-10,2025-02-01\nq,b,.3,2025-01-05,,2025-02-01\n"
)
SLASHES = "event,expert,p,time,closes\nq1,A,.5,07/01/2025,\nq2,A,.25,,08/01/2025\n"
CLOSED = "event,outcome,closes\nq1,1,08/01/2025\n"
FORM = (
    "ID,Zeitstempel,Name,Abteilung,Alter,Q1,Q2,Q3\n17,03.11.2026 09:00,Anna,Vertrieb,34,0.65,0.2,0.05\n"
    "19,03.11.2026 09:10,Bernd,Vertrieb,51,0.7,,0.1\n22,04.11.2026 09:10,Cara,IT,45,0.4,0.35,\n"
)
NEWEST = "Teilnehmer;Frage;Prognose;{}\nAnna;F1;80 %;17.11.2026 09:00\nAnna;F1;20 %;03.11.2026 09:00\n"
STAND = NEWEST.format("Stand")
REVISED = (
    "{};Frage;Prognose;Zeitstempel\nAnna;S?;80 %;17.11.2026 09:00\nAnna;S?;20 %;03.11.2026 09:00\n"
    "Bernd;S?;60 %;03.11.2026 10:00\n"
)
POSTPONED = "Frage;Anna;Ergebnis\nF1;0,8;ja\nF2;0,3;vertagt\nF3;0,2;nein\n"
VALID = "q,ann,outcome\na,0.8,valid\nb,0.3,invalid\n"
WITHDRAWN = "event,ann,outcome\na,.2,approved\nb,.3,withdrawn\nc,.4,approved\n"
MOOT = "event,expert,class,probability,outcome\na,x,p,0.4,p\na,x,q,0.6,p\nb,x,r,0.3,{0}\nb,x,s,0.7,{0}\n"
UNITS = "event;ann;bob\nq1;65;0.9\nq2;35;0.3\n"
SMALL = "event,ann,bob\na,20,0.3\nb,60,4\nc,70,.5\nd,1,1\n"
OWN_UNIT = "event,expert,probability\n" + "".join(
    f"{row}\n" for row in ("q1,ann,35", "q1,bob,40", "q2,ann,70", "q2,bob,75", "q1,cy,0.35", "q2,cy,0.5")
)
SUMS = "event,expert,class,p\na,x,r,.5\na,x,g,.25\na,x,b,.2\nb,x,r,{}\nb,x,g,0\nb,x,b,0\n"
SUM = "event,expert,class,p\na,x,r,{}\na,x,g,0.30\na,x,b,0.15\n"
CONFIDENCE = "event,ann,bob,Confidence,Gewicht\nq1,0.8,0.7,0.9,1\nq2,0.3,0.2,0.7,0.5\n"
UNSURE = "item,judge,verdict,confidence\ni1,a,yes,0.9\ni2,a,no,0.2\ni3,a,{},0.7\n"
MATCHES = "match,home,draw,away,result\nm1,.5,.3,.2,{}\nm2,.2,.2,.6,{}\nm3,.1,.1,.8,\n"
SWEDISH = "event,Skribent,Sanno\nq1,A,.5\nq1,B,.25\nq2,A,.75\n"
REGIONS = "a,b,outcome,{}\n0.8,0.7,1,north\n0.3,0.2,0,{}\n0.6,0.9,1,{}\n0.2,0.1,0,{}\n"
WORDED = "question_id,title,resolution\nq2,Snow?,0\nq1,Rain?,1\n"
AS_TWO = {"classes": ["rejected", "approved"], "positive": "approved"}
LONG = "event,expert,p,time\nq1,A,.2,2025-03-01 10:00\nq1,A,.8,2025-03-01 12:00\nq1,B,.5,2025-03-01 11:00\n"
NOT_KNOWN = "event,ann,outcome\na,.2,1\nb,.3,{}\nc,.3,0\n"
# By what is claimed: the table, the options, what is read, and what notes tell (their text, their count, or no note).
READ = {
    "a long table": (
        "event,expert,probability,outcome,prior\nq1,ann,0.9,1,0.3\nq1,bob,0.7,1,\nq2,bob,0.2,0,\n", {},
        {"events": ("q1", "q2"), "experts": ("ann", "bob"), "classes": (0, 1), "X": [[0.9, 0.7], [NAN, 0.2]],
         "outcomes": [1, 0], "prior": [0.3, NAN]},
        {"layout": "a row per forecast: event = event, expert = expert, probability = probability, outcome = outcome"}),
    "in a wide table what stands twice is no key": (
        "id,question,ann\nd1,Rain?,0.9\nd2,Rain?,0.4\nd3,Snow?,0.2\n", {},
        {"events": ("d1", "d2", "d3"), "texts": ("Rain?", "Rain?", "Snow?")}, {}),
    "questions worded in two ways are a note": (
        "id,title,user,p\nq1,Rain?,ann,0.9\nq1,Rain today?,bob,0.7\n", {}, {"texts": ("Rain?",)},
        {"texts": "'title' words event 'q1'"}),
    "percent is read in its column alone (case 47)": (
        "question,A,B\nq1,45%,0.5\nq2,20 %,0.3\nq3,7.5%,0.1\n", {}, {"X": [[0.45, 0.5], [0.2, 0.3], [0.075, 0.1]]},
        {"percent": "column 'A' read as percentages"}),
    "a scale to 100 is named for the file (case 48)": (
        "question,A\nq1,0.5\nq2,1\nq3,40\n", {"percent": True}, {"X": [[0.005], [0.01], [0.4]]}, {}),
    "a code for abstention is missing where it is named (case 51)": (
        "question,A,B\nq1,.7,-1\n", {"missing_values": [-1]}, {"X": [[0.7, NAN]]}, {}),
    "many zeros may be a code for abstention (case 51)": (
        "question,A\n" + "".join(f"q{i},{[0, 0.4, 0.6][i % 3]}\n" for i in range(12)), {}, {},
        {"zeros-as-missing": "--missing-value 0"}),
    "runs of one expert are averaged within the expert (case 46)": (
        "event,expert,p\n" + "q1,A,.1\n" * 10 + "q1,B,.9\n", {"duplicates": "mean"}, {"X": [[0.1, 0.9]]}, {}),
    "numbers as names of experts (case 59)": ("event,1,2\nq1,.5,.25\n", {}, {"experts": ("1", "2")}, {}),
    "outcomes are trimmed and compared in any case (case 62)": (
        "event,A,y\n1,.1,Yes\n2,.2,No \n3,.3,yes\n4,.4,No\n", {}, {"classes": ("No", "Yes"), "outcomes": [1, 0, 1, 0]},
        {"outcome-spelling": 2}),
    "columns of classes go by name (case 33)": (
        "event,m:dog,m:cat,y\n1,1,0,dog\n2,0,1,cat\n", {"positive": "cat"},
        {"classes": ("dog", "cat"), "X": [[0.0], [1.0]], "outcomes": [0, 1]}, {}),
    "times without a zone are UTC (case 78)": (
        "event,expert,p,time\nq1,A,.5,2025-03-01T00:30+02:00\nq1,B,.5,2025-03-01T00:30\n", {"as_of": "2025-03-01"},
        {"X": [[0.5, NAN]]}, {"as-of": 1}),
    "the last in time counts, in whatever order rows stand": (
        "event,expert,p,time\nq1,B,.5,2025-03-01 11:00\nq1,A,.8,2025-03-01 12:00\nq1,A,.2,2025-03-01 10:00\n",
        {"duplicates": "last"}, {"X": [[0.5, 0.8]]}, {}),
    "without times the last row counts": (
        "event,expert,p\nq1,A,.8\nq1,A,.2\n", {"duplicates": "last"}, {"X": [[0.2]]},
        {"duplicates": "the last row of the file, since there are no times"}),
    "void events do not count among exact forecasts": (
        "event,expert,p,y\n" + "".join(f"q{i},A,.5,{'void' if i > 5 else i % 2}\n" for i in range(9)), {}, {},
        {"halves": "6 of 6 probabilities are exactly 0.5"}),
    "two classes in rows, of which the positive one is named": (
        TWO, {"positive": "dog"}, {"classes": ("cat", "dog"), "X": [[0.8]], "outcomes": [1]}, {}),
    "rows say what they are about: the answer is shown as the probability of the first class": (
        TWO, {}, {"classes": ("dog", "cat"), "X": [[0.2]], "outcomes": [0]}, {}),
    "rows of one class of two": (
        "event,expert,class,p,outcome\nq1,A,dog,.8,dog\nq2,A,dog,.1,cat\n", {},
        {"classes": ("cat", "dog"), "X": [[0.8], [0.1]], "outcomes": [1, 0]}, {}),
    "one class in headers says what forecasts are about": (
        "event,a:rain,b:rain,outcome\nq1,.3,.4,rain\nq2,.1,.2,\n", {},
        {"experts": ("a", "b"), "classes": ("not rain", "rain"), "X": [[0.3, 0.4], [0.1, 0.2]], "outcomes": [1, -1]},
        {}),
    "a year is no code for no answer": (
        "event,year,A\nq1,2024,.5\nq2,2024,.25\n", {}, {"experts": ("A",)}, {"unused-columns": "not used: 'year'"}),
    "columns of 0 and 1 alone are experts": (
        "event,a,b\n" + "".join(f"q{i},{i % 2},{i % 3 % 2}\n" for i in range(10)), {}, {"experts": ("a", "b")}, {}),
    "rows without an event and without a forecast are left out": (
        "event,A,y\nq1,.5,1\n,,\n,,\n", {}, {"events": ("q1",)}, {"no-event": "2 rows without an event left out"}),
    "blanks around names are cut off": (
        "event , A,y\n q1,.5,1\nq1 ,,1\n", {}, {"events": ("q1",), "experts": ("A",)}, {"trimmed": 2}),
    "numbers named as missing take nothing back": (
        "event,expert,p,time\na,x,0.6,2026-01-01\na,x,-99,2026-01-02\na,y,0.7,2026-01-01\n",
        {"missing_values": ["-99.0"], "duplicates": "last"}, {"X": [[0.6, 0.7]]}, {}),
    "groups and priors are one per event": (
        "event,expert,p,group,prior\nq1,A,.5,x,30%\nq1,B,.5,x,30%\nq2,A,.5,,\n", {},
        {"groups": ["x", ""], "prior": [0.3, NAN]}, {}),
    "unreadable times need not be read": (
        SLASHES, {"columns": {"time": None, "closes": None}}, {"X": [[0.5], [0.25]]}, {}),
    "nor those of the file of outcomes": (
        "event,A\nq1,.5\n", {"outcomes": CLOSED, "columns": {"closes": None}}, {"X": [[0.5]], "outcomes": [1]}, {}),
    "outcomes in two columns of any name": ("event,A\nq,.5\n", {"outcomes": "x,z\nq,1\n"}, {"outcomes": [1]}, {}),
    "outcomes in a column that is named": (
        "event,A\nq,.5\n", {"outcomes": "event,z,w\nq,1,0\n", "columns": {"outcome": "w"}}, {"outcomes": [0]}, {}),
    "a label beside the gold label is what its annotator answered": (
        LABELS, {}, {"classes": ("no", "yes"), "X": [[0.9, 0.6], [0.25, 0.5], [0, NAN]],
                     "happened": ["yes", "no", "yes"]}, {}),
    "or nothing, where somebody says so": (
        LABELS, {"columns": {"verdict": None, "outcome": "gold"}}, {"X": [[0.9, 0.6], [0.75, 0.5], [1, NAN]]}, {}),
    "a forecast that ran out is not replaced by an older one": (
        EXPIRED, {"duplicates": "last"}, {"X": [[NAN, 0.3]]}, {}),
    "and counts before": (EXPIRED, {"duplicates": "last", "as_of": "2025-01-09"}, {"X": [[0.6, 0.3]]}, {}),
    "what settles an event in a log of forecasts takes none back": (
        "event,expert,p,time,outcome\nq,a,.7,2026-01-01,\nr,a,.6,2026-01-01,\nq,a,,2026-01-02,yes\nr,a,,2026-01-03,\n",
        {"duplicates": "last"}, {"X": [[0.7], [NAN]]}, {"withdrawn": 1}),
    "silence is a statement on request": (
        "event,a,b,outcome\nq1,.9,,1\nq2,,,0\n", {"silence": "10%"}, {"X": [[0.9, 0.1], [0.1, 0.1]]}, {}),
    "times of events are no times of forecasts": (
        "Frage;Teilnehmer;Prognose;Stichtag\nF1;Anna;0,8;01.12.2026\nF1;Anna;0,2;01.12.2026\nF2;Anna;0,5;02.12.2026\n",
        {"duplicates": "last"}, {"X": [[0.2], [0.5]]},
        {"unused-columns": "not used: 'Stichtag'",
         "duplicates": "the last row of the file, since there are no times"}),
    "what is named as not known is not void": (
        NOT_KNOWN.format("N/A"), {"missing_values": "N/A"}, {"outcomes": [1, -1, 0], "void": None}, {}),
    "unless it is named as void": (
        NOT_KNOWN.format("N/A"), {"missing_values": "N/A", "void_values": "N/A"}, {"events": ("a", "c")}, {}),
    "in any capitals": (
        NOT_KNOWN.format("withdrawn"), {"missing_values": "Withdrawn"}, {"outcomes": [1, -1, 0], "void": None}, {}),
    "a word for void that is named is void": (
        NOT_KNOWN.format("zzz"), {"void_values": "ZZZ"}, {"outcomes": [1, 0]}, {"void-absent": None}),
    "and one that no outcome is gets a note": (
        NOT_KNOWN.format("0"), {"void_values": ["zzz", "-"]}, {},
        {"void-absent": "--void-value '-', 'zzz': no outcome is written so"}),
    "dates with dots have days first": (
        "event,expert,p,time\na,x,0.2,03.11.2026\na,x,0.6,04.10.2026\n", {"duplicates": "last"}, {"X": [[0.2]]},
        {"dates": "days first"}),
    "numbers of cells that are codes for no answer": (
        "event;ann;bob\nq1;0,5;99,0\nq2;0,4;0,2\nq3;0,3;99\n", {"missing_values": ["99"]},
        {"X": [[0.5, NAN], [0.4, 0.2], [0.3, NAN]]}, {}),
    "of frames, too": (
        {"event": [1, 2], "ann": [0.5, 0.4], "bob": [99.0, 99.0]}, {"missing_values": [99]},
        {"X": [[0.5, NAN], [0.4, NAN]]}, {}),
    "what is no question is named": (
        FORM, {"columns": {"expert": "Name"}}, {}, {"unused-columns": "not used: 'ID', 'Abteilung', 'Alter'"}),
    "two names of the event are one each of both files": (
        "office,ann\nq1,.7\nq2,.2\n", {"outcomes": "state,outcome\nq1,1\nq2,0\n",
                                       "columns": {"event": ["office", "state"]}},
        {"events": ("q1", "q2"), "outcomes": [1, 0]}, {}),
    "a column that both files have by one name is the event of both": (
        "question,ann,bob\nq1,.7,.6\nq2,.2,.3\n", {"outcomes": "id,question,outcome\n7,q1,1\n8,q2,0\n"},
        {"events": ("q1", "q2"), "outcomes": [1, 0]}, {}),
    "a row per class of one forecaster": (
        "event,class,price,outcome\nq1,a,.5,b\nq1,b,.3,b\nq1,c,.2,b\nq2,a,.1,\nq2,b,.2,\nq2,c,.7,\n", {},
        {"experts": ("price",), "classes": ("a", "b", "c"), "outcomes": [1, -1],
         "X": [[[0.5, 0.3, 0.2]], [[0.1, 0.2, 0.7]]]}, {}),
    "probabilities of 0 and of 1 are one forecast": (
        "uid,target,rf_prob_0,rf_prob_1,xgb_prob_0,xgb_prob_1,threshold\n"
        + "".join(f"u{i},{i % 2},.{9 - i},.{i + 1},.{8 - i},.{i + 2},0.5\n" for i in range(3)), {},
        {"experts": ("rf", "xgb"), "X": [[0.1, 0.2], [0.2, 0.3], [0.3, 0.4]]}, {}),
    "a column called event is the event, beside the question that several events ask": (
        "event,expert,probability,outcome,question\n"
        + "".join(f"e{i},{name},.{i + 1},{i % 2},q{i // 2}\n" for i in range(4) for name in "ab"), {},
        {"events": ("e0", "e1", "e2", "e3")}, {}),
    "the last row, where somebody says so": (
        STAND, {"duplicates": "last-row"}, {"X": [[0.2]]}, {"unused-columns": "say --column time=Stand"}),
    "the last row, without times": (STAND, {"duplicates": "last", "columns": {"time": None}}, {"X": [[0.2]]}, {}),
    "a mean, whatever the times": (
        STAND, {"duplicates": "mean"}, {"X": [[0.5]]}, {"unused-columns": "say --column time=Stand"}),
    **{f"the last in time by the name {name}": (NEWEST.format(name), {"duplicates": "last"}, {"X": [[0.8]]}, {})
       for name in ("Zeitstempel", "Horodateur", "Erstellt am", "Abgegeben am", "Submitted at", "Fecha", "Soumis le")},
    **{f"answers that were revised, by {who}": (REVISED.format(who), {"duplicates": "last"}, {"X": [[0.8, 0.6]]}, {})
       for who in ("Teilnehmer", "Wer")},
    "a word for void that is named as a class is one": (
        "q,ann,outcome\na,0.8,withdrawn\nb,0.3,stays\n", {"positive": "withdrawn"},
        {"outcomes": [1, 0], "void": None}, {}),
    "the opposite of the only other outcome is one": (VALID, {"positive": "valid"}, {"outcomes": [1, 0]}, {}),
    "a word for void that counts as a class is noted": (
        WITHDRAWN, {"positive": "approved"}, {"outcomes": [1, 0, 1]},
        {"void-class": "outcome 'withdrawn' counts as a class, not as void"}),
    "and is void beside two classes": (WITHDRAWN, AS_TWO, {"void.events": ("b",)}, {"void-class": None}),
    "named as void or not": (
        WITHDRAWN, {**AS_TWO, "void_values": "withdrawn"}, {"void.events": ("b",)}, {"void-class": None}),
    "of which both happened or not": (
        WITHDRAWN + "d,.4,rejected\n", AS_TWO, {"void.events": ("b",)}, {"void-class": None}),
    "unless it is one of the classes": (
        WITHDRAWN, {"classes": ["withdrawn", "approved"], "positive": "approved"}, {}, {"void-class": None}),
    "options of each event have void words too": (MOOT.format("retracted"), {}, {"void.events": ("b",)}, {}),
    "numbers below one among percentages are noted": (
        SMALL, {"percent": True}, {"X": [[0.2, 0.003], [0.6, 0.04], [0.7, 0.005], [0.01, 0.01]]},
        {"small-percentages": "numbers below 1 of 'bob' count as less than 1%"}),
    "unless units are given": (SMALL, {"units": {"bob": "percent", "ann": "percent"}}, {}, {"small-percentages": None}),
    "or one number is below one": (SMALL.replace("0.3", "30"), {"percent": True}, {}, {"small-percentages": None}),
    "options that add up to less are normalised where that is asked for": (
        SUM.format("0.50"), {"normalise": True}, {"X": [[[3 / 19, 6 / 19, 10 / 19]]]},
        {"normalised": "1 of 1 forecast did not add up to 1 (0.05 at most): normalised"}),
    "if they add up to half at least": (
        SUMS.format(".51"), {"normalise": True}, {"X": [[[4 / 19, 5 / 19, 10 / 19]], [[0, 0, 1]]]}, {}),
    "what a column calls its rows wins over how the others read": (
        "event,Q1,Q2\na,0.2,0.4\nb,0.1,0.3\n", {}, {"experts": ("Q1", "Q2")}, {}),
    "weights and confidence are not used beside forecasts that are named": (
        CONFIDENCE, {"columns": {"probability": ["ann", "bob"]}}, {"experts": ("ann", "bob")},
        {"unused-columns": "not used: 'Confidence', 'Gewicht'"}),
    "one forecast over classes in columns is no panel of experts": (
        MATCHES.format("home", "Away"), {},
        {"experts": ("forecast",), "classes": ("home", "draw", "away"), "happened": ["home", "away", None],
         "X": [[[0.5, 0.3, 0.2]], [[0.2, 0.2, 0.6]], [[0.1, 0.1, 0.8]]]}, {}),
    "the column left that names each row": (
        REGIONS.format("where", "East", "South", "West"), {}, {"events": ("north", "East", "South", "West")},
        {"layout": "event = where (the column left that names each row)"}),
    **{f"numbers of answers are no events beside one question, by {who}": (
        f"ID;{who};Frage;Prognose;Status\n17;Anna;Streik?;0,8;ok\n18;Bernd;Streik?;0,6;ok\n", {},
        {"events": ("Streik?",), "experts": ("Anna", "Bernd")}, {}) for who in ("Teilnehmer", "Wer")},
    "events that hardly differ are noted": (
        "event,ann\nWird es – regnen?,0.5\nWird es -  regnen?,0.5\nwird es - regnen?,0.5\nUnd Schnee?,0.5\n", {},
        {"events": ("Wird es – regnen?", "Wird es -  regnen?", "wird es - regnen?", "Und Schnee?")},
        {"similar-events": "'Wird es – regnen?' and 'Wird es -  regnen?' and "}),
    "but not those of other numbers": (
        "event,ann\n1-1,0.5\n11,0.4\nT 5,0.3\nT -5,0.3\n", {}, {}, {"similar-events": None}),
    "outcomes in their own file bring the words of questions": (
        "question_id,user,p\nq1,ann,0.9\nq2,ann,0.2\n", {"outcomes": WORDED},
        {"texts": ("Rain?", "Snow?"), "outcomes": [1, 0]}, {}),
    "unless they are not wanted": (
        "question_id,user,p\nq1,ann,0.9\n", {"outcomes": WORDED, "columns": {"text": None}}, {"texts": None}, {}),
    "exact extremes and halves are noted": (
        "event,A\n" + "".join(f"q{i},{(0, 1, 0.5, 0.3)[i % 4]}\n" for i in range(40)), {}, {},
        {"zeros": 10, "ones": 10, "halves": 10}),
    "is the event unless there is none": (
        REGIONS.format("where", "East", "South", "West"), {"columns": {"event": None}},
        {"events": ("1", "2", "3", "4")}, {}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "options", "expected", "told"), READ.values(), ids=list(READ))
def test_what_is_read(text, options, expected, told):
    found = read(text, **options)
    as_expected(found, expected)
    for code, text_or_count in told.items():
        note = notes(found).get(code)
        if isinstance(text_or_count, str):
            assert text_or_count in note.text
        else:
            assert (note and note.count) == text_or_count


REFUSED = [
    # A fraction is no outcome (case 64).
    ("event,A,outcome\nq1,.7,0.61\n", {}, CellError,
     r"line 2, column 'outcome': outcome '0.61' is neither 0 nor 1.*settled at a fraction"),
    ("event,A,y\nq1,.7,0.61\n", {}, LayoutError, "unless 'y' is what happened"),
    # An outcome among no classes is listed with its lines (case 40).
    ("event,expert,class,p\n" + "".join(f"q{i},A,{c},.5\n" for i in range(3) for c in "ab"),
     {"outcomes": "event,y\nq0,a\nq1,c\nq2,c\n", "positive": "a"}, CellError,
     r"lines 3, 4, .*outcome 'c' is none of the classes"),
    # A forecast needs every class.
    ("event,expert,class,p\n" + "".join(f"q1,{e},{c},.5\n" for e, c in ("Ax", "Ay", "Az", "Bx", "By")), {}, CellError,
     r"by 'B' on event 'q1' has no probability for class 'z' \(.*line 5\)"),
    ("question,A,B\nq1,.7,-1\n", {}, CellError, "column 'B': -1 is not between 0 and 1; .*--missing-value -1"),
    ("event,expert,p\nq1,A,.1\nq1,A,.1\n", {}, DuplicateError, "--duplicates mean"),
    (LONG, {}, DuplicateError, r"several by 'A' on event 'q1' \(.*, lines 2, 3\).*--duplicates last.*mean"),
    (LONG, {"duplicates": "first"}, ArgumentError,
     "duplicates must be one of last, last-row, mean, time-weighted, samples, and it is 'first'"),
    ("event,expert,p\nq1,A,.5\n,A,.5\n", {}, CellError, "line 3, column 'event': a forecast without its event"),
    ("event,expert,p\nq1,A,.5\nq1,,.5\n", {}, CellError, "line 3, column 'expert': a forecast without its expert"),
    ("event,A\n,.5\nq1,.5\n", {}, CellError, "line 2, column 'event': a forecast without its event"),
    ("event,expert,p,prior\nq1,A,.5,.3\nq1,B,.5,.4\n", {}, CellError,
     r"event 'q1' has two values in column 'prior': '.3' \(.*line 2\) and '.4' \(.*3\)"),
    ("event,expert,p,prior\nq1,A,.5,1\n", {}, CellError,
     "column 'prior': a prior must lie strictly between 0 and 1, and here it is 1"),
    (SLASHES, {"columns": {"closes": None}}, CellError,
     r"line 2, column 'time': .*say --column time= to do without time"),
    (SLASHES, {"columns": {"time": None}}, CellError, r"line 3, column 'closes': .*say --column closes= "),
    ("event,A\nq1,.5\n", {"outcomes": CLOSED}, CellError, "--column closes= "),
    ("event,A\nq,.5\n", {"outcomes": "event,z,w\nq,1,0\n"}, LayoutError,
     "none of its columns 'event', 'z', 'w' is called outcome or a synonym of it"),
    # Somebody must be left, in either layout.
    *((text, options, ExpertError, f"no expert is left: {told}")
      for text in ("event,A,B\nq1,.5,.25\n", "event,expert,p\nq1,A,.5\nq1,B,.25\n")
      for options, told in (({"include": ["A"], "exclude": ["A"]}, "include keeps 'A', and exclude leaves out 'A'"),
                            ({"exclude": ["B", "A"]}, "exclude leaves out 'B', 'A'"))),
    ("event,expert,p\nq1,,\n", {}, LayoutError, "no row names an expert in column 'expert'"),
    ("event,a:x,a:y,a:z\nq,.5,.25,.25\n", {"silence": 0.1}, ArgumentError, "--silence is for events of two classes"),
    ("Nr;Frage;Prognose\n1;S?;0,8\n2;S?;0,6\n", {}, LayoutError, "unless 'Frage' is only part of the event"),
    ("event,expert,p,time\na,x,0.2,03/11/2026\na,x,0.6,04/10/2026\n", {"duplicates": "last"}, CellError,
     "--dates dmy"),
    (NOT_KNOWN.format("0"), {"void_values": "0"}, LayoutError,
     "--void-value 0 names a class, and what is void has none: the classes are"),
    ("event,ann,outcome\na,.2,yes\nb,.3,no\n", {"void_values": "yes", "positive": "yes"}, LayoutError,
     "--void-value yes names a class"),
    # Options of each event.
    ("question,forecaster,option,probability,resolution\nrain,ann,wet,0.3,\nsnow,ann,cold,0.4,\n", {}, LayoutError,
     "'rain' has one option only, 'wet'; its other options need rows too"),
    ("event,expert,class,p\n" + "".join(f"q,{e},{c},.5\n" for e, c in ("Ax", "Ay", "Az", "Bx", "By"))
     + "r,A,v,.5\nr,A,w,.5\n", {}, CellError, "by 'B' on event 'q' has no probability for option 'z'.* 3 options, 0"),
    (REVISED.format("Wer"), {}, DuplicateError, "Say which counts: --duplicates last"),
    (STAND, {"duplicates": "last"}, DuplicateError,
     r"which of several .* is the last, and 'Stand' holds times: .*--column time=Stand, or"),
    (STAND, {"duplicates": "time-weighted"}, LayoutError,
     r"no column is known to hold times, .* say --column time=Stand, or"),
    (VALID, {}, LayoutError, "the outcomes are 'invalid', 'valid': which of them"),
    ("event,ann,bob\nq,0.5,0.4\n", {"units": {"bod": "percent"}}, LayoutError,
     "none is called 'bod'; did you mean 'bob'"),
    ("event,ann\nq,0.5\n", {"units": {"ann": "odds"}}, ArgumentError,
     "a unit is percent or fraction, and that of 'ann' is 'odds'"),
    (SUMS.format(".01"), {"normalise": True}, CellError,
     r"by 'x' on event 'b' add up to 0.01 .*line 5\); that is too little for --norm"),
    (SUMS.format("0"), {"normalise": True}, CellError, "add up to 0 over"),
    (UNSURE.format("maybe"), {"columns": {"verdict": "verdict"}}, LayoutError, "says nothing of each of the others"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "error", "told"), REFUSED)
def test_what_is_refused(text, options, error, told):
    with pytest.raises(error, match=told):
        read(text, **options)


# Tables that are asked about, and what comes of each way that is offered.
OFFERED = [
    (STAND, {}, r"--column time=Stand --duplicates last, .*last is the last by 'Stand'",
     {"--column time=Stand --duplicates last": {"X": [[0.8]]}, "--duplicates mean": {"X": [[0.5]]}}),
    ("Teilnehmer;Frage;Prognose;Stand\nAnna;F1;80 %;17.11.2026\nBernd;F1;20 %;03.11.2026\n", {"as_of": "2026-11-10"},
     "Stand", {"--column time=Stand --as-of 2026-11-10": {"X": [[NAN, 0.2]]}}),
    (REVISED.format("Abteilung"), {}, "it may be",
     {"--column expert=Abteilung --duplicates last": {"experts": ("Anna", "Bernd"), "X": [[0.8, 0.6]]}}),
    (POSTPONED, {}, "--missing-value vertagt, or --void-value vertagt",
     {"--missing-value vertagt": {"outcomes": [1, -1, 0]}, "--void-value vertagt": {"void.events": ("F2",)}}),
    (MOOT.format("moot"), {}, "--void-value moot",
     {"--missing-value moot": {"void": None}, "--void-value moot": {"void.events": ("b",)}}),
    (UNITS, {}, r"line 2, column 'ann': 65 .* all numbers of 'bob' are, .*: say --unit ann=",
     {"--unit ann=percent": {"X": [[0.65, 0.9], [0.35, 0.3]]}, "--exclude ann": {"X": [[0.9], [0.3]]}}),
    (UNITS, {"percent": True}, r"with --percent, no number of 'bob' is above 1%.*--unit bob=fraction if",
     {"--percent --unit bob=fraction": {"X": [[0.65, 0.9], [0.35, 0.3]]},
      "--percent --unit bob=percent": {"X": [[0.65, 0.009], [0.35, 0.003]]}}),
    (OWN_UNIT, {}, None, {"--percent --unit cy=fraction": {"X": [[0.35, 0.4, 0.35], [0.7, 0.75, 0.5]]}}),
    (OWN_UNIT, {"percent": True}, None, {"--percent --unit cy=fraction": {}, "--percent --unit cy=percent": {}}),
    ("event;ann;bob;prior\nq1;0,65;0,9;30\nq2;0,4;0,9;40\n", {}, None,
     {"--unit prior=percent": {"X": [[0.65, 0.9], [0.4, 0.9]], "prior": [0.3, 0.4]}}),
    ("event;ann;bob;prior\nq1;65;90;0,3\nq2;40;90;0,4\n", {}, None,
     {"--percent --unit prior=fraction": {"prior": [0.3, 0.4]}, "--percent --unit prior=percent": {}}),
    ("event,ann:a,ann:b,ann:c,bob:a,bob:b,bob:c\nq,50,30,20,0.2,0.2,0.6\n", {}, None,
     {"--unit ann=percent": {"X": [[[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]]}, "--exclude ann": {"experts": ("bob",)}}),
    ("event,ann\nq1,65 %\nq2,1\nq3,0.4\n", {}, None,
     {"--unit ann=percent": {"X": [[0.65], [0.01], [0.004]]}, "--unit ann=fraction": {"X": [[0.65], [1.0], [0.4]]}}),
    ("Name,Anna,Bernd\nRegen,0.2,0.4\nSchnee,0.1,0.3\n", {}, "it may be",
     {"--column event=Name": {"events": ("Regen", "Schnee")}, "--column expert=Name": {"events": ("Anna", "Bernd")}}),
    ("Name,Q1,Q2,Q3\nAnna,0.65,0.2,0.05\nBernd,0.7,,0.1\n", {}, "a row per expert, a column per event",
     {"--column expert=Name": {"events": ("Q1", "Q2", "Q3"), "X": [[0.65, 0.7], [0.2, NAN], [0.05, 0.1]]}}),
    *((f"question,{date}ann,bob\nrain?,{first}.2,.3\nrain?,{last}.4,.3\n", {}, "is only part of the event",
       {"--column event=question --duplicates last": {"events": ("rain?",), "X": [[0.4, 0.3]]}, **more,
        "--column event=": {"X": [[0.2, 0.3], [0.4, 0.3]]}})
      for date, first, last, more in (("date,", "2024-01-01,", "2024-01-02,", {}),
                                      ("", "", "", {"--column event=question --duplicates mean": {}}))),
    (SUM.format("0.50"), {}, r"add up to 0.95 .*--normalise divides such forecasts by their sum", {"--normalise": {}}),
    (SUM.format("0.10"), {}, "add up to 0.55", {}),  # a class may be lacking
    (CONFIDENCE, {}, "unless 'Confidence' holds forecasts", {"--column probability=ann --column probability=bob": {}}),
    (REGIONS.format("region", "south", "north", "south"), {}, "it may be",
     {"--column event=": {"events": ("1", "2", "3", "4"), "experts": ("a", "b")}}),
    (UNSURE.format("no"), {}, "unless 'confidence' says how sure each is of 'verdict'",
     {"--column verdict=": {"X": [[0.9], [0.2], [0.7]]}, "--column verdict=verdict": {"X": [[0.9], [0.8], [0.3]]}}),
    (MATCHES.format("1", "0"), {}, "'result' says something else than what happened", {}),
    (SWEDISH, {}, "it may be",
     {"--column event=event --column expert=Skribent --column probability=Sanno": {"X": [[0.5, 0.25], [0.75, NAN]]},
      "--column expert=Skribent --column probability=Sanno": {"X": [[0.5, 0.25], [0.75, NAN]]}}),
    ("event,a,b,p\nq1,A,x,.5\nq1,B,y,.25\nq2,A,y,.75\n", {}, "it may be",
     {"--column expert=a": {"experts": ("A", "B")}, "--column expert=b": {"experts": ("x", "y")}}),
    ("event,x,result\nq1,.8,.7\nq2,.2,.4\n", {}, "column 'result' holds no outcomes, say --column outcome=", {}),
    ("event,x,y\nq1,.8,.7\nq2,.2,.4\n", {}, "unless 'y' is what happened",
     {"--column probability=x --column probability=y": {"experts": ("x", "y")}}),
    ("event,p\nq1,.5\nq1,.25\n", {}, "several by 'p'", {"--duplicates last": {}, "--duplicates mean": {}}),
    # Many numbers out of range are no code for no answer, and a column of 0 and 1 beside others is no lone expert.
    ("event,ann,bob\n" + "".join(f"q{i},.{i + 1},{17.5 + 4 * i}\n" for i in range(8)), {}, "17.5 is not between 0",
     {"--unit bob=percent": {}, "--exclude bob": {}}),
    ("day,icon,seen\n" + "".join(f"d{i},{10 + i},{i % 2}\n" for i in range(9)), {}, "do not say which", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "told", "commands"), OFFERED)
def test_what_is_offered(text, options, told, commands):
    with pytest.raises(TableError, match=told):
        read(text, **options)
    check_offered(text, commands, **options)
