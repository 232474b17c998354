"""What a run needs besides its configuration: an index of its stores, and a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from rich.console import Console

from headrace.commands.index_match import default_index_folder, refuse_other_sources
from headrace.index_content import wants_build
from headrace.index_place import IndexPath
from headrace.loader import Index, open_index
from headrace.schemas.config import Config
from headrace.schemas.config_io import config_digest
from headrace.schemas.errors import ConfigError, describe
from headrace.trainer.launch import world_size


def ensure_index(config: Config, folder: IndexPath | None, console: Console) -> IndexPath:
    """Return the place of an index of the configuration's stores; build it first where there is none.

    What stands there already is left as it is: opening it says what is wrong with it.

    Parameters
    ----------
    config
        What to index.
    folder
        Path or URL; None takes ``indexes/<digest>``.
    console
        Takes the summary of a build.

    Raises
    ------
    ConfigError, SourceError
        The index cannot be built, or torchrun started several processes that would all build it.
    """
    folder = default_index_folder(config) if folder is None else folder
    if wants_build(folder, config.storage):
        if world_size() > 1:
            raise ConfigError(
                describe(
                    "there is no index yet, and several processes do not build one",
                    where=str(folder),
                    expected="a finished index",
                    got="none",
                    fix=f"build it first: headrace build-index CONFIG --out {folder}; or train once without torchrun",
                )
            )
        build(config, folder, console)
    return folder


def refuse_untrainable(config: Config) -> None:
    """Refuse a configuration without anything to predict, or to predict it from, before an index is built for it.

    Raises
    ------
    ConfigError
        No data set has a target, or none has an input or a static.
    """
    for lacking, named, example in (
        ("target", config.names("target"), "target: {streamflow: q_cms_obs}"),
        ("input", config.names("input") or config.names("static"), "relevant: {precipitation: pcp_mm}"),
    ):
        if not named:
            raise ConfigError(
                describe(
                    f"a model cannot be trained without any {lacking}",
                    where=f"datasets.{next(iter(config.datasets))}.variables",
                    expected=f"a name and its array, such as {example}",
                    got="none in any data set",
                    fix="name it; variables that the configuration begins to name are not filled from a preset",
                )
            )


def build(config: Config, folder: IndexPath, console: Console) -> None:
    """Build an index, or bring one up to date, with progress and a summary."""
    from headrace.indexer import build_index  # Dask takes a second that finished indexes need not wait for
    from headrace.indexer.progress import progress_for
    from headrace.indexer.summary import print_summary

    console.print(f"Building the index {folder}", highlight=False, soft_wrap=True)
    print_summary(build_index(config, folder, progress=progress_for()), console)


@contextmanager
def index_of(config: Config, folder: IndexPath) -> Iterator[Index]:
    """Open an index and check that it was built from what the configuration names."""
    with open_index(folder, config.storage) as index:
        refuse_other_sources(config, index.config, folder)
        yield index


def default_run_folder(config: Config, now: datetime) -> Path:
    """Return ``runs/<YYYYmmdd-HHMMSS>-<config digest>``."""
    return Path("runs") / f"{now:%Y%m%d-%H%M%S}-{config_digest(config)}"
