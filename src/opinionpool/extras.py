"""Optional dependencies: the command that installs them."""

from __future__ import annotations

import shlex

NAME = "opinionpool"


def install(extra: str) -> str:
    """Return the pip command that installs an extra from where the package was installed, else from the index."""
    # Few need these, and they take as long to import as a quarter of NumPy.
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    try:
        source = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        # It runs from a copy of the repository.
        source = {"url": Path(__file__).resolve().parents[2].as_uri()}
    url, repository = str(source.get("url", "")), source.get("vcs_info")
    place = f"{NAME}[{extra}]"
    if repository is not None:
        place += f" @ {repository['vcs']}+{url}@{repository['commit_id']}"
    elif url.startswith("file:"):
        place = f"{url2pathname(urlparse(url).path)}[{extra}]"
    elif url:
        place += f" @ {url}"
    editable = "-e " if source.get("dir_info", {}).get("editable") else ""
    return f"python -m pip install {editable}{shlex.quote(place)}"
