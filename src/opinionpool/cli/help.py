"""Help in sections: a command's own options first, those that say how files are read last."""

from __future__ import annotations

from typing import Any

import click

OWN, POOL, COMPARISON, FILES, ANSWERS, RESULTS, READING = (
    "Options", "Pool", "Comparison", "Pools in files", "Which answers", "Results", "Reading FILE",
)  # fmt: skip
SECTIONS = (OWN, POOL, COMPARISON, FILES, ANSWERS, RESULTS, READING)


class _Text(click.types.StringParamType):
    """Type of options with text: decoded as UTF-8 whatever the locale; file names stay as the system has them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        text = super().convert(value, param, ctx)
        try:
            return text.encode("utf-8", "surrogateescape").decode("utf-8")
        except UnicodeError:
            self.fail(f"{text!r} is no text in UTF-8", param, ctx)


class _Choice(click.Choice):  # type: ignore[type-arg]
    """A choice whose error message suggests the nearest word."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            from opinionpool.text import meant

            raise click.BadParameter(error.message.rstrip(".") + meant(str(value), self.choices), ctx, param) from None


# What stands for names of files in help.
_FILES = ("FILE", "DIR", "PAGE")


class SectionedCommand(click.Command):
    """A command whose help lists its options by their ``section``."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        for parameter in self.params:
            if parameter.type is click.STRING and not (parameter.metavar or "").startswith(_FILES):
                parameter.type = _Text()
            elif type(parameter.type) is click.Choice:
                parameter.type = _Choice(parameter.type.choices)

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
