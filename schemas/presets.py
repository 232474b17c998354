"""Presets: what is known of the data sets that hydrodataset publishes, one file each in ``configs/presets``.

A preset says which array holds a standard variable, from which source and in which unit, the names of the stores and
the record. Nothing here opens a store.
"""

import difflib
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Literal

from pydantic import Field, PositiveInt

from headrace.schemas.config import SPLITS, Split
from headrace.schemas.section import Section
from headrace.schemas.yaml_text import read_yaml

ALIASES: Mapping[str, str] = MappingProxyType(
    {"camelsus": "camels", "camels_sk": "camelsh_kr", "lamahce": "lamah_ce", "lamahice": "lamah_ice"}
)
"""Other name → id of the preset: these data sets' stores are not named by their ids."""
_SHARES = (0.6, 0.8)
"""Where validation and test begin, as shares of the record."""


class StoredAs(Section):
    """One array: its name in the store and the unit it is published in."""

    physical: str
    unit: str


class Series(Section):
    """One standard variable over time, from one or more sources."""

    role: Literal["input", "target"] = "input"
    default: str | None
    """The source taken where none is named; None where the publisher chose none."""
    sources: dict[str, StoredAs]


class Static(StoredAs):
    """One attribute of a basin."""

    numeric: bool = True
    """Whether its values are numbers; a class or a code is not."""
    from_flow: bool = False
    """Whether it sums up the streamflow of the whole record, test period included: no input of a fair model."""


class Preset(Section):
    """What is known of one data set."""

    timeseries: str
    """Name of the store of series."""
    attributes: str
    """Name of the store of attributes."""
    first: str
    """First step of the record, a date or a date and time."""
    last: str
    """Its last step."""
    step_seconds: PositiveInt | None = None
    """Step of the record; None where it is not known."""
    series: dict[str, Series] = Field(default_factory=dict)
    """Standard name → where it is stored."""
    statics: dict[str, Static] = Field(default_factory=dict)
    """Standard name → where it is stored."""

    def periods(self) -> dict[Split, tuple[str, str]]:
        """Return the first and last day of each split: 60, 20 and 20 percent of the record's days, in its order."""
        first, last = (date.fromisoformat(text[:10]) for text in (self.first, self.last))
        num_days = (last - first).days + 1
        cuts = [0, *(round(share * num_days) for share in _SHARES), num_days]
        edges = [first + timedelta(days=cut) for cut in cuts]
        one = timedelta(days=1)
        return {
            split: (begin.isoformat(), (end - one).isoformat())
            for split, begin, end in zip(SPLITS, edges[:-1], edges[1:], strict=True)
        }


@cache
def preset_ids() -> tuple[str, ...]:
    """Return the ids of all presets, sorted."""
    return tuple(sorted(file.name.removesuffix(".yml") for file in _folder().iterdir() if file.name.endswith(".yml")))


def known_id(dataset_id: str) -> str | None:
    """Return the preset that an id names: its id or alias, in any case, with ``-`` for ``_``; None: it names none."""
    plain = dataset_id.lower().replace("-", "_")
    plain = ALIASES.get(plain, plain)
    return plain if plain in preset_ids() else None


@cache
def read_preset(dataset_id: str) -> Preset:
    """Read the preset of one of :func:`preset_ids`."""
    return Preset.model_validate(read_yaml((_folder() / f"{dataset_id}.yml").read_text(encoding="utf-8")))


def preset_of(dataset_id: str) -> Preset | None:
    """Return the preset that an id names, or None."""
    known = known_id(dataset_id)
    return None if known is None else read_preset(known)


def near_ids(dataset_id: str) -> list[str]:
    """Return up to three ids that look like this one."""
    return difflib.get_close_matches(dataset_id.lower().replace("-", "_"), preset_ids(), n=3, cutoff=0.6)


def _folder() -> Traversable:
    return resources.files("headrace") / "configs" / "presets"
