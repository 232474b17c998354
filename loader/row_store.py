"""Where the decoded rows of a split live: memory, a private file, a file that is kept and shared, or nowhere."""

from collections.abc import Sequence
from pathlib import Path

from headrace.loader.cache_folder import open_kept_rows
from headrace.loader.cache_key import rows_key
from headrace.loader.content import Content
from headrace.loader.read_plan import OpenDataset, ReadGroup
from headrace.loader.rows_file import RowsFile, RowsShape
from headrace.loader.storage import Rows, rows_in_memory, rows_on_disk

OFF = "off"
"""As ``cache_dir``: nothing is spilled, chunks are read again."""


def open_rows(
    content: Content,
    opened: Sequence[OpenDataset],
    groups: Sequence[ReadGroup],
    *,
    resident: bool,
    cache_dir: str | None,
    limit_nbytes: int | None,
) -> tuple[Rows, RowsFile | None]:
    """Return where decoded rows go, and their ledger where they are kept.

    Parameters
    ----------
    content, opened, groups
        What the rows hold and what fills them.
    resident
        Whether the split fits in memory.
    cache_dir
        Folder of rows that are kept; None: rows that do not fit go to a private file; ``off``: they go nowhere, and
        none are returned.
    limit_nbytes
        What rows may take on disk; None: whatever the disk has.

    Raises
    ------
    ConfigError
        No room; says needed and available bytes.
    """
    num_x, num_y = len(content.x_names), len(content.y_names)
    if cache_dir not in (None, OFF):
        key = rows_key(
            opened,
            content.layout,
            groups,
            x_scaling=content.x_scaling,
            y_scaling=content.y_scaling,
            with_masks=content.masks,
        )
        shape = RowsShape(num_rows=content.layout.num_rows, num_x=num_x, num_y=num_y, num_groups=len(groups))
        kept = open_kept_rows(Path(str(cache_dir)), key, shape, limit_nbytes)
        return kept.rows(), kept
    if resident:
        return rows_in_memory(content.layout.num_rows, num_x, num_y), None
    if cache_dir == OFF:
        return rows_in_memory(0, num_x, num_y), None
    return rows_on_disk(content.layout.num_rows, num_x, num_y, limit_nbytes), None
