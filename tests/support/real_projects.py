"""Stores and configurations of the real sources, laid out as in a checkout, so that relative paths hold."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tree import REPOSITORY

CONFIGS = REPOSITORY / "configs" / "real"


def make_project(data_root: Path, folder: Path, *arguments: str) -> Path:
    """Write stores with the script that lies beside the data; return the folder of the configurations."""
    pytest.importorskip("pandas", reason="the conversion script of the real data sets uses pandas")
    command = [sys.executable, str(data_root / "to_zarr.py"), "--root", str(data_root)]
    command += ["--out", str(folder / "real" / "stores"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shutil.copytree(CONFIGS, folder / "configs" / "real")
    return folder / "configs" / "real"
