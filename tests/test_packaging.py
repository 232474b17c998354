"""Folders, package list, wheel and sdist agree; importing one part of the package loads only its libraries."""

import os
import shutil
import subprocess
import sys
import textwrap
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tree import PACKAGE, REPOSITORY, listed_files, package_links

LINKED_FOLDERS = ["configs", "indexer", "loader", "schemas", "trainer"]
HEAVY = {"dask", "distributed", "duckdb", "torch", "zarr"}

IMPORT_EVERYTHING = """
import importlib, pathlib, pkgutil, sys
import headrace
found = pathlib.Path(headrace.__file__).resolve()
assert found.is_relative_to(pathlib.Path(sys.argv[1]).resolve()), f"imported {found}"
for module in pkgutil.walk_packages(headrace.__path__, "headrace."):
    if not module.name.endswith(".__main__"):
        importlib.import_module(module.name)
"""


def run_python(code: str, *arguments: str, cwd: Path, path: Path | None = None) -> str:
    """Run `code` in a new interpreter that sees `path` first, and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_pip(*arguments: str, cwd: Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def setuptools_table() -> dict:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["setuptools"]


def package_files() -> list[Path]:
    """Files a wheel must hold, relative to src: those listed under src/headrace and in the folders it links to."""
    link_of = {(REPOSITORY / link).resolve().relative_to(REPOSITORY): link for link in package_links()}
    files = []
    for name in listed_files():
        if (REPOSITORY / name).is_symlink():
            continue
        for folder, link in link_of.items():
            if name.is_relative_to(folder):
                files.append((link / name.relative_to(folder)).relative_to("src"))
        if name.is_relative_to("src/headrace"):
            files.append(name.relative_to("src"))
    return sorted(files)


def packages_on_disk() -> list[str]:
    return sorted(".".join(name.parent.parts) for name in package_files() if name.name == "__init__.py")


@pytest.fixture(scope="module")
def source_copy(tmp_path_factory) -> Path:
    """The checkout as a fresh clone would have it: links as links, no build outputs."""
    top = tmp_path_factory.mktemp("clone") / "headrace"
    for name in listed_files():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, top / name, follow_symlinks=False)
    return top


@pytest.fixture(scope="module")
def wheel(source_copy, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run_pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(source_copy), cwd=out)
    (built,) = out.glob("*.whl")
    return built


def wheel_package_files(path: Path) -> list[Path]:
    with zipfile.ZipFile(path) as archive:
        return sorted(Path(name) for name in archive.namelist() if ".dist-info/" not in name)


@pytest.mark.parametrize("folder", LINKED_FOLDERS)
def test_top_level_folder_is_linked_into_the_package_by_a_relative_link(folder):
    link = PACKAGE / folder
    assert link.readlink() == Path("..", "..", folder)
    assert link.resolve() == REPOSITORY / folder
    assert not (REPOSITORY / folder).is_symlink()


def test_package_list_is_what_is_on_disk():
    assert setuptools_table()["packages"] == packages_on_disk()


def test_package_data_covers_every_file_that_is_not_a_module():
    packages = {Path(*name.split(".")) for name in setuptools_table()["packages"]}
    data = setuptools_table()["package-data"]
    uncovered = []
    for name in package_files():
        if name.suffix == ".py":
            continue
        package = next(parent for parent in name.parents if parent in packages)
        patterns = [*data.get(".".join(package.parts), []), *data.get("*", [])]
        if not any(str(name.relative_to(package)) in matches(package, pattern) for pattern in patterns):
            uncovered.append(str(name))
    assert uncovered == []


def matches(package: Path, pattern: str) -> set[str]:
    folder = REPOSITORY / "src" / package
    return {str(path.relative_to(folder)) for path in folder.glob(pattern)}


def test_wheel_holds_exactly_the_package_files(wheel):
    assert wheel_package_files(wheel) == package_files()


def test_wheel_installed_alone_imports_every_module(wheel, tmp_path):
    target = tmp_path / "target"
    run_pip("install", "--no-deps", "--no-index", "--target", str(target), str(wheel), cwd=tmp_path)
    run_python(IMPORT_EVERYTHING, str(target), cwd=tmp_path, path=target)


def test_sdist_builds_the_same_wheel(source_copy, wheel, tmp_path):
    build_sdist = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run_python(build_sdist, str(tmp_path), cwd=source_copy)
    (sdist,) = tmp_path.glob("*.tar.gz")
    out = tmp_path / "out"
    run_pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(sdist), cwd=tmp_path)
    (built,) = out.glob("*.whl")
    assert wheel_package_files(built) == wheel_package_files(wheel)


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("headrace", HEAVY),
        ("headrace.schemas", {"dask", "distributed", "duckdb", "torch"}),
        ("headrace.indexer", {"duckdb", "torch", "headrace.loader", "headrace.trainer"}),
        ("headrace.loader", {"dask", "distributed", "headrace.indexer", "headrace.trainer"}),
        ("headrace.report", {"dask", "distributed", "torch", "headrace.indexer", "headrace.commands"}),
    ],
)
def test_importing_a_part_loads_none_of_the_others_libraries(module, unwanted, tmp_path):
    # Every module below it as well: a package's __init__ may be empty.
    code = """
        import importlib, pkgutil, sys
        top = importlib.import_module(sys.argv[1])
        if sys.argv[1] != "headrace":
            for module in pkgutil.walk_packages(top.__path__, sys.argv[1] + "."):
                importlib.import_module(module.name)
        print(*sys.modules)
    """
    loaded = set(run_python(code, module, cwd=tmp_path).split())
    assert module in loaded
    assert loaded & unwanted == set()


def test_constraints_pin_every_library_within_its_range():
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    pins = {canonicalize_name(name): version for name, _, version in (x.partition("==") for x in lines if x[0] != "#")}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for line in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        assert name in pins, f"constraints.txt has no version of {name}"
        assert requirement.specifier.contains(pins[name]), f"constraints.txt has {name} {pins[name]}, outside {line}"
    # A local label (+cpu, say) names one build, which other machines may not find.
    assert [name for name, version in pins.items() if Version(version).public != version] == []
