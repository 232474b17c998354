"""What to change where a model waits for its data: one sentence, worked out from what was measured alone."""

from dataclasses import dataclass

from headrace.loader.budget import human_nbytes

_SMALL_CHUNK_NBYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What is known of a loader that was waited for.

    Parameters
    ----------
    num_workers, num_threads
        Reader threads of the loader; threads that the processor runs at a time.
    resident
        Whether the whole split stays in memory.
    bytes_read, chunks_read
        Stored bytes and store chunks read so far.
    first_pass
        Whether no window was served twice yet, so that reading is part of the waiting.
    """

    num_workers: int
    num_threads: int
    resident: bool
    bytes_read: int
    chunks_read: int
    first_pass: bool

    def remedy(self, first_pass: str) -> str:
        """Return what to change, the rest of a sentence.

        Parameters
        ----------
        first_pass
            What to say where only the first reading is slow.
        """
        if self.num_workers < self.num_threads:
            return f"raise --num-workers, {self.num_workers} of {self.num_threads} processor threads read and gather."
        if not self.resident:
            return (
                "the split does not stay in memory; raise --memory-budget, or set loader.cache_dir to a fast disk, "
                "where decoded rows are kept for later epochs and runs."
            )
        if self.chunks_read and self.bytes_read / self.chunks_read < _SMALL_CHUNK_NBYTES and self.first_pass:
            size = human_nbytes(self.bytes_read / self.chunks_read)
            return (
                f"store chunks hold {size} on average; a store with chunks of several MiB, whole time series of many "
                "basins, is read with fewer calls."
            )
        if self.first_pass:
            return f"most of it is the first reading, and the split stays in memory after that; {first_pass}."
        return "batches come as fast as memory copies them, so only a larger model would leave no wait."
