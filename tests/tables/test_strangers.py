"""Tables as strangers bring them: each is read right as it is, or by the command that ``check`` prints.

Every table has a mess that is common in exports. The right answers are those of the average pool, computed by hand from
the forecasts that count. A table needs 0 runs where ``pool FILE`` reads it as it is, 1 where the command at the end of
``check FILE`` does; where two readings are possible, ``choice`` is what the reader of that message decides.
"""

import io
import json
import re
import shlex
import zipfile
from dataclasses import dataclass, field

import pytest

from opinionpool.cli import app as cli

SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


@dataclass(frozen=True)
class Stranger:
    """A table as it came, and how it is to be read."""

    mess: str
    files: dict[str, str | bytes]
    answers: dict[str, float | dict[str, float]]  # event: the average, or by class
    runs: int = 0
    options: tuple[str, ...] = ()  # what its owner asks for beforehand
    choice: str = ""  # what the owner picks from the command lines offered
    experts: int | None = None
    resolved: int | None = None
    arguments: tuple[str, ...] = field(default=())  # files on the command line, if not the first


def workbook(rows):
    """A spreadsheet as office programs write it, in the least that they accept."""
    cells = "".join(
        "<row>"
        + "".join(
            f"<c><v>{cell}</v></c>" if isinstance(cell, int | float) else f'<c t="inlineStr"><is><t>{cell}</t></is></c>'
            for cell in row
        )
        + "</row>"
        for row in rows
    )
    kinds = "http://schemas.openxmlformats.org/package/2006"
    office = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{kinds}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{office}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{office}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{kinds}/relationships">'
        f'<Relationship Id="r1" Type="{DOCUMENT}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="{DOCUMENT}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{kinds}/relationships">'
        f'<Relationship Id="r1" Type="{DOCUMENT}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEET}"><sheetData>{cells}</sheetData></worksheet>',
    }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>' + text)
    return target.getvalue()


STRANGERS = [
    Stranger("a column of few words beside a row per event",
        {"games.csv": "m1,m2,home_win,region\n.8,.6,1,north\n.3,.1,0,south\n.5,.9,1,north\n.2,.4,0,south\n"},
        {"1": 0.7, "2": 0.2, "3": 0.7, "4": 0.3}, runs=1, experts=2, resolved=4),
    Stranger("a pandas index, a constant column and a blank one",
        {"frame.csv": "Unnamed: 0,season,note,match,alpha,beta,result\n0,2024,,A-B,0.5,0.7,1\n"
         "1,2024,,C-D,0.2,0.4,0\n2,2024,,E-F,0.6,0.8,\n"}, {"A-B": 0.6, "C-D": 0.3, "E-F": 0.7}, experts=2, resolved=2),
    Stranger("rows that end early",
        {"short.csv": "question,forecaster,probability,outcome,comment,weight\nq1,ann,0.9,1\nq1,bob,0.5,1,late,2\n"
         "q2,ann,0.3,0\nq2,bob,0.1\n"}, {"q1": 0.7, "q2": 0.2}, experts=2, resolved=2),
    Stranger(
        "a verdict and how sure its judge is",
        {
            "judges.csv": "item,judge,verdict,confidence,human\ni1,j1,pass,90,pass\ni1,j2,fail,60,pass\n"
            "i2,j1,fail,80,fail\ni2,j2,fail,70,fail\ni3,j1,fail,90,\ni3,j2,fail,80,\n"
        },
        {"i1": 0.65, "i2": 0.25, "i3": 0.15},  # P(pass): 1 - confidence where the verdict is fail
        runs=1,
        experts=2,
        resolved=2,
    ),
    Stranger("annotators' own labels beside the gold label",
        {"labels.csv": "item_id,annotator_id,label,confidence,gold\ni1,a,yes,0.9,yes\ni1,b,yes,0.6,yes\n"
         "i2,a,no,0.8,no\ni2,b,no,0.7,no\ni3,a,no,0.9,yes\ni3,b,yes,0.7,yes\n"}, {"i1": 0.75, "i2": 0.25, "i3": 0.4},
        experts=2, resolved=3),
    Stranger("a row per respondent and a column per question, in per cent",
        {"survey.csv": "respondent,q1,q2,q3\nann,80,30,60\nbob,70,20,50\ncy,90,40,\n",
         "truth.csv": "question,outcome\nq1,1\nq2,0\nq3,\n"}, {"q1": 0.8, "q2": 0.3, "q3": 0.55}, runs=1,
        options=("--outcomes", "truth.csv"), experts=3, resolved=2),
    Stranger("candidates of a race, all on one day",
        {"races.csv": "race,model,candidate,prob,date\nR1,m1,smith,0.9,2024-11-04\nR1,m1,jones,0.1,2024-11-04\n"
         "R1,m2,smith,0.8,2024-11-04\nR1,m2,jones,0.2,2024-11-04\nR2,m1,jones,0.3,2024-11-04\n"
         "R2,m1,smith,0.7,2024-11-04\nR2,m2,smith,0.6,2024-11-04\nR2,m2,jones,0.4,2024-11-04\n"},
        {"R1": {"smith": 0.85, "jones": 0.15}, "R2": {"smith": 0.65, "jones": 0.35}}, experts=2),
    Stranger("a forecast that its author took back",
        {"withdrawn.csv": "event,expert,probability,time\nq1,ann,0.9,2025-01-01\nq1,ann,,2025-01-20\n"
         "q1,bob,0.3,2025-01-05\nq2,ann,0.6,2025-01-01\nq2,ann,0.7,2025-01-02\nq2,bob,0.5,2025-01-05\n"},
        {"q1": 0.3, "q2": 0.6}, runs=1, experts=2),
    Stranger("Unix times in milliseconds, newest first, by the names of a market's interface",
        {"bets.csv": "contractId,userId,probAfter,createdTime,resolution\n"
         "m1,ann,0.95,1671980447761,YES\nm1,bob,0.85,1671880447761,YES\n"
         "m1,ann,0.30,1641980447761,YES\nm1,bob,0.40,1641880447761,YES\nm2,ann,0.05,1671980447761,NO\n"
         "m2,bob,0.15,1671880447761,NO\nm2,ann,0.60,1641980447761,NO\nm2,bob,0.55,1641880447761,NO\n"},
        {"m1": 0.9, "m2": 0.1}, runs=1, experts=2, resolved=2),
    Stranger("Unix times in seconds",
        {"seconds.csv": "event,expert,prediction,timestamp\nq1,ann,0.2,1700000100\nq1,ann,0.6,1700000000\n"
         "q1,bob,0.4,1700000050\n"}, {"q1": 0.3}, runs=1, experts=2),
    Stranger("JSON: rows under a key of an object",
        {"wrapped.json": '{"count": 3, "next": null, "results": [\n {"event": "q1", "expert": "a", '
         '"probability": 0.8},\n {"event": "q1", "expert": "b", "probability": 0.6},\n '
         '{"event": "q2", "expert": "b", "probability": 0.1}]}'}, {"q1": 0.7, "q2": 0.1}, experts=2),
    Stranger("JSON: columns, each an object by the row's number",
        {"columns.json": '{"event": {"0": "q1", "1": "q2"}, "ann": {"0": 0.7, "1": 0.2}, '
         '"bob": {"0": 0.5, "1": null}}'}, {"q1": 0.6, "q2": 0.2}, experts=2),
    Stranger(
        "JSON: a list of rows with objects within",
        {
            "nested.json": json.dumps(
                [
                    {"question": {"id": "q1", "title": "Rain?"}, "user": {"name": user}, "prediction": p, "outcome": 1}
                    for user, p in (("ann", 0.9), ("bob", 0.5))
                ]
            )
        },
        {"q1": 0.7},
        experts=2,
        resolved=1,
    ),
    Stranger("two classes that are named, forecasts of each",
        {"two.csv": "race,model,candidate,prob\nR1,m1,smith,0.9\nR1,m1,jones,0.1\nR1,m2,smith,0.6\nR1,m2,jones,0.4\n"},
        {"R1": {"smith": 0.75, "jones": 0.25}}, experts=2),
    Stranger("a row per forecast, a column per class",
        {"soccer.csv": "match,bookmaker,home,draw,away,result\nA-B,x,0.5,0.3,0.2,home\nA-B,y,0.7,0.2,0.1,home\n"
         "C-D,x,0.2,0.2,0.6,away\nC-D,y,0.4,0.2,0.4,away\nE-F,x,0.1,0.1,0.8,\n"},
        {"A-B": {"home": 0.6, "draw": 0.25, "away": 0.15}, "C-D": {"home": 0.3, "draw": 0.2, "away": 0.5},
         "E-F": {"home": 0.1, "draw": 0.1, "away": 0.8}}, experts=2, resolved=2),
    Stranger("a spreadsheet, with dates as it numbers them",
        {"book.xlsx": workbook([["Question", "Forecaster", "Probability", "Date"], ["q1", "ann", 0.2, 45660], ["q1",
         "ann", 0.6, 45650], ["q1", "bob", 0.4, 45655]])}, {"q1": 0.3}, runs=1, experts=2),
    Stranger("one table in pieces",
        {"jan.csv": "event,expert,probability\nq1,ann,0.9\nq1,bob,0.5\n",
         "feb.csv": "event,expert,probability\nq2,ann,0.3\nq2,cy,0.1\n"}, {"q1": 0.7, "q2": 0.2},
        arguments=("jan.csv", "feb.csv"), experts=3),
    Stranger("a folder with a file per expert",
        {"models/ann.csv": "id,prediction\nq1,0.9\nq2,0.3\n", "models/bob.csv": "id,prediction\nq1,0.5\nq2,0.1\n"},
        {"q1": 0.7, "q2": 0.2}, arguments=("models",), experts=2),
    Stranger("rows that are not to count",
        {"kinds.csv": "event,expert,probability,type\nq1,ann,0.9,human\nq1,bob,0.5,human\nq1,gpt,0.1,bot\n"
         "q2,ann,0.3,human\nq2,gpt,0.8,bot\n"}, {"q1": 0.7, "q2": 0.3},
        options=("--where", "type <> 'bot' and not probability is blank"), experts=2),
    Stranger("a key of two columns",
        {"matches.csv": "date,home,pundit,prob\n2025-01-04,Ajax,x,0.6\n2025-01-04,Ajax,y,0.8\n"
         "2025-01-11,Ajax,x,0.2\n2025-01-11,Ajax,y,0.4\n2025-01-11,PSV,x,0.5\n"},
        {"2025-01-04 / Ajax": 0.7, "2025-01-11 / Ajax": 0.3, "2025-01-11 / PSV": 0.5},
        options=("--column", "event=date", "--column", "event=home", "--column", "expert=pundit"), experts=2),
    Stranger("one name in three spellings",
        {"spelt.csv": "event,expert,probability\nq1,José,0.9\nq1,bob,0.5\nq2,JOSE\u0301,0.3\nq2,Bob,0.1\n"
         "q3, josé ,0.6\nq3,B ob,0.2\n"}, {"q1": 0.7, "q2": 0.2, "q3": 0.4}, options=("--merge-names",), experts=2),
    Stranger("days first, as one date shows",
        {"days.csv": "event,expert,probability,date\nq1,ann,0.2,05/02/2025\nq1,ann,0.6,28/01/2025\n"
         "q1,bob,0.4,01/02/2025\n"}, {"q1": 0.3}, runs=1, experts=2),
    Stranger(
        "dates that can be read in two ways",
        {
            "both.csv": "event,expert,probability,date\nq1,ann,0.2,03/02/2025\nq1,ann,0.6,02/03/2025\n"
            "q1,bob,0.4,01/02/2025\n"
        },
        {"q1": 0.5},  # by days first, 2 March is the later
        runs=1,
        choice="--dates dmy",
        experts=2,
    ),
    Stranger(
        "times in several zones",
        {
            "zones.csv": "event,expert,probability,submitted_at\nq1,ann,0.2,2025-03-01T09:00:00-05:00\n"
            "q1,ann,0.6,2025-03-01T13:00:00+01:00\nq1,bob,0.4,2025-03-01 12:30:00Z\n"
        },
        {"q1": 0.3},  # 14:00Z is later than 12:00Z
        runs=1,
        experts=2,
    ),
    Stranger("questions that were annulled",
        {"void.csv": "question,user,probability,outcome\nq1,ann,0.9,yes\nq1,bob,0.5,yes\nq2,ann,0.3,annulled\n"
         "q2,bob,0.1,annulled\nq3,ann,0.4,\nq3,bob,0.2,\n"}, {"q1": 0.7, "q3": 0.3}, experts=2, resolved=1),
    Stranger(
        "a European export: marks of bytes, semicolons, decimal commas, per cent signs",
        {
            "Umfrage.csv": (
                "\ufeffFrage;Müller;Schmidt;Ergebnis\r\nRegen?;62,5 %;37,5 %;ja\r\nSchnee?;20 %;10 %;nein\r\n"
            ).encode()
        },
        {"Regen?": 0.5, "Schnee?": 0.15},
        experts=2,
        resolved=2,
    ),
    Stranger("polls by the names that pollsters use",
        {"polls.csv": "state,pollster,dem_win,result\nOH,alpha,0.4,0\nOH,beta,0.2,0\nPA,alpha,0.7,1\nPA,beta,0.5,1\n"
         "NV,alpha,0.6,\n"}, {"OH": 0.3, "PA": 0.6, "NV": 0.6}, runs=1, experts=2, resolved=2),
    Stranger("five faults at once",
        {"tournament.csv": "Question ID,Participant,Forecast (%),Submitted,Resolution,Closed\n"
         "q1,ann,20,2025-01-01,TRUE,2025-02-01\nq1,Ann,90,2025-01-10,TRUE,2025-02-01\nq1,bob,50,2025-01-03,TRUE,"
         "2025-02-01\nq1,cy,1,2025-02-09,TRUE,2025-02-01\nq2,ann,30,2025-01-01,FALSE,2025-03-01\n"
         "q2,bob,40,2025-01-02,FALSE,2025-03-01\nq2,bob,10,2025-01-04,FALSE,2025-03-01\n"
         "q3,bob,60,2025-01-04,annulled,2025-03-01\nq4,bob,60,2025-01-04,,2025-03-01\n"},
        {"q1": 0.7, "q2": 0.2, "q4": 0.6}, runs=1, resolved=2),
    Stranger("forecasts that ran out before the question closed",
        {"expiring.csv": "event,expert,probability,time,expires,closes\n"
         "q1,ann,0.9,2025-01-01,2025-01-10,2025-02-01\n"
         "q1,bob,0.3,2025-01-05,2025-03-01,2025-02-01\nq2,ann,0.6,2025-01-01,,2025-02-01\n"
         "q2,bob,0.4,2025-01-05,2025-02-15,2025-02-01\n"}, {"q1": 0.3, "q2": 0.5}, experts=2),
    Stranger("an option that was added while the question was open",
        {"options.csv": "question,forecaster,option,probability,time,resolution\nq1,ann,a,0.6,2025-01-01,b\n"
         "q1,ann,other,0.4,2025-01-01,b\nq1,bob,a,0.5,2025-02-01,b\nq1,bob,b,0.3,2025-02-01,b\n"
         "q1,bob,other,0.2,2025-02-01,b\nq1,cy,a,0.3,2025-02-03,b\nq1,cy,b,0.5,2025-02-03,b\n"
         "q1,cy,other,0.2,2025-02-03,b\nq2,ann,yes,0.7,2025-01-05,yes\nq2,ann,no,0.3,2025-01-05,yes\n"
         "q2,bob,yes,0.9,2025-01-05,yes\nq2,bob,no,0.1,2025-01-05,yes\n"},
        {"q1": {"a": 0.4, "b": 0.4, "other": 0.2}, "q2": {"yes": 0.8, "no": 0.2}}, runs=1,
        options=("--options", "event"), resolved=2),
    Stranger(
        "sources that only ever speak up for it",
        {"alarms.csv": "id,s1,s2,outcome\nd0,,0.9,1\nd1,,,0\nd2,0.9,0.9,1\nd3,,,0\nd4,,,0\nd5,0.9,,0\n"},
        {"d0": 0.55, "d1": 0.2, "d2": 0.9, "d3": 0.2, "d4": 0.2, "d5": 0.55},  # silence read as 20%
        options=("--silence", "20%"),
        experts=2,
        resolved=6,
    ),
    Stranger("UTF-16 from a spreadsheet, tabs between",
        {"unicode.txt": "Event\tExpert\tProbability\r\nq1\tJürgen\t90%\r\nq1\tZoë\t50%\r\n".encode("utf-16")},
        {"q1": 0.7}, experts=2),
    Stranger("words for what was wrong and a column of amounts",
        {"amounts.csv": "market,trader,win_prob,stake,winner\nm1,x,0.9,1200,yes\nm1,y,0.5,30,yes\nm2,x,0.3,55,no\n"
         "m2,y,#N/A,10,no\n"}, {"m1": 0.7, "m2": 0.3}, experts=2, resolved=2),
    Stranger("titles above the header, and days as spreadsheets number them",
        {"titled.tsv": "Export of 20 Feb 2026\t\t\t\t\n\nQuestion\tAnalyst\tP\tEntered\tHappened?\n"
         "q1\tann\t0.2\t46040.75\tTRUE\nq1\tann\t0.9\t46041.5\tTRUE\nq1\tbob\t0.5\t46040.958333\tTRUE\n"
         "q2\tbob\t0.3\t46041.25\t\n"}, {"q1": 0.7, "q2": 0.3}, runs=1, experts=2, resolved=1),
    Stranger(
        "a forecasting hub's file of probabilities by category, outcomes beside it",
        {
            "hub.csv": "reference_date,model_id,target,location,output_type,output_type_id,value\n"
            + "".join(
                f"{day},{model},rate change,{place},pmf,{label},{p}\n"
                for day, model, place, ps in [
                    ("2026-01-03", "a-base", "US", (0.5, 0.3, 0.2)),
                    ("2026-01-03", "b-net", "US", (0.7, 0.1, 0.2)),
                    ("2026-01-10", "a-base", "06", (0.2, 0.2, 0.6)),
                ]
                for label, p in zip(("up", "flat", "down"), ps, strict=True)
            ),
            "oracle.csv": "reference_date,location,observation\n2026-01-03,US,up\n2026-01-10,06,\n",
        },
        {
            "2026-01-03 / US": {"up": 0.6, "flat": 0.2, "down": 0.2},
            "2026-01-10 / 06": {"up": 0.2, "flat": 0.2, "down": 0.6},
        },
        runs=1,
        options=("--outcomes", "oracle.csv"),
        experts=2,
        resolved=1,
    ),
    Stranger(
        "a judge's log: scores by class in an object, the label and the prompt in another",
        {
            "judges.jsonl": "".join(
                json.dumps(
                    {
                        "run_id": run,
                        "model": model,
                        "sample": {"prompt": f"Is {run} right?", "label": label},
                        "scores": {"pass": p, "fail": round(1 - p, 2)},
                        "latency_ms": 300,
                    }
                )
                + "\n"
                for run, label, ps in [("r1", "pass", (0.9, 0.5)), ("r2", "fail", (0.3, 0.1)), ("r3", None, (0.6, 0.8))]
                for model, p in zip(("m-a", "m-b"), ps, strict=True)
            )
        },
        {"r1": {"pass": 0.7, "fail": 0.3}, "r2": {"pass": 0.2, "fail": 0.8}, "r3": {"pass": 0.7, "fail": 0.3}},
        runs=1,
        experts=2,
        resolved=2,
    ),
    Stranger("columns of classifiers and classes without a colon, images by number",
        {"images.csv": "image,res_prob_cat,res_prob_dog,res_prob_owl,vit_prob_cat,vit_prob_dog,vit_prob_owl,"
         "true_label\n1017,0.5,0.3,0.2,0.7,0.1,0.2,cat\n1005,0.2,0.2,0.6,0.4,0.2,0.4,owl\n1044,,,,0.1,0.1,0.8,\n"},
        {"1017": {"cat": 0.6, "dog": 0.2, "owl": 0.2}, "1005": {"cat": 0.3, "dog": 0.2, "owl": 0.5},
         "1044": {"cat": 0.1, "dog": 0.1, "owl": 0.8}}, experts=2, resolved=2),
    Stranger(
        "bets with a direction of their own, what is known of the market in an object",
        {
            "bets.jsonl": "".join(
                json.dumps(
                    {
                        "id": f"b{i}",
                        "contractId": market,
                        "userName": user,
                        "createdTime": 1767426868653 + i,
                        "outcome": "YES" if p > 0.5 else "NO",
                        "probAfter": p,
                        "isFilled": True,
                        "contract": {"question": f"{market}?", "resolution": resolution},
                    }
                )
                + "\n"
                for i, (market, user, p, resolution) in enumerate(
                    [
                        ("c1", "ann", 0.2, "YES"),
                        ("c1", "bob", 0.9, "YES"),
                        ("c1", "ann", 0.7, "YES"),
                        ("c2", "bob", 0.1, "NO"),
                        ("c3", "ann", 0.6, None),
                    ]
                )
            )
        },
        {"c1": 0.8, "c2": 0.1, "c3": 0.6},
        runs=1,
        experts=2,
        resolved=2,
    ),
    Stranger("questions by their wording beside a status",
        {"site.csv": "question_name,user,answer_option,forecast,correct_answer,status\n"
         "Rain?,ann,Yes,90%,Yes,Closed\nRain?,ann,No,10%,Yes,Closed\nRain?,bob,Yes,50%,Yes,Closed\n"
         "Rain?,bob,No,50%,Yes,Closed\nSnow?,ann,Yes,30%,,Active\nSnow?,ann,No,70%,,Active\n"},
        {"Rain?": {"Yes": 0.7, "No": 0.3}, "Snow?": {"Yes": 0.3, "No": 0.7}}, experts=2, resolved=1),
    Stranger("averages at the end, days of closing, a word for open in German",
        {"Runde.csv": "Frage;Müller;Schmidt;Schließt am;Ergebnis\nRegen?;62,5 %;37,5 %;13.01.2026;ja\n"
         "Schnee?;20 %;10 %;14.02.2026;offen\nMittelwert;41,3 %;23,8 %;;\n"}, {"Regen?": 0.5, "Schnee?": 0.15}, runs=1,
        experts=2, resolved=1),
    Stranger("a form with the time of the answer and a name in words",
        {"form.csv": "Timestamp,Your name,Rain?,Snow?\n02/20/2026 14:00:11,ann,90,30\n02/20/2026 14:01:11,bob,50,\n",
         "key.csv": "Question,Answer\nRain?,Yes\n"}, {"Rain?": 0.7, "Snow?": 0.3}, runs=1,
        options=("--outcomes", "key.csv"), experts=2, resolved=1),
    Stranger("from when to when each forecast stood",
        {"stood.csv": "Question ID,Forecaster ID,Start Time,End Time,Probability Yes,Scheduled Close Time,"
         "Resolution\n" "1,7,2026-01-02T10:00:00Z,2026-01-09T10:00:00Z,0.2,2026-02-01T00:00:00Z,yes\n"
         "1,7,2026-01-09T10:00:00Z,,0.9,2026-02-01T00:00:00Z,yes\n1,8,2026-01-03T10:00:00Z,,0.5,2026-02-01T00:00:00Z,"
         "yes\n2,8,2026-01-03T10:00:00Z,2026-01-20T00:00:00Z,0.8,2026-02-01T00:00:00Z,no\n"
         "2,7,2026-01-05T10:00:00Z,,0.4,2026-02-01T00:00:00Z,no\n"}, {"1": 0.7, "2": 0.4}, runs=1, experts=2,
        resolved=2),
    Stranger("two columns for each judge, and a verdict that names one of them",
        {"pairs.csv": "event,ann_pass,ann_fail,bob_pass,bob_fail,verdict\ne1,0.7,0.3,0.5,0.5,pass\n"
         "e2,0.2,0.8,0.6,0.4,fail\ne3,0.9,0.1,,,\n"},
        {"e1": {"pass": 0.6, "fail": 0.4}, "e2": {"pass": 0.4, "fail": 0.6}, "e3": {"pass": 0.9, "fail": 0.1}}, runs=1,
        experts=2, resolved=2),
    Stranger("what came of it under the name that the probability has",
        {"beat.tsv": "date\tcompany\tanalyst\tprob_beat\tbeat\n2026-01-05\tACME\tJ. Doe\t65\t1\n"
         "2026-01-05\tACME\tK. Roe\t75\t1\n2026-01-06\tBETA\tJ. Doe\t30\t0\n2026-01-06\tBETA\tK. Roe\t50\t0\n"
         "2026-01-09\tGAMMA\tJ. Doe\t55\t\n"}, {"ACME": 0.7, "BETA": 0.4, "GAMMA": 0.55}, runs=1, experts=2,
        resolved=2),
    Stranger("weeks, and questions that come again every week",
        {"weeks.csv": "Week,Q,Ann,Bob,Outcome\n1,Rain,0.6,0.8,Y\n1,Snow,0.1,0.3,N\n2,Rain,0.4,0.2,N\n"
         "2,Snow,0.3,0.1,\n"}, {"1 / Rain": 0.7, "1 / Snow": 0.2, "2 / Rain": 0.3, "2 / Snow": 0.2}, runs=1,
        choice="--column event=Week --column event=Q", experts=2, resolved=3),
    Stranger("classes that are ranges of per cent",
        {"ranges.csv": "question_id,user,0%-10%,10%-20%,20%+,result\nq1,a,0.2,0.5,0.3,10%-20%\n"
         "q1,b,0.1,0.6,0.3,10%-20%\nq2,a,0.7,0.2,0.1,0%-10%\nq2,b,0.6,0.3,0.1,0%-10%\n"},
        {"q1": {"0%-10%": 0.15, "10%-20%": 0.55, "20%+": 0.3}, "q2": {"0%-10%": 0.65, "10%-20%": 0.25, "20%+": 0.1}},
        experts=2, resolved=2),
    Stranger("one question of the week, newest answers first, as Excel writes CSV",
        {"umfrage.csv": ("Teilnehmer;Frage;Prognose;Zeitstempel\r\nJörg;Streik?;80 %;17.11.2026 09:00\r\n"
         "Bärbel;Streik?;60 %;03.11.2026 10:00\r\nJörg;Streik?;20 %;03.11.2026 09:00\r\n").encode("cp1252")},
        {"Streik?": 0.7}, runs=1, experts=2),
    Stranger("French: no-break blanks before per cent signs, a question that was annulled",
        {"sondage.csv": "Répondant;Question;Probabilité;Horodateur\nJean;Q1;65\u202f%;03/11/2026 09:00:00\n"
         "Marie;Q1;40,5\u202f%;13/11/2026 09:00:00\nJean;Q2;10\u202f%;03/11/2026 09:00:00\n",
         "issues.csv": "Question;Résultat;Résolu le\nQ1;oui;05/12/2026\nQ2;annulé;\n"}, {"Q1": 0.5275},
        options=("--outcomes", "issues.csv", "--dates", "dmy"), experts=2, resolved=1),
    Stranger("people in rows beside their number, department and age, questions in columns",
        {"form.csv": "ID,Zeitstempel,Name,Abteilung,Alter,Q1,Q2\n17,03.11.2026 09:00,Anna,IT,34,0.65,0.2\n"
         "19,03.11.2026 09:10,Bernd,IT,51,0.75,0.4\n", "key.csv": "question,outcome\nQ1,1\nQ2,\n"},
        {"Q1": 0.7, "Q2": 0.3}, options=("--outcomes", "key.csv"), experts=2, resolved=1),
    Stranger("one person writes fractions among percentages",
        {"mixed.csv": "event,expert,probability\nq1,ann,35\nq1,bob,40\nq1,cy,0.3\nq2,ann,70\nq2,bob,80\nq2,cy,0.6\n"},
        {"q1": 0.35, "q2": 0.7}, runs=1, experts=3),
]  # fmt: skip

NAMES = [stranger.mess for stranger in STRANGERS]


def written(stranger, folder):
    for name, data in stranger.files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return [*(stranger.arguments or (next(iter(stranger.files)),)), *stranger.options]


def answered(arguments, capsys):
    """What ``pool`` makes of a table, or None where it refuses, and what it tells."""
    status = cli.run(["pool", *arguments, "--pool", "average", "--format", "json"])
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    return (json.loads(output.out) if status == 0 else None), output.err


def offered(arguments, capsys):
    """The command lines that ``check`` ends with."""
    cli.run(["check", *arguments])
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    return re.findall(r"^\s*opinionpool pool (.+)$", output.out + output.err, re.MULTILINE)


def right(found, stranger):
    """Whether the answers are those expected, for the same events."""
    answered = [] if found is None else [record for record in found["events"] if record["status"] != "void"]
    if [record["event"] for record in answered] != list(stranger.answers):
        return False
    for record, expected in zip(answered, stranger.answers.values(), strict=True):
        given = record.get("probabilities", record.get("probability"))
        if isinstance(expected, dict) and not isinstance(given, dict):
            # Of two classes the answer is the probability of one, which is named.
            given = {label: given if label == found["summary"]["positive"] else 1.0 - given for label in expected}
        if given != pytest.approx(expected, abs=1e-9):
            return False
    counts = {"experts": stranger.experts, "resolved": stranger.resolved}
    return all(found["summary"][name] == count for name, count in counts.items() if count is not None)


def runs(stranger, folder, capsys):
    """How many runs the table takes; no answer before that is wrong."""
    arguments = written(stranger, folder)
    found, told = answered(arguments, capsys)
    if found is not None:
        assert right(found, stranger), (found, told)
        return 0
    commands = [command for command in offered(arguments, capsys) if stranger.choice in command]
    assert len(commands) == 1, (told, commands)
    found, told = answered(shlex.split(commands[0]), capsys)
    assert right(found, stranger), (commands, found, told)
    return 1


@pytest.mark.parametrize("stranger", STRANGERS, ids=NAMES)
def test_read_right_at_once_or_by_the_command_that_check_prints(stranger, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert runs(stranger, tmp_path, capsys) == stranger.runs


def test_errors_name_the_rows_of_a_sheet_as_it_shows_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [["Umfrage"], ["Stand: Mai"], [], ["Frage", "Anna", "Ben"], ["F1", 0.65, 0.5], [], ["F2", "heute", 0.4]]
    (tmp_path / "book.xlsx").write_bytes(workbook(rows))
    assert cli.run(["pool", "book.xlsx"]) == 1
    assert "book.xlsx, row 7, column 'Anna': 'heute'" in capsys.readouterr().err
