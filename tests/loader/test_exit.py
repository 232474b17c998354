"""A process ends although a loader is still open in it: at the end of a script and after an error."""

import subprocess
import sys

import pytest

from joint_stores import Joint

SCRIPT = """
import headrace

index = headrace.open_index({index!r})
loader = headrace.WindowLoader(index, "train", batch_size=4, memory_budget={budget!r}, num_workers=2)
batches = iter(loader)
next(batches)
print("served", loader.plan().num_rounds)
{end}
"""


@pytest.mark.parametrize(
    ("end", "code", "budget"), [("", 0, 1500), ("raise ValueError('a bug of the user')", 1, "1GiB")]
)
def test_an_open_iterator_does_not_keep_the_process(joint: Joint, end: str, code: int, budget: str | int) -> None:
    """Field case E14: a plain script without a main guard, since no process is started."""
    script = SCRIPT.format(index=str(joint.index), budget=budget, end=end)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    rounds = int(done.stdout.split()[1])
    assert rounds > 3
    assert ("a bug of the user" in done.stderr) == bool(code)
