"""Files to download from the page: report, panel file, forecasts, and the command that gives the same answer."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from datetime import datetime

import numpy as np

from opinionpool.page import views
from opinionpool.page.answer import Answer, PageData, altered, prior_of
from opinionpool.page.assessment import EXAMPLE, Assessment, Candidate, to_toml
from opinionpool.page.panel import attributes, button, field
from opinionpool.page.session import PageInputs
from opinionpool.report.answers import coverage_words
from opinionpool.report.blocks import (
    Block,
    Html,
    Section,
    Table,
    details,
    event_name,
    joined,
    markup,
    missing,
    note,
    paragraph,
    rendered,
    report_document,
    sentence,
    typed_code,
)
from opinionpool.report.evidence import method_words
from opinionpool.report.explanation import forecast_columns
from opinionpool.report.listing import Column, printable, write_csv
from opinionpool.report.panel import terms
from opinionpool.saving.files import to_bytes
from opinionpool.text import typed

PANEL, FORECASTS, POOL, REPORT = "panel.toml", "forecasts.csv", "pool.json", "report.html"
COMMAND, ARCHIVE = "command.txt", "assessment.zip"
WHY = {
    REPORT: "the report, for people",
    COMMAND: "the command with the same answer",
    PANEL: "what is assessed and assumed of the experts",
    FORECASTS: "the forecasts on this event",
    POOL: "the pool that was learned",
}


def panel_file(a: Assessment, when: datetime) -> str:
    """Return the text of a panel file (for --panel) with all beliefs, who assessed them and when."""
    lines = [printable(a.question), f"Assessed {record(a, when)}."]
    return "".join(f"# {line}\n" for line in lines) + to_toml(a.beliefs, a.assumed)


def record(a: Assessment, when: datetime) -> str:
    """Return the clause "by NAMES on DATE" on who made the assessment, and when."""
    by = f"by {printable(a.assessor)} " if a.assessor else ""
    return f"{by}on {when:%Y-%m-%d at %H:%M %Z}".rstrip()


def forecasts_file(a: Assessment, data: PageData) -> str:
    """Return the forecasts on the assessed event as CSV, a row for each forecast (and class, if K > 2)."""
    there = [each for each in a.experts if each.forecast is not None]
    labels = [str(label) for label in a.classes]
    classes = 1 if a.binary else len(labels)
    columns = [
        Column("event", [a.question] * (len(there) * classes), None),
        Column("expert", [each.name for each in there for _ in range(classes)], None),
        Column("probability", [p for each in there for p in each.forecast or ()], None),
    ]
    if not a.binary:
        columns.insert(2, Column("class", labels * len(there), None))
    if data.own_priors:
        own = np.atleast_1d(np.asarray(prior_of(a, data))).tolist()
        columns.append(Column("prior", own * len(there), None))
    out = io.StringIO()
    write_csv(columns, out)
    return out.getvalue()


def command(a: Assessment, data: PageData) -> list[str]:
    """Return the words of the command that computes the page's answer again, from the downloaded files."""
    source, changed = data.source, altered(a, data)
    options, files = list(source.reading), list(source.files)
    if changed or not files:
        files, options = [FORECASTS], []
        if a.binary and tuple(a.classes) != (0, 1):
            options = ["--positive", str(a.classes[1])]
    if source.model is not None:
        options += ["--model", source.model, *_prior_options(a, data)]
    elif source.files and changed:
        options += ["--model", POOL]
    else:
        options += [] if a.beliefs.any_panel else ["--panel", PANEL]
        options += _prior_options(a, data)
    if a.base_rate is not None:
        options += _given("--base-rate", a, a.base_rate)
    # A name that looks like an option is none behind two dashes.
    dashes = ["--"] if any(word.startswith("-") for word in (*files, a.question)) else []
    return ["opinionpool", "explain", *options, *dashes, *files, a.question]


def _prior_options(a: Assessment, data: PageData) -> list[str]:
    return [] if a.prior is None or data.own_priors else _given("--prior", a, a.prior)


def _given(option: str, a: Assessment, p: tuple[float, ...]) -> list[str]:
    if a.binary:
        return [option, repr(p[0])]
    return [word for label, x in zip(a.classes, p, strict=True) for word in (option, f"{label}={x!r}")]


def command_line(a: Assessment, data: PageData) -> str:
    """Return, quoted for a shell, the command that computes the page's answer again from the downloaded files."""
    return " ".join(map(typed, command(a, data)))


def names(a: Assessment, data: PageData, found: Answer) -> list[str]:
    """Return the names of the files to download: report, command, and the files that the command reads."""
    fitted = data.source.model is None
    panel = [PANEL] if fitted and not a.beliefs.any_panel else []
    pool = [POOL] if fitted and found.altered and data.source.files else []
    return [REPORT, COMMAND, *panel, *([FORECASTS] if found.altered else []), *pool]


def content(name: str, inputs: PageInputs, found: Answer, when: datetime) -> bytes:
    """Return the content of the file to download called `name`."""
    a, data = inputs.a, inputs.data
    if name == POOL:
        return to_bytes(found.state)
    texts = {
        REPORT: lambda: report(inputs, found, when),
        PANEL: lambda: panel_file(a, when),
        FORECASTS: lambda: forecasts_file(a, data),
        COMMAND: lambda: f"{command_line(a, data)}\n",
    }
    return texts[name]().encode()


def archive(inputs: PageInputs, found: Answer, when: datetime) -> bytes:
    """Return a ZIP archive of all files to download."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name in names(inputs.a, inputs.data, found):
            entry = zipfile.ZipInfo(name, when.timetuple()[:6])
            packed.writestr(entry, content(name, inputs, found, when), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def report(inputs: PageInputs, found: Answer, when: datetime) -> str:
    """Return the report on one event as HTML: the answer, its reasons, assumptions and sensitivity."""
    a, question = inputs.a, inputs.question
    inputs = replace(inputs, helps=False)
    first, *others = views.every_class(inputs, found)
    made_up = " This is the page's example: all of it is made up." if a.question == EXAMPLE else ""
    why = views.reasons(first, found) or [missing("nobody gave a forecast, so the answer is the prior")]
    why += [details(f"The same for {each.event}", views.reasons(each, found)) for each in others]
    # Where the pool has learned from no outcomes, no simulation has measured its intervals.
    resolved = int(found.state.events.sum())
    measured = f" {sentence(coverage_words(resolved, len(found.state.experts)))}" if resolved else ""
    interval = [note(f"{terms()['interval'][1]}{measured}")] if found.interval is not None else []
    moves = views.effects(first)
    # What the page begins with is nobody's assessment.
    asked = a.candidate != Candidate()
    more = f"One more expert with an AUC of {a.candidate.auc:.2f}, correlated by {a.candidate.correlation:.2f}: "
    changes = [*([*moves, note(views.RANGES)] if moves else []), *views.decision(a, found)]
    changes += [more, views.candidate(a, found)] if asked else []
    sections = [
        Section(
            "answer",
            "The answer",
            [*views.headline(first, found), *interval, *views.beside(first, found), *views.notes(inputs, found)],
        ),
        Section("why", "Why", why),
        Section("panel", "What is assessed, and what is assumed", views.assessed(a, found)),
        *([Section("changes", "What would change it", changes)] if changes else []),
        Section("method", "For statisticians", _method(inputs, found)),
    ]
    below = f"Assessed {record(a, when)}.{made_up}"
    return report_document("Pooled forecast", printable(question), event_name(a.question, question), below, sections)


def _method(inputs: PageInputs, found: Answer) -> list[Block]:
    """Return blocks on the method: a description, the sum of contributions, and the command for the same answer."""
    titles = {"name": "expert", "contrast": "contrast", "weight": "weight", "adds": "adds"}
    exact = ", ".join(repr(float(p)) for p in np.atleast_1d(found.why.probability))
    columns = forecast_columns(found.why, inputs.at, titles)
    return [
        paragraph(method_words(found.why.pool)),
        *([Table(columns)] if found.why.experts else []),
        paragraph(markup("The same answer, {}, from the files that belong to this report:", exact)),
        typed_code(command_line(inputs.a, inputs.data)),
    ]


def view(inputs: PageInputs) -> Html:
    """Return the view in which the page offers its files for download."""
    heading = markup("<h2>Hand over</h2>")
    if inputs.found is None:
        return rendered([heading, missing(inputs.trouble or "there is no answer yet")])
    a, data = inputs.a, inputs.data
    exact = np.atleast_1d(inputs.found.why.probability).tolist()
    labels = ["probability"] if a.binary else [printable(str(label)) for label in a.classes]
    files = [(ARCHIVE, "all of these in one file"), *((file, WHY[file]) for file in names(a, data, inputs.found))]
    links = joined(
        markup(
            "<li><a{}>{}</a> {}</li>",
            attributes(href=f"get/{file}", data_get=True, download=file, class_="get"), file, why,
        )
        for file, why in files
    )  # fmt: skip
    return rendered(
        [
            heading,
            field("assessor", "Assessed by", a.assessor, placeholder="names, for the record", maxlength=200),
            markup('<h3>Files</h3><ul class="files">{}</ul>', links),
            markup("<h3>What is assessed, and what is assumed</h3>"),
            *views.assessed(a, inputs.found),
            markup("<h3>The command with the same answer</h3>"),
            typed_code(command_line(a, data), "command"),
            button("Copy", "copy", id="copy", data_copy="command"),
            note(
                "Run in the folder of these files, it answers the same to the last digit: "
                + "; ".join(f"{label}: {p!r}" for label, p in zip(labels, exact, strict=True))
            ),
        ]
    )  # fmt: skip
