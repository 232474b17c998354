"""The repository as its tests see it: where it is, and which files a commit of it would hold."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "src" / "headrace"


@cache
def listed_files() -> tuple[Path, ...]:
    """Return the files of the checkout, relative to its top: tracked, or new and not ignored; no link is followed."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("needs a git checkout: the list of files comes from git")
    # safe.directory: a checkout that belongs to another user (a mounted folder, say) can be listed as well.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True, text=True).stdout
    names = (Path(name) for name in listing.split("\0") if name)
    # A file deleted but not yet committed is still in git's list.
    return tuple(sorted(name for name in names if (REPOSITORY / name).is_symlink() or (REPOSITORY / name).is_file()))


def package_links() -> tuple[Path, ...]:
    """Return the links under src/headrace, relative to the top of the checkout."""
    return tuple(sorted(path.relative_to(REPOSITORY) for path in PACKAGE.iterdir() if path.is_symlink()))
