"""``~/hydro_setting.yml`` → where published stores lie and how object storage lets us in.

The file belongs to hydrodataset and its relatives: keys that mean nothing here are left alone. It may hold secrets, so
no message made here quotes what it says of them, not even of a line that is not YAML.
"""

import os
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.logins import endpoint_problem
from headrace.schemas.yaml_text import read_yaml

Source = Literal["local", "cloud"]
SETTING_VARIABLE = "HYDRO_SETTING"
"""Environment variable that names another file."""
_EXAMPLES = {
    "storage": "{default_source: local, local: {root: /data/hydro}}",
    "storage.default_source": "local",
    "storage.local": "{root: /data/hydro}",
    "storage.local.root": "/data/hydro",
    "storage.s3": "{bucket: hydro-data, prefix: zarr}",
    "storage.s3.bucket": "hydro-data",
    "storage.s3.prefix": "zarr",
    "storage.s3.endpoint_url": "https://oss-cn-beijing.aliyuncs.com",
}
_SECRETS = ("access_key_id", "secret_access_key")


def _empty(value: object) -> object:
    """Take a section whose every line is commented out, which YAML reads as null, as left out."""
    return {} if value is None else value


class _Part(BaseModel):
    # hide_input: pydantic would quote the value in its own text.
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class LocalSetting(_Part):
    """``storage.local``."""

    root: str | None = None
    """Folder of the stores, absolute."""


class S3Setting(_Part):
    """``storage.s3``; the secrets show in no repr and no dump."""

    bucket: str | None = None
    prefix: str | None = None
    """Folder of the stores in the bucket; None is ``zarr``, where hydrodataset writes them."""
    endpoint_url: str | None = None
    access_key_id: SecretStr | None = None
    secret_access_key: SecretStr | None = None


class StorageSetting(_Part):
    """``storage``."""

    default_source: Source = "local"
    local: Annotated[LocalSetting, BeforeValidator(_empty)] = LocalSetting()
    s3: Annotated[S3Setting, BeforeValidator(_empty)] = S3Setting()


class HydroSetting(_Part):
    """What the file says.

    Parameters
    ----------
    path
        The file, whether it exists or not.
    found
        Whether it exists.
    storage
        Its ``storage`` section.
    """

    path: Path
    found: bool = False
    storage: Annotated[StorageSetting, BeforeValidator(_empty)] = StorageSetting()

    def store_folder(self, source: Source) -> str:
        """Return what store names are appended to: ``/data/hydro``, or ``s3://bucket/zarr``.

        Raises
        ------
        ConfigError
            The file does not say; names it and the key.
        """
        if source == "local":
            return str(Path(self._needed("storage.local.root", self.storage.local.root)).expanduser())
        s3 = self.storage.s3
        bucket = self._needed("storage.s3.bucket", s3.bucket).removeprefix("s3://").strip("/")
        prefix = "zarr" if s3.prefix is None else s3.prefix.strip("/")
        return f"s3://{bucket}/{prefix}".rstrip("/")

    def says(self, source: Source) -> bool:
        """Return whether the file says where the stores of a source lie."""
        return bool(self.storage.local.root if source == "local" else self.storage.s3.bucket)

    def _needed(self, key: str, value: str | None) -> str:
        if value:
            return value
        raise ConfigError(
            describe(
                "it is not known where the stores of a published data set lie",
                where=f"{self.path}, key {key}",
                expected=f"a value, such as {_EXAMPLES[key]}",
                got="an empty value or none" if self.found else "no such file",
                fix=f"add the key to the file (another file: environment variable {SETTING_VARIABLE}), or give "
                "timeseries and attributes in the configuration",
            )
        )


def setting_path() -> Path:
    """Return the file: the one that the environment variable names, else ``~/hydro_setting.yml``."""
    named = os.environ.get(SETTING_VARIABLE)
    return Path(named).expanduser() if named else Path.home() / "hydro_setting.yml"


def read_hydro_setting(path: Path | None = None) -> HydroSetting:
    """Read the file; one that does not exist says nothing, unless the environment variable names it.

    Parameters
    ----------
    path
        Instead of :func:`setting_path`.

    Raises
    ------
    ConfigError
        The file cannot be read, or a value does not fit; names file and key, never a secret.
    """
    place = setting_path() if path is None else path
    try:
        text = place.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if path is None and os.environ.get(SETTING_VARIABLE):
            raise _unreadable(place, f"no such file, though {SETTING_VARIABLE} names it") from None
        return HydroSetting(path=place)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise _unreadable(place, reason or type(error).__name__) from None
    return _checked(place, _parse(place, text))


def _parse(place: Path, text: str) -> dict[str, Any]:
    failed: str | None = None
    try:
        data = read_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        failed = "" if mark is None else f" at line {mark.line + 1}"
    if failed is not None:  # outside the block, which would keep YAML's error: it quotes the line, and so maybe a key
        raise _unreadable(place, f"not YAML{failed} (put values with special characters in quotes)")
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise _unreadable(place, "no mapping")
    return data


def _unreadable(place: Path, got: str) -> ConfigError:
    return ConfigError(
        describe(
            "settings of published data sets cannot be read",
            where=str(place),
            expected="a YAML file in UTF-8 with the key storage",
            got=got,
            fix=f"mend or remove the file, or name another one by the environment variable {SETTING_VARIABLE}",
        )
    )


def _checked(place: Path, data: dict[str, Any]) -> HydroSetting:
    setting: HydroSetting | None = None
    try:
        setting = HydroSetting.model_validate({"path": place, "found": True, "storage": data.get("storage")})
    except ValidationError as error:
        problems = [_problem(item) for item in error.errors(include_url=False, include_input=False)]
    if setting is not None:
        problems = _rules_broken(setting.storage)
        if not problems:
            return setting
    key, expected, got = problems[0]
    more = "".join(f"; also {other}: expected {rule}" for other, rule, _ in problems[1:])
    raise ConfigError(
        describe(
            "a setting of published data sets does not fit",
            where=f"{place}, key {key}",
            expected=f"{expected}{more}",
            got=got,
            fix="correct the file",
        )
    )


def _problem(item: ErrorDetails) -> tuple[str, str, str]:
    """Return key, what may stand there and what does, of one of pydantic's complaints."""
    key = ".".join(str(part) for part in item["loc"])
    if key.rpartition(".")[2] in _SECRETS:
        return key, "text", "something else; put it in quotes"
    if item["type"] == "literal_error":
        return key, "local or cloud", "neither"
    kind = "a mapping" if key in ("storage", "storage.local", "storage.s3") else "text"
    return key, f"{kind}, such as {_EXAMPLES.get(key, 'a name')}", f"no {kind.removeprefix('a ')}"


def _rules_broken(storage: StorageSetting) -> list[tuple[str, str, str]]:
    root, s3 = storage.local.root, storage.s3
    broken = []
    if root and not (PurePosixPath(root).is_absolute() or Path(root).expanduser().is_absolute()):
        broken.append(("storage.local.root", "an absolute path", root))
    given = [name for name in _SECRETS if getattr(s3, name) is not None and getattr(s3, name).get_secret_value()]
    if len(given) == 1:
        (lacking,) = set(_SECRETS) - set(given)
        broken.append((f"storage.s3.{lacking}", f"a value, as {given[0]} has one", "an empty value or none"))
    if s3.endpoint_url and "@" in s3.endpoint_url:
        broken.append(("storage.s3.endpoint_url", "a URL without user name and password", "one with them"))
    elif s3.endpoint_url and endpoint_problem(s3.endpoint_url):
        broken.append(("storage.s3.endpoint_url", "a URL that begins with http:// or https://", "another text"))
    return broken
