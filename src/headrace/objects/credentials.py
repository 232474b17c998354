"""Who we are to an object store, found by each process for itself and never handed to another one.

In this order: nobody (``storage.anon``), the named profile, the environment, ``~/hydro_setting.yml``, and whatever
else botocore knows (default profile, container, machine).
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import SecretStr

from headrace.objects.signing_logs import hush_signing
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.hydro_setting import read_hydro_setting
from headrace.schemas.storage_config import StorageConfig

_KEEP = timedelta(minutes=5)
"""How long credentials that may change are used before they are asked for again."""
_REMEMBERED_SECONDS = 5.0
"""How long after a look-up in vain the next ones fail at once: a machine without a role may take seconds to say so."""
_looking = threading.Lock()
_in_vain: dict[int, tuple[float, str]] = {}
"""When a look-up found nothing, and why, by what it was made with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A key, its secret and perhaps a token; the secrets show in no repr.

    Parameters
    ----------
    source
        Where they were found, for messages.
    find
        Returns access key id, secret and token as they are now.
    lasting
        Whether they stay the same.
    region
        The region that came with them, if any.
    """

    source: str
    find: Callable[[], tuple[SecretStr, SecretStr, SecretStr | None]] = field(repr=False)
    lasting: bool = True
    region: str | None = None

    def __call__(self) -> dict[str, Any]:
        """Return the present keys in the form that the client library asks for."""
        key, secret, token = self.find()
        return {
            "access_key_id": key.get_secret_value(),
            "secret_access_key": secret.get_secret_value(),
            "token": None if token is None else token.get_secret_value(),
            "expires_at": None if self.lasting else datetime.now(UTC) + _KEEP,
        }


def find_credentials(storage: StorageConfig, url: str) -> Credentials | None:
    """Look for credentials; None means that requests are not signed.

    Raises
    ------
    ConfigError
        There are none, or the profile is not known; names the URL and every place that was looked at.
    """
    if storage.anon:
        return None
    found = (
        _of_profile(storage.profile, url) if storage.profile else _of_environment() or _of_setting() or _of_chain(url)
    )
    if found is None:
        raise ConfigError(
            describe(
                "no credentials for an object store",
                where=url,
                expected="credentials in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), under "
                "storage.profile, in ~/hydro_setting.yml or in ~/.aws",
                got="none",
                fix="give them in one of these places, or set storage.anon: true for a public bucket",
            )
        )
    return found


def _fixed(source: str, key: str, secret: str, token: str | None, region: str | None = None) -> Credentials:
    held = SecretStr(key), SecretStr(secret), SecretStr(token) if token else None
    return Credentials(source=source, find=lambda: held, region=region)


def _of_environment() -> Credentials | None:
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    if not key or not secret:
        return None
    return _fixed("the environment (AWS_ACCESS_KEY_ID)", key, secret, os.environ.get("AWS_SESSION_TOKEN"))


def _of_setting() -> Credentials | None:
    setting = read_hydro_setting()
    key, secret = setting.storage.s3.access_key_id, setting.storage.s3.secret_access_key
    if key is None or secret is None or not key.get_secret_value() or not secret.get_secret_value():
        return None
    return Credentials(source=str(setting.path), find=lambda: (key, secret, None))


def _of_chain(url: str) -> Credentials | None:
    """Look where botocore looks; what stands in its way is said, for it may be what was meant to be used."""
    found, reason = _of_session(None, "~/.aws or this machine's role")
    if reason:
        raise ConfigError(
            describe(
                "credentials cannot be read", where=url, expected="what botocore can use in AWS_PROFILE and ~/.aws",
                got=reason, fix="correct it, or give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
            )
        )  # fmt: skip
    return found


def _of_profile(profile: str, url: str) -> Credentials:
    found, reason = _of_session(profile, f"profile {profile}")
    if found is None:
        raise ConfigError(
            describe(
                "profile cannot be used", where=f"storage.profile: {profile}, for {url}",
                expected="a profile with credentials in ~/.aws", got=reason or "a profile without credentials",
                fix="correct the name, or add the profile: aws configure --profile NAME",
            )
        )  # fmt: skip
    return found


def _of_session(profile: str | None, source: str) -> tuple[Credentials | None, str]:
    """Return what botocore finds, or why it finds nothing, where it says so; one request at a time looks."""
    given = ((name, value) for name, value in os.environ.items() if name.startswith("AWS_") or name == "HOME")
    made_with = hash((profile, frozenset(given)))
    with _looking:
        ended, reason = _in_vain.get(made_with, (-_REMEMBERED_SECONDS, ""))
        if time.monotonic() - ended < _REMEMBERED_SECONDS:
            return None, reason
        found, reason = _of_botocore(profile, source)
        if found is None:
            _in_vain[made_with] = time.monotonic(), reason
        return found, reason


def _of_botocore(profile: str | None, source: str) -> tuple[Credentials | None, str]:
    import botocore.session
    from botocore.exceptions import BotoCoreError

    hush_signing()
    session: Any = botocore.session.Session(profile=profile)
    try:
        session.set_config_variable("metadata_service_timeout", 1)
        session.set_config_variable("metadata_service_num_attempts", 1)
        credentials: Any = session.get_credentials()
        region = session.get_config_variable("region")
    except BotoCoreError as error:
        return None, _reason(error)
    if credentials is None:
        return None, ""

    def find() -> tuple[SecretStr, SecretStr, SecretStr | None]:
        now: Any = credentials.get_frozen_credentials()
        return SecretStr(now.access_key), SecretStr(now.secret_key), SecretStr(now.token) if now.token else None

    return Credentials(source=source, find=find, lasting=False, region=region), ""


def _reason(error: Exception) -> str:
    """Say what stood in botocore's way; what a process for credentials printed may be a secret."""
    name = type(error).__name__
    return name if name == "CredentialRetrievalError" else f"{name}: {error}"
