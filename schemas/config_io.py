"""Configuration files: YAML text → :class:`Config`, with overrides, resolved paths and a digest.

Store paths and basin files are relative to the folder of the configuration file, so that a project folder can move.
"""

import difflib
import hashlib
import json
from collections.abc import Iterable, Sequence
from copy import deepcopy
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headrace.schemas.config import Config, DatasetConfig, SplitBasins
from headrace.schemas.errors import ConfigError, describe
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
    """Check plain values and turn them into a :class:`Config`; see :func:`load_config`."""
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
        _apply_override(data, override)
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_explain(error, where)) from None
    return config if base is None else _resolve(config, base)


def _apply_override(data: dict[str, Any], override: str) -> None:
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


def _explain(error: ValidationError, where: str) -> str:
    """Put each complaint on a line of its own: dotted path, what is wrong, nearest valid key."""
    lines: dict[str, list[str]] = {}
    for item in _without_other_branches(error.errors(include_url=False)):
        *parents, last = item["loc"] or ("",)
        if item["type"] == "extra_forbidden":
            path, model = _walk(parents)
            known = sorted(model.model_fields)
            near = difflib.get_close_matches(str(last), known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(known)}"
            lines[f"unknown key {'.'.join([*path, str(last)])}: {hint}"] = []
            continue
        dotted = ".".join(_walk(item["loc"])[0])
        if item["type"] == "missing":
            lines[f"{dotted} is missing"] = []
        else:
            problem = item["msg"].removeprefix("Value error, ")
            problems = lines.setdefault(f"{dotted} = {_short(item.get('input'))}" if dotted else "whole", [])
            problems += [problem] if problem not in problems else []
    text = [f"  - {head}" + (f": {'; or: '.join(problems)}" if problems else "") for head, problems in lines.items()]
    count = f"{len(text)} problems" if len(text) > 1 else "1 problem"
    return f"configuration is not valid ({count})\n  where:    {where}\n" + "\n".join(text)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _walk(loc: Iterable[int | str]) -> tuple[list[str], type[BaseModel]]:
    """Follow an error's location through the models; drop pydantic's names for the branches of a union.

    Returns
    -------
    tuple
        The parts of the dotted path, and the model they lead to.
    """
    model: type[BaseModel] = Config
    in_map = False
    path: list[str] = []
    for part in loc:
        field = model.model_fields.get(str(part))
        if in_map:
            in_map = False
        elif field is not None:
            found = _models_in(field.annotation)
            model = found[0] if found else model
            in_map = "dict[" in str(field.annotation)
        elif not isinstance(part, int):
            continue
        path.append(str(part))
    return path, model


def _without_other_branches(items: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Of the complaints of one union keep those from inside a branch, if any: that branch was meant."""
    unions = []
    for item in items:
        path = _walk(item["loc"])[0]
        same = takewhile(lambda pair: pair[0] == str(pair[1]), zip(path, item["loc"], strict=False))
        unions.append(item["loc"][: len(list(same))])
    inside = [len(item["loc"]) > len(union) + 1 for item, union in zip(items, unions, strict=True)]
    meant = {union for union, deep in zip(unions, inside, strict=True) if deep}
    return [item for item, union, deep in zip(items, unions, inside, strict=True) if deep or union not in meant]


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for arg in getattr(annotation, "__args__", ()) for m in _models_in(arg)]


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else f"not UTF-8: {error.reason}"


def is_url(text: str) -> bool:
    """Return whether a store name is a URL rather than a path."""
    return "://" in text


def _resolve(config: Config, base: Path) -> Config:
    resolved = {name: _resolve_dataset(name, d, base) for name, d in config.datasets.items()}
    return config.model_copy(update={"datasets": resolved})


def _resolve_dataset(name: str, dataset: DatasetConfig, base: Path) -> DatasetConfig:
    def absolute(uri: str | None) -> str | None:
        return uri if uri is None or is_url(uri) else str(base / Path(uri).expanduser())

    basins = dataset.basins
    if isinstance(basins, SplitBasins):
        read = {
            s: _read_basins(getattr(basins, s), base, f"datasets.{name}.basins.{s}") for s in ("train", "valid", "test")
        }
        basins = SplitBasins.model_validate(read)
    else:
        basins = _read_basins(basins, base, f"datasets.{name}.basins")
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
    """Return 16 hex digits that change with any setting and with the order of variables; the same on every machine."""
    text = json.dumps(config.as_dict(), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def dump_config(config: Config) -> str:
    """Return the resolved configuration as YAML that :func:`load_config` reads back."""
    return write_yaml(config.as_dict())
