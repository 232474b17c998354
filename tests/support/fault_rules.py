"""When the fault-injecting proxy makes which fault: the same in every run, however threads happen to meet.

Whether a rule strikes is drawn from (seed, rule, request, number of the attempt at that request), never from the order
in which requests arrive, except where a rule counts (`every`, `times`), nor from the name of the bucket.
"""

import random
import re
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Fault = Literal[
    "slow_down",
    "too_many_requests",
    "server_error",
    "silent",
    "reset_before",
    "reset_within",
    "cut_short",
    "cut_unmarked",
    "cut_relabelled",
    "garbled",
    "page",
    "other_etag",
    "bare_not_found",
    "absent_is_denied",
    "denied",
    "path_forbidden",
    "wrong_region",
    "expired_token",
    "slow_first_byte",
    "latency",
]
"""What goes wrong.

slow_down, too_many_requests, server_error
    503 with S3's SlowDown document, 429 with Retry-After, 500 with S3's InternalError document.
silent
    The request is taken and never answered; the connection closes after `seconds`.
reset_before, reset_within
    The connection is reset before the first byte, and after half of the body.
cut_short, cut_unmarked, cut_relabelled
    Half of a body: under its full Content-Length, with no length and the end of the connection as its end, and under a
    Content-Length that fits the half.
garbled, page, other_etag, bare_not_found
    Zeros under the head of the answer; 200 with a page of HTML; the body under another etag; 404 without a document.
absent_is_denied
    403 in place of 404, as S3 answers those who may not list.
denied, path_forbidden, wrong_region, expired_token
    403 AccessDenied; 403 as Aliyun OSS answers to a bucket in the path; 400 as AWS answers to a signature for another
    region; 403 ExpiredToken.
slow_first_byte, latency
    `seconds` between head and body, and before the answer; a request with latency may meet another rule as well.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One fault and the requests that meet it.

    Parameters
    ----------
    fault
        What happens.
    share
        Share of the requests that match, in [0, 1].
    methods
        HTTP methods; empty matches all.
    key
        Regular expression, searched in ``bucket/key``.
    query
        Regular expression, searched in the query as it was sent.
    attempts
        Only so many first attempts at each request; None strikes at every one.
    every
        Only every so many-th of the requests that match.
    times
        Strikes no more than so often.
    seconds
        Of a wait.
    """

    fault: Fault
    share: float = 1.0
    methods: tuple[str, ...] = ()
    key: str = ""
    query: str = ""
    attempts: int | None = None
    every: int = 1
    times: int | None = None
    seconds: float = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request as the proxy saw it.

    Parameters
    ----------
    method, key, query
        What was asked; ``key`` is ``bucket/key`` without its percent signs.
    range
        The Range header, or "".
    status
        What the client was told; 0 where it was told nothing.
    nbytes
        Bytes of the body that were sent to the client.
    fault
        What was done to it, or "".
    """

    method: str
    key: str
    query: str
    range: str
    status: int
    nbytes: int
    fault: str


class Chooser:
    """Which rule strikes at which request."""

    def __init__(self, rules: Sequence[Rule], seed: int) -> None:
        self._rules = tuple(rules)
        self._seed = seed
        self._lock = threading.Lock()
        self._attempts: Counter[str] = Counter()
        self._matched: Counter[int] = Counter()
        self._struck: Counter[int] = Counter()

    def choose(self, method: str, key: str, query: str, byte_range: str) -> tuple[float, Rule | None]:
        """Return the seconds to wait before answering, and the rule that strikes, if any."""
        request = f"{method} {key.partition('/')[2]}?{query} {byte_range}"
        delay, chosen = 0.0, None
        with self._lock:
            self._attempts[request] += 1
            attempt = self._attempts[request]
            for number, rule in enumerate(self._rules):
                latency = rule.fault == "latency"
                if (chosen is None or latency) and self._strikes(number, rule, method, key, query, request, attempt):
                    self._struck[number] += 1
                    if latency:
                        delay += rule.seconds
                    else:
                        chosen = rule
        return delay, chosen

    def _strikes(self, number: int, rule: Rule, method: str, key: str, query: str, request: str, attempt: int) -> bool:
        if rule.methods and method not in rule.methods:
            return False
        if not re.search(rule.key, key) or not re.search(rule.query, query):
            return False
        self._matched[number] += 1
        if self._matched[number] % rule.every or (rule.attempts is not None and attempt > rule.attempts):
            return False
        if rule.times is not None and self._struck[number] >= rule.times:
            return False
        return rule.share >= 1 or random.Random(f"{self._seed} {number} {attempt} {request}").random() < rule.share
