"""The whole page, around what moves change."""

from __future__ import annotations

from collections.abc import Mapping

from opinionpool.page import panel_view
from opinionpool.page.controls import button
from opinionpool.page.scene import Scene
from opinionpool.report.html import Html, markup
from opinionpool.report.listing import printable


def whole(pieces: Mapping[str, Html]) -> dict[str, Html]:
    """The regions of a page from its pieces."""
    work = pieces["work"] if "work" in pieces else panel_view.panel(pieces)
    return {key: pieces[key] for key in ("top", "trouble", "answer")} | {"work": work}


def frame(scene: Scene, regions: Mapping[str, Html], offers: Html, version: int) -> str:
    """The whole page."""
    kept = (
        markup(
            '<section class="kept" id="kept" aria-label="Kept assessments"><h2>Kept from an earlier start</h2>'
            "<ul>{}</ul>{}</section>",
            offers,
            button("Begin anew", "dismiss", id="dismiss"),
        )
        if offers
        else Html("")
    )
    head = markup("<title>{}</title>", f"{printable(scene.a.question)} – opinionpool")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'{head}\n<link rel="stylesheet" href="../../assets/report.css">\n'
        '<link rel="stylesheet" href="../../assets/page.css">\n<link rel="icon" href="../../assets/icon.svg">\n'
        '<script src="../../assets/page.js" defer></script>\n</head>\n'
        f'<body data-version="{version}">\n'
        '<a class="skip" href="#answer">To the answer</a>\n'
        f'<header id="top">{regions["top"]}</header>\n'
        f'<div id="trouble" role="alert">{regions["trouble"]}</div>\n{kept}'
        '<p id="live" class="unseen" aria-live="polite"></p>\n'
        f'<main><div id="work">{regions["work"]}</div>\n'
        f'<section id="answer" aria-label="Answer" tabindex="-1">{regions["answer"]}</section></main>\n'
        "<noscript><p>This page needs JavaScript, which comes from your own machine alone.</p></noscript>\n"
        "</body>\n</html>\n"
    )
