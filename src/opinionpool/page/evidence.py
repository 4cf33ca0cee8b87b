"""What takes long: how well the pool does on the file's events, computed in the background once asked for."""

from __future__ import annotations

import threading

from opinionpool.errors import OpinionPoolError
from opinionpool.page.answer import Material, prior_of
from opinionpool.page.assessment import to_toml
from opinionpool.page.session import Scene
from opinionpool.pools.fit import FitOptions
from opinionpool.report.blocks import Html, Section, markup, rendered, sentence
from opinionpool.report.comparison import gains_section
from opinionpool.report.evidence import evidence_sections
from opinionpool.report.findings import find

# The report's sections that are shown.
SHOWN = ("gains", "calibration", "learning")


class Evidence:
    """Evidence on one file, computed in a thread for the latest assessment."""

    def __init__(self, material: Material) -> None:
        self._material = material
        self._lock = threading.Lock()
        self._key: object = None
        self._thread: threading.Thread | None = None
        self._share, self._html = 0.0, Html("")
        self._ended = False

    def now(self, scene: Scene) -> dict[str, object]:
        """Return the evidence computed so far, and whether the page should poll again."""
        key = to_toml(scene.a.beliefs), scene.a.prior
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            if not busy and key != self._key:
                self._key, self._html, self._share = key, Html(""), 0.0
                self._thread = threading.Thread(target=self._find, args=(scene,), name="evidence", daemon=True)
                self._thread.start()
                busy = True
            if self._key == key and self._html:
                return {"html": self._html, "again": False}
            words = f"Computing how well the pool does on events that it has not learned from: {self._share:.0%}"
            return {"html": markup('<p class="quiet">{}</p>', words), "again": busy}

    def _find(self, scene: Scene) -> None:
        a, forecasts = scene.a, self._material.forecasts
        assert forecasts is not None
        beliefs = None if a.beliefs.any_panel else a.beliefs
        prior = None if self._material.own_priors else prior_of(a)
        try:
            found = find(forecasts, "gaussian", fit=FitOptions(prior, beliefs), progress=self._shown)
            sections: list[Section] = [gains_section(found), *evidence_sections(found)]
            html = rendered(each for each in sections if each.anchor in SHOWN)
        except _EndedError:
            return
        except OpinionPoolError as error:
            html = markup('<p class="missing">{}</p>', sentence(str(error)))
        with self._lock:
            self._html = html

    def _shown(self, share: float) -> None:
        if self._ended:
            raise _EndedError
        self._share = share

    def close(self) -> None:
        """Stop computing."""
        self._ended = True


class _EndedError(Exception):
    """The computation was cancelled because its result is no longer needed."""
