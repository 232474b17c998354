"""Ask again for a listing that came out empty, and look at the document itself.

The faster client library takes any document without keys, a page of some other server too, for a listing of nothing.
From an empty listing follows that there is no chunk or no index, so this is looked into.
"""

import logging
import re
import ssl
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from headrace.objects.connection import Address
from headrace.objects.counts import counter
from headrace.objects.credentials import Credentials
from headrace.objects.faults import Fault, FaultError, Kind, of_answer
from headrace.objects.signing_logs import hush_signing

_LIST: Final = re.compile(rb"\s*(<\?xml.*?\?>\s*)?(<!--.*?-->\s*)*<(\w+:)?ListBucketResult\b", re.DOTALL)
_SHOWN: Final = 80
"""Characters of an odd answer that are quoted."""
_log = logging.getLogger(__name__)


def refuse_unless_listing(
    bucket: str, address: Address, credentials: Credentials | None, *, asked: dict[str, str], seconds: float
) -> None:
    """Raise unless the server answers a request for a listing with one.

    Parameters
    ----------
    bucket, address, credentials
        Where, and who asks.
    asked
        Parameters of the request.
    seconds
        How long the server may say nothing.

    Raises
    ------
    FaultError
        Something else came, or nothing.
    """
    query = urlencode(sorted({"list-type": "2", **asked}.items()), quote_via=quote)
    url = f"{address.endpoint}/?{query}" if address.virtual else f"{address.endpoint}/{bucket}?{query}"
    request = Request(url, headers={} if credentials is None else _signature(url, address.region, credentials))
    counter.add(requests=1)
    try:
        with urlopen(request, timeout=seconds) as answer:
            body = answer.read()
    except HTTPError as error:
        with error:
            raise FaultError(of_answer(error.code, error.read().decode(errors="replace"))) from None
    except (OSError, URLError) as error:
        if isinstance(getattr(error, "reason", None), ssl.SSLCertVerificationError):
            _log.debug("%s is known to the client library, not to Python: an empty listing is believed", url)
            return
        raise FaultError(Fault(kind=Kind.TRANSIENT, reason="the connection broke")) from None
    if not _LIST.match(body):
        raise FaultError(not_a_listing(body.decode(errors="replace")))


def not_a_listing(text: str) -> Fault:
    """Return the fault of an answer to a listing that is none, with its beginning."""
    shown = " ".join(text[: 4 * _SHOWN].split())[:_SHOWN]
    return Fault(kind=Kind.PERMANENT, reason=f"no list of objects but {shown!r}", answered=True, odd=True)


def _signature(url: str, region: str, credentials: Credentials) -> dict[str, str]:
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials as Keys

    hush_signing()
    key, secret, token = credentials.find()
    keys = Keys(key.get_secret_value(), secret.get_secret_value(), token.get_secret_value() if token else None)
    request = AWSRequest(method="GET", url=url)
    S3SigV4Auth(keys, "s3", region).add_auth(request)
    return {name: str(value) for name, value in request.headers.items()}
