"""What the client library raises → what kind of fault it is, and its code and reason without anything secret.

The library's text quotes the server's answer, which may repeat key ids and signed strings: only code and message of it
are taken over, and the library's error is never kept as a cause.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """What can be done about a fault."""

    ABSENT = auto()
    """There is no such object, and the server said so."""
    NO_BUCKET = auto()
    DENIED = auto()
    EXPIRED = auto()
    """Credentials that were good once: look for them again."""
    THROTTLED = auto()
    TRANSIENT = auto()
    """Try again."""
    UNREACHED = auto()
    """No connection, so there was no answer."""
    REGION = auto()
    PERMANENT = auto()
    """Trying again gives the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One failed try.

    Parameters
    ----------
    kind
        What can be done.
    reason
        In words, with the HTTP status and the server's code where there was an answer.
    perhaps_expired
        Whether the answer had no document, as those to HEAD have none, and would look the same for an expired token.
    answered
        Whether something that speaks HTTP answered.
    documented
        Whether the answer held the document that object stores give with a refusal.
    odd
        Whether it may be the word of something in between, so that it is asked for once more.
    """

    kind: Kind
    reason: str
    answered: bool = False
    documented: bool = False
    perhaps_expired: bool = False
    odd: bool = False


_STATUS = re.compile(r"status code: (\d{3})[^:]*:? ?(.*)", re.DOTALL)
_PROVIDER = re.compile(r"External AWS credential provider: (\w+)")
"""What our own look-up of credentials raised; its text may quote them."""
_CODE, _MESSAGE = re.compile(r"<Code>([\w.]+)</Code>"), re.compile(r"<Message>([^<]{0,300})</Message>")
_NO_ANSWER = {
    "dns error": "the host name is not known",
    "Connection refused": "the connection was refused",
    "kind: Connect": "no connection",
}
_BROKEN = {
    "kind: Timeout": "no answer in time",
    "TimedOut": "no answer in time",
    "IncompleteBody": "the answer ended too early",
    "IncompleteMessage": "the connection was closed without an answer",
    "ConnectionReset": "the connection was reset",
    "kind: Interrupted": "the answer was cut off",
    "kind: Request": "the connection broke",
    "HttpError": "the connection broke",
}
_KINDS = {
    **dict.fromkeys(("NoSuchBucket", "InvalidBucketName", "AllAccessDisabled"), Kind.NO_BUCKET),
    **dict.fromkeys(("ExpiredToken", "TokenRefreshRequired", "SecurityTokenExpired", "InvalidToken"), Kind.EXPIRED),
    **dict.fromkeys(
        ("SlowDown", "TooManyRequests", "RequestLimitExceeded", "Throttling", "ThrottlingException",
         "BandwidthLimitExceeded", "ServiceUnavailable"), Kind.THROTTLED),
    **dict.fromkeys(("RequestTimeout", "InternalError", "OperationAborted"), Kind.TRANSIENT),
    **dict.fromkeys(("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"),
                    Kind.REGION),
    **dict.fromkeys(
        ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccountProblem", "RequestTimeTooSkewed",
         "InvalidSecurity", "UnsupportedAlgorithm", "MissingSecurityHeader"), Kind.DENIED),
    "SecondLevelDomainForbidden": Kind.PERMANENT,  # Aliyun OSS: the bucket belongs into the host name
    "NoSuchKey": Kind.ABSENT,
}  # fmt: skip
"""Codes of answers; a code says more than the status."""


class CutShortError(Exception):
    """Fewer bytes came than the server announced."""


class NoProgressError(Exception):
    """A listing did not go on where the page before ended."""


class FaultError(Exception):
    """A failed try of which it is known what it means."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


def fault_of(error: BaseException) -> Fault:
    """Return what a failed try means."""
    if isinstance(error, FaultError):
        return error.fault
    if isinstance(error, CutShortError):
        return Fault(kind=Kind.TRANSIENT, reason=str(error), answered=True)
    if isinstance(error, NoProgressError):
        return Fault(kind=Kind.PERMANENT, reason=str(error), answered=True)
    text = str(error)
    said, _, debug = text.partition("\n\nDebug source:")
    provider = _PROVIDER.search(said)
    if provider is not None:
        return Fault(kind=Kind.EXPIRED, reason=f"they cannot be looked up: {provider[1]}")
    answer = _STATUS.search(said)
    if answer is not None:
        return of_answer(int(answer[1]), answer[2])
    if "MissingContentLength" in debug:
        return Fault(kind=Kind.TRANSIENT, reason="the answer does not say how long it is", answered=True)
    if "BareRedirect" in debug:
        reason = "the server sends us elsewhere: the bucket is in another region"
        return Fault(kind=Kind.REGION, reason=reason, odd=True)
    for mark, reason in _NO_ANSWER.items():
        if mark in debug:
            late = "; it took too long" if "TimedOut" in debug or "Elapsed" in debug else ""
            return Fault(kind=Kind.UNREACHED, reason=reason + late)
    for mark, reason in _BROKEN.items():
        if mark in debug:
            return Fault(kind=Kind.TRANSIENT, reason=reason)
    return Fault(kind=Kind.PERMANENT, reason=f"{type(error).__name__}: {' '.join(said.split())[:200]}")


def of_answer(status: int, body: str) -> Fault:
    """Return what an answer with a status of failure and some document, or none, means."""
    code, message = _CODE.search(body), _MESSAGE.search(body)
    reason = " ".join([f"HTTP status {status}", *([code[1]] if code else [])])
    if message and "AccessKeyId" not in message[1]:
        reason += f": {' '.join(message[1].split())}"
    silent = status in (400, 403) and not body.strip()
    kind = _kind(status, code[1] if code else "", body)
    return Fault(
        kind=kind, reason=reason, answered=True, documented=code is not None, perhaps_expired=silent,
        odd=code is None and not silent and kind not in (Kind.THROTTLED, Kind.TRANSIENT),
    )  # fmt: skip


def _kind(status: int, code: str, body: str) -> Kind:
    if code in _KINDS and not (_KINDS[code] is Kind.ABSENT and status != 404):
        return _KINDS[code]
    if status == 404:  # a page of some other server is no proof that an object is absent
        return Kind.ABSENT if not body.strip() or code else Kind.PERMANENT
    if status in (401, 403):
        return Kind.DENIED
    if status in (429, 503):
        return Kind.THROTTLED
    if status in (301, 302, 307, 308):
        return Kind.REGION
    return Kind.TRANSIENT if status >= 500 or status == 408 else Kind.PERMANENT
