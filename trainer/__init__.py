"""Batches → model: training, checkpoints, evaluation, pictures.

Names are loaded on first use, so that importing the package costs no torch. `evaluate` is not among them: the module
of that name would hide it; import it from `headrace.trainer.evaluate`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.trainer.baseline import climatology as climatology
    from headrace.trainer.checkpoint import load_checkpoint as load_checkpoint
    from headrace.trainer.checkpoint import load_model as load_model
    from headrace.trainer.loop import fit as fit
    from headrace.trainer.model import SequenceModel as SequenceModel
    from headrace.trainer.model import build_model as build_model
    from headrace.trainer.model_config import ModelConfig as ModelConfig
    from headrace.trainer.progress import RichProgress as RichProgress
    from headrace.trainer.run_folder import RunFolder as RunFolder
    from headrace.trainer.time_axis import TimeAxis as TimeAxis

_MODULE_OF = {
    "SequenceModel": "model",
    "ModelConfig": "model_config",
    "RichProgress": "progress",
    "RunFolder": "run_folder",
    "TimeAxis": "time_axis",
    "build_model": "model",
    "climatology": "baseline",
    "fit": "loop",
    "load_checkpoint": "checkpoint",
    "load_model": "checkpoint",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Load a public name."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
