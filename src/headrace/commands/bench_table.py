"""The result of ``bench`` on a terminal: a few lines that a person asks for, in units a person reads."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from headrace.loader.budget import human_nbytes

_MIXED = {
    "distinct_basins": "basins",
    "distinct_tiles": "tiles",
    "distinct_time_chunks": "time chunks",
    "distinct_months": "months",
    "entropy_dataset": "entropy of data sets",
    "entropy_basin": "entropy of basins",
    "entropy_time_chunk": "entropy of time chunks",
}


def bench_table(row: Mapping[str, Any]) -> Table:
    """Return the table of one measurement.

    Parameters
    ----------
    row
        What ``--json`` prints.
    """
    settings = row["settings"]
    title = (
        f"{row['steps']:,} batches of {settings['batch_size']:,} windows of {', '.join(settings['datasets'])}, "
        f"{settings['split']} split, on {settings['device']}"
    )
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column("what", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("more", overflow="fold")
    for line in (*_speed(row), *_reading(row)):
        table.add_row(*line)
    return table


def quality_table(quality: Mapping[str, Any]) -> Table:
    """Return how well batches are mixed: means per batch, against a perfect shuffle, and tenth by tenth.

    Parameters
    ----------
    quality
        ``shuffle_quality`` of the row.
    """
    table = Table(
        title=f"In a batch of {quality['batch_size']:,}: means over {quality['batches']:,} batches of epoch "
        f"{quality['epoch']}, {quality['rounds']:,} rounds",
        title_justify="left",
    )
    tenths = quality["by_tenth"]
    for name in ("what", "mean", "perfect", "ratio"):
        table.add_column(name, justify="left" if name == "what" else "right", no_wrap=True)
    table.add_column("mean, tenth by tenth of the epoch", overflow="fold")
    for key, text in _MIXED.items():
        table.add_row(
            text,
            _short(quality[key]),
            _short(quality[f"{key}_perfect"]),
            f"{quality[f'{key}_ratio']:.2f}",
            " ".join(_short(tenth[key]) for tenth in tenths),
        )
    return table


def _speed(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    model = row["settings"]["hidden_size"]
    gpu = row["avg_gpu_util_percent"]
    return [
        ("windows per second", f"{row['samples_per_second']:,.0f}", f"{row['windows']:,} served"),
        ("data wait per batch", _seconds(row["avg_dataloader_wait_seconds"]), "first reads included"),
        (
            "compute per batch",
            _seconds(row["avg_compute_seconds"]),
            "nothing computed; --hidden-size N trains an LSTM" if model is None else f"LSTM of width {model}",
        ),
        ("GPU utilisation", "none" if gpu is None else f"{gpu:.0f} %", "no GPU, or it does not say" * (gpu is None)),
        ("first batch", _seconds(row["first_batch_seconds"]), "from making the loader"),
    ]


def _reading(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    settings = row["settings"]
    where = "split stays in memory" if row["resident"] else "decoded rows on disk"
    return [
        *_asked(row),
        ("read from the store", human_nbytes(row["bytes_read"]), f"{row['chunks_read']:,} chunks"),
        ("read amplification", f"{row['read_amplification']:.2f}", "chunks read by chunks needed; 1 is each once"),
        (
            "spilled",
            human_nbytes(row["spill_bytes"]),
            f"{where}, budget {human_nbytes(settings['memory_budget_bytes'])}",
        ),
        ("peak memory", human_nbytes(row["peak_rss_bytes"]), "of the process, PyTorch included"),
    ]


def _short(value: float) -> str:
    """Return a mean for people, so that those of ten tenths fit on a line."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def _seconds(value: float) -> str:
    """Return seconds for people: 12 µs, 3.4 ms, 1.25 s."""
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"


def _asked(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return a line on object storage, if it was asked at all."""
    if not row["storage_requests"]:
        return []
    more = f"{row['storage_retries']:,} sent again, {row['storage_throttles']:,} answers asked for fewer"
    return [("requests to object storage", f"{row['storage_requests']:,}", more)]
