"""Endpoints of object stores, and texts that may hold a user name and password, which no message repeats."""

import re

_LOGIN = re.compile(r"://[^\s'\"]*@")
"""Up to the last ``@``: secrets hold slashes, and ``@`` too."""
_ENDPOINT = re.compile(r"https?://(\[[\da-fA-F:.]+\]|[\w.-]+)(:(?P<port>\d{1,5}))?(/[\w.~/-]*)?", re.ASCII)


def without_login(text: str) -> str:
    """Return a text whose URLs lack what stands before ``@``."""
    return _LOGIN.sub("://…@", text)


def endpoint_problem(url: str) -> str:
    """Return why a text is no address of an object store, in words that do not repeat it; '' if it is one."""
    if "@" in url:
        return (
            "the URL holds a user name or password: leave them out, and give credentials by the environment, "
            "storage.profile or ~/hydro_setting.yml"
        )
    found = _ENDPOINT.fullmatch(url)
    if found is None or int(found["port"] or 0) > 65_535:
        return "an endpoint is written as http://host:port or https://host"
    return ""
