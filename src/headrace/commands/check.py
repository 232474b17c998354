"""``headrace check``: is a configuration right, is an index up to date."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa

from headrace.commands.index_argument import INDEX, storage_asked
from headrace.commands.render import write_rows
from headrace.commands.row_options import RowTarget
from headrace.index_place import IndexPath
from headrace.objects.ways import ways_to
from headrace.schemas.config_io import load_config
from headrace.schemas.errors import ConfigError, StaleIndexError, describe
from headrace.schemas.storage_config import StorageConfig

if TYPE_CHECKING:
    from headrace.indexer.check import ConfigCheck

HELP = """Check CONFIG, or the index in DIR, without writing anything.

For a configuration every store is opened and everything that is wrong is listed at once; of stores in buckets it says
where requests go and where their credentials were found. For an index, what changed in its stores since it was built is
listed, and what a new build would read; --verify scans a sample of it again.

\b
Example
    headrace check camels.yml
    headrace check --index indexes/camels
    headrace check --index indexes/camels --verify 20

Exit codes: 2 the configuration is wrong, 3 a store cannot be read, 4 the index is out of date.
"""


@click.command("check", help=HELP, short_help="Check a configuration or an index.")
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--index", "directory", metavar="DIR|URL", type=INDEX, help="Check this index instead.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override one setting of CONFIG; with --index storage.KEY=VALUE, how it is reached.",
)
@click.option(
    "--verify",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="With --index: scan N units again, spread over the index, and compare.",
)
def check_command(config: Path | None, directory: IndexPath | None, overrides: tuple[str, ...], verify: int) -> None:
    """Check and print."""
    if (config is None) == (directory is None) or (directory is None and verify):
        given = {"CONFIG": config, "--index": directory, "--verify": verify}
        raise ConfigError(
            describe(
                "nothing to check, or what does not go together",
                where="headrace check",
                expected="CONFIG, or --index DIR (with --verify)",
                got=" with ".join(name for name, value in given.items() if value) or "neither",
                fix="see headrace check --help",
            )
        )
    if directory is None:
        assert config is not None
        from headrace.indexer.check import check_config

        settings = load_config(config, overrides)
        _print_datasets(check_config(settings))
        stores = (uri for d in settings.datasets.values() for uri in (d.timeseries, d.attributes) if uri is not None)
        for way in ways_to(stores, settings.storage):
            click.echo(f"- {way}")
        click.echo(f"{config} is right.")
    else:
        _check_index(directory, verify, storage_asked(overrides))


def _check_index(directory: IndexPath, verify: int, storage: StorageConfig) -> None:
    from headrace.indexer.check import check_index

    found = check_index(directory, verify=verify, storage=storage)
    _print_datasets(found.config_check)
    if found.num_verified:
        same = found.num_verified - len(found.different)
        click.echo(f"{same} of {found.num_verified} scan units, scanned again, gave the same result.")
    if not found.changes and not found.stale and not found.different:
        click.echo(f"{directory} is up to date.")
        return
    lines = [str(change) for change in found.changes]
    lines += [
        f"{s.dataset_id}.{s.variable}: {s.num_stale} of {s.num_units} scan units; first: {s.reason}"
        for s in found.stale
    ]
    lines += [f"another result: {place}" for place in found.different]
    fix = f"run headrace build-index again: headrace build-index CONFIG --out {directory}; it reads only what changed"
    if found.different:
        fix = (
            "run build-index again with --fresh, and look for what changes stored bytes without changing size and time"
        )
    raise StaleIndexError(
        describe(
            "index is out of date",
            where=str(directory),
            expected="the stores as they were",
            got="; ".join(lines),
            fix=fix,
        )
    )


def _print_datasets(found: "ConfigCheck") -> None:
    rows = []
    for dataset in found.inventory.datasets:
        units = {u.key: u for v in found.plan.variables if v.dataset_id == dataset.dataset_id for u in v.units}
        rows.append(
            {
                "data set": dataset.dataset_id,
                "basins": len(dataset.basins.ids),
                "steps": dataset.axis.num_steps,
                "step": f"{dataset.axis.step_seconds} s",
                "segments": len(dataset.axis.segments),
                "inputs": len(dataset.of_role("input")),
                "targets": len(dataset.of_role("target")),
                "statics": len(dataset.of_role("static")),
                "scan units": len(units),
                "decoded GB": round(sum(u.nbytes for u in units.values()) / 1e9, 3),
            }
        )
    write_rows(pa.Table.from_pylist(rows).to_reader(), RowTarget(form="table", path=None, limit=0))
    for remark in found.inventory.remarks:
        click.echo(f"- {remark}")
    for absent in found.plan.absent:
        click.echo(
            f"- {absent.dataset_id}.{absent.variable}: {absent.num_absent} of {absent.num_chunks} chunks are not stored"
            " and read as 0"
        )
