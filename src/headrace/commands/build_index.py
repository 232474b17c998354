"""The command ``build-index``: configuration file in, index folder out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from headrace.commands.index_argument import INDEX
from headrace.commands.options import source_option, split_names
from headrace.index_place import IndexPath
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.hydro_setting import Source

HELP = """Scan the Zarr stores that CONFIG names, or those of published data sets, and write an index to DIR.

The index says where each variable is observed, which training windows that allows, and the statistics that
normalise them. Training and benchmarks read it and never scan a store themselves.

\b
Example
    build-index camels.yml --out indexes/camels
    build-index camels.yml --out indexes/camels --workers 8
    build-index --dataset-id camels_us --out indexes/camels_us      # no file: docs/presets.md

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
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    metavar="DIR|URL",
    type=INDEX,
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
@click.option(
    "--datasets", "--dataset-id", metavar="A,B",
    help="Index only these data sets of CONFIG; without CONFIG, published ones as their presets have them.",
)  # fmt: skip
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one setting: --set window.stride=2."
)
@source_option
@click.pass_context
def build_index_command(
    ctx: click.Context,
    /,
    config: Path | None,
    out: IndexPath,
    workers: int | None,
    scheduler: str | None,
    scheduler_file: str | None,
    fresh: bool,
    datasets: str | None,
    overrides: Sequence[str],
    source: Source | None,
) -> None:
    """Build an index and print what it holds."""
    from headrace.commands.configuration import read_config
    from headrace.commands.first_look import hear_from_buckets
    from headrace.objects.counts import request_counts

    chosen = split_names(datasets)
    if config is None and chosen is None:
        raise click.UsageError("give CONFIG, or --dataset-id ID", ctx)
    loaded = read_config(config, None, overrides, chosen if config is None else None, source)
    before = request_counts()
    hear_from_buckets(loaded)
    from headrace.indexer import build_index  # importing Dask takes a second that --help need not wait for
    from headrace.indexer.progress import progress_for
    from headrace.indexer.summary import print_summary

    report = build_index(
        loaded,
        out,
        workers=workers,
        scheduler=scheduler,
        scheduler_file=scheduler_file,
        fresh=fresh,
        datasets=None if config is None else chosen,
        progress=progress_for(),
    )
    requests = request_counts() - before  # with those of the first look
    print_summary(replace(report, scan=replace(report.scan, requests=requests)), Console(soft_wrap=False))
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
