"""The files of an index, for who reads them as files: in place on a disk, as a private copy from a URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.index_place import IndexPath
from headrace.objects import open_folder
from headrace.objects.limits import request_pool
from headrace.private_folder import PrivateFolder
from headrace.schemas.manifest import PARTS_FOLDER, IndexManifest
from headrace.schemas.storage_config import StorageConfig


@contextmanager
def index_here(place: IndexPath, manifest: IndexManifest, storage: StorageConfig) -> Iterator[Path]:
    """Give a folder with tables and parts; a copy goes when the block ends.

    Parameters
    ----------
    place, manifest
        The index.
    storage
        How a URL is reached.

    Raises
    ------
    IndexFormatError
        A table at a URL is not the one that the manifest means.
    SourceError
        The URL cannot be read.
    """
    if isinstance(place, Path):
        yield place
        return
    folder = open_folder(place, storage)
    entries = {entry.path: entry for entry in manifest.tables.values()}
    with PrivateFolder("check") as here:
        (here / PARTS_FOLDER).mkdir()

        def fetch(name: str) -> None:
            try:
                content = folder.read(name)
            except FileNotFoundError:
                if name in entries:
                    entries[name].check_size(f"{place}/{name}", None)
                return  # a part that a build has removed since: its units count as not scanned
            if name in entries:
                entries[name].check_content(f"{place}/{name}", content)
            (here / name).write_bytes(content)

        parts = (n for n in folder.names(f"{PARTS_FOLDER}/") if n.endswith(".parquet") and n.count("/") == 1)
        for _ in request_pool(storage).map(fetch, [*entries, *parts]):
            pass
        yield here
