"""How a command takes an index: a folder of this machine or an ``s3://`` URL, and how that is reached."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from headrace.index_place import IndexPath, index_path
from headrace.schemas.storage_config import StorageConfig

Command = TypeVar("Command", bound=Callable[..., object])


class IndexArgument(click.ParamType[IndexPath]):
    """A folder becomes a Path; a URL stays text, whose two slashes a Path would join."""

    name = "index"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> IndexPath:
        """Return the place; a URL of something else than an S3 bucket is a configuration error."""
        where = param.get_error_hint(ctx) if param is not None and ctx is not None else ""
        return index_path(str(value), where=where.strip("'"))


INDEX = IndexArgument()


def storage_option(command: Command) -> Command:
    """Give a command that reads no configuration ``--set storage.KEY=VALUE``, as argument ``storage_settings``."""
    text = "How an index at s3:// is reached: --set storage.endpoint_url=http://host:9000."
    return click.option("--set", "storage_settings", multiple=True, metavar="storage.KEY=VALUE", help=text)(command)


def storage_asked(settings: Sequence[str]) -> StorageConfig:
    """Return the section ``storage`` that ``--set`` makes.

    Raises
    ------
    ConfigError
        A setting is of another section, or does not fit.
    """
    from headrace.schemas.config_io import storage_of
    from headrace.schemas.errors import ConfigError, describe

    others = [text for text in settings if not text.strip().startswith("storage.")]
    if others:
        raise ConfigError(
            describe(
                "setting has no effect here",
                where=f"--set {others[0]}",
                expected="storage.KEY=VALUE: how the index is reached",
                got=others[0],
                fix="leave it out; what an index holds was decided when it was built",
            )
        )
    return storage_of(settings)
