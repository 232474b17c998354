"""The views over the tables of an index, each created once a query asks for it and for the tables below it."""

import re
from collections.abc import Collection, Iterable

import duckdb

from headrace.loader.tables import NAMES

_CREATES = re.compile(r"CREATE OR REPLACE VIEW (\w+) AS")
_COMMENT = re.compile(r"--[^\n]*")


class ViewSet:
    """Statements that create views, and what each of them reads.

    Parameters
    ----------
    connection
        Where the views are wanted.
    text
        The statements, each after those whose views it reads.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, text: str) -> None:
        self._connection = connection
        self._waiting: dict[str, tuple[str, set[str]]] = {}
        for statement in connection.extract_statements(text):
            created = _CREATES.search(statement.query)
            assert created is not None, "there is nothing but views"
            words = set(re.findall(r"\w+", _COMMENT.sub("", statement.query)))
            self._waiting[created[1]] = (statement.query, words & set(NAMES) - {created[1]})

    def below(self, names: Iterable[str]) -> set[str]:
        """Return tables and views that have to be there for the named ones, themselves included."""
        found, ahead = set[str](), list(names)
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead += self._waiting.get(name, ("", set[str]()))[1]
        return found

    def create(self, names: Collection[str]) -> None:
        """Create those of the named views that are not there yet; what they read has to be."""
        for name in [view for view in self._waiting if view in names]:
            self._connection.execute(self._waiting[name][0])
            del self._waiting[name]
