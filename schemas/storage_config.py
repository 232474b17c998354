"""Section ``storage``: how object stores are reached. It holds no secret and may go into manifests and to workers."""

from typing import Literal

from pydantic import ConfigDict, NonNegativeInt, PositiveFloat, PositiveInt, field_validator

from headrace.schemas.logins import endpoint_problem
from headrace.schemas.section import Section


class StorageConfig(Section):
    """How object stores are reached; never holds a secret."""

    # hide_input: pydantic would quote a secret in its own text.
    model_config = ConfigDict(hide_input_in_errors=True)

    source: Literal["local", "cloud"] = "local"
    client: Literal["auto", "obstore", "s3fs"] = "auto"
    """The library that talks to object stores: auto is obstore, and s3fs where that cannot be loaded."""
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
        problem = endpoint_problem(value.strip())
        if problem:
            raise ValueError(problem)
        return value.strip().rstrip("/")
