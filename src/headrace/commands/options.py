"""Flags of ``train`` that each set one field of the configuration, and how they become overrides."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import click
from pydantic import BaseModel

from headrace.schemas.config import MissingConfig, NormalizationConfig, SamplingConfig
from headrace.schemas.hydro_setting import Source

Command = TypeVar("Command", bound=Callable[..., object])


def _choices(section: type[BaseModel], field: str) -> click.Choice[str]:
    return click.Choice(get_args(section.model_fields[field].annotation))


@dataclass(frozen=True, slots=True)
class SettingFlag:
    """One flag: its name, the field it sets, what it takes, and its help."""

    name: str
    field: str
    kind: click.ParamType[Any] | None
    text: str
    metavar: str | None = None

    @property
    def parameter(self) -> str:
        """Name of click's argument."""
        return self.name.partition("/")[0].removeprefix("--").replace("-", "_")


NO_WORKER = "--num-workers 0: one thread of this process reads; no process is started with any number."
_WHOLE = click.IntRange(min=1)
SETTING_FLAGS = (
    SettingFlag("--batch-size", "loader.batch_size", _WHOLE, "Windows per batch.", "N"),
    SettingFlag("--hidden-size", "train.hidden_size", _WHOLE, "Width of the LSTM.", "N"),
    SettingFlag("--train-epochs", "train.train_epochs", _WHOLE, "Epochs to train.", "N"),
    SettingFlag("--max-batches-per-epoch", "sampling.max_batches_per_epoch", _WHOLE,
                "End each training epoch after N batches; the next one goes on with the windows that are left.", "N"),
    SettingFlag("--seed", "loader.seed", click.IntRange(min=0), "Seed of shuffling, first weights and dropout.", "N"),
    SettingFlag("--device", "train.device", None, "auto takes a GPU where there is one.", "auto|cpu|cuda"),
    SettingFlag("--num-workers", "loader.num_workers", None,
                "Reader threads: auto is one per processor, 0 is one. They are threads, never processes.", "N|auto"),
    SettingFlag("--memory-budget", "loader.memory_budget", None, "Memory for decoded rows: 2GiB say.", "SIZE|auto"),
    SettingFlag("--prefetch-factor", "loader.prefetch_factor", _WHOLE,
                "Rounds of batches read ahead of the one being served; default 1. They share the memory: more of them "
                "are smaller, and mix less. Does nothing where all rows fit in memory.", "N"),
    SettingFlag("--cuda-prefetch/--no-cuda-prefetch", "loader.cuda_prefetch", None,
                "Bring rows or batches to the GPU ahead of use, the default, or each batch when it is asked for."),
    SettingFlag("--cuda-prefetch-batches", "loader.cuda_prefetch_batches", _WHOLE,
                "Batches on their way to the GPU, where decoded rows do not fit there.", "N"),
    SettingFlag("--dataloader-timeout", "loader.timeout", click.FloatRange(min=0),
                "Stop with an error when a batch takes longer; 0 waits for ever.", "SECONDS"),
    SettingFlag("--sampling", "sampling.mode", _choices(SamplingConfig, "mode"),
                "Share of each data set in an epoch: every window once, as many windows of each data set, or shares "
                "by the data sets' weights."),
    SettingFlag("--normalization", "normalization.method", _choices(NormalizationConfig, "method"),
                "standard: minus mean, by standard deviation of the training period."),
    SettingFlag("--normalization-scope", "normalization.scope", _choices(NormalizationConfig, "scope"),
                "What one mean and deviation are taken over."),
    SettingFlag("--missing-policy", "missing.missing_policy", _choices(MissingConfig, "missing_policy"),
                "A missing input: becomes the mean, the same with a mask column per input, or drops its windows."),
    SettingFlag("--target-nan-policy", "missing.target_nan_policy", _choices(MissingConfig, "target_nan_policy"),
                "Training windows with missing targets: keep them, drop those that miss any, or those that miss all."),
)  # fmt: skip


def setting_flags(command: Command) -> Command:
    """Give a command every flag of :data:`SETTING_FLAGS`."""
    for flag in reversed(SETTING_FLAGS):
        text = f"{flag.text} [{flag.field}]"
        command = click.option(
            flag.name, flag.parameter, type=flag.kind, metavar=flag.metavar, default=None, help=text
        )(command)  # fmt: skip
    return command


def overrides_of(values: Mapping[str, object]) -> list[str]:
    """Return ``a.b=value`` for every flag that was given.

    Parameters
    ----------
    values
        click's argument → value, None where the flag was not given.
    """
    given = {f.field: values[f.parameter] for f in SETTING_FLAGS if values[f.parameter] is not None}
    if given.get("loader.timeout") == 0:
        given["loader.timeout"] = "null"
    return [f"{field}={value}" for field, value in given.items()]


def source_option(command: Command) -> Command:
    """Give a command ``--source``: where stores lie that the configuration does not name."""
    return click.option(
        "--source", type=click.Choice(get_args(Source)), default=None,
        help="Where stores lie that are not named: storage.local.root or storage.s3 of ~/hydro_setting.yml; default is "
        "its storage.default_source. With cloud, relative names in a configuration lie there too. [storage.source]",
    )(command)  # fmt: skip


def split_names(text: str | None) -> list[str] | None:
    """Return the names in ``a,b`` or ``"a, with a comma",b``; None when nothing was given."""
    if text is None:
        return None
    return [name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row if name.strip()]
