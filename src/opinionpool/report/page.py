"""A report that can be handed on: one page, which needs no other file, about what pooling makes of forecasts."""

from __future__ import annotations

from collections.abc import Callable

import numpy.typing as npt

from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.report.evidence import evidence_sections
from opinionpool.report.findings import Findings, Source, find
from opinionpool.report.html import STYLE, Html, document, joined, markup, name
from opinionpool.report.results import answer_sections
from opinionpool.report.summary import size_line
from opinionpool.version import __version__

PLACES = (
    ("gains", "Gain"),
    ("open", "Open events"),
    ("experts", "Experts"),
    ("weights", "Weights"),
    ("errors", "Shared errors"),
    ("calibration", "Calibration"),
    ("learning", "Learning"),
    ("checks", "Checks"),
    ("worth", "Worth"),
    ("method", "Method"),
)


def make_report(
    forecasts: Forecasts,
    pool: str = "gaussian",
    *,
    prior: npt.ArrayLike | None = None,
    beliefs: Beliefs | None = None,
    by: str | None = None,
    repeats: int | None = None,
    source: Source | None = None,
    progress: Callable[[float], None] | None = None,
) -> str:
    """The report as one HTML page; the same forecasts give the same text.

    Parameters
    ----------
    forecasts : Forecasts
    pool : str, default "gaussian"
        A name in `opinionpool.pools.registry.POOLS`.
    prior, beliefs, by, repeats, progress
        As for `opinionpool.scoring.comparison.compare_pools`.
    source : Source, optional
        What the page says about where the forecasts come from.

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
    return report_page(
        find(
            forecasts,
            pool,
            prior=prior,
            beliefs=beliefs,
            by=by,
            repeats=repeats,
            source=source,
            progress=progress,
        )
    )


def report_page(found: Findings) -> str:
    """The page about what was found."""
    title = found.source.title
    places = joined(markup(f'<li><a href="#{anchor}">{{}}</a></li>', forecast) for anchor, forecast in PLACES)
    header = markup(
        '<header><p class="kicker">Pooled forecasts</p><h1>{}</h1><p>{}</p></header>\n'
        '<nav aria-label="Sections"><ul>{}</ul></nav>',
        name(title), size_line(found.forecasts), places,
    )  # fmt: skip
    sections = joined([*answer_sections(found), *evidence_sections(found)], "\n")
    footer = markup("<footer>Made by opinionpool {}.</footer>", __version__)
    body = markup("{}\n<main>\n{}\n</main>\n{}", header, sections, footer)
    return document(f"Pooled forecasts: {title}", STYLE, Html(body))
