"""What a loader serves, for those who look at it: names, sizes, scales and plans. Nothing here moves an epoch on."""

import logging
from functools import partial

import pyarrow as pa
import torch

from headrace.loader.arguments import whole_number
from headrace.loader.assemble import Serving
from headrace.loader.batch import Batch
from headrace.loader.epochs import exposure_table, left_out, plan_of
from headrace.loader.mixing import say_thin
from headrace.loader.normalize import scales_of
from headrace.loader.progress import Progress
from headrace.loader.schedule import EpochPlan
from headrace.loader.spec import ServeSpec

logger = logging.getLogger(__name__)


class ServedSplit:
    """The describing half of :class:`headrace.WindowLoader`."""

    rank: int
    _serving: Serving
    _spec: ServeSpec
    _seed: int
    _progress: Progress
    _warned_of: frozenset[str] = frozenset()

    def _describe(self, serving: Serving) -> None:
        """Take the names and scales of what was put together."""
        self._serving = serving
        self.x_names, self.static_names, self.y_names = serving.x_names, serving.static_names, serving.y_names
        self.basin_ids, self.y_train_std = serving.basin_ids, serving.y_train_std
        self.y_mean, self.y_std = [s.mean for s in serving.y_scaling], [s.std for s in serving.y_scaling]

    @property
    def serving(self) -> Serving:
        """What the loader is made of, without threads and rows."""
        return self._serving

    @property
    def num_windows(self) -> int:
        """Windows of the split for the chosen data sets and basins."""
        return sum(self._serving.loads)

    @property
    def resident(self) -> bool:
        """Whether the whole split stays in memory."""
        return self._serving.resident

    @property
    def spill_nbytes(self) -> int:
        """Bytes of disk that decoded rows take; 0 where they are in memory alone."""
        return self._serving.spill_nbytes

    @property
    def chunks_read(self) -> int:
        """Store chunks read so far."""
        return self._serving.reads.chunks

    @property
    def bytes_read(self) -> int:
        """Stored bytes read so far."""
        return self._serving.reads.nbytes

    @property
    def read_amplification(self) -> float:
        """Store chunks read so far over those needed: 1 once each was read, 0 where ``cache_dir`` had all rows."""
        return self._serving.reads.amplification

    @property
    def epoch(self) -> int:
        """Number of the epoch that the next iteration serves, or the present one while iterating."""
        return self._progress.epoch

    def plan(self, epoch: int | None = None) -> EpochPlan:
        """Return the order of an epoch, by default the present one."""
        totals, number = self._progress.totals, self.epoch if epoch is None else whole_number("epoch", epoch, least=0)
        length = totals[self.rank if len(totals) > 1 else 0]
        return plan_of(self._serving, self._spec, seed=self._seed, epoch=number, length=length)

    def exposure(self, epoch: int | None = None) -> pa.Table:
        """Return how many windows of each basin an epoch serves, by default the present one; nothing is read.

        Returns
        -------
        pyarrow.Table
            dataset_id, basin_id, num_windows (that the split has), served (repeats counted); every basin with windows.
        """
        return exposure_table(self._serving, self._spec, self.plan(epoch))

    def _warn_of(self, plan: EpochPlan, batch_size: int) -> None:
        """Say once when basins get no window in an epoch, or when its batches mix few of them."""
        for about, words_of in (("left out", left_out), ("thin", partial(say_thin, batch_size=batch_size))):
            words = None if about in self._warned_of else words_of(self._serving, plan)
            if words:
                self._warned_of |= {about}
                logger.warning(words)

    def denormalize(self, y: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return targets in canonical units.

        Parameters
        ----------
        y
            float32 [B, P, Vy], normalised targets or predictions.
        batch
            The batch they belong to: its data sets and basins choose the scale.
        """
        dataset, basin = batch.dataset.cpu().numpy(), batch.basin.cpu().numpy()
        mean, std = (torch.from_numpy(a).to(y.device) for a in scales_of(self._serving.y_scaling, dataset, basin))
        return y * std[:, None] + mean[:, None]
