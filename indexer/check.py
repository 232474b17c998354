"""``headrace check``: everything a build does but the scan, and for an index what has changed since.

Nothing is written. Metadata documents, coordinates and the size and time of stored objects are looked at; with
``verify`` a sample of units is scanned again and compared with what the index keeps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.index_content import read_index_manifest
from headrace.index_place import IndexPath, index_path
from headrace.indexer.consolidated import stale_copies
from headrace.indexer.facts import Inventory
from headrace.indexer.index_here import index_here
from headrace.indexer.inventory import take_inventory
from headrace.indexer.parts import finished_units, read_units, to_table
from headrace.indexer.read_unit import scan_unit
from headrace.indexer.units import PlannedVariable, ScanPlan, ScanUnit, plan_scan, refuse_absent
from headrace.open_store import opening_once
from headrace.schemas.config import Config
from headrace.schemas.errors import ConfigError, SourceError, StaleIndexError
from headrace.schemas.manifest import PARTS_FOLDER, IndexManifest
from headrace.schemas.storage_config import StorageConfig
from headrace.staleness import Change, IndexedDataset, changes_of_all, snapshots_of, stale_message
from headrace.store import StoredArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigCheck:
    """What a configuration would index.

    Parameters
    ----------
    inventory, plan
        Data sets as found, and the scan they need.
    """

    inventory: Inventory
    plan: ScanPlan

    @property
    def nbytes(self) -> int:
        """Decoded bytes that a first build reads."""
        return sum(unit.nbytes for bundle in self.plan.bundles for unit in bundle)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleVariable:
    """One variable of which something changed.

    Parameters
    ----------
    dataset_id, variable
        Which.
    num_stale, num_units
        Scan units that a new build reads, of all.
    reason
        What changed first, in words.
    """

    dataset_id: str
    variable: str
    num_stale: int
    num_units: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCheck:
    """An index against its stores as they are now.

    Parameters
    ----------
    config_check
        The stores as they are.
    changes
        Metadata, coordinates and attributes that changed.
    stale
        Variables that a new build would scan again, whole or in part.
    num_verified
        Units scanned again and compared.
    different
        Of these, the ones whose result is another one: array and steps.
    """

    config_check: ConfigCheck
    changes: tuple[Change, ...]
    stale: tuple[StaleVariable, ...]
    num_verified: int
    different: tuple[str, ...]


def check_config(config: Config) -> ConfigCheck:
    """Open every store and resolve every name, date and rule.

    Raises
    ------
    ConfigError, SourceError
        One error that lists everything that is wrong.
    """
    with opening_once():
        inventory = take_inventory(config)
        plan = plan_scan(inventory)
        refuse_absent(plan, config.missing.absent_chunk)
        remarks = (*inventory.remarks, *stale_copies(inventory))
    return ConfigCheck(inventory=replace(inventory, remarks=remarks), plan=plan)


def check_index(path: str | Path, *, verify: int = 0, storage: StorageConfig | None = None) -> IndexCheck:
    """Compare an index with its stores.

    Parameters
    ----------
    path
        Folder of the index, or its ``s3://`` URL.
    verify
        Number of units to scan again, spread evenly over all.
    storage
        How a URL is reached; None takes what the environment and ``~/hydro_setting.yml`` say.

    Raises
    ------
    IndexFormatError
        The folder is no index.
    StaleIndexError
        A store changed such that its configuration no longer fits; says what changed and what a new build would say.
    ConfigError, SourceError
        There is no such folder, or a store is gone.
    """
    place = index_path(path)
    manifest = read_index_manifest(place, storage)
    with index_here(place, manifest, storage or StorageConfig()) as here, opening_once():
        return _check(_Kept(place=place, here=here, manifest=manifest), verify)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """An index: where it lies, a folder with its files, and its manifest."""

    place: IndexPath
    here: Path
    manifest: IndexManifest

    def table(self, name: str) -> Path:
        """Return the file of a table."""
        return self.here / self.manifest.tables[name].path


def _check(kept: _Kept, verify: int) -> IndexCheck:
    config = kept.manifest.config
    indexed = [_indexed(kept, d) for d in sorted(config.datasets)]
    changes = changes_of_all(indexed)
    try:
        now = check_config(config)
    except (ConfigError, SourceError) as error:
        if not changes:
            raise
        raise StaleIndexError(f"{stale_message(changes, kept.place)}\nand a new build says: {error}") from error
    parts = kept.here / PARTS_FOLDER
    found = finished_units(parts, accept_errors=config.missing.on_bad_chunk == "missing")
    chunks = pq.read_table(kept.table("chunks"))
    arrays = {(d.dataset_id, v.name): v.stored for d in now.inventory.datasets for v in d.series()}
    planned = [(v, arrays[v.dataset_id, v.variable]) for v in now.plan.variables]
    stale = tuple(s for v, array in planned if array and (s := _stale(v, array, found, chunks)) is not None)
    units = [u for bundle in now.plan.bundles for u in bundle if u.key in found]
    sample = [units[i * len(units) // verify] for i in range(verify)] if verify < len(units) else units
    sample = sample if verify else []
    different = [_place(u) for u in sample if not _same(u, found[u.key], parts, config)]
    return IndexCheck(
        config_check=now, changes=tuple(changes), stale=stale, num_verified=len(sample), different=tuple(different)
    )


def _indexed(kept: _Kept, dataset_id: str) -> IndexedDataset:
    def table(name: str) -> pa.Table:
        return pq.read_table(kept.table(name), filters=[("dataset_id", "=", dataset_id)])

    config = kept.manifest.config
    return IndexedDataset(
        index=kept.place,
        dataset_id=dataset_id,
        config=config.datasets[dataset_id],
        storage=config.storage,
        tolerate_damage=config.missing.on_bad_chunk == "missing",
        arrays=snapshots_of(table("arrays")),
        table=table,
    )


def _stale(
    planned: PlannedVariable, stored: StoredArray, found: dict[str, str], chunks: pa.Table
) -> StaleVariable | None:
    changed = [u for u in planned.units if u.key not in found]
    if not changed:
        return None
    own = chunks.filter(
        pc.and_(pc.equal(chunks["dataset_id"], planned.dataset_id), pc.equal(chunks["variable"], planned.variable))
    )
    places = zip(own["basin_chunk"].to_pylist(), own["time_chunk"].to_pylist(), strict=True)
    before = dict(zip(places, own["fingerprint"].to_pylist(), strict=True))
    reason = next(_changes(stored, changed, before), "what its values mean, or the periods that cut it, changed")
    return StaleVariable(
        dataset_id=planned.dataset_id,
        variable=planned.variable,
        num_stale=len(changed),
        num_units=len(planned.units),
        reason=reason,
    )


def _changes(stored: StoredArray, units: Sequence[ScanUnit], before: dict[tuple[int, int], str]) -> Iterator[str]:
    """Yield the stored objects that are not as they were."""
    for unit in units:
        for time_chunk in range(*unit.time_chunks):
            place = (unit.basin_chunk, time_chunk)
            stat = stored.stat(*place)
            now = "" if stat is None else stat.fingerprint
            if place not in before:
                yield f"{stored.object_key(*place)} is new"
            elif before[place] != now:
                yield f"{stored.object_key(*place)} was {'deleted' if not now else 'rewritten'}"


def _same(unit: ScanUnit, part: str, parts: Path, config: Config) -> bool:
    again = to_table([scan_unit(unit, config.missing.on_bad_chunk, config.storage)])
    kept = read_units(parts, [part])
    return bool(kept.filter(pc.equal(kept["key"], unit.key)).slice(0, 1).equals(again))


def _place(unit: ScanUnit) -> str:
    return f"{unit.uri}, array {unit.array}, rows {list(unit.rows)}, steps {list(unit.steps)}"
