"""What stands where an index lies, or is to lie: its manifest, or whatever else is there."""

from pathlib import Path

from headrace.index_place import IndexPath
from headrace.objects import ObjectFolder, open_folder, parse_location
from headrace.schemas.manifest import (
    MANIFEST_NAME,
    PARTS_FOLDER,
    IndexManifest,
    absent_index,
    parse_manifest,
    read_manifest,
    unfinished_index,
)
from headrace.schemas.storage_config import StorageConfig


def remote_folder(url: str, storage: StorageConfig | None) -> ObjectFolder:
    """Open the folder at a URL; no request is made yet."""
    return open_folder(url, storage)


def read_index_manifest(place: IndexPath, storage: StorageConfig | None) -> IndexManifest:
    """Read the manifest of an index.

    Raises
    ------
    SourceError
        There is nothing there, or the URL cannot be read.
    IndexFormatError
        There is something else, an unfinished index, or one of another version.
    """
    if isinstance(place, Path):
        return read_manifest(place)
    try:
        content = remote_folder(place, storage).read(MANIFEST_NAME)
    except FileNotFoundError:
        names = content_of(place, storage)
        raise unfinished_index(place, names) if names else absent_index(place) from None
    return parse_manifest(content, f"{place}/{MANIFEST_NAME}")


def content_of(place: IndexPath, storage: StorageConfig | None) -> list[str]:
    """Return the names of files and folders directly in a folder, sorted; [] where there is none.

    Raises
    ------
    SourceError
        The URL cannot be read.
    """
    if isinstance(place, Path):
        return sorted(p.name for p in place.iterdir()) if place.is_dir() else []
    from headrace.objects.client import client_for  # who names no bucket does not load the client

    location = parse_location(place)
    folders, objects = client_for(location.bucket, storage or StorageConfig()).folders(location.key)
    return sorted(folders + objects)


def wants_build(place: IndexPath, storage: StorageConfig | None) -> bool:
    """Return whether there is nothing yet, or an index that a build began and did not finish."""
    names = content_of(place, storage)
    if isinstance(place, Path) and place.exists() and not place.is_dir():
        return False
    return MANIFEST_NAME not in names and (not names or PARTS_FOLDER in names)
