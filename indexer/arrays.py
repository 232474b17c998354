"""Find the array behind each configured variable of one data set, or say what the store has instead."""

import difflib

import zarr

from headrace.indexer.decode_rules import AbsentPolicy, build_rule, refuse_hidden_sign
from headrace.indexer.facts import VariableFacts
from headrace.members import array_names, find_member
from headrace.schemas.errors import ConfigError, SourceError, describe
from headrace.schemas.variables import Role, VariableConfig
from headrace.store import BASIN_DIM, TIME_DIM, StoredArray, open_array

_SECTION = {"input": "relevant", "target": "target", "static": "constant"}
_HINT = {
    "static": "leave it out of constant: text and categories must be coded as numbers first",
    "input": "choose a numeric array",
    "target": "choose a numeric array",
}


def variable_key(dataset_key: str, role: Role, name: str) -> str:
    """Return the dotted path of a variable in the configuration file."""
    return f"{dataset_key}.variables.{_SECTION[role]}.{name}"


def find_array(
    group: zarr.Group, uri: str, array: str, *, role: Role, where: str, required: bool
) -> StoredArray | None:
    """Return a numeric array with the right dimensions; None where an optional one is not there.

    Raises
    ------
    ConfigError
        A required array is not there; lists near names and what the store has.
    SourceError
        It is not numeric or has other dimensions.
    """
    dims = (BASIN_DIM,) if role == "static" else (BASIN_DIM, TIME_DIM)
    if find_member(group, uri, array) is not None:
        kind = _non_numeric(group, uri, array, role)
        if kind is not None:
            raise kind
    stored = open_array(group, uri, array, dims=dims)
    if stored is None:
        if not required:
            return None
        names = [n for n in array_names(group) if n not in (BASIN_DIM, TIME_DIM) and not n.startswith("_")]
        near = difflib.get_close_matches(array, names, n=3, cutoff=0.6)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        raise ConfigError(
            describe(
                f"store has no array {array!r}",
                where=f"{where}, {uri}",
                expected=f"an array over {', '.join(dims)}",
                got=f"{', '.join(names[:20]) or 'no arrays'}{more}",
                fix=f"{hint}correct the name, or set required: false to fill the variable",
            )
        )
    return stored


def _non_numeric(group: zarr.Group, uri: str, array: str, role: Role) -> SourceError | None:
    """Look at the type before the dimensions, so that a text attribute is refused as text."""
    found = group[array]
    dtype = getattr(found, "dtype", None)
    if dtype is not None and dtype.kind in "iuf":
        return None
    return SourceError(
        describe(
            "array is not numeric",
            where=f"{uri}, array {array}",
            expected="integers or floats",
            got=str(dtype),
            fix=_HINT[role],
        )
    )


def check_extent(stored: StoredArray, *, rows: int, steps: int | None) -> None:
    """Refuse an array that is longer or shorter than its coordinates."""
    grid = stored.grid
    pairs = [(BASIN_DIM, grid.basin.extent, rows)]
    if steps is not None:
        pairs.append((TIME_DIM, grid.time.extent, steps))
    for dim, extent, expected in pairs:
        if extent != expected:
            raise SourceError(
                describe(
                    "array and coordinate differ in length",
                    where=f"{stored.where}, dimension {dim}",
                    expected=f"{expected}, the length of coordinate {dim}",
                    got=str(extent),
                    fix="write the store again; an interrupted append leaves such a state",
                )
            )


def resolve(
    stored: StoredArray, *, name: str, role: Role, position: int, config: VariableConfig, absent: AbsentPolicy
) -> VariableFacts:
    """Return the facts of a variable without area: rule, unit and the words for them."""
    refuse_hidden_sign(stored)
    rule, words = build_rule(stored, config, absent=absent)
    unit = config.unit if config.unit is not None else str(stored.attributes.get("units", ""))
    return VariableFacts(
        name=name, role=role, position=position, config=config, stored=stored, rule=rule, missing_rule=words, unit=unit
    )
