"""Preloaded into local worker processes: Ctrl-C is the client's business.

A terminal sends the signal to the whole process group. Were workers to die of it, their tracebacks would bury the one
line that says how to go on.
"""

import signal

from distributed.worker import Worker


def dask_setup(worker: Worker) -> None:
    """Ignore the interrupt signal in this process; called by Dask when a worker starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
