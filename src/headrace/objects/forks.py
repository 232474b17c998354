"""A forked process lacks the threads of a client library: a request there would wait for ever, so it is refused."""

import os

from headrace.schemas.errors import ConfigError, describe

_users: list[int] = []
"""The process that used object storage first; a forked one inherits the number."""


def refuse_fork() -> None:
    """Refuse to go on in a fork of a process that has used object storage.

    Raises
    ------
    ConfigError
        This process is one; says how to start processes instead.
    """
    process = os.getpid()
    if not _users:
        _users.append(process)
    if process not in _users:
        raise ConfigError(
            describe(
                "object storage cannot be used in a forked process",
                where=f"process {process}",
                expected="a process that was spawned, or forked before its parent used object storage",
                got=f"a fork of process {_users[0]}, without the threads that answer requests there",
                fix='start it by multiprocessing.get_context("forkserver"), or give a DataLoader '
                'multiprocessing_context="forkserver"',
            )
        )
