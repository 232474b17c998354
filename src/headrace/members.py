"""The arrays of an open store by name: a name that is not there is told apart from metadata that cannot be read."""

from typing import Any

import zarr
from zarr.errors import ArrayNotFoundError

from headrace.objects.zarr_store import remote_store
from headrace.schemas.errors import SourceError, describe


def array_names(group: zarr.Group) -> list[str]:
    """Return the names of the arrays directly inside a group, sorted."""
    return sorted(name for name, _ in group.arrays())


def find_member(group: zarr.Group, uri: str, name: str) -> zarr.Array[Any] | None:
    """Return an array as it is, or None when there is no array of that name.

    Raises
    ------
    SourceError
        Its metadata cannot be read.
    """
    remote = remote_store(group)
    known = None if remote is None else remote.arrays.get(f"{group.path}/{name}")
    if known is not None:
        return known
    try:
        array = group[name]
    except (KeyError, ArrayNotFoundError):
        return None
    except (OSError, ValueError, TypeError) as error:
        raise SourceError(
            describe(
                "array cannot be opened",
                where=f"{uri}, array {name}",
                expected="metadata of a Zarr array",
                got=f"{type(error).__name__}: {error}",
                fix="check the array's metadata and rights",
            )
        ) from error
    if not isinstance(array, zarr.Array):
        return None
    if remote is not None:
        remote.arrays[f"{group.path}/{name}"] = array
    return array
