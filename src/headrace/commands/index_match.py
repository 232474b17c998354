"""What an index depends on, so that a configuration finds its index and is never trained from another one's.

Stores, basins, periods, variables and the rules that decide what the scan takes for missing are scanned. Window,
policies, normalisation, sampling, weights and everything of the loader and the trainer are not: the loader works them
out of the same tables.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.index_place import IndexPath
from headrace.schemas.config import Config
from headrace.schemas.errors import StaleIndexError, describe

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


def refuse_other_sources(config: Config, indexed: Config, where: IndexPath) -> None:
    """Check that an index was built from what a configuration names.

    Parameters
    ----------
    config
        What is asked for; it may leave out data sets of the index.
    indexed
        The configuration in the index's manifest.
    where
        Path or URL of the index.

    Raises
    ------
    StaleIndexError
        They differ; names what does, and the command that makes the right one.
    """
    wanted, found = scanned_settings(config), scanned_settings(indexed)
    lacking = [name for name in wanted["datasets"] if name not in found["datasets"]]
    shared = [name for name in wanted["datasets"] if name in found["datasets"]]
    for settings in (wanted, found):
        settings["datasets"] = {name: settings["datasets"][name] for name in shared}
    differences = list(_differences(wanted, found, ""))
    if not lacking and not differences:
        return
    asked = [f"{key} {_short(value)}" for key, value, _ in differences[:3]]
    held = [f"{key} {_short(value)}" for key, _, value in differences[:3]]
    if lacking:
        asked.insert(0, f"data sets {', '.join(config.datasets)}")
        held.insert(0, f"data sets {', '.join(indexed.datasets)}")
    if len(differences) > 3:
        held.append(f"and {len(differences) - 3} more that differ")
    raise StaleIndexError(
        describe(
            "the index is not one of this configuration",
            where=str(where),
            expected="; ".join(asked),
            got="; ".join(held),
            fix=f"build one: headrace build-index CONFIG --out {default_index_folder(config)} (train does so by itself "
            f"where --index is left out), or bring this one up to date with --out {where}: it scans only what changed",
        )
    )


def _differences(wanted: Any, found: Any, key: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the dotted key, what is asked for and what is there, of every value that differs."""
    if not (isinstance(wanted, dict) and isinstance(found, dict)):
        if wanted != found:
            yield key, wanted, found
        return
    for name in dict.fromkeys([*wanted, *found]):
        yield from _differences(wanted.get(name), found.get(name), f"{key}.{name}" if key else name)


def _short(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:97] + "..."
