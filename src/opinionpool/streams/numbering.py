"""The numbers of rows that have no ids: a row is known by its number, so no two may have the same."""

from __future__ import annotations

from dataclasses import dataclass

from opinionpool.errors import ArgumentError


@dataclass(frozen=True)
class Numbering:
    """Which numbers rows have.

    Examples
    --------
    >>> Numbering().added(3).added(2, first=10)
    Numbering(spans=((0, 3), (10, 12)), given=True)
    """

    spans: tuple[tuple[int, int], ...] = ()  # from the first number to behind the last one, increasing and disjoint
    given: bool = False  # whether somebody gave numbers, and they are not just counted

    @property
    def stop(self) -> int:
        """The number behind the last one."""
        return self.spans[-1][1] if self.spans else 0

    def added(self, rows: int, first: int | None = None) -> Numbering:
        """With so many rows more, that have the next numbers or those from `first` on.

        Raises
        ------
        ArgumentError
            If a number is taken.
        """
        if first is None and rows and self.spans:
            return Numbering((*self.spans[:-1], (self.spans[-1][0], self.stop + rows)), self.given)
        start = self.stop if first is None else first
        more = Numbering(((start, start + rows),) if rows else (), self.given or first is not None)
        if self.meets(more):
            raise ArgumentError(
                f"rows with the numbers {self.meeting(more)} were added before, and every row needs a number of its own"
            )
        return self.union(more)

    def moved(self, by: int) -> Numbering:
        """The same, all numbers larger."""
        return Numbering(tuple((start + by, stop + by) for start, stop in self.spans), self.given)

    def meets(self, other: Numbering) -> bool:
        """Whether they have a number in common."""
        return self._first_common(other) is not None

    def meeting(self, other: Numbering) -> str:
        """The first numbers that they have in common, in words."""
        first, stop = self._first_common(other) or (0, 0)
        return f"{first} to {stop - 1}"

    def union(self, other: Numbering) -> Numbering:
        """Both together, which have no number in common."""
        spans: list[tuple[int, int]] = []
        for start, stop in sorted((*self.spans, *other.spans)):
            if spans and spans[-1][1] == start:
                start = spans.pop()[0]  # noqa: PLW2901 - the two are one
            spans.append((start, stop))
        return Numbering(tuple(spans), self.given or other.given)

    def _first_common(self, other: Numbering) -> tuple[int, int] | None:
        common = ((max(a, c), min(b, d)) for a, b in self.spans for c, d in other.spans)
        return min(((start, stop) for start, stop in common if start < stop), default=None)
