"""The page about a run: how it was trained, how fast, and how good it is."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from headrace import __version__
from headrace.loader import Index
from headrace.report.evaluation_section import SplitSection, split_section
from headrace.report.numbers import count, plural, seconds, short_count, value
from headrace.report.overview import Card
from headrace.report.page import place_name, render
from headrace.report.places import Place, basin_places
from headrace.report.run_results import (
    Epochs,
    Evaluated,
    number,
    read_epochs,
    read_evaluations,
    read_settings,
    settings_by_section,
)
from headrace.report.training_figures import best_epoch, learning_plots, speed_plots, total_seconds, wait_words
from headrace.schemas.config import Config
from headrace.trainer.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class FileLink:
    """A file of the run: where it lies from the page, and what it is."""

    href: str
    name: str
    words: str


def run_page(run: RunFolder, out: Path, index: Index | None, index_words: str) -> str:
    """Return the page about a run as HTML.

    Parameters
    ----------
    run
        Its folder.
    out
        Where the page will lie: links lead from there to the run's files.
    index
        The run's index, for the places of basins; None where it cannot be opened.
    index_words
        Where the index is, or why it cannot be opened.
    """
    epochs, config = read_epochs(run), read_settings(run)
    evaluated = list(read_evaluations(run))
    places, places_note = _places(index, index_words) if evaluated else ({}, "")
    sections: list[SplitSection] = [split_section(found, places) for found in evaluated]
    return render(
        "run.html",
        title=place_name(run.path),
        kind="run",
        path=str(run.path),
        version=__version__,
        index_words=index_words,
        cards=_cards(epochs, evaluated, config),
        learning=learning_plots(epochs, f"{config.train.loss} loss" if config else "loss") if epochs.number else [],
        speed=speed_plots(epochs) if epochs.number else [],
        wait=wait_words(epochs),
        splits=sections,
        places_note=places_note,
        settings=settings_by_section(config) if config else {},
        datasets=list(config.datasets) if config else [],
        files=list(_links(run, out, evaluated)),
    )


def _places(index: Index | None, index_words: str) -> tuple[dict[tuple[str, str], Place], str]:
    if index is None:
        return {}, f"No map: the run's index gives the places of basins, and it cannot be opened. {index_words}"
    return basin_places(index)


def _cards(epochs: Epochs, evaluated: list[Evaluated], config: Config | None) -> list[Card]:
    planned = f"of {count(config.train.train_epochs)} planned" if config else ""
    cards = [Card(count(epochs.number), "epoch" if epochs.number == 1 else "epochs", planned)]
    if (best := best_epoch(epochs)) is not None:
        cards.append(Card(count(best[0]), "best epoch", f"by {best[1]}"))
    for found in evaluated:
        overall = [row for row in found.medians if row["scope"] == "all"]
        for row in overall:
            what = f"median NSE, {found.split}" + (f", {row['target']}" if len(overall) > 1 else "")
            basins = sum(bool(r["nse"]) for r in found.basins if r["target"] == row["target"])
            cards.append(Card(value(number(row["nse"]), 3), what, f"over {plural(basins, 'basin')}"))
    rate = epochs.get("samples_per_second")
    if rate is not None:
        cards.append(Card(short_count(round(float(rate.max()))), "windows per second", "best epoch of training"))
    duration = total_seconds(epochs)
    return [*cards, Card(seconds(duration), "training and validation")] if duration > 0 else cards


def _links(run: RunFolder, out: Path, evaluated: list[Evaluated]) -> Iterable[FileLink]:
    wanted = [
        (run.config, "settings of the run"),
        (run.metrics, "a row per epoch"),
        (run.best, "weights of the best epoch"),
        (run.plots / "loss.png", "loss curve as a picture"),
    ]
    for found in evaluated:
        wanted += [
            (found.folder / "metrics.csv", f"scores of every basin, {found.split}"),
            (found.folder / "predictions.zarr", f"simulated and observed series, {found.split}"),
        ]
    for path, words in wanted:
        if path.exists():
            href = quote(Path(os.path.relpath(path.resolve(), out.resolve().parent)).as_posix())
            yield FileLink(f"./{href}", str(path.relative_to(run.path)), words)
