"""Optional parts: the command that installs one from where opinionpool itself was installed from."""

from __future__ import annotations

import shlex

NAME = "opinionpool"


def install(extra: str) -> str:
    """Return the command that installs an extra of pyproject.toml, from where this was installed or the index."""
    return f"python -m pip install {' '.join(map(shlex.quote, _requirement(extra)))}"


def _requirement(extra: str) -> list[str]:
    # Few need these, and they take as long to import as a quarter of NumPy.
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    try:
        record = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        # It runs from a copy of the repository.
        return [f"{Path(__file__).resolve().parents[2]}[{extra}]"]
    if record is None:
        return [f"{NAME}[{extra}]"]
    source = json.loads(record)
    url, repository = str(source["url"]), source.get("vcs_info")
    if repository is not None:
        return [f"{NAME}[{extra}] @ {repository['vcs']}+{url}@{repository['commit_id']}"]
    if not url.startswith("file:"):
        return [f"{NAME}[{extra}] @ {url}"]
    editable = ["-e"] if source.get("dir_info", {}).get("editable") else []
    return [*editable, f"{url2pathname(urlparse(url).path)}[{extra}]"]
