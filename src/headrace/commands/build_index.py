"""The command ``build-index``: configuration file in, index folder out."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from headrace.commands.cloud import refuse_cloud
from headrace.commands.index_argument import INDEX
from headrace.index_place import IndexPath
from headrace.schemas.config_io import load_config
from headrace.schemas.errors import ConfigError, describe

HELP = """Scan the Zarr stores that CONFIG names and write an index to DIR.

The index says where each variable is observed, which training windows that allows, and the statistics that
normalise them. Training and benchmarks read it and never scan a store themselves.

\b
Example
    build-index camels.yml --out indexes/camels
    build-index camels.yml --out indexes/camels --workers 8

Run the same command again at any time. Chunks that have not changed are not read again, so a new window length,
missing-value policy or basin list takes seconds, a build that was stopped goes on where it was, and a store that
grew costs only its new chunks.

\b
A configuration needs no more than this:
    datasets:
      camels_us:
        timeseries: stores/camels_us_timeseries.zarr
        t_range_train: ["1980-10-01", "2010-09-30"]
        variables:
          relevant: {precipitation: pcp_mm}
          target: {streamflow: q_cms_obs}

Exit codes: 2 the configuration is wrong or allows no window, 3 a store cannot be read.
"""


@click.command("build-index", help=HELP, short_help="Index the stores of a configuration (runs once).")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--out", required=True, metavar="DIR|URL", type=INDEX,
    help="Folder of the index, made if need be, or s3://bucket/prefix.",
)
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Scan in N processes. Default: threads, one per CPU."
)
@click.option("--scheduler", metavar="ADDRESS", help="Scan on a running Dask cluster, such as tcp://10.0.0.1:8786.")
@click.option(
    "--scheduler-file", metavar="FILE", help="The same, with the address in the file that dask scheduler wrote."
)
@click.option("--fresh", is_flag=True, help="Scan everything again instead of keeping what still holds.")
@click.option("--datasets", metavar="A,B", help="Index only these data sets of the configuration.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one setting: --set window.stride=2."
)
@click.option(
    "--source", type=click.Choice(["local", "cloud"]), default="local", show_default=True, help="Where the stores lie."
)
def build_index_command(
    config: Path,
    out: IndexPath,
    workers: int | None,
    scheduler: str | None,
    scheduler_file: str | None,
    fresh: bool,
    datasets: str | None,
    overrides: Sequence[str],
    source: str,
) -> None:
    """Build an index and print what it holds."""
    from headrace.indexer import build_index  # importing Dask takes a second that --help need not wait for
    from headrace.indexer.progress import progress_for
    from headrace.indexer.summary import print_summary

    loaded = load_config(config, overrides)
    refuse_cloud(loaded, asked=source == "cloud")
    chosen = None if datasets is None else [name.strip() for name in datasets.split(",") if name.strip()]
    report = build_index(
        loaded,
        out,
        workers=workers,
        scheduler=scheduler,
        scheduler_file=scheduler_file,
        fresh=fresh,
        datasets=chosen,
        progress=progress_for(),
    )
    print_summary(report, Console(soft_wrap=False))
    if report.num_windows == 0:
        raise ConfigError(
            describe(
                "the index holds no window",
                where=str(out),
                expected="at least one window in one split of one data set",
                got=", ".join(f"{s.dataset_id} {s.split}: {sum(s.dropped.values())} dropped" for s in report.splits)
                or "no period at all",
                fix="see the reasons above: shorten the window, widen the periods, or choose other basins",
            )
        )
