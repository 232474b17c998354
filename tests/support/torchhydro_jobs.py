"""Answer questions about torchhydro's lazy Zarr data set: a program for an environment that holds torchhydro 0.2.0.

Each line of standard input is a question, a JSON object: `ask` names a function of this module, the rest are its
arguments. Each line of standard output is `{"answer": …}`, or `{"error": …}` where torchhydro refuses.

The package imports dozens of libraries that the data set never calls: only its folders are put in place, and the two
modules that its own imports lead astray are replaced by empty ones.
"""

import json
import sys
import tempfile
import types
from collections.abc import Iterable
from importlib import import_module, util
from pathlib import Path
from typing import Any

Sources = list[dict[str, Any]]
Answers = dict[str, Any]


def load(module: str) -> Any:
    """Import one module of ``torchhydro.datasets`` and nothing else of the package."""
    if "torchhydro" not in sys.modules:
        spec = util.find_spec("torchhydro")
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError("torchhydro is not installed in this environment")
        root = Path(spec.submodule_search_locations[0])
        for name, folder in (("", root), (".configs", root / "configs"), (".datasets", root / "datasets")):
            _put(f"torchhydro{name}").__path__ = [str(folder)]
        # The registry of published data sets, and a library of units: neither is asked when stores are given by path.
        _put("torchhydro.configs.data_resolver").__dict__["open_dataset"] = None
        _put("pint_xarray")
    return import_module(f"torchhydro.datasets.{module}")


def _put(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module
    return module


def open_lazy(sources: Sources, shape: dict[str, int], case_dir: str, *, split: str = "train", **lazy: Any) -> Any:
    """Return the data set of a split; `sources` and `lazy` are its own settings, `shape` its three lengths."""
    settings = {"use_hydrodataset_reader": False, "datasets": sources, **lazy}
    data: dict[str, Any] = {"object_ids": [], f"t_range_{split}": None, "case_dir": case_dir, "lazy_zarr": settings}
    configuration = {"data_cfgs": data, "training_cfgs": shape, "evaluation_cfgs": {}}
    return load("cloud_zarr_lazy_dataset").CloudZarrLazyDataset(configuration, split)


def windows(sources: Sources, shape: dict[str, int], case_dir: str, **lazy: Any) -> Answers:
    """Return per data set the runs of window starts: basin id, first start, one past the last start.

    A start here is the store's time step of the first input.
    """
    # Without normalisation: it needs a pass over the values and decides about no window.
    data = open_lazy(sources, shape, case_dir, **{"normalization": "none", **lazy})
    starts: dict[tuple[int, str], list[int]] = {}
    columns = (data._lookup_sources.tolist(), data._lookup_basins.tolist(), data._lookup_starts.tolist())
    for source, basin, start in zip(*columns, strict=True):
        state = data.source_states[source]
        first_input = state.time_offset + start - shape["warmup_length"]
        starts.setdefault((source, state.source.basins[basin]), []).append(first_input)
    data.close()
    answer: Answers = {entry["dataset_id"]: [] for entry in sources}
    for (source, basin_id), found in sorted(starts.items()):
        answer[sources[source]["dataset_id"]] += [[basin_id, *run] for run in runs_of_numbers(sorted(found))]
    return answer


def values(sources: Sources, shape: dict[str, int], case_dir: str, **lazy: Any) -> Answers:
    """Return what the first data set's statistics are, its chunk shape, and all windows: x and y as nested lists."""
    data = open_lazy(sources, shape, case_dir, **lazy)
    x, y = data._load_batch(list(range(len(data))))
    return {"stats": data.stats, "chunks": data.source_chunk_shapes[0], "x": x.tolist(), "y": y.tolist()}


def epochs(
    sources: Sources,
    shape: dict[str, int],
    case_dir: str,
    *,
    batch_size: int,
    number: int,
    drop_last: bool,
    **lazy: Any,
) -> Answers:
    """Serve epochs: how many windows there are and are served at all, time chunks per batch, values read per epoch."""
    data = open_lazy(sources, shape, case_dir, **{"normalization": "none", **lazy})
    read = 0
    inner = data._read_physical_block_with_retry

    def counting(*arguments: Any) -> Any:
        nonlocal read
        block = inner(*arguments)
        read += block.size
        return block

    data._read_physical_block_with_retry = counting
    sampler = load("cloud_zarr_sampler").CloudZarrChunkBatchSampler(
        data, batch_size=batch_size, seed=0, drop_last=drop_last
    )
    served: set[int] = set()
    chunks: set[int] = set()
    for _ in range(number):
        for batch in sampler:
            data._load_batch(batch)
            served.update(batch)
            chunks.add(len({sampler.chunk_key(item) for item in batch}))
    return {"windows": len(data), "served": len(served), "chunks": sorted(chunks), "read": read / number}


def runs_of_numbers(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the half-open runs of ascending numbers; a repeated number is refused."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number < runs[-1][1]:
            raise ValueError(f"{number} comes twice")
        if runs and number == runs[-1][1]:
            runs[-1] = (runs[-1][0], number + 1)
        else:
            runs.append((number, number + 1))
    return runs


def main() -> None:
    """Answer question after question until the input ends."""
    asked = {"windows": windows, "values": values, "epochs": epochs}
    for line in sys.stdin:
        question = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            reply: Answers
            try:
                reply = {"answer": asked[question.pop("ask")](**{"case_dir": folder, **question})}
            except ValueError as error:
                reply = {"error": str(error)}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
