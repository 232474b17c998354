"""What s3fs and the libraries below it raise → the same kinds of fault, in the same words, as for obstore."""

import errno
import socket
from typing import Any

from headrace.objects import faults
from headrace.objects.faults import Fault, Kind, of_answer


class LookUpError(Exception):
    """Credentials that change cannot be had now; its text is the name of the reason."""


def fault_of(error: BaseException) -> Fault:
    """Return what a failed try means."""
    import aiohttp
    from botocore import exceptions as failed

    if isinstance(error, LookUpError):
        return Fault(kind=Kind.EXPIRED, reason=f"they cannot be looked up: {error}")
    if isinstance(error, OSError) and isinstance(error.__cause__, failed.ClientError):
        error = error.__cause__  # s3fs says what the server said in words of its own
    if isinstance(error, failed.ClientError):
        return _of_answer(error)
    match error:
        case failed.ConnectTimeoutError():
            return Fault(kind=Kind.UNREACHED, reason="no connection; it took too long")
        case failed.ReadTimeoutError() | TimeoutError():
            return Fault(kind=Kind.TRANSIENT, reason="no answer in time")
        case failed.EndpointConnectionError():
            return _of_connecting(error.kwargs.get("error"))
        case failed.SSLError() | failed.ProxyConnectionError():
            return Fault(kind=Kind.UNREACHED, reason="no connection")
        case failed.IncompleteReadError() | failed.ResponseStreamingError() | aiohttp.ClientPayloadError():
            return Fault(kind=Kind.TRANSIENT, reason="the answer ended too early")
        case failed.ConnectionClosedError():
            return Fault(kind=Kind.TRANSIENT, reason="the connection was closed without an answer")
        case failed.HTTPClientError() | aiohttp.ClientError() | ConnectionError():
            return Fault(kind=Kind.TRANSIENT, reason="the connection broke")
    return faults.fault_of(error)


def _of_answer(error: Any) -> Fault:
    """Take the answer that the library took apart for what it was: only a document names a code in words."""
    answer = error.response.get("ResponseMetadata", {})
    code, message = (str(error.response.get("Error", {}).get(name, "")) for name in ("Code", "Message"))
    length = answer.get("HTTPHeaders", {}).get("content-length", "0")
    if code and not code.isdigit():
        body = f"<Code>{code}</Code><Message>{message.replace('<', ' ')}</Message>"
    else:
        body = "" if error.operation_name.startswith("Head") or length == "0" else "no document"
    return of_answer(int(answer.get("HTTPStatusCode", 0)), body)


def _of_connecting(error: Any) -> Fault:
    import aiohttp

    if not isinstance(error, aiohttp.ClientConnectorError | socket.gaierror):
        return Fault(kind=Kind.TRANSIENT, reason="the connection was reset")
    reason = "no connection"
    if isinstance(getattr(error, "os_error", error), socket.gaierror):
        reason = "the host name is not known"
    elif error.errno == errno.ECONNREFUSED:
        reason = "the connection was refused"
    return Fault(kind=Kind.UNREACHED, reason=reason)
