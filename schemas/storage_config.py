"""Section ``storage``: how object stores are reached. It holds no secret and may go into manifests and to workers."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, field_validator

from headrace.schemas.section import Section


class StorageConfig(Section):
    """How object stores are reached; never holds a secret."""

    source: Literal["local", "cloud"] = "local"
    endpoint_url: str | None = None
    """``http://`` or ``https://`` address of a store that is not AWS; None asks the environment, then means AWS."""
    region: str | None = None
    anon: bool = False
    """Requests are not signed, and no credentials are looked for."""
    addressing_style: Literal["auto", "path", "virtual"] = "auto"
    """Whether the bucket is part of the path or of the host name; auto knows AWS and OSS, and takes path elsewhere."""
    profile: str | None = None
    """Name of a profile in ``~/.aws`` to take credentials and region from."""
    max_retries: NonNegativeInt = 8
    timeout_seconds: PositiveFloat = 60.0
    """How long one request is tried again, however often."""
    concurrency: PositiveInt = 64
    """Requests of one process under way at once; fewer where the process may open few files."""

    @field_validator("endpoint_url", mode="before")
    @classmethod
    def _is_plain_url(cls, value: object) -> object:
        """Refuse what is no URL, and a secret inside one, without repeating it."""
        if not isinstance(value, str):
            return value
        try:
            url = urlsplit(value.strip())
            fits = url.scheme in ("http", "https") and bool(url.hostname) and not (url.query or url.fragment)
            named = "@" in url.netloc
        except ValueError:
            fits, named = False, "@" in value
        if named:
            msg = "the URL holds a user name or password: leave them out, and give credentials by the environment, "
            raise ValueError(msg + "storage.profile or ~/hydro_setting.yml")
        if not fits:
            msg = "an endpoint is written as http://host:port or https://host"
            raise ValueError(msg)
        return value.strip().rstrip("/")
