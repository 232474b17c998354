"""A process that has torchhydro 0.2.0 and answers questions about it; see `torchhydro_jobs`."""

from pathlib import Path

from tool_process import ToolProcess

VERSION = "0.2.0"


class Torchhydro(ToolProcess):
    """The process, for the length of a ``with`` block."""

    def __init__(self) -> None:
        super().__init__([f"torchhydro=={VERSION}"], Path(__file__).with_name("torchhydro_jobs.py"))
