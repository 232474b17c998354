"""How one canonical variable is stored and decoded, as configured and as resolved against a store.

:class:`VariableConfig` is what a user may write; :class:`DecodeRule` is everything that turns raw values into
canonical ones, so that the scan and the loader agree bit for bit.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, model_validator

Role = Literal["input", "target", "static"]
MissingPolicy = Literal["fill", "fill_and_mask", "drop"]


def _as_list(value: object) -> object:
    return value if isinstance(value, list | tuple) or value is None else [value]


class VariableConfig(BaseModel):
    """One variable of one data set, as written in the configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    physical: str = Field(min_length=1)
    """Name of the array in the store."""
    scale: FiniteFloat = 1.0
    """Multiplies the stored value, after the store's own CF scale and offset."""
    offset: FiniteFloat = 0.0
    """Added after ``scale``."""
    unit: str | None = None
    """Unit of the result; needed with ``per_area``. Default: the array's own ``units`` attribute."""
    required: bool = True
    """Whether a data set without this array is an error; if false the variable is filled with ``fill_value``."""
    fill_value: FiniteFloat = 0.0
    """Value after normalisation where the data set lacks the variable altogether."""
    missing_values: Annotated[tuple[float, ...], BeforeValidator(_as_list)] = ()
    """Raw values that mean missing, besides the store's own flags."""
    valid_min: FiniteFloat | None = None
    """Smallest valid canonical value; anything below is missing."""
    valid_max: FiniteFloat | None = None
    """Largest valid canonical value; anything above is missing."""
    per_area: str | None = None
    """Static array (or constant of this data set) holding the basin area that turns a volume into a depth."""
    missing_policy: MissingPolicy | None = None
    """Overrides ``missing.missing_policy`` for this input."""

    @model_validator(mode="after")
    def _check(self) -> "VariableConfig":
        if self.scale == 0:
            msg = "scale must not be 0: every value would become the offset"
            raise ValueError(msg)
        if self.valid_min is not None and self.valid_max is not None and self.valid_min > self.valid_max:
            msg = f"valid_min {self.valid_min} is above valid_max {self.valid_max}"
            raise ValueError(msg)
        if self.per_area is not None and self.unit is None:
            msg = "per_area needs unit: the unit of the result, such as mm/day"
            raise ValueError(msg)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeRule:
    """Everything that decides what a raw value of one array means.

    The order is fixed: missing test on the raw value, CF scale and offset, configured scale and offset, the factor
    of ``per_area``, the valid range, then one cast to float32.

    Parameters
    ----------
    missing_values
        Raw values that mean missing, from attributes, the format-2 fill value and the configuration.
    cf_scale, cf_offset
        Attributes ``scale_factor`` and ``add_offset`` of the array.
    scale, offset
        Configured, applied after the CF pair.
    area_factor
        With ``per_area``: result = value × ``area_factor`` / area in the area array's own unit.
    area_array
        Name of the static array holding the area, or None.
    valid_min, valid_max
        Canonical bounds, inclusive.
    absent_is_missing
        Whether an absent chunk is missing (its fill value is not 0, or the policy says so).
    """

    missing_values: tuple[float, ...] = ()
    cf_scale: float = 1.0
    cf_offset: float = 0.0
    scale: float = 1.0
    offset: float = 0.0
    area_factor: float | None = None
    area_array: str | None = None
    valid_min: float | None = None
    valid_max: float | None = None
    absent_is_missing: bool = False

    def __post_init__(self) -> None:
        """Make every number a plain float: equal rules have equal text, wherever their numbers came from."""
        object.__setattr__(self, "missing_values", tuple(float(v) for v in self.missing_values))
        for name in ("cf_scale", "cf_offset", "scale", "offset", "area_factor", "valid_min", "valid_max"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else float(value))

    def digest(self) -> str:
        """Return 16 hex digits that change whenever the meaning of a raw value changes."""
        text = json.dumps({k: repr(v) for k, v in asdict(self).items()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def rule_to_json(rule: DecodeRule) -> str:
    """Return the rule as JSON text; floats are ``repr`` texts, so that no bit is lost."""
    fields = asdict(rule)
    flags = [repr(float(v)) for v in fields.pop("missing_values")]
    plain = {k: repr(v) if isinstance(v, float) else v for k, v in fields.items()}
    return json.dumps({"missing_values": flags, **plain}, sort_keys=True, ensure_ascii=False)


def rule_from_json(text: str) -> DecodeRule:
    """Read what :func:`rule_to_json` wrote, bit for bit."""
    fields = json.loads(text)
    flags = tuple(float(v) for v in fields.pop("missing_values"))
    numeric = {"cf_scale", "cf_offset", "scale", "offset", "area_factor", "valid_min", "valid_max"}
    read: dict[str, Any] = {k: float(v) if k in numeric and v is not None else v for k, v in fields.items()}
    return DecodeRule(missing_values=flags, **read)
