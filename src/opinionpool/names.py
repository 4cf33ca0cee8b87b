"""Names of experts: made up if not given, checked, and looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import brief, several
from opinionpool.errors import ExpertError
from opinionpool.logodds import check_probabilities
from opinionpool.text import listed, shown, suggestion

# Largest number of made-up names that are cached.
KEPT = 1 << 15


def numbered(n: int, thing: str = "expert") -> tuple[str, ...]:
    """Return `n` made-up names, such as expert_1: `thing` with numbers from 1.

    >>> numbered(2)
    ('expert_1', 'expert_2')
    """
    # Few are made once for all numbers up to a power of two.
    return _made_names(1 << max(n - 1, 0).bit_length(), thing)[:n] if n <= KEPT else _made_names.__wrapped__(n, thing)


@lru_cache(maxsize=16)
def _made_names(n: int, thing: str) -> tuple[str, ...]:
    return tuple(f"{thing}_{i + 1}" for i in range(n))


def repeated(names: Sequence[str]) -> str | None:
    """Return the first name that occurs twice; None if all names are different.

    >>> repeated(["ann", "bob", "ann"]), repeated(["ann", "bob"])
    ('ann', None)
    """
    if len(set(names)) == len(names):
        return None
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def unknown_names(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return those of `names` that are not in `known`, in their order.

    >>> unknown_names(["ann", "bob", "cat"], ["cat", "ann"])
    ['bob']
    """
    among = set(known)
    return [name for name in names if name not in among]


def places(names: Iterable[str], among: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return the position of each of `names` in `among`. An ExpertError names the first that `among` lacks.

    >>> places(["bob", "ann"], ["ann", "bob", "cat"])
    array([1, 0])
    """
    place = {name: i for i, name in enumerate(among)}
    try:
        return np.array([place[name] for name in names], dtype=np.intp)
    except KeyError as missing:
        raise unknown_expert(missing.args[0], among) from None


def check_distinct(names: Sequence[str]) -> None:
    """Raise an `ExpertError` if two experts have the same name."""
    twice = repeated(names)
    if twice is not None:
        raise ExpertError(f"expert names must differ, and {twice!r} stands twice")


def expert_names(names: Iterable[object] | None, n: int) -> tuple[str, ...]:
    """Return `names` of experts, or made-up ones if None; an ExpertError unless there are `n` different names."""
    if names is None:
        return numbered(n)
    found = tuple(str(name) for name in several(names, "names", ExpertError))
    if len(found) != n:
        raise ExpertError(f"{n} experts need {n} names, not {len(found)}")
    check_distinct(found)
    return found


def position(expert: object, names: Sequence[str]) -> int:
    """Return the position of an expert given by name or position. Raises ExpertError if there is no such expert."""
    if isinstance(expert, (int, np.integer)) and not isinstance(expert, bool):
        if not -len(names) <= expert < len(names):
            raise ExpertError(f"there are experts 0 to {len(names) - 1}, and no {expert}")
        return int(expert) % len(names)
    if not isinstance(expert, str):
        raise ExpertError(f"an expert is given by name or by position, and not as {brief(expert)}")
    if expert not in names:
        raise unknown_expert(expert, names)
    return names.index(expert)


def name_key(name: str) -> str:
    """Return a name without differences of case, white space and Unicode form, to find names spelt differently.

    >>> name_key("Ann  Lee") == name_key("ANN LEE"), name_key("Anna") == name_key("Ann")
    (True, False)
    """
    from unicodedata import normalize

    folded = name if name.isascii() else normalize("NFKC", name)
    return "".join(folded.casefold().split())


def alike(names: Iterable[str], key: Callable[[str], str] = name_key) -> list[tuple[str, ...]]:
    """Return groups of names with equal `key`: by default, that differ only in case, white space or Unicode form.

    >>> alike(["Ann", "bob", "ann ", "B ob", "Ann", "Rob"])
    [('Ann', 'ann '), ('bob', 'B ob')]
    """
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(key(name), []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def by_name(values: npt.ArrayLike, names: Sequence[str]) -> npt.ArrayLike:
    """Return forecasts in the experts' order, found by the names of a data frame's columns or a series' index.

    If no name is an expert's, the order stays. Raises ExpertError if only some names are, or others are there too.
    """
    if isinstance(values, np.ndarray):
        return values
    for place in ("column_names", "columns", "index"):
        labels = getattr(values, place, None)
        if labels is not None and not callable(labels):
            break
    else:
        return values
    given = [str(label) for label in labels]
    if tuple(given) == tuple(names) or not set(given) & set(names):
        return values
    lacking, strange = unknown_names(names, given), unknown_names(given, names)
    if lacking or strange or len(given) != len(names):
        off = [f"{what} {listed(each, 3)}" for what, each in (("lack", lacking), ("have", strange)) if each]
        raise ExpertError(
            f"forecasts named after the experts must name each of them once, and these "
            f"{' and '.join(off) or 'name one twice'}; leave the names out (np.asarray) to give them in the "
            "experts' order, or take subset() of the panel"
        )
    return np.asarray(check_probabilities(values)[..., places(names, given)])


def chosen_positions(experts: Iterable[object], names: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return positions of `experts`, given by name or position; an ExpertError if one is unknown or repeated."""
    given = several(experts, "experts", ExpertError)
    positions = np.array([position(expert, names) for expert in given], dtype=np.intp)
    if len(positions) == 0 or len(set(positions.tolist())) < len(positions):
        raise ExpertError("a sub-panel needs at least one expert, and each of them once")
    return positions


def unknown_expert(name: str, names: Sequence[str]) -> ExpertError:
    """Return the error for an unknown expert, which suggests the most similar name or lists all names."""
    return ExpertError(f"no expert is called {shown(name)}; {suggestion(name, names, 'there are')}")
