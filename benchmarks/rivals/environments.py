"""A folder of its own for each rival, so that none of what it brings reaches another side.

Only the named packages are installed, without what they depend on; NumPy, pandas, xarray, zarr and torch are those of
the environment that the benchmark runs in, the same for every side.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = {
    "torchhydro": ("torchhydro==0.2.0",),
    "neuralhydrology": ("neuralhydrology==1.13.0", "ruamel.yaml==0.18.16", "tqdm==4.67.1"),
    "neuralhydrology_training": ("neuralhydrology==1.13.0", "ruamel.yaml==0.18.16", "tqdm==4.67.1", "scipy==1.17.1"),
    "xbatcher": ("xbatcher==0.4.0",),
}


def folder_of(rival: str, work_dir: Path) -> Path | None:
    """Return the folder that holds a rival's packages; install them there first where it is missing.

    Parameters
    ----------
    rival
        Key of :data:`PACKAGES`; None is returned for any other.
    work_dir
        Where such folders lie.
    """
    if rival not in PACKAGES:
        return None
    folder = work_dir / "packages" / rival
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            made = Path(temporary) / "packages"
            subprocess.run([*pip, "--no-deps", "--target", str(made), *PACKAGES[rival]], check=True)
            made.rename(folder)
    return folder


def search_path(rival: str, work_dir: Path) -> list[str]:
    """Return the folders that a side's program looks into for modules, before those of the environment."""
    here = Path(__file__).resolve()
    own = folder_of(rival, work_dir)
    folders = [here.parents[1], here.parents[2] / "tests" / "support", *([] if own is None else [own])]
    return [str(folder) for folder in folders]
