"""What of an array's metadata can change a value, as one line of JSON, and words for what differs between two of them.

``long_name``, ``history`` and whatever else only describes is left out, and so are consolidated copies.
"""

import json
from collections.abc import Collection
from typing import Any

import zarr

from headrace.store import dimension_names

VALUE_ATTRIBUTES = ("units", "scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")
"""Attributes that decide what a stored number means. Units enter conversions and the check that data sets agree."""

TIME_ATTRIBUTES = ("units", "calendar")

_LAYOUT = {
    "chunks": "chunks", "chunk_grid": "chunks", "codecs": "codecs", "compressor": "codecs", "filters": "filters",
    "order": "memory order", "dimension_separator": "chunk keys", "chunk_key_encoding": "chunk keys",
}  # fmt: skip
"""Fields of both formats that say how values are stored, and their names in messages."""

MEANING = ("format", "shape", "dtype", "fill_value", "dimensions", "attributes")
"""Parts that say what the values are, however they are stored."""


def metadata_text(array: "zarr.Array[Any]", attributes: Collection[str]) -> str:
    """Return the parts of an array's metadata that can change a value, as JSON with sorted keys.

    Parameters
    ----------
    array
        An open array.
    attributes
        Names of the attributes that count.
    """
    document: dict[str, Any] = array.metadata.to_dict()
    fill: Any = array.metadata.fill_value
    parts = {
        "format": array.metadata.zarr_format,
        "shape": array.shape,
        "dtype": str(array.dtype),
        "fill_value": repr(fill.item() if hasattr(fill, "item") else fill),
        "dimensions": dimension_names(array),
        "attributes": {k: v for k, v in array.attrs.items() if k in attributes},
        **{field: document[field] for field in _LAYOUT if field in document},
    }
    return json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)


def differences(before: str, now: str, parts: Collection[str] | None = None) -> list[str]:
    """Return what differs between two texts of :func:`metadata_text`, in words.

    Parameters
    ----------
    before, now
        The texts.
    parts
        Compare these parts only, such as :data:`MEANING`; None compares all.
    """
    if before == now:
        return []
    old, new = json.loads(before), json.loads(now)
    found: list[str] = []
    for part in sorted({*old, *new}, key=_rank):
        if parts is not None and part not in parts:
            continue
        if part == "attributes":
            found += _attribute_differences(old[part], new[part])
        elif _json(old.get(part)) != _json(new.get(part)):
            found.append(f"{_LAYOUT.get(part, part)} was {_words(part, old)}, is {_words(part, new)}")
    return found


def _rank(part: str) -> tuple[int, str]:
    return (MEANING.index(part) if part in MEANING else len(MEANING), part)


def _attribute_differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    # As text, because NaN is not equal to itself.
    return [
        f"attribute {name} was {_attribute(name, old)}, is {_attribute(name, new)}"
        for name in sorted({*old, *new})
        if (name in old) != (name in new) or _json(old.get(name)) != _json(new.get(name))
    ]


def _attribute(name: str, attributes: dict[str, Any]) -> str:
    return _text(attributes[name]) if name in attributes else "not there"


def _words(part: str, parts: dict[str, Any]) -> str:
    if part not in parts:
        return "not there"
    value = parts[part]
    if part in ("shape", "dimensions"):
        return f"({', '.join(str(v) for v in value)})"
    return str(value) if part in ("dtype", "fill_value", "format") else _text(value)


def _text(value: Any) -> str:
    text = _json(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
