"""``storage`` → one connection to a bucket with the client library, whose own retries are off."""

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from headrace.objects.credentials import Credentials, find_credentials
from headrace.objects.limits import concurrency
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.hydro_setting import read_hydro_setting
from headrace.schemas.logins import endpoint_problem
from headrace.schemas.storage_config import StorageConfig

if TYPE_CHECKING:
    from obstore.store import S3Store

_CONNECT_SECONDS = 5.0
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
        scheme, rest = endpoint.split("://", 1)
        endpoint = f"{scheme}://{bucket}.{rest}"
    return Address(endpoint=endpoint, region=region, virtual=virtual)


def connect(bucket: str, storage: StorageConfig) -> "tuple[S3Store, Address, Credentials | None]":
    """Make a connection; nothing is sent yet.

    Raises
    ------
    ConfigError
        There are no credentials, or the address cannot be used.
    """
    from obstore.store import S3Store

    credentials = find_credentials(storage, f"s3://{bucket}")
    address = resolve(bucket, storage, None if credentials is None else credentials.region)
    # The library would take every AWS_ variable that is left open.
    signing: dict[str, Any] = {"skip_signature": credentials is None}
    if credentials is not None:
        signing["credential_provider"] = credentials
    # An answer may take as long as it keeps coming: only silence ends it.
    silence = timedelta(seconds=max(storage.timeout_seconds / 3, 0.5))
    store = S3Store(
        bucket,
        endpoint=address.endpoint,
        aws_endpoint_url_s3=address.endpoint,  # else the environment's would come before the one above
        region=address.region,
        virtual_hosted_style_request=address.virtual,
        disable_bulk_delete=True,  # not every server has it, or signs it alike
        client_options={
            "allow_http": address.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=min(_CONNECT_SECONDS, storage.timeout_seconds)),
            "read_timeout": silence,
            "timeout": "1h",
            "pool_max_idle_per_host": str(concurrency(storage)),
            "pool_idle_timeout": timedelta(seconds=30),
        },
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=storage.timeout_seconds)},
        **signing,
    )
    return store, address, credentials
