"""A process that has neuralhydrology 1.13.0 and its SciPy and answers questions about them; see its jobs."""

from pathlib import Path

from tool_process import ToolProcess

VERSION = "1.13.0"
SCIPY_VERSION = "1.17.1"


class Neuralhydrology(ToolProcess):
    """The process, for the length of a ``with`` block."""

    def __init__(self) -> None:
        requirements = [f"neuralhydrology=={VERSION}", f"scipy=={SCIPY_VERSION}", "ruamel.yaml==0.18.16"]
        super().__init__(requirements, Path(__file__).with_name("neuralhydrology_jobs.py"))
