"""One report, from a place to a file. ``report`` and ``demo`` both call it."""

from dataclasses import dataclass
from pathlib import Path

from headrace.commands.index_record import IndexRecord
from headrace.index_place import IndexPath
from headrace.loader import open_index
from headrace.report.index_page import index_page
from headrace.report.numbers import size
from headrace.report.page import GENERATOR
from headrace.report.run_page import run_page
from headrace.report.run_results import read_settings
from headrace.schemas.errors import ConfigError, HeadraceError, SourceError, describe
from headrace.schemas.manifest import MANIFEST_NAME, PARTS_FOLDER
from headrace.schemas.storage_config import StorageConfig
from headrace.trainer.run_folder import SEEDS_NAME, RunFolder, replacing

_EITHER = "a folder that build-index wrote (its --out) or train wrote (its --run-dir)"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """A page on disk."""

    what: str
    path: Path
    size: str


def report_of(
    place: IndexPath, out: Path, *, index_folder: IndexPath | None = None, storage: StorageConfig | None = None
) -> WrittenReport:
    """Write the page about an index or a run.

    Parameters
    ----------
    place
        An index, or the folder of a run.
    out
        The HTML file; replaced only if it is a report.
    index_folder
        Of a run: its index, where it has moved.
    storage
        How an index at a URL is reached.

    Raises
    ------
    ConfigError
        The place is neither, or ``out`` is something else's file.
    SourceError, IndexFormatError
        The index is not there, or damaged.
    """
    _refuse_other_file(out)
    if isinstance(place, Path) and any((place / name).exists() for name in ("checkpoints", SEEDS_NAME)):
        what, text = "run", _of_run(RunFolder.open(place), out, index_folder)
    else:
        _refuse_other_folder(place)
        if index_folder is not None:
            raise ConfigError(
                describe(
                    "--index is for the report of a run",
                    where=str(place),
                    expected="the folder of a run",
                    got="an index",
                    fix="leave --index out",
                )
            )
        with open_index(place, storage, ask_buckets=False) as index:
            what, text = "index", index_page(index)
    with replacing(out) as partial:
        partial.write_text(text, encoding="utf-8")
    return WrittenReport(what=what, path=out, size=size(len(text.encode())))


def _of_run(run: RunFolder, out: Path, index_folder: IndexPath | None) -> str:
    """Return the page about a run; without its index it has no map, and says why."""
    try:
        record = IndexRecord.read(run)
        place = record.path if index_folder is None else index_folder
        settings = read_settings(run)
        with open_index(place, settings.storage if settings else None, ask_buckets=False) as index:
            record.check(index)
            return run_page(run, out, index, f"Index {index.path}.")
    except HeadraceError as error:
        if index_folder is not None:
            raise
        first = str(error).splitlines()[0].rstrip(".")
        return run_page(run, out, None, f"{first[:1].upper()}{first[1:]}; --index says where it lies now.")


def _refuse_other_folder(place: IndexPath) -> None:
    """Refuse a path where nothing is, and a folder that is neither a run nor an index, finished or not."""
    if not isinstance(place, Path):
        return
    if not place.exists():
        raise SourceError(
            describe(
                "there is nothing to report on",
                where=str(place),
                expected=_EITHER,
                got="nothing there",
                fix="correct the path; headrace build-index makes an index, headrace train a run",
            )
        )
    if place.is_dir() and not any((place / name).exists() for name in (MANIFEST_NAME, PARTS_FOLDER)):
        names = sorted(p.name for p in place.iterdir())
        raise ConfigError(
            describe(
                "neither an index nor a run",
                where=str(place),
                expected=_EITHER,
                got=f"a folder with {', '.join(names[:5])}{', …' if len(names) > 5 else ''}" if names else "no file",
                fix="give one of these folders",
            )
        )


def _refuse_other_file(out: Path) -> None:
    """Refuse to replace a file that no report is."""
    if not out.exists():
        return
    with out.open("rb") as file:
        head = file.read(4096)
    if GENERATOR.encode() not in head:
        raise ConfigError(
            describe(
                "the report would replace another file",
                where=f"--out {out}",
                expected="a new file, or an earlier report",
                got="something else",
                fix="choose another name",
            )
        )
