"""What is said when a request fails for good: the URL, what came back, and what to do about it; never a secret."""

from headrace.objects.connection import Address
from headrace.objects.credentials import Credentials
from headrace.objects.faults import Fault, Kind
from headrace.schemas.errors import StorageError, describe

_WHAT = {
    Kind.NO_BUCKET: "bucket not found",
    Kind.DENIED: "object store refuses access",
    Kind.EXPIRED: "credentials for the object store have expired",
    Kind.UNREACHED: "object store cannot be reached",
    Kind.REGION: "bucket is in another region",
    Kind.PERMANENT: "object store refuses the request",
    Kind.THROTTLED: "object store keeps asking for fewer requests",
    Kind.TRANSIENT: "object store keeps failing",
}
_FIX = {
    Kind.NO_BUCKET: "correct the bucket's name, and check storage.endpoint_url and storage.addressing_style",
    Kind.DENIED: "check these credentials and what they permit (GetObject and ListBucket, to build an index there also "
    "PutObject and DeleteObject); a bucket that may not be listed answers so for objects that do not "
    "exist, which is no proof that they are absent",
    Kind.EXPIRED: "renew them, then run the same command again",
    Kind.UNREACHED: "check storage.endpoint_url, whether it begins with http or https, and the network",
    Kind.REGION: "set storage.region to the bucket's region",
    Kind.PERMANENT: "check storage.endpoint_url, storage.region and storage.addressing_style",
    Kind.THROTTLED: "lower storage.concurrency, or raise storage.timeout_seconds and storage.max_retries",
    Kind.TRANSIENT: "run the same command again later, or raise storage.timeout_seconds and storage.max_retries",
}


_FIX_UNSIGNED = (
    "leave out storage.anon and give credentials in the environment, under storage.profile or in ~/hydro_setting.yml: "
    "the bucket is not public, or may not be listed by everybody"
)


def refusal(
    fault: Fault,
    *,
    action: str,
    url: str,
    address: Address,
    credentials: Credentials | None,
    tries: int,
    seconds: float,
) -> StorageError:
    """Return the error for a request that is not tried again.

    Parameters
    ----------
    fault
        Of the last try.
    action
        What was asked, such as ``GET``.
    url
        ``s3://bucket/key``.
    address
        Where it was sent.
    credentials
        Whose source is named; None for unsigned requests.
    tries, seconds
        How often and how long it was tried.
    """
    who = "no credentials (storage.anon)" if credentials is None else f"credentials from {credentials.source}"
    often = f" ({tries} tries in {seconds:.0f} s)" if tries > 1 else ""
    signed = f", {who}" if fault.kind in (Kind.DENIED, Kind.EXPIRED) else ""
    return StorageError(
        describe(
            _WHAT[fault.kind],
            where=f"{url} at {address.endpoint}{signed}",
            expected=f"an answer to {action}",
            got=f"{fault.reason}{often}",
            fix=_FIX_UNSIGNED if credentials is None and fault.kind is Kind.DENIED else _FIX[fault.kind],
        )
    )
