"""Object stores are for a later version; every command that could be asked for one refuses with the same words."""

from headrace.schemas.config import Config
from headrace.schemas.errors import ConfigError, describe


def refuse_cloud(config: Config, *, asked: bool) -> None:
    """Refuse to look for stores anywhere but on a disk.

    Parameters
    ----------
    config
        The configuration.
    asked
        Whether the command line says ``--source cloud``.

    Raises
    ------
    ConfigError
        The command line or the configuration asks for an object store.
    """
    if asked or config.storage.source == "cloud":
        raise ConfigError(
            describe(
                "object stores are not supported by this version",
                where="--source cloud" if asked else "storage.source",
                expected="local",
                got="cloud",
                fix="copy or mount the stores and give their paths",
            )
        )
