"""``headrace check``: is a configuration right, is an index up to date."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa

from headrace.commands.index_argument import INDEX, storage_asked
from headrace.commands.options import source_option, split_names
from headrace.commands.render import write_rows
from headrace.commands.row_options import RowTarget
from headrace.index_place import IndexPath
from headrace.objects.ways import ways_to
from headrace.schemas.errors import ConfigError, StaleIndexError, describe
from headrace.schemas.hydro_setting import Source
from headrace.schemas.storage_config import StorageConfig

if TYPE_CHECKING:
    from headrace.indexer.check import ConfigCheck

HELP = """Check CONFIG, published data sets, or the index in DIR, without writing anything.

For a configuration every store is opened and everything that is wrong is listed at once; of stores in buckets it says
where requests go and where their credentials were found. For an index, what changed in its stores since it was built is
listed, and what a new build would read; --verify scans a sample of it again.

\b
Example
    headrace check camels.yml
    headrace check --dataset-id camels_us --source cloud    # no file: docs/presets.md
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
    "--datasets", "--dataset-id", metavar="A,B",
    help="Check only these data sets of CONFIG; without CONFIG, published ones as their presets have them.",
)  # fmt: skip
@source_option
@click.option(
    "--verify",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="With --index: scan N units again, spread over the index, and compare.",
)
def check_command(
    config: Path | None,
    directory: IndexPath | None,
    overrides: tuple[str, ...],
    datasets: str | None,
    source: Source | None,
    verify: int,
) -> None:
    """Check and print."""
    configured = {"CONFIG": config, "--dataset-id": datasets, "--source": source}
    given = [name for name, value in {**configured, "--index": directory, "--verify": verify}.items() if value]
    of_index = directory is not None
    if of_index == bool({*configured} & {*given}) or (verify and not of_index) or given == ["--source"]:
        raise ConfigError(
            describe(
                "nothing to check, or what does not go together",
                where="headrace check",
                expected="CONFIG or --dataset-id (with --source), or --index DIR (with --verify)",
                got=" with ".join(given) or "neither",
                fix="see headrace check --help",
            )
        )
    if directory is None:
        from headrace.commands.configuration import read_config
        from headrace.indexer.check import check_config

        settings = read_config(config, None, overrides, split_names(datasets), source)
        _print_datasets(check_config(settings))
        stores = (uri for d in settings.datasets.values() for uri in (d.timeseries, d.attributes) if uri is not None)
        for way in ways_to(stores, settings.storage):
            click.echo(f"- {way}")
        click.echo(f"{f'--dataset-id {datasets}' if config is None else config} is right.")
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
