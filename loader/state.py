"""Where a loader stands: enough to serve exactly the remaining windows, anywhere, with any number of ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from headrace.schemas.errors import ConfigError, StaleIndexError, describe

STATE_FORMAT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderState:
    """Position in the stream of windows.

    Parameters
    ----------
    index_digest, spec_digest
        What the plan was made from.
    seed, epoch, round_steps
        The plan's keys.
    windows_consumed
        Windows of the epoch handed out so far, over all ranks.
    epoch_windows
        Windows that the epoch serves in all; it may depend on the batch size and ranks of whoever began the epoch.
    by_rank
        With ``rank_local``, consumed and epoch windows of every rank; else None.
    """

    index_digest: str
    spec_digest: str
    seed: int
    epoch: int
    round_steps: int
    windows_consumed: int
    epoch_windows: int
    by_rank: list[list[int]] | None = None
    format: int = STATE_FORMAT

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a checkpoint."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object, *, index_digest: str, spec_digest: str) -> Self:
        """Read a state and check that it belongs to this index and these settings.

        Raises
        ------
        ConfigError
            Another format, numbers that no loader has, or other settings than the loader's.
        StaleIndexError
            Another index.
        """
        state = cls(**_readable(data, {f.name for f in fields(cls)}))
        if state.index_digest != index_digest:
            raise StaleIndexError(
                describe(
                    "loader state belongs to another index",
                    where="load_state_dict",
                    expected=index_digest,
                    got=state.index_digest,
                    fix="open the index that the checkpoint was made with, or start afresh",
                )
            )
        if state.spec_digest != spec_digest:
            raise ConfigError(
                describe(
                    "loader state belongs to other settings",
                    where="load_state_dict",
                    expected=spec_digest,
                    got=state.spec_digest,
                    fix="use the same split, window, missing, normalization, sampling, data sets, basins and shuffle",
                )
            )
        return state

    @property
    def shares(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Consumed and epoch windows by share: one share, or one for each rank."""
        pairs = self.by_rank or [[self.windows_consumed, self.epoch_windows]]
        return tuple(consumed for consumed, _ in pairs), tuple(total for _, total in pairs)

    def goes_on(self, loads: Sequence[int]) -> bool:
        """Return whether a loader with these shares, in windows each, can go on inside the epoch.

        It cannot, and need not, where the split is shared out otherwise but the epoch is at its start or its end.

        Raises
        ------
        ConfigError
            The state lies in the middle of an epoch that is shared out otherwise, or beyond the split.
        """
        totals = self.shares[1]
        if len(totals) != len(loads):
            if 0 < self.windows_consumed < self.epoch_windows:
                raise ConfigError(
                    describe(
                        "loader state lies inside an epoch that is shared out otherwise",
                        where="load_state_dict",
                        expected=_sharing(len(loads)),
                        got=_sharing(len(totals)),
                        fix="go on with the same rank_local and, with it, as many ranks; or start the epoch again",
                    )
                )
            return False
        if any(total > load for total, load in zip(totals, loads, strict=True)):
            raise _unreadable(f"an epoch of at most {sum(loads)} windows", str(self.epoch_windows))
        return True


def _sharing(shares: int) -> str:
    return f"rank_local with {shares} ranks" if shares > 1 else "all ranks share the split"


def _readable(data: object, names: set[str]) -> dict[str, Any]:
    """Return a state's plain values, or raise ConfigError."""
    if not isinstance(data, Mapping):
        raise _unreadable("a mapping as state_dict returned it", repr(data))
    found = data.get("format")
    if type(found) is not int or found != STATE_FORMAT:
        raise _unreadable(f"format {STATE_FORMAT}", f"format {found!r}")
    if set(data) != names:
        raise _unreadable(f"the fields {', '.join(sorted(names))}", ", ".join(sorted(map(str, data))))
    counts = ("seed", "epoch", "round_steps", "windows_consumed", "epoch_windows")
    if not all(type(data[name]) is int and data[name] >= 0 for name in counts):
        raise _unreadable(f"whole numbers for {', '.join(counts)}", repr({name: data[name] for name in counts}))
    pairs = data["by_rank"]
    if pairs is not None and not _are_pairs(pairs):
        raise _unreadable("consumed and epoch windows of every rank, or None, for by_rank", repr(pairs)[:200])
    sums = [data["windows_consumed"], data["epoch_windows"]]
    if sums[0] > sums[1] or sums[1] == 0:
        raise _unreadable("an epoch with windows, and no more of them consumed", f"{sums[0]} of {sums[1]}")
    if pairs is not None and [sum(column) for column in zip(*pairs, strict=True)] != sums:
        raise _unreadable(f"by_rank that adds up to {sums}", repr(pairs)[:200])
    return dict(data)


def _are_pairs(pairs: object) -> bool:
    return (
        isinstance(pairs, list)
        and len(pairs) > 0
        and all(isinstance(pair, list) and len(pair) == 2 and all(type(n) is int for n in pair) for pair in pairs)
        and all(0 <= consumed <= total for consumed, total in pairs)
    )


def _unreadable(expected: str, got: str) -> ConfigError:
    return ConfigError(
        describe(
            "loader state cannot be read",
            where="load_state_dict",
            expected=expected,
            got=got,
            fix="use a state as state_dict of this Headrace version returned it, or start afresh",
        )
    )
