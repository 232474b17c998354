"""What the metadata of an array and its configuration say together about the meaning of raw values.

Flags come from the attributes ``_FillValue`` and ``missing_value``, from ``missing_values`` in the configuration and,
in format 2, from a fill value other than 0. The sentence that names the rule used goes into the table ``variables``.
"""

import base64
import binascii
import math
import struct
from typing import Any, Literal

import numpy as np

from headrace.schemas.errors import SourceError, describe
from headrace.schemas.variables import DecodeRule, VariableConfig
from headrace.store import StoredArray

AbsentPolicy = Literal["valid_zero", "missing", "error"]


def refuse_hidden_sign(stored: StoredArray) -> None:
    """Refuse an array that is unsigned by the netCDF attribute ``_Unsigned`` but stored as signed."""
    if str(stored.attributes.get("_Unsigned", "false")).lower() == "true":
        raise SourceError(
            describe(
                "array is unsigned by attribute only",
                where=stored.where,
                expected="a stored type that says its own sign",
                got=f"{stored.dtype} with the attribute _Unsigned",
                fix="write the array as an unsigned type",
            )
        )


def fill_value(stored: StoredArray) -> float | None:
    """Return the storage fill value as a number; None where the array has none."""
    value: Any = stored.array.metadata.fill_value
    return None if value is None else float(value)


def absent_is_zero(stored: StoredArray) -> bool:
    """Return whether an absent chunk reads as 0, so that only a policy can say whether it is observed."""
    return fill_value(stored) in (None, 0.0)


def build_rule(stored: StoredArray, config: VariableConfig, *, absent: AbsentPolicy) -> tuple[DecodeRule, str]:
    """Return the decode rule of an array, without area, and the words that say where it comes from.

    Parameters
    ----------
    stored
        The array.
    config
        What the user wrote about the variable.
    absent
        What an absent chunk means where the fill value is 0.
    """
    flags: list[float] = []
    words: list[str] = []
    for name in ("_FillValue", "missing_value"):
        if name in stored.attributes:
            found = [_number(v, stored, name) for v in _listed(stored.attributes[name])]
            flags += found
            words.append(f"{name}={','.join(_short(v) for v in found)}")
    fill = fill_value(stored)
    if stored.array.metadata.zarr_format == 2 and fill is not None:
        if fill != 0:
            flags.append(fill)
            words.append(f"format-2 fill {_short(fill)} is missing")
        else:
            words.append("format-2 fill 0 kept valid")
    elif stored.array.shards is not None and fill is not None and fill != 0:
        # Inside a shard no one can tell an absent inner chunk from one full of the fill value.
        flags.append(fill)
        words.append(f"fill {_short(fill)} of a sharded array is missing")
    if config.missing_values:
        flags += config.missing_values
        words.append(f"configured {','.join(_short(v) for v in config.missing_values)}")
    zero = absent_is_zero(stored)
    missing = not zero or absent == "missing"
    words.append(
        "absent chunks are missing"
        if missing
        else "absent chunks are refused"
        if absent == "error"
        else "absent chunks count as 0"
    )
    rule = DecodeRule(
        missing_values=_without_repeats(flags),
        cf_scale=_attribute(stored, "scale_factor", 1.0),
        cf_offset=_attribute(stored, "add_offset", 0.0),
        scale=config.scale,
        offset=config.offset,
        valid_min=config.valid_min,
        valid_max=config.valid_max,
        absent_is_missing=missing,
    )
    return rule, "; ".join(words)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _without_repeats(flags: list[float]) -> tuple[float, ...]:
    """Drop repeats; NaN flags all mean the same."""
    seen = {repr(float(v)): float(v) for v in flags}
    return tuple(seen.values())


def _short(value: float) -> str:
    return (
        str(int(value))
        if math.isfinite(value) and float(value).is_integer() and abs(value) < 1e16
        else repr(float(value))
    )


def _attribute(stored: StoredArray, name: str, default: float) -> float:
    found = stored.attributes.get(name)
    return default if found is None else _number(_listed(found)[0], stored, name)


def _number(value: Any, stored: StoredArray, name: str) -> float:
    """Read a number from an attribute; xarray writes a format-3 float ``_FillValue`` as base64 of eight bytes."""
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
        try:
            packed = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            packed = b""
        if len(packed) == 8:
            return float(struct.unpack("<d", packed)[0])
    raise SourceError(
        describe(
            "attribute is not a number",
            where=f"{stored.where}, attribute {name}",
            expected="a number",
            got=repr(value),
            fix="mend or delete the attribute",
        )
    )
