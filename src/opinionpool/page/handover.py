"""What is taken away from the page: the report, the panel file, the forecasts, and the command with the same answer."""

from __future__ import annotations

import io
import shlex
import zipfile
from datetime import datetime

import numpy as np

from opinionpool.page.answer import Answer, Material, altered, own_prior
from opinionpool.page.assessment import Assessment, to_toml
from opinionpool.page.event_report import event_report
from opinionpool.report.listing import Column, printable, write_csv
from opinionpool.saving.files import to_bytes

PANEL, FORECASTS, POOL, REPORT = "panel.toml", "forecasts.csv", "pool.json", "report.html"
COMMAND, ARCHIVE = "command.txt", "assessment.zip"


def panel_file(a: Assessment, when: datetime) -> str:
    """What is assessed, as the command line takes it after --panel, with who assessed it and when."""
    lines = [printable(a.question), f"Assessed {record(a, when)}."]
    return "".join(f"# {line}\n" for line in lines) + to_toml(a.beliefs)


def record(a: Assessment, when: datetime) -> str:
    """Who assessed, and when."""
    by = f"by {printable(a.assessor)} " if a.assessor else ""
    return f"{by}on {when:%Y-%m-%d at %H:%M %Z}".rstrip()


def forecasts_file(a: Assessment, material: Material) -> str:
    """The forecasts on this event: a row for each, or for each class of each where there are more than two."""
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
    if material.own_priors:
        own = np.atleast_1d(own_prior(a, material)).tolist()
        columns.append(Column("prior", own * len(there), None))
    out = io.StringIO()
    write_csv(columns, out)
    return out.getvalue()


def command(a: Assessment, material: Material) -> list[str]:
    """The words of the command line that gives the page's answer, beside the files that go with it."""
    source, changed = material.source, altered(a, material)
    options, files = list(source.reading), list(source.files)
    if changed or not files:
        files, options = [FORECASTS], []
        if a.binary and tuple(a.classes) != (0, 1):
            options = ["--positive", str(a.classes[1])]
    if source.model is not None:
        options += ["--model", source.model, *_prior_options(a, material)]
    elif source.files and changed:
        options += ["--model", POOL]
    else:
        options += [] if a.beliefs.any_panel else ["--panel", PANEL]
        options += _prior_options(a, material)
    if a.base_rate is not None:
        options += _given("--base-rate", a, a.base_rate)
    # A name that looks like an option is none behind two dashes.
    dashes = ["--"] if any(word.startswith("-") for word in (*files, a.question)) else []
    return ["opinionpool", "explain", *options, *dashes, *files, a.question]


def _prior_options(a: Assessment, material: Material) -> list[str]:
    return [] if a.prior is None or material.own_priors else _given("--prior", a, a.prior)


def _given(option: str, a: Assessment, p: tuple[float, ...]) -> list[str]:
    if a.binary:
        return [option, repr(p[0])]
    return [word for label, x in zip(a.classes, p, strict=True) for word in (option, f"{label}={x!r}")]


def command_line(a: Assessment, material: Material) -> str:
    """The same, as it is typed."""
    return shlex.join(command(a, material))


def names(a: Assessment, material: Material, found: Answer) -> list[str]:
    """The files that the command line needs, and the report."""
    listed = [REPORT, COMMAND]
    if not a.beliefs.any_panel and material.source.model is None:
        listed.append(PANEL)
    if found.altered:
        listed.append(FORECASTS)
        if material.source.files and material.source.model is None:
            listed.append(POOL)
    return listed


def content(name: str, a: Assessment, material: Material, found: Answer, when: datetime) -> bytes:
    """One of these files."""
    if name == REPORT:
        return event_report(a, material, found, record(a, when), command_line(a, material)).encode()
    if name == PANEL:
        return panel_file(a, when).encode()
    if name == FORECASTS:
        return forecasts_file(a, material).encode()
    if name == POOL:
        return to_bytes(found.state)
    return f"{command_line(a, material)}\n".encode()


def archive(a: Assessment, material: Material, found: Answer, when: datetime) -> bytes:
    """All of them in one file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name in names(a, material, found):
            entry = zipfile.ZipInfo(name, when.timetuple()[:6])
            packed.writestr(entry, content(name, a, material, found, when), zipfile.ZIP_DEFLATED)
    return out.getvalue()
