"""Write neuralhydrology_metrics.json: what neuralhydrology 1.13.0 and its SciPy make of the cases of the tests.

    .venv/bin/python tests/golden/write_neuralhydrology_metrics.py

Installs both into .cache first where they are missing, which needs a network.
"""

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().with_name("neuralhydrology_metrics.json")
RANDOM_SERIES = range(24)


def main() -> None:
    """Ask about every case and write the answers."""
    sys.path.insert(0, str(GOLDEN.parents[1] / "support"))
    from neuralhydrology_cases import awkward_series, random_series
    from neuralhydrology_environment import SCIPY_VERSION, VERSION, Neuralhydrology

    provenance: dict[str, Any] = {
        "what": "metrics of the series in tests/support/neuralhydrology_cases.py; null is NaN or infinite",
        "function": "neuralhydrology.evaluation.metrics.calculate_metrics",
        "neuralhydrology": VERSION,
        "scipy": SCIPY_VERSION,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "pandas", "xarray")},
        "made by": f"tests/golden/{Path(__file__).name}",
    }
    with Neuralhydrology() as neuralhydrology:

        def answer(series: Any) -> Any:
            try:
                return neuralhydrology.ask("metrics", **series.question())
            except ValueError as refusal:
                return str(refusal)

        found = {
            "random": {str(seed): answer(random_series(seed)) for seed in RANDOM_SERIES},
            "awkward": {name: answer(series) for name, series in awkward_series().items()},
        }
    GOLDEN.write_text(json.dumps({"provenance": provenance, **found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
