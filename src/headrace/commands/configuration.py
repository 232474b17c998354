"""The configuration of a new run: from a file, from an index, or from nothing but the ids of published data sets."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from headrace.commands.skeleton import write_skeleton
from headrace.index_content import wants_build
from headrace.index_place import IndexPath
from headrace.schemas.config import Config
from headrace.schemas.config_io import apply_override, is_url, load_config, parse_config, storage_of
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.hydro_setting import Source, read_hydro_setting
from headrace.schemas.preset_config import fill_left_out
from headrace.schemas.presets import Preset, known_id, near_ids, preset_ids, preset_of


def read_config(
    file: Path | None,
    index_folder: IndexPath | None,
    overrides: Sequence[str],
    datasets: Sequence[str] | None,
    source: Source | None = None,
) -> Config:
    """Return the configuration of a new run.

    Parameters
    ----------
    file
        Configuration file; None takes that of the index, if there is one, else the presets of ``datasets``.
    index_folder
        The index; it may be made later.
    overrides
        Texts ``a.b=value``.
    datasets
        Data sets to keep; None keeps all.
    source
        Where stores that are not named lie; None leaves it to the configuration and ``~/hydro_setting.yml``.

    Raises
    ------
    ConfigError
        The configuration is not valid, a data set is not in it and has no preset, or its stores lie elsewhere.
    """
    settings = [*overrides, *([] if source is None else [f"storage.source={source}"])]
    storage = storage_of(settings)
    if file is not None:
        config = load_config(file, settings)
    elif datasets is not None and (index_folder is None or wants_build(index_folder, storage)):
        return config_of_ids(datasets, settings)
    else:
        from headrace.loader import open_index  # torch takes a second that build-index need not wait for

        assert index_folder is not None, "the command asks for a file, an index or ids"
        with open_index(index_folder, storage, ask_buckets=False) as index:
            config = parse_config(index.config.as_dict(), overrides=settings, where=str(index_folder))
    config = config if datasets is None else _chosen(config, datasets)
    if source is not None:
        _refuse_elsewhere(config, source)
    return config


def config_of_ids(ids: Sequence[str], overrides: Sequence[str]) -> Config:
    """Return the configuration of published data sets: everything from their presets.

    A basin without a value of a static is kept with the mean of the others, as no file says otherwise.

    Raises
    ------
    ConfigError
        An id is not known; prints a configuration to start from where a store of that name is there.
    """
    data: dict[str, Any] = {"missing": {"static_missing": "impute"}}
    for override in overrides:
        if override.startswith("storage."):  # says where stores lie, which is filled in before the rest is set
            apply_override(data, override)
    for dataset_id in ids:
        if known_id(dataset_id) is None or not _can_train(dataset_id):
            raise _unknown(dataset_id, overrides)
    if not ids:
        raise _unknown("", overrides)
    data["datasets"] = {str(known_id(dataset_id)): None for dataset_id in ids}
    fill_left_out(data)
    return parse_config(data, overrides=overrides, base=Path.cwd(), where=f"--dataset-id {','.join(ids)}")


def _can_train(dataset_id: str) -> bool:
    preset = preset_of(dataset_id)
    return preset is not None and "streamflow" in preset.series


def _unknown(dataset_id: str, overrides: Sequence[str]) -> ConfigError:
    """Return the error for an id that is not enough, after printing a configuration to start from if it has a store."""
    preset = preset_of(dataset_id)
    skeleton = _skeleton(dataset_id, preset, overrides) if dataset_id else None
    if skeleton is not None:
        click.echo(skeleton)
    if preset is None:
        near = near_ids(dataset_id)
        expected = "the id of a published data set: "
        expected += f"did you mean {', '.join(near)}?" if near else ", ".join(preset_ids())
    else:
        expected = "a data set whose preset has streamflow"
    start = "what its store holds is printed above to start from" if skeleton else "see docs/config.md"
    return ConfigError(
        describe(
            "an id is not enough to train this data set",
            where=f"--dataset-id {dataset_id}",
            expected=expected,
            got=(dataset_id or "nothing") if preset is None else ", ".join(preset.series) or "names of stores alone",
            fix=f"correct the id, or write a configuration for --config FILE; {start}",
        )
    )


def _skeleton(dataset_id: str, preset: Preset | None, overrides: Sequence[str]) -> str | None:
    storage, setting = storage_of(overrides), read_hydro_setting()
    source = storage.source if "source" in storage.model_fields_set else setting.storage.default_source
    if not setting.says(source):
        return None
    names = (f"{dataset_id}_timeseries.zarr", f"{dataset_id}_attributes.zarr")
    series, attributes = names if preset is None else (preset.timeseries, preset.attributes)
    folder = setting.store_folder(source)
    return write_skeleton(dataset_id, f"{folder}/{series}", f"{folder}/{attributes}", storage)


def _chosen(config: Config, datasets: Sequence[str]) -> Config:
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


def _refuse_elsewhere(config: Config, source: Source) -> None:
    """Refuse stores that do not lie where the command line says."""
    for name, dataset in config.datasets.items():
        for key in ("timeseries", "attributes"):
            uri = getattr(dataset, key)
            if uri is not None and is_url(uri) != (source == "cloud"):
                raise ConfigError(
                    describe(
                        "a store does not lie where --source says",
                        where=f"datasets.{name}.{key}",
                        expected="an s3:// URL" if source == "cloud" else "a path",
                        got=uri,
                        fix="leave --source out, or leave the store's name out of the configuration: it is then found "
                        "by ~/hydro_setting.yml",
                    )
                )
