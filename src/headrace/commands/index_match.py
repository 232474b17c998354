"""What an index depends on, so that a configuration finds its index and is never trained from another one's.

Stores, basins, periods, variables and the rules that decide what the scan takes for missing are scanned. Window,
policies, normalisation, sampling, weights and everything of the loader and the trainer are not: the loader works them
out of the same tables.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from headrace.schemas.config import Config
from headrace.schemas.errors import ConfigError, describe

_SCANNED_MISSING = ("absent_chunk", "static_missing", "on_bad_chunk")


def scanned_settings(config: Config) -> dict[str, Any]:
    """Return the part of a configuration that an index depends on, as plain values."""
    whole = config.as_dict()
    return {
        "datasets": {
            name: {key: value for key, value in dataset.items() if key != "weight"}
            for name, dataset in whole["datasets"].items()
        },
        "missing": {key: whole["missing"][key] for key in _SCANNED_MISSING},
        "loader": {"allow_mixed_time_steps": whole["loader"]["allow_mixed_time_steps"]},
    }


def default_index_folder(config: Config) -> Path:
    """Return ``indexes/<digest>``; runs that differ in window, policies or model share it."""
    text = json.dumps(scanned_settings(config), sort_keys=True)
    return Path("indexes") / hashlib.sha256(text.encode()).hexdigest()[:16]


def refuse_other_sources(config: Config, indexed: Config, where: Path) -> None:
    """Check that an index was built from what a configuration names.

    Parameters
    ----------
    config
        What is asked for; it may leave out data sets of the index.
    indexed
        The configuration in the index's manifest.
    where
        Folder of the index.

    Raises
    ------
    ConfigError
        They differ; names the first key that does.
    """
    wanted, found = scanned_settings(config), scanned_settings(indexed)
    found["datasets"] = {name: value for name, value in found["datasets"].items() if name in wanted["datasets"]}
    difference = _first_difference(wanted, found, "")
    if difference is None:
        return
    key, asked, held = difference
    raise ConfigError(
        describe(
            "the configuration and the index disagree",
            where=f"{key}, index {where}",
            expected=f"what the configuration says: {_short(asked)}",
            got=f"the index was built with {_short(held)}",
            fix="bring the index up to date (build-index CONFIG --out DIR rescans only what changed), or use another",
        )
    )


def _first_difference(wanted: Any, found: Any, key: str) -> tuple[str, Any, Any] | None:
    if not (isinstance(wanted, dict) and isinstance(found, dict)):
        return None if wanted == found else (key, wanted, found)
    for name in dict.fromkeys([*wanted, *found]):
        difference = _first_difference(wanted.get(name), found.get(name), f"{key}.{name}" if key else name)
        if difference is not None:
            return difference
    return None


def _short(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:197] + "..."
