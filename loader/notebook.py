"""What a notebook shows of an index and of a loader."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.loader.budget import human_nbytes
from headrace.schemas.errors import HeadraceError
from headrace.schemas.html_text import facts_html, table_html

if TYPE_CHECKING:
    from headrace.loader.catalog import Index
    from headrace.loader.window_loader import WindowLoader


def index_html(index: "Index") -> str:
    """Return where an index lies, its window and variables, and the windows of each data set and split."""
    config, window = index.config, index.config.window.spec()
    facts = {
        "folder": index.path,
        "window": f"{window.length} steps, targets on the last {window.target_length}",
        **_names(config.names("input"), config.names("static"), config.names("target")),
        "digest": index.manifest.index_digest,
    }
    text = facts_html("Headrace index", facts)
    try:
        found = index.summary()
    except HeadraceError:  # closed: what the manifest says is still true
        return text + "<em>closed</em>"
    return text + table_html(found.column_names, (tuple(row.values()) for row in found.to_pylist()))


def loader_line(loader: "WindowLoader") -> str:
    """Return on a line what a loader serves and how."""
    how = f"{'resident' if loader.resident else 'in rounds'}, {human_nbytes(loader.spill_nbytes)} on disk"
    shape = f"batches={len(loader)}, batch_size={loader.batch_size}, x={loader.x_names}, y={loader.y_names}"
    return f"WindowLoader(split={loader.split!r}, windows={loader.num_windows}, {shape}, {how})"


def loader_html(loader: "WindowLoader") -> str:
    """Return what a loader serves and how."""
    window = loader.window
    basins = ", ".join(f"{name} ({len(ids):,})" for name, ids in zip(loader.dataset_ids, loader.basin_ids, strict=True))
    spilled = f"in rounds, {human_nbytes(loader.spill_nbytes)} on disk"
    facts: dict[str, object] = {
        "split": loader.split,
        "data sets (basins)": basins,
        "windows": f"{loader.num_windows:,}",
        "batches": f"{len(loader):,} of {loader.batch_size:,} windows",
        "a batch's x": f"[{loader.batch_size}, {window.length}, {len(loader.x_names)}]",
        "a batch's y": f"[{loader.batch_size}, {window.target_length}, {len(loader.y_names)}]",
        **_names(loader.x_names, loader.static_names, loader.y_names),
        "rows": "stay in memory" if loader.resident else spilled,
        "read so far": f"{human_nbytes(loader.bytes_read)} in {loader.chunks_read:,} chunks",
        "epoch": loader.epoch,
        "device": loader.device,
    }
    if loader.world_size > 1:
        facts["rank"] = f"{loader.rank} of {loader.world_size}"
    return facts_html("Headrace WindowLoader", facts)


def _names(inputs: Sequence[str], statics: Sequence[str], targets: Sequence[str]) -> dict[str, str]:
    roles = {"inputs": inputs, "statics": statics, "targets": targets}
    return {role: ", ".join(names) or "none" for role, names in roles.items()}
