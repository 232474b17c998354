"""Long work without visits to what was there before it.

A full garbage collection looks at every object of every library that is loaded. With Dask and PyTorch these are some
hundred thousand: a fifth of a second in which no other thread runs, once or twice in a short build.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def old_objects_spared(*, collect: bool = False) -> Iterator[None]:
    """Let garbage collections pass over objects that exist now, until the block ends; works as a decorator too.

    What is garbage among them, or becomes it meanwhile, is found afterwards. Where a caller has frozen objects nothing
    is done.

    Parameters
    ----------
    collect
        Whether to collect first what is garbage already: work of hours must not keep the memory of what went before,
        such as the model of a training that failed.
    """
    if gc.get_freeze_count():
        yield
        return
    if collect:
        gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
