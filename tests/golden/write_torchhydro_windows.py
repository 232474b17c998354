"""Write the golden sets of training windows in torchhydro_windows/: ask torchhydro 0.2.0 about random stores.

    .venv/bin/python tests/golden/write_torchhydro_windows.py

Installs torchhydro into .cache first where it is missing, which needs a network. Every case is stored whole, so the
sets outlive a change of the random cases.
"""

import json
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().with_name("torchhydro_windows")
CASES_PER_FILE = 4
QUESTIONS_PER_CASE = 6


def main() -> None:
    """Write one file for each target policy: that of a case's first question, which its index is built with."""
    sys.path.insert(0, str(GOLDEN.parents[1] / "support"))
    from torchhydro_cases import POLICIES, random_case, torchhydro_questions, write_case
    from torchhydro_environment import VERSION, Torchhydro

    provenance: dict[str, Any] = {
        "what": "windows that torchhydro's lookup table lists for the training period",
        "class": "torchhydro.datasets.cloud_zarr_lazy_dataset.CloudZarrLazyDataset",
        "torchhydro": VERSION,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "pandas", "torch", "xarray", "zarr")},
        "settings": {"use_hydrodataset_reader": False, "normalization": "none"},
        "rows": "basin id, first start, one past the last start; a start is the step of the first input",
        "made by": f"tests/golden/{Path(__file__).name}",
    }
    with Torchhydro() as torchhydro, tempfile.TemporaryDirectory() as folder:
        for number, policy in enumerate(POLICIES):
            cases = []
            for seed in range(number, 3 * CASES_PER_FILE, 3):
                case = random_case(seed, QUESTIONS_PER_CASE)
                questions = torchhydro_questions(case, write_case(case, Path(folder) / str(seed)))
                answers = [torchhydro.ask("windows", **question) for question in questions]
                cases.append({"seed": seed, **case, "answers": answers})
            # A case a line: short, and a change shows which case it is in.
            lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
            text = f'{{"provenance": {json.dumps(provenance, indent=1)},\n"cases": [\n{lines}\n]}}\n'
            (GOLDEN / f"{policy}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
