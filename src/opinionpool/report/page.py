"""The report as one HTML page that needs no other file: the pooled answers, and the reasons for them."""

from __future__ import annotations

import numpy.typing as npt

from opinionpool.arguments import expect_type
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.pools.fit import FitOptions, PoolLike
from opinionpool.progress import Progress
from opinionpool.report.blocks import Block, Section, joined, markup, name, paragraph, report_document
from opinionpool.report.changes import changes_section
from opinionpool.report.comparison import gains_section, headline
from opinionpool.report.evidence import (
    checks_section,
    evidence_sections,
    experts_section,
    features_section,
    leaderboard_section,
    method_section,
)
from opinionpool.report.explanation import answers_section, explanation_section
from opinionpool.report.findings import ReportData, ReportOptions, Source, find
from opinionpool.report.groups import rates_section, topic_effects_section, topics_section
from opinionpool.report.panel import basis_section, worth_section
from opinionpool.report.view import size_line
from opinionpool.scoring.splits import Splits

# Ids of the sections for statisticians; a line before the first of these says so.
DETAILS = ("calibration", "learning", "errors", "checks", "features", "topic-effects", "method")


def make_report(
    forecasts: Forecasts,
    pool: PoolLike = "gaussian",
    *,
    prior: npt.ArrayLike | None = None,
    beliefs: Beliefs | None = None,
    by: str | None = None,
    repeats: int | None = None,
    source: Source | None = None,
    sort: str = "probability",
    progress: Progress = None,
) -> str:
    """Return the report on forecasts and pool as one HTML page; equal arguments give an equal page.

    Parameters
    ----------
    forecasts : Forecasts
    pool : str or pool, default "gaussian"
        A name in `opinionpool.pools.registry.POOLS`, or a pool with options such as ``op.LinearPool(weights=...)``.
    prior, beliefs, by, repeats, progress
        As for `opinionpool.scoring.compare.compare_pools`.
    source : Source, optional
        Title and date of the page, and where the forecasts come from.
    sort : {"probability", "interval", "disagreement", "event", "file"}
        The order of open events: the most probable, the least certain or the most disputed first, by name, or as given.

    Raises
    ------
    OpinionPoolError
        If the forecasts cannot be pooled.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.2, 0.4], [0.7, 0.6], [0.9, 0.7]], [0, 1, None], experts=["<ann>", "bob"])
    >>> text = make_report(f)
    >>> text.startswith("<!DOCTYPE html>"), "&lt;ann&gt;" in text, "<ann>" in text
    (True, True, False)
    """
    expect_type(forecasts, Forecasts, "forecasts")
    options = ReportOptions(Source() if source is None else source, sort)
    splits, fit = Splits.of(by, repeats=repeats), FitOptions(prior, beliefs)
    return report_page(find(forecasts, pool, fit=fit, splits=splits, options=options, progress=progress))


def report_page(found: ReportData) -> str:
    """Return the report, with the data `found`, as an HTML page."""
    title = found.options.source.title
    sections = report_sections(found)
    names = ((each.anchor, each.title.partition(":")[0]) for each in sections)
    links = joined(markup(f'<li><a href="#{anchor}">{{}}</a></li>', title) for anchor, title in names)
    made = f"{found.options.source.date}. " if found.options.source.date else ""
    nav = markup('<nav aria-label="Sections"><ul>{}</ul></nav>\n', links)
    first = next(place for place, each in enumerate(sections) if each.anchor in DETAILS)
    turn = paragraph("From here on: details for statisticians.", "turn")
    parts: list[Block] = [*sections[:first], turn, *sections[first:]]
    below = f"{made}{size_line(found.forecasts)}."
    return report_document("Pooled forecasts", title, name(title), below, parts, nav)


def report_sections(found: ReportData) -> list[Section]:
    """Return all sections of the report: answers first, then the evidence, and details for statisticians last."""
    basis = basis_section(found)
    gains = gains_section(found)
    middle = [gains, basis] if found.measured else [basis, gains]
    sections = [
        answers_section(found, headline(found)), changes_section(found), explanation_section(found),
        rates_section(found), experts_section(found), leaderboard_section(found),
        topics_section(found), *middle, worth_section(found), *evidence_sections(found), checks_section(found),
        features_section(found), topic_effects_section(found), method_section(found),
    ]  # fmt: skip
    return [each for each in sections if each is not None]
