"""Configuration files: YAML text → :class:`Config`, with overrides, resolved paths and a digest.

Store paths and basin files are relative to the folder of the configuration file, so that a project folder can move.
"""

import hashlib
import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from headrace.schemas.complaints import explain
from headrace.schemas.config import SPLITS, Config, DatasetConfig, SplitBasins
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.preset_config import fill_left_out
from headrace.schemas.storage_config import StorageConfig
from headrace.schemas.yaml_text import read_yaml, write_yaml


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a configuration file.

    Parameters
    ----------
    path
        YAML file.
    overrides
        Texts ``a.b=value``; the value is read as YAML.

    Returns
    -------
    Config
        With store paths absolute and basin files read.

    Raises
    ------
    ConfigError
        The file is absent or not YAML, a key is unknown, or a value does not fit.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            describe(
                "configuration file cannot be read",
                where=str(path),
                expected="a YAML file in UTF-8",
                got=_reason(error),
                fix="check the path and the file's encoding",
            )
        ) from error
    try:
        data = read_yaml(text)
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise ConfigError(
            describe(
                "configuration file is not valid YAML",
                where=str(path),
                expected="a mapping with the key datasets",
                got=problem,
                fix="mend the line named above",
            )
        ) from error
    return parse_config(data, overrides=overrides, base=path.parent.absolute(), where=str(path))


def parse_config(
    data: object, *, overrides: Sequence[str] = (), base: Path | None = None, where: str = "config"
) -> Config:
    """Fill in what plain values leave out, check them and turn them into a :class:`Config`; see :func:`load_config`."""
    if not isinstance(data, dict):
        raise ConfigError(
            describe(
                "configuration is empty or not a mapping",
                where=where,
                expected="a mapping with the key datasets",
                got=type(data).__name__,
                fix="start from configs/camels_fr_gb.yml",
            )
        )
    data = deepcopy(data)
    for override in overrides:
        apply_override(data, override)
    fill_left_out(data)
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError(explain(error, where, overrides)) from None
    return config if base is None else _resolve(config, base)


def storage_of(overrides: Sequence[str]) -> StorageConfig:
    """Return the section ``storage`` that overrides alone make, for what has to be reached before a configuration is.

    Raises
    ------
    ConfigError
        An override of the section cannot be read or does not fit.
    """
    data: dict[str, Any] = {"storage": {}}
    for override in overrides:
        if override.strip().startswith("storage."):
            apply_override(data, override)
    try:
        return TypeAdapter(dict[str, StorageConfig]).validate_python(data)["storage"]
    except ValidationError as error:
        raise ConfigError(explain(error, "storage", overrides)) from None


def apply_override(data: dict[str, Any], override: str) -> None:
    """Set one value of a plain configuration, in place.

    Parameters
    ----------
    data
        Sections and their values.
    override
        Text ``a.b=value``.

    Raises
    ------
    ConfigError
        The text is no such thing, or goes below a plain value.
    """
    dotted, equals, text = override.partition("=")
    if not equals or not dotted.strip():
        raise ConfigError(
            describe(
                "override cannot be read",
                where=f"--set {override}",
                expected="a.b=value",
                got=override,
                fix="write it as --set window.stride=2",
            )
        )
    *parents, leaf = dotted.strip().split(".")
    target = data
    for parent in parents:
        if target.get(parent) is None:
            target[parent] = {}
        child = target[parent]
        if not isinstance(child, dict):
            raise ConfigError(
                describe(
                    "override goes below a plain value",
                    where=f"--set {override}",
                    expected=f"{parent} to be a section",
                    got=repr(child),
                    fix="check the dotted path",
                )
            )
        target = child
    try:
        target[leaf] = read_yaml(text)
    except yaml.YAMLError as error:
        got = " ".join(str(error).split())
        raise ConfigError(
            describe(
                "override cannot be read",
                where=f"--set {override}",
                expected="a value in YAML",
                got=got,
                fix="put the value in quotes",
            )
        ) from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else f"not UTF-8: {error.reason}"


def is_url(text: str) -> bool:
    """Return whether a store name is a URL rather than a path."""
    return "://" in text


def _resolve(config: Config, base: Path) -> Config:
    """Make store paths absolute and read basin files; one error lists every file that cannot be used."""
    problems: list[ConfigError] = []
    resolved = {name: _resolve_dataset(name, d, base, problems) for name, d in config.datasets.items()}
    if len(problems) > 1:
        listed = "\n".join(f"{number}. {error}" for number, error in enumerate(problems, start=1))
        raise ConfigError(f"{len(problems)} basin files cannot be used\n{listed}")
    if problems:
        raise problems[0]
    return config.model_copy(update={"datasets": resolved})


def _resolve_dataset(name: str, dataset: DatasetConfig, base: Path, problems: list[ConfigError]) -> DatasetConfig:
    def absolute(uri: str | None) -> str | None:
        return uri if uri is None or is_url(uri) else str(base / Path(uri).expanduser())

    def read(basins: str | tuple[str, ...], key: str) -> str | tuple[str, ...]:
        try:
            return _read_basins(basins, base, key)
        except ConfigError as error:
            problems.append(error)
            return basins

    basins, key = dataset.basins, f"datasets.{name}.basins"
    if isinstance(basins, SplitBasins):
        basins = SplitBasins.model_validate({s: read(getattr(basins, s), f"{key}.{s}") for s in SPLITS})
    else:
        basins = read(basins, key)
    return dataset.model_copy(
        update={
            "timeseries": absolute(dataset.timeseries),
            "attributes": absolute(dataset.attributes),
            "basins": basins,
        }
    )


def _read_basins(basins: str | tuple[str, ...], base: Path, where: str) -> str | tuple[str, ...]:
    """Read a basin file: one id a line; blank lines, CRLF, a BOM and spaces around ids are fine."""
    if not isinstance(basins, str) or basins == "all":
        return basins
    path = base / Path(basins).expanduser()
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            describe(
                "basin file cannot be read",
                where=f"{where} = {basins}",
                expected="all, a list of ids, or a UTF-8 text file with one id a line",
                got=_reason(error),
                fix="check the path; it is relative to the configuration file",
            )
        ) from error
    ids = tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
    if not ids:
        raise ConfigError(
            describe(
                "basin file holds no id",
                where=f"{where} = {basins}",
                expected="one id a line",
                got="no id",
                fix="fill the file",
            )
        )
    return ids


def config_digest(config: Config) -> str:
    """Return 16 hex digits that change with any setting and with the order of variables; the same on every machine.

    Settings that have their default are left out, so that a later version with one more setting finds the same digest;
    and so is ``storage``, which says how bytes are reached and not what they are.
    """
    text = json.dumps(config.model_dump(mode="json", exclude_defaults=True, exclude={"storage"}), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def dump_config(config: Config) -> str:
    """Return the resolved configuration as YAML that :func:`load_config` reads back."""
    return write_yaml(config.as_dict())
