"""Pieces of markup that the sections of the report share."""

from __future__ import annotations

from collections.abc import Sequence

from opinionpool.htmlpage import Html, joined, markup

__all__ = ["columns", "folded", "missing", "section", "sentence"]


def section(anchor: str, title: str, *parts: str) -> Html:
    """A part of the page with its heading."""
    return markup(f'<section id="{anchor}"><h2>{{}}</h2>\n{{}}\n</section>', title, joined(parts, "\n"))


def missing(what: str, why: str) -> Html:
    """What cannot be shown, and why."""
    return markup('<p class="missing">{} {}.</p>', what, why[:1].upper() + why[1:].rstrip("."))


def sentence(said: str) -> str:
    """What was said, as a sentence."""
    return said[:1].upper() + said[1:] + ("" if said.endswith((".", "!", "?")) else ".")


def columns(words: Sequence[str], figure: str) -> Html:
    """Words beside a figure, or above it on a narrow screen."""
    return markup('<div class="columns"><div>{}</div>{}</div>', joined(words, "\n"), figure)


def folded(summary: str, content: str) -> Html:
    """What is shown when its summary is clicked."""
    return markup("<details><summary>{}</summary>{}</details>", summary, content)
