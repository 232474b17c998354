"""The session, connections and event loop that s3fs brings, made so that nothing but our requests is sent."""

import asyncio
import contextlib
import os
from functools import lru_cache
from typing import Any

from headrace.objects.connection import CONNECT_SECONDS, Address, silence_seconds
from headrace.objects.credentials import Credentials
from headrace.objects.limits import concurrency
from headrace.objects.s3fs_faults import LookUpError
from headrace.objects.signing_logs import hush_signing
from headrace.schemas.storage_config import StorageConfig


def file_system(name: str, storage: StorageConfig, address: Address, credentials: Credentials | None) -> Any:
    """Return what sends requests to a bucket; its own tries, caches and look-up of credentials are off.

    Parameters
    ----------
    name
        Of the bucket.
    storage, address, credentials
        How it is reached; without credentials requests are not signed.

    Raises
    ------
    LookUpError
        Credentials that change cannot be had now.
    """
    from s3fs import S3FileSystem

    scheme, _, host = address.endpoint.partition("://")
    files = S3FileSystem(
        # The library puts the bucket into the host name by itself.
        endpoint_url=f"{scheme}://{host.removeprefix(f'{name}.') if address.virtual else host}",
        client_kwargs={"region_name": address.region},
        config_kwargs={
            "s3": {"addressing_style": "virtual" if address.virtual else "path"},
            "retries": {"mode": "standard", "total_max_attempts": 1},
            "connect_timeout": min(CONNECT_SECONDS, storage.timeout_seconds),
            "read_timeout": silence_seconds(storage),
            "max_pool_connections": concurrency(storage),
            # Not every server knows the checksums that AWS has added.
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        },
        session=_session(os.getpid()),
        skip_instance_cache=True,
        use_listings_cache=False,
        **({"anon": True} if credentials is None else _keys(credentials)),
    )
    files.retries = 1  # tries, of what it writes in parts
    files.connect()
    files.s3.meta.events.register("before-call.s3", _stay_in_region)
    asyncio.run_coroutine_threadsafe(_send_once(files.s3, address.endpoint), files.loop).result()
    return files


def _keys(credentials: Credentials) -> dict[str, str | None]:
    from botocore.exceptions import BotoCoreError

    try:
        key, secret, token = credentials.find()
    except BotoCoreError as error:
        raise LookUpError(type(error).__name__) from None  # its text may quote what it found
    return {
        "key": key.get_secret_value(),
        "secret": secret.get_secret_value(),
        "token": None if token is None else token.get_secret_value(),
    }


@lru_cache(maxsize=1)
def _session(process: int) -> Any:
    """Return what all buckets of a process share: the description of the service. It finds no keys and no profile."""
    from aiobotocore.credentials import AioCredentialResolver
    from aiobotocore.session import AioSession

    hush_signing()
    nothing: dict[str, Any] = {"profile": (None, None, None, None)}
    nothing |= dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
    session = AioSession(session_vars=nothing)
    session.register_component("credential_provider", AioCredentialResolver([]))
    return session


def _stay_in_region(context: dict[str, Any], **_: Any) -> None:
    """Keep the library from requests of its own that look for another region."""
    context.setdefault("s3_redirect", {})["redirected"] = True


async def _send_once(client: Any, url: str) -> None:
    """Keep the library for HTTP from sending a request again whose connection broke; it has no public switch."""
    with contextlib.suppress(AttributeError):  # other versions send once more, uncounted
        http = client._endpoint.http_session
        connections = await http._get_session(http._proxy_config.proxy_url_for(url))
        connections._retry_connection = False
