"""Help in sections: a command's own options first, those that say how files are read last."""

from __future__ import annotations

import click

OWN, POOL, COMPARISON, FILES, ANSWERS, RESULTS, READING = (
    "Options", "Pool", "Comparison", "Pools in files", "Which answers", "Results", "Reading FILE",
)  # fmt: skip
SECTIONS = (OWN, POOL, COMPARISON, FILES, ANSWERS, RESULTS, READING)


class SectionedCommand(click.Command):
    """A command whose help has its options in sections: those that were given a ``section`` stand under it."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        found: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
            if record is not None:
                found[getattr(parameter, "section", OWN)].append(record)
        for section, records in found.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)
