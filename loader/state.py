"""Where a loader stands: enough to serve exactly the remaining windows, anywhere, with any number of ranks."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from headrace.schemas.errors import ConfigError, StaleIndexError, describe

STATE_FORMAT = 1


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
    """

    index_digest: str
    spec_digest: str
    seed: int
    epoch: int
    round_steps: int
    windows_consumed: int
    format: int = STATE_FORMAT

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a checkpoint."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, index_digest: str, spec_digest: str) -> "LoaderState":
        """Read a state and check that it belongs to this index and these settings.

        Raises
        ------
        ConfigError
            Another format, or other settings than the loader's.
        StaleIndexError
            Another index.
        """
        names = {f.name for f in fields(cls)}
        if data.get("format") != STATE_FORMAT or set(data) != names:
            raise ConfigError(
                describe(
                    "loader state cannot be read",
                    where="load_state_dict",
                    expected=f"format {STATE_FORMAT} with {', '.join(sorted(names))}",
                    got=repr(data),
                    fix="use a state of this Headrace version",
                )
            )
        counts = ("seed", "epoch", "round_steps", "windows_consumed")
        if not all(type(data[name]) is int and data[name] >= 0 for name in counts):
            raise ConfigError(
                describe(
                    "loader state cannot be read",
                    where="load_state_dict",
                    expected=f"whole numbers for {', '.join(counts)}",
                    got=repr(data),
                    fix="use a state as state_dict returned it",
                )
            )
        state = cls(**data)
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
