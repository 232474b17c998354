"""From what a user typed to what a run needs: a configuration, and an index of its stores."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from rich.console import Console

from headrace.commands.index_match import default_index_folder, refuse_other_sources
from headrace.loader import Index, open_index
from headrace.schemas.config import Config
from headrace.schemas.config_io import config_digest, load_config, parse_config
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.manifest import MANIFEST_NAME, PARTS_FOLDER


def read_config(
    file: Path | None, index_folder: Path | None, overrides: Sequence[str], datasets: Sequence[str] | None
) -> Config:
    """Return the configuration of a new run.

    Parameters
    ----------
    file
        Configuration file; None takes the configuration in the index.
    index_folder
        Needed where ``file`` is None.
    overrides
        Texts ``a.b=value``.
    datasets
        Data sets to keep; None keeps all.

    Raises
    ------
    ConfigError
        The configuration is not valid, or a data set is not in it.
    """
    if file is not None:
        config = load_config(file, overrides)
    else:
        assert index_folder is not None, "the command asks for one of both"
        with open_index(index_folder) as index:
            config = parse_config(
                index.config.as_dict(), overrides=overrides, where=f"{index_folder} with its overrides"
            )
    if datasets is None:
        return config
    unknown = [name for name in datasets if name not in config.datasets]
    if unknown or not datasets:
        raise ConfigError(
            describe(
                "data set is not configured",
                where="--datasets",
                expected=f"some of {', '.join(config.datasets)}",
                got=", ".join(unknown) or "none",
                fix="correct the names",
            )
        )
    return config.model_copy(update={"datasets": {k: v for k, v in config.datasets.items() if k in datasets}})


def ensure_index(config: Config, folder: Path | None, console: Console) -> Path:
    """Return the folder of an index of the configuration's stores; build it first where there is none.

    What stands there already is left as it is: opening it says what is wrong with it.

    Parameters
    ----------
    config
        What to index.
    folder
        Where; None takes ``indexes/<digest>``.
    console
        Takes the summary of a build.

    Raises
    ------
    ConfigError, SourceError
        The index cannot be built.
    """
    folder = default_index_folder(config) if folder is None else folder
    unfinished = folder.is_dir() and (not any(folder.iterdir()) or (folder / PARTS_FOLDER).is_dir())
    if (unfinished or not folder.exists()) and not (folder / MANIFEST_NAME).exists():
        build(config, folder, console)
    return folder


def build(config: Config, folder: Path, console: Console) -> None:
    """Build an index, or bring one up to date, with progress and a summary."""
    from headrace.indexer import build_index  # Dask takes a second that finished indexes need not wait for
    from headrace.indexer.progress import progress_for
    from headrace.indexer.summary import print_summary

    console.print(f"Building the index {folder}", highlight=False, soft_wrap=True)
    print_summary(build_index(config, folder, progress=progress_for()), console)


@contextmanager
def index_of(config: Config, folder: Path) -> Iterator[Index]:
    """Open an index and check that it was built from what the configuration names."""
    with open_index(folder) as index:
        refuse_other_sources(config, index.config, folder)
        yield index


def default_run_folder(config: Config, now: datetime) -> Path:
    """Return ``runs/<YYYYmmdd-HHMMSS>-<config digest>``."""
    return Path("runs") / f"{now:%Y%m%d-%H%M%S}-{config_digest(config)}"
