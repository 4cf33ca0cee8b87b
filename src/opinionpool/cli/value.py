"""``opinionpool value``: what a panel, each expert and one more are worth, and what the answer rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opinionpool.cli.arguments import BeliefFile, Reading, Writing
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.inputs import read
from opinionpool.cli.options import panel_option, writing
from opinionpool.cli.output import present
from opinionpool.cli.reading_options import optional_reading
from opinionpool.errors import ArgumentError

if TYPE_CHECKING:
    from opinionpool.analysis.sensitivity import Effect
    from opinionpool.forecasts import Forecasts
    from opinionpool.learning.beliefs import Beliefs


@click.command(cls=SectionedCommand, short_help="What the panel, each expert and one more expert are worth.")
@optional_reading
@panel_option
@click.option(
    "--prior",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="P",
    help="Probability of an event before any expert is asked. Default: that of the file, else 0.5.",
)
@click.option(
    "--experts",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="How many experts there are, where no FILE is given, such as 5.",
)
@writing
def value(
    reading: Reading | None, panel: str | None, prior: float | None, experts: int | None, writing: Writing
) -> None:
    """Print what the panel, each of its experts and one more expert are worth.

    \b
    implied AUC        of the expert by itself, as the model implies it; experts has the AUC that was measured
    expected score     the score that the model implies for it: 0 = saying 50% every time, 1 = perfect
    adds to the panel  how much lower the panel's expected score would be without it

    It needs no data: without FILE, the panel is that of --panel, or of --experts N about whom nothing is known. With
    FILE it is what was learned from resolved events. If no event is resolved, it also shows how far the answer about
    the first open event moves as each belief varies over its 90% range, which is wider the fewer events the
    belief counts for. A belief that you did not give varies over what is usual for panels.
    """  # noqa: D301 - click reads the character
    if reading is None and panel is None and experts is None:
        raise click.UsageError("give a FILE of forecasts, a PANEL.toml with --panel, or a number with --experts")
    if reading is not None and experts is not None:
        raise click.UsageError("--experts says how many there are without FILE, and there is one")
    writing.check([*([] if reading is None else reading.inputs), *([] if panel is None else [panel])])
    beliefs = BeliefFile.of(panel).beliefs
    forecasts = _nobody(beliefs, experts) if reading is None else read(reading)
    from opinionpool.learning.beliefs import Beliefs
    from opinionpool.learning.learn import learn
    from opinionpool.report import effects as varied, panel as panels, summary
    from opinionpool.report.view import View

    state = learn(forecasts, prior=prior, beliefs=beliefs or Beliefs())
    found = panels.expert_worth(state, prior)
    event, effects = ("", []) if reading is None else _effects(forecasts, beliefs, prior)
    facts = summary.facts(forecasts) | panels.worth_facts(found) | {"sensitivity": varied.effect_facts(effects)}
    lines = [*panels.worth_lines(found), *varied.effect_lines(effects, event), *summary.belief_lines(panel, beliefs)]
    notes = (*forecasts.notes, *state.notes)
    present(View("experts", panels.worth_columns(found), facts, lines, notes, forecasts=forecasts), writing)


def _nobody(beliefs: Beliefs | None, experts: int | None) -> Forecasts:
    """A panel without forecasts: the experts of a panel file, filled up to `experts` with numbered names."""
    import numpy as np

    from opinionpool.forecasts import Forecasts

    names = [] if beliefs is None else list(beliefs.experts)
    n = max(len(names), experts or 0)
    if n == 0:
        raise ArgumentError("the panel file names no expert; say how many there are with --experts N")
    names += [f"expert_{i}" for i in range(len(names) + 1, n + 1)]
    return Forecasts.from_array(np.full((1, n), np.nan), [None], experts=names)


def _effects(forecasts: Forecasts, beliefs: Beliefs | None, prior: float | None) -> tuple[str, list[Effect]]:
    """The first open event and its sensitivities to beliefs; empty if any outcome is known."""
    import numpy as np

    from opinionpool.analysis.sensitivity import sensitivity

    rows = np.flatnonzero(~forecasts.resolved & (forecasts.crowd > 0)).tolist()
    if not rows or forecasts.resolved.any() or len(forecasts.classes) > 2 or forecasts.options is not None:
        return "", []
    return forecasts.events[rows[0]], sensitivity(forecasts, rows[0], beliefs, prior)
