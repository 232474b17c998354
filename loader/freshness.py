"""Does an index still fit its stores: a warning when it is opened, an error when something is read from them.

Metadata documents, coordinates and attributes are compared, no chunk of a time series. Where the stores are not there
an index can be opened all the same: its tables answer without them.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headrace.objects import is_remote
from headrace.objects.at_once import at_once
from headrace.open_store import opening_once
from headrace.schemas.config import DatasetConfig
from headrace.schemas.errors import ConfigError, SourceError, StaleIndexError
from headrace.staleness import Change, IndexedDataset, changes_of_all, find_all_changes, snapshots_of, stale_message

if TYPE_CHECKING:
    from headrace.loader.catalog import Index

logger = logging.getLogger(__name__)
_PASSED_OVER = (SourceError, ConfigError)
"""What says that a store cannot be asked: it is gone, or this machine has no credentials for it."""


def refuse_stale(index: "Index", dataset_ids: Sequence[str]) -> None:
    """Compare the stores of some data sets with the index.

    Raises
    ------
    SourceError
        A time series store is gone.
    StaleIndexError
        Something changed; says what, and how to refresh.
    """
    changes = changes_of_all([_indexed(index, d) for d in dataset_ids])
    if changes:
        raise StaleIndexError(stale_message(changes, index.path))


def warn_if_stale(index: "Index", *, ask_buckets: bool) -> None:
    """Log one warning that names what changed; a store that is gone or cannot be reached is passed over."""
    names = [name for name in index.dataset_ids if ask_buckets or not _in_bucket(index.config.datasets[name])]
    datasets = [_indexed(index, name) for name in names]
    remote = any(_in_bucket(d.config) for d in datasets)
    with opening_once(index.stores):
        looked = at_once([partial(_changes_or_error, d) for d in datasets], remote=remote)
    changes = [change for found in looked if not isinstance(found, _PASSED_OVER) for change in found]
    for error in (found for found in looked if isinstance(found, _PASSED_OVER)):
        logger.debug("not compared with the index: %s", error)
    if changes:
        logger.warning("%s", stale_message(changes, index.path))
    if len(changes) > 0 or any(isinstance(found, _PASSED_OVER) for found in looked):
        index.stores.forget()


def _in_bucket(dataset: DatasetConfig) -> bool:
    return any(is_remote(uri) for uri in (dataset.timeseries, dataset.attributes) if uri is not None)


def _changes_or_error(indexed: IndexedDataset) -> list[Change] | SourceError | ConfigError:
    try:
        return find_all_changes(indexed)
    except _PASSED_OVER as error:
        return error


def _indexed(index: "Index", dataset_id: str) -> IndexedDataset:
    def table(name: str) -> pa.Table:
        if name == "datasets":
            rows = index.fetch(name)
            return rows.filter(pc.equal(rows["dataset_id"], dataset_id))
        return index.fetch(name, dataset_id=dataset_id)

    return IndexedDataset(
        index=index.path,
        dataset_id=dataset_id,
        config=index.config.datasets[dataset_id],
        storage=index.config.storage,
        tolerate_damage=index.config.missing.on_bad_chunk == "missing",
        arrays=snapshots_of(table("arrays")),
        table=table,
    )
