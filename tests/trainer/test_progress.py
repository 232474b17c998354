"""Lines for logs, a bar for terminals."""

import io
import subprocess
import sys

from rich.console import Console

from headrace.trainer import progress as progress_module
from headrace.trainer.progress import RichProgress


def run_pass(console):
    with RichProgress(console) as progress:
        progress.begin("epoch 1/2", total=3)
        for done in (1, 2, 3):
            progress.update(done, loss=0.5, samples_per_second=1234.5, wait_share=0.25)
        progress.finish("epoch 1/2  train loss 0.5")


def test_a_log_gets_the_summary_alone_when_a_pass_is_short():
    text = io.StringIO()
    run_pass(Console(file=text, width=20))
    assert text.getvalue() == "epoch 1/2  train loss 0.5\n"


def test_a_log_gets_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr(progress_module, "LINE_SECONDS", 0.0)
    text = io.StringIO()
    run_pass(Console(file=text, width=20))
    lines = text.getvalue().splitlines()
    assert lines[0] == "epoch 1/2  1/3  loss 0.5000  1,234 windows/s  waiting 25.0%"
    assert len(lines) == 4


def test_a_terminal_gets_a_bar():
    text = io.StringIO()
    run_pass(Console(file=text, force_terminal=True, width=120))
    assert "3/3" in text.getvalue()
    assert "epoch 1/2  train loss 0.5" in text.getvalue()


def test_importing_the_package_costs_no_torch_and_names_load_on_use():
    code = (
        "import sys, headrace.trainer as t; assert 'torch' not in sys.modules; "
        "assert all(getattr(t, n) for n in t.__all__); assert 'torch' in sys.modules; "
        "assert not {'dask', 'matplotlib', 'headrace.indexer', 'headrace.loader'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
