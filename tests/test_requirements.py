"""What is pinned for the tests with the oldest releases is what pyproject.toml allows at least."""

import re
import tomllib


def test_the_oldest_releases_are_those_allowed(root):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # Spark is tested apart, with the releases of requirements/spark.txt.
    extras = [each for name, each in project["optional-dependencies"].items() if name != "spark"]
    wanted = [*project["dependencies"], *(each for extra in extras for each in extra)]
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)", (root / "requirements" / "lowest.in").read_text(), re.MULTILINE))
    locked = dict(re.findall(r"^([\w-]+)==([\d.]+)", (root / "requirements" / "lowest.txt").read_text(), re.MULTILINE))
    for each in wanted:
        name, least = re.fullmatch(r"([\w-]+)[>=]=([\d.]+)", each).groups()
        assert re.fullmatch(rf"{re.escape(least)}(\.0)*", pinned[name]), each
        assert locked[name] == pinned[name]
