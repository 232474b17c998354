"""Answers to an index's named queries, kept while they are small: its next loader asks little again.

An index that is built again while it is open is refused, so the same query with the same parameters has the same
answer. Large answers are not kept: their memory would be nobody's budget.
"""

from collections.abc import Callable

import pyarrow as pa

LARGEST = 64 * 1024
"""Bytes of an answer that is kept."""
ALL = 4 * 1024 * 1024
"""Bytes of all that are kept."""


class SmallAnswers:
    """Tables by query and parameters."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, str], pa.Table] = {}
        self._nbytes = 0

    def get(
        self, name: str, parameters: dict[str, object], ask: Callable[[str, dict[str, object]], pa.Table]
    ) -> pa.Table:
        """Return the answer to a query; ask for it unless it is kept, and keep it if it is small and there is room."""
        key = name, repr(sorted(parameters.items()))
        kept = self._tables.get(key)
        if kept is not None:
            return kept
        answer = ask(name, parameters)
        if answer.nbytes <= min(LARGEST, ALL - self._nbytes):
            self._tables[key] = answer
            self._nbytes += answer.nbytes
        return answer

    def clear(self) -> None:
        """Keep none."""
        self._tables.clear()
        self._nbytes = 0
