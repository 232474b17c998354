"""The demo's story: two stores, one index, one model of both, and how much better it is than the season alone.

It makes the same calls as the commands ``build-index``, ``train``, ``evaluate`` and ``report``.
"""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from headrace.commands.report_pages import report_of
from headrace.commands.results import number, score_table
from headrace.commands.run_evaluation import EvaluatedRun, run_evaluation
from headrace.commands.run_setup import build
from headrace.commands.run_training import run_training
from headrace.demo.climatology import climatology_scores
from headrace.demo.folder import DemoFolder
from headrace.demo.stores import write_demo_stores
from headrace.loader import open_index
from headrace.schemas.config_io import load_config
from headrace.schemas.errors import HeadraceError, describe

LEAST_NSE = 0.5
LEAST_GAIN = 0.3
"""By which the model's median NSE must exceed the climatology's."""


class DemoError(HeadraceError):
    """The demo ran, and its model has not learnt what it should have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoScore:
    """Median NSE over the basins of a data set, on the test period."""

    dataset_id: str
    nse: float
    climatology: float


def run_demo(out: Path, seed: int, console: Console) -> list[DemoScore]:
    """Run the whole demo.

    Parameters
    ----------
    out
        Folder to work in: new, empty, or of an earlier demo.
    seed
        Of the synthetic data; shuffling and first weights have their own in the configuration.
    console
        Takes what a reader should see; progress goes to standard error.

    Raises
    ------
    ConfigError
        ``out`` is somebody else's folder.
    DemoError
        The model is not good enough on the test period.
    """
    folder = DemoFolder.claim(out)
    _say(console, f"1/6  Two synthetic data sets, 22 basins, written to {out}")
    config = load_config(write_demo_stores(folder.path, seed))
    _say(console, "2/6  One index of both, by reading every chunk once")
    build(config, folder.index, console)
    _say(console, "3/6  One LSTM, trained on shuffled windows of both")
    trained = run_training(config, folder.index, folder.run, console)
    _say(console, "4/6  Its scores on the test periods, years it has never seen")
    tested = run_evaluation(trained.folder, "test")
    _say(console, "5/6  The same for the season alone: the mean of each day of the year in the training period")
    with open_index(folder.index) as index:
        season = climatology_scores(index, tested.evaluation.predictions)
    title = "Test periods: medians over basins"
    _say(console, "6/6  A page about the index and one about the run, for a browser")
    report_of(folder.index, folder.index_report)
    report_of(folder.run, folder.run_report)
    console.print(score_table(tested.evaluation.rows, tested.units, title, season))
    _farewell(folder, tested, console)
    scores = [
        DemoScore(dataset_id=row.dataset_id, nse=row.nse, climatology=season[row.dataset_id, row.target])
        for row in tested.evaluation.rows
        if row.scope == "dataset"
    ]
    check_scores(scores)
    return scores


def check_scores(scores: list[DemoScore]) -> None:
    """Refuse a model that has learnt too little.

    Raises
    ------
    DemoError
        In some data set the NSE is below :data:`LEAST_NSE`, or less than :data:`LEAST_GAIN` above the climatology's.
    """
    poor = [s for s in scores if not (s.nse >= LEAST_NSE and s.nse - s.climatology >= LEAST_GAIN)]
    if poor or not scores:
        raise DemoError(
            describe(
                "the demo's model has not learnt enough",
                where=", ".join(s.dataset_id for s in poor) or "no data set was scored",
                expected=f"median test NSE of at least {LEAST_NSE}, and {LEAST_GAIN} above the climatology's",
                got=", ".join(f"{s.dataset_id} {number(s.nse)} against {number(s.climatology)}" for s in poor)
                or "nothing",
                fix="with the default seed this is a fault of Headrace or of its installation: please report it",
            )
        )


def _say(console: Console, text: str) -> None:
    console.print(f"\n{text}", style="bold", highlight=False, markup=False, soft_wrap=True)


def _farewell(folder: DemoFolder, tested: EvaluatedRun, console: Console) -> None:
    lines = [
        "",
        f"reports        {folder.run_report}, {folder.index_report}",
        f"pictures       {tested.folder / 'plots'}, {folder.run / 'plots'}",
        f"scores         {tested.evaluation.metrics}",
        f"predictions    {tested.evaluation.predictions}",
        f"configuration  {folder.config}",
        "",
        "Try next",
        f"  headrace inspect {folder.index} gaps",
        f'  headrace sql {folder.index} "select dataset_id, split, sum(num_windows) from windows group by all"',
        f"  headrace train --config mine.yml    # your data: put your stores into a copy of {folder.config}",
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
