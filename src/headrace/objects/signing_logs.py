"""What the libraries that look for keys and sign requests may write down."""

import logging
from typing import Final

_TALKATIVE: Final = ("botocore", "aiobotocore")


def hush_signing() -> None:
    """Keep libraries from writing down what they sign: at their most talkative they log tokens, key ids and answers.

    It holds also where all loggers are made more talkative later.
    """
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.getEffectiveLevel(), logging.INFO))
