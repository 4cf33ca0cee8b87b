"""What takes changes back, so that a change is made entirely or not at all, whatever interrupts it."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class Journal:
    """The entries of dictionaries as they were before they were changed, the last change first.

    Taking changes back only puts entries where they were, so it may itself be interrupted and begun again.

    Examples
    --------
    >>> journal, table = Journal(), {"a": 1}
    >>> journal.put(table, "a", 2)
    >>> journal.put(table, "b", 3)
    >>> journal.take_back()
    >>> table
    {'a': 1}
    """

    def __init__(self) -> None:
        self._steps: list[tuple[dict[Any, Any], object, object]] = []

    def put(self, table: dict[Any, Any], key: object, value: object) -> None:
        """Set an entry."""
        self._steps.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def pop(self, table: dict[Any, Any], key: object) -> Any:  # noqa: ANN401 - whatever the table holds
        """Remove an entry, and give it; None if there is none."""
        self._steps.append((table, key, table.get(key, _ABSENT)))
        return table.pop(key, None)

    def take_back(self) -> None:
        """Undo every change since the last `forget`."""
        while self._steps:
            table, key, old = self._steps[-1]
            if old is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = old
            self._steps.pop()

    def forget(self) -> None:
        """Keep all changes for good."""
        if self._steps:
            self._steps = []
