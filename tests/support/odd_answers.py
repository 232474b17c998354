"""Answers that look like those of an object store and are not what it holds, as gateways and bad links make them."""

from collections.abc import Sequence

ODD = ("garbled", "page", "other_etag", "bare_not_found")
_PAGE = b"<html><body>Please log in</body></html>"
Headers = list[tuple[str, str]]


def odd_answer(fault: str, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> tuple[int, Headers, bytes]:
    """Return status, headers and body that take the place of an answer to GET.

    Parameters
    ----------
    fault
        One of ``ODD``.
    status, headers, body
        What the server said.
    """
    kept = [(n, v) for n, v in headers if n.lower() not in ("connection", "transfer-encoding", "content-length")]
    if fault == "garbled":
        body = bytes(len(body))
    elif fault == "other_etag":
        kept = [(n, '"another"' if n.lower() == "etag" else v) for n, v in kept]
    elif fault == "page":
        status, kept, body = 200, [("Content-Type", "text/html")], _PAGE
    else:
        status, kept, body = 404, [], b""
    return status, [*kept, ("Content-Length", str(len(body)))], body
