"""PANEL.toml: what a decision maker believes of a panel, in a file."""

from __future__ import annotations

import os
import re
import tomllib

from opinionpool.arguments import file_path
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.learning.beliefs import Beliefs, beliefs_of_mapping

# Bytes; what people believe of a thousand experts takes a tenth of it.
LARGEST = 1_000_000


def read_beliefs(path: str | os.PathLike[str]) -> Beliefs:
    """Beliefs from a file.

    Such as ::

        correlation = { value = 0.6, worth = 20 }
        calibration = 0.9

        [experts.alice]
        relative_accuracy = 2.0
        bias = 0.2

    The keys are those of `Beliefs`, and below ``experts`` those of `ExpertBeliefs`.

    Raises
    ------
    ArgumentError, PanelError
        If it is not TOML, has an unknown key, or a value that breaks a rule.
    OSError
        If it cannot be read.
    """
    name = file_path(path)
    with open(name, "rb") as file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise ArgumentError(f"{name}: a file of beliefs has at most {LARGEST:,} bytes, and this has more")
    try:
        given = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ArgumentError(f"{name}, line {line}: a TOML file is UTF-8, and this is not; save it as UTF-8") from None
    except RecursionError:
        raise ArgumentError(f"{name}: brackets are nested too deeply; beliefs need one pair at most") from None
    except ValueError as error:
        raise ArgumentError(f"{name}: this is not TOML: {error}; {_toml_advice(raw, str(error))}") from None
    try:
        return beliefs_of_mapping(given)
    except OpinionPoolError as error:
        raise type(error)(f"{name}: {error}") from None


def _toml_advice(raw: bytes, error: str) -> str:
    """Advice on how to correct the line that is not TOML."""
    found = re.search(r"at line (\d+)", error)
    lines = raw.decode("utf-8-sig").splitlines()
    line = lines[int(found[1]) - 1].strip() if found and int(found[1]) <= len(lines) else ""
    header = re.fullmatch(r"\[experts\.([^\"']+)\]", line)
    if header:
        return f'a name with a space or a special letter stands in quotes: [experts."{header[1].strip()}"]'
    share = re.search(r"=\s*(\d+(?:\.\d+)?)\s*%", line)
    if share:
        return f"write {float(share[1]) / 100:g} for {share[1]}%"
    return "a line looks like calibration = 0.9"
