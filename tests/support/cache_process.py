"""Another process that serves from a cache folder: ``python cache_process.py INDEX``, then one command a line.

``share FOLDER`` serves an epoch and prints the chunks it read; ``hang FOLDER`` reads half of a group's chunks and then
nothing more, after it has printed how many chunks that were.
"""

import sys
import threading
from typing import Any

import headrace
from headrace.store import StoredArray


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def share(folder: str) -> None:
    with headrace.open_index(sys.argv[1]) as index, opened(index, folder) as loader:
        say(loader.plan().num_rounds)
        sys.stdin.readline()
        served = sum(len(batch) for batch in loader)
        say(loader.chunks_read, served)


def hang(folder: str) -> None:
    read, calls = StoredArray.read, iter(range(10**9))

    def stop_in_the_middle(array: StoredArray, *place: Any) -> Any:
        if next(calls) == 4:
            say("in the middle")
            threading.Event().wait()
        return read(array, *place)

    StoredArray.read = stop_in_the_middle  # type: ignore[method-assign,assignment]
    with headrace.open_index(sys.argv[1]) as index, opened(index, folder) as loader:
        list(loader)


def opened(index: headrace.Index, folder: str) -> headrace.WindowLoader:
    return headrace.WindowLoader(
        index, "train", batch_size=32, num_workers=1, memory_budget=2400, cache_dir=folder, seed=1
    )


if __name__ == "__main__":
    for line in sys.stdin:
        command, folder = line.split()
        {"share": share, "hang": hang}[command](folder)
