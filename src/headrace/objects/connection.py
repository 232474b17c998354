"""``storage`` → where requests for a bucket go, and how long they may take; the same for both client libraries."""

import os
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.hydro_setting import read_hydro_setting
from headrace.schemas.logins import endpoint_problem
from headrace.schemas.storage_config import StorageConfig

CONNECT_SECONDS: Final = 5.0
"""For a connection; fewer where ``timeout_seconds`` is less."""
_VIRTUAL_HOSTS = ("amazonaws.com", "amazonaws.com.cn", "aliyuncs.com")
"""Services that want the bucket in the host name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where requests for a bucket go.

    Parameters
    ----------
    endpoint
        URL that keys are appended to; with virtual addressing the bucket is part of its host name.
    region
        Name that signatures hold.
    virtual
        Whether the bucket is part of the host name.
    """

    endpoint: str
    region: str
    virtual: bool


def endpoint_of(storage: StorageConfig) -> str | None:
    """Return the configured address of the object store: configuration, environment, ``~/hydro_setting.yml``.

    Raises
    ------
    ConfigError
        An environment variable holds none.
    """
    given = [n for n in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") if not storage.endpoint_url and os.environ.get(n)]
    if not given:
        return storage.endpoint_url or read_hydro_setting().storage.s3.endpoint_url or None
    url = os.environ[given[0]].strip()
    problem = endpoint_problem(url)
    if problem:
        raise ConfigError(
            describe(
                "address of an object store cannot be used", where=f"environment variable {given[0]}",
                expected="http://host:port or https://host", got=problem, fix="correct or unset the variable",
            )
        )  # fmt: skip
    return url.rstrip("/")


def resolve(bucket: str, storage: StorageConfig, region: str | None = None) -> Address:
    """Resolve where requests for a bucket go; looks up no name and connects to nothing.

    Parameters
    ----------
    bucket
        Its name.
    storage
        The configuration.
    region
        Of the credentials; the configuration and the environment come first.

    Raises
    ------
    ConfigError
        The bucket is to be part of a host name, and the address is a number.
    """
    given = storage.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or region
    region = given or "us-east-1"
    endpoint = endpoint_of(storage) or f"https://s3.{region}.amazonaws.com"
    host = urlsplit(endpoint).hostname or ""
    known = any(host == name or host.endswith(f".{name}") for name in _VIRTUAL_HOSTS)
    # A certificate covers one level of names: a bucket with dots is no part of a host name under https.
    auto = known and "." not in bucket
    virtual = storage.addressing_style == "virtual" or (storage.addressing_style == "auto" and auto)
    if virtual and not host.startswith(f"{bucket}."):
        _require_name(host, bucket)
        scheme, rest = endpoint.split("://", 1)
        endpoint = f"{scheme}://{bucket}.{rest}"
    return Address(endpoint=endpoint, region=region, virtual=virtual)


def _require_name(host: str, bucket: str) -> None:
    try:
        ip_address(host)
    except ValueError:
        return
    raise ConfigError(
        describe(
            "bucket cannot be part of a numeric address", where=f"s3://{bucket} at {host}",
            expected="a host name in endpoint_url where storage.addressing_style is virtual", got=host,
            fix="set storage.addressing_style: path, or give the server by its name",
        )
    )  # fmt: skip


def silence_seconds(storage: StorageConfig) -> float:
    """Return how long a server may say nothing: an answer may take as long as it keeps coming."""
    return max(storage.timeout_seconds / 3, 0.5)
