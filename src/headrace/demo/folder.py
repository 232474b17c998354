"""The demo's folder: whose it is, and what of it a new demo may replace."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from headrace.demo.config_text import CONFIG_TEXT
from headrace.demo.stores import CONFIG_NAME
from headrace.schemas.errors import ConfigError, describe

_MARK = ".headrace-demo"


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """Where the demo's parts lie. Get one from :meth:`claim`.

    Parameters
    ----------
    path
        The folder.
    """

    path: Path

    @classmethod
    def claim(cls, path: Path) -> "DemoFolder":
        """Make the folder, or take one that an earlier demo made; its run is removed, everything else is kept.

        Raises
        ------
        ConfigError
            It holds something that no demo put there, or a configuration that somebody has edited.
        """
        mark = path / _MARK
        if path.exists() and not mark.exists() and (not path.is_dir() or any(path.iterdir())):
            raise _refused(path, "a new folder, an empty one, or one of an earlier demo", "something else")
        folder = cls(path)
        if folder.config.exists() and folder.config.read_text(encoding="utf-8") != CONFIG_TEXT:
            raise _refused(
                folder.config, "the file as the demo writes it", "an edited one, which the demo would replace"
            )
        path.mkdir(parents=True, exist_ok=True)
        mark.write_text("Written by `headrace demo`, which may replace what lies here.\n", encoding="utf-8")
        if folder.run.exists():
            shutil.rmtree(folder.run)
        return folder

    @property
    def config(self) -> Path:
        """The configuration, beside the stores."""
        return self.path / CONFIG_NAME

    @property
    def index(self) -> Path:
        """Folder of the index."""
        return self.path / "index"

    @property
    def run(self) -> Path:
        """Folder of the training run."""
        return self.path / "run"

    @property
    def index_report(self) -> Path:
        """Page about the index."""
        return self.path / "index-report.html"

    @property
    def run_report(self) -> Path:
        """Page about the run."""
        return self.path / "run-report.html"


def _refused(where: Path, expected: str, got: str) -> ConfigError:
    fix = "choose another folder with --out, or move what is there"
    return ConfigError(describe("the demo would overwrite", where=str(where), expected=expected, got=got, fix=fix))
