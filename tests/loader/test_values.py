"""Values of special kinds, each against the oracle: packed, per area, flagged, odd axes, lacking, flat (A, C, I)."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr

import headrace
from build_here import build_here
from headrace.schemas.config_io import parse_config
from oracle_loader import OracleLoader, check_epoch
from synthetic import ArrayLayout, SyntheticStore, write_attributes, write_store

WINDOW = {"hindcast_length": 4, "forecast_length": 1, "warmup_length": 3}
HOLES = {"rain": np.arange(160).reshape(4, 40) % 13 == 0, "flow": np.arange(160).reshape(4, 40) % 17 == 3}


def store_of(folder: Path, name: str = "a", **settings: Any) -> SyntheticStore:
    given = {"basins": 4, "steps": 40, "variables": ["rain", "flow"], "missing": HOLES, **settings}
    store = write_store(folder / f"{name}.zarr", **given)
    areas = {
        "area": [1.0, 2.0, 4.0, 8.0][: len(store.basin_ids)],
        "slope": [3.0, 1.0, 2.0, 9.0][: len(store.basin_ids)],
    }
    write_attributes(folder / f"{name}_attributes.zarr", store.basin_ids[::-1], areas, {"area": "km2"})
    return store


def section(store: SyntheticStore, **changes: Any) -> dict[str, Any]:
    return {
        "timeseries": str(store.path),
        "attributes": str(store.path.parent / f"{store.path.stem}_attributes.zarr"),
        "t_range_train": ["2000-01-03", "2000-01-30"],
        "t_range_test": ["2000-01-31", "2000-02-09"],
        "variables": {"relevant": ["rain"], "target": ["flow"], "constant": ["area", "slope"]},
        **changes,
    }


def check(folder: Path, datasets: dict[str, Any], split: str = "train", **sections: Any) -> OracleLoader:
    """Index the data sets and hold two epochs, one of them spilling, and windows by number to the oracle."""
    config = parse_config({"datasets": datasets, "window": WINDOW, **sections})
    oracle = OracleLoader(config, split)
    with headrace.open_index(build_here(config, folder / "index")) as index:
        for budget in ("1GiB", 1500):
            with headrace.WindowLoader(index, split, batch_size=37, memory_budget=budget, num_workers=2) as loader:
                check_epoch(list(loader), oracle, loader)
                assert (loader.x_names, loader.y_names) == (oracle.x_names, oracle.y_names)
        dataset = headrace.WindowDataset(index, split)
        check_epoch([dataset.__getitems__(range(len(dataset))).batch], oracle, dataset)
    return oracle


@pytest.mark.parametrize("scope", ["global", "per_dataset", "per_basin"])
def test_packed_integers_with_flags_are_unpacked_for_inputs_and_targets(tmp_path, scope):
    store = store_of(
        tmp_path, dtype="int16", fill_value=-1, missing_as=-9999.0, scale_factor=0.01, add_offset=5.0, chunks=(3, 11)
    )
    check(tmp_path, {"a": section(store)}, normalization={"method": "standard", "scope": scope})


@pytest.mark.parametrize("normalization", ["none", "standard"])
def test_a_volume_becomes_a_depth_by_the_area_of_its_basin(tmp_path, normalization):
    store = store_of(tmp_path, attrs={"flow": {"units": "m3/s"}}, chunks=(3, 40))
    target = {"flow": {"physical": "flow", "per_area": "area", "unit": "mm/day", "valid_max": 1e9}}
    names = {"relevant": ["rain"], "target": target, "constant": ["area"]}
    # Basins 3 and 1 only: the area follows the basin, not the row.
    basins = [store.basin_ids[3], store.basin_ids[1]]
    check(
        tmp_path, {"a": section(store, variables=names, basins=basins)}, normalization={"method": normalization}
    )  # fmt: skip


@pytest.mark.parametrize("dims", [("basin", "time"), ("time", "basin"), ("time", "one", "basin")])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_axes_may_come_in_any_order_with_further_ones_of_length_1(tmp_path, dims, zarr_format):
    chunks = tuple({"basin": 3, "time": 7, "one": 1}[d] for d in dims)
    store = store_of(tmp_path, dims=dims, chunks=chunks, zarr_format=zarr_format)
    check(tmp_path, {"a": section(store)}, "test")


def test_shards_are_read_whole(tmp_path):
    store = store_of(tmp_path, zarr_format=3, chunks=(1, 5), shards=(2, 20))
    check(tmp_path, {"a": section(store)})


@pytest.mark.parametrize("absent_chunk", ["valid_zero", "missing"])
@pytest.mark.parametrize("fill_value", [0.0, -5.0])
def test_absent_chunks_are_zero_or_missing_as_the_configuration_says(tmp_path, absent_chunk, fill_value):
    store = store_of(
        tmp_path, chunks=(2, 10), fill_value=fill_value, absent_chunks={"rain": [(0, 1)], "flow": [(1, 2)]}
    )
    missing = {"absent_chunk": absent_chunk, "missing_policy": "fill_and_mask"}
    check(tmp_path, {"a": section(store)}, missing=missing)


def test_a_chunk_that_cannot_be_decoded_is_missing_where_the_policy_says_so(tmp_path):
    store = store_of(tmp_path, chunks=(2, 10))
    path = store.path / "rain" / "0.1"
    path.write_bytes(b"\xff" * path.stat().st_size)
    config = parse_config(
        {"datasets": {"a": section(store)}, "window": WINDOW, "missing": {"on_bad_chunk": "missing"}}
        | {"normalization": {"method": "none"}}
    )
    with (
        headrace.open_index(build_here(config, tmp_path / "index")) as index,
        headrace.WindowLoader(index, "train", missing={"missing_policy": "fill_and_mask"}) as loader,
    ):
        for batch in loader:
            steps = batch.start[:, None] + torch.arange(5)
            lost = (batch.basin[:, None] < 2) & (steps >= 10) & (steps < 20)
            hole = torch.from_numpy(HOLES["rain"])[batch.basin[:, None].long(), steps.long()]
            assert torch.equal(batch.x[:, :, 1] == 1, lost | hole)
            assert torch.equal(batch.x[:, :, 0] == 0, lost | hole)


def test_several_targets_and_policies_per_variable(tmp_path):
    """I7: drop, fill or mask for each input."""
    names = ["rain", "warmth", "flow", "level"]
    holes = {n: np.random.default_rng(i).random((4, 40)) < 0.08 for i, n in enumerate(names)}
    store = store_of(tmp_path, variables=names, missing=holes, chunks=(3, 9))
    relevant = {"rain": {"physical": "rain", "missing_policy": "drop"}, "warmth": "warmth"}
    variables = {"relevant": relevant, "target": ["level", "flow"], "constant": ["slope"]}
    for policy in ("keep", "drop_any_nan", "drop_all_nan"):
        missing = {"target_nan_policy": policy, "missing_policy": "fill_and_mask"}
        oracle = check(tmp_path / policy, {"a": section(store, variables=variables)}, missing=missing)
        assert oracle.x_names == ["rain", "warmth", "rain_missing", "warmth_missing"]


def test_what_one_data_set_lacks_is_filled_and_masked_for_it_alone(tmp_path):
    first = store_of(tmp_path, "a", variables=["rain", "warmth", "flow"])
    second = store_of(tmp_path, "b", variables=["rain", "flow", "level"], basins=3, missing={}, dataset=1)
    optional = {"physical": "warmth", "required": False, "fill_value": -0.5}
    variables = {
        "relevant": {"warmth": optional, "rain": "rain"},
        "target": {"flow": "flow", "level": {"physical": "level", "required": False}},
        "constant": {"area": "area", "height": {"physical": "height", "required": False, "fill_value": 0.75}},
    }
    datasets = {"b": section(second, variables=variables), "a": section(first, variables=variables)}
    for policy in ("fill", "fill_and_mask"):
        check(tmp_path / policy, datasets, missing={"missing_policy": policy, "target_nan_policy": "keep"})


def test_splits_may_have_basins_of_their_own_and_share_the_training_scale(tmp_path):
    store = store_of(tmp_path)
    ids = store.basin_ids
    basins = {"train": [ids[0], ids[2]], "test": [ids[1], ids[2], ids[3]]}
    for scope in ("global", "per_dataset", "per_basin"):
        for split in ("train", "test"):
            check(tmp_path / scope / split, {"a": section(store, basins=basins)}, split, normalization={"scope": scope})


def test_a_basin_that_is_not_trained_on_has_the_scale_of_its_data_set(tmp_path):
    store = store_of(tmp_path)
    ids = store.basin_ids
    basins = {"train": [ids[0], ids[2]], "test": [ids[1], ids[2], ids[3]]}
    config = parse_config({"datasets": {"a": section(store, basins=basins)}, "window": WINDOW})
    with headrace.open_index(build_here(config, tmp_path / "index")) as index:
        for scope in ("per_dataset", "per_basin"):
            with headrace.WindowLoader(index, "test", normalization={"scope": scope}) as loader:
                if scope == "per_dataset":
                    whole = loader.y_mean[0][0], loader.y_std[0][0]
                    continue
                own = [(loader.y_mean[0][b], loader.y_std[0][b]) for b in range(4)]
                assert own[1] == own[3] == whole
                assert whole not in (own[0], own[2])
                assert own[0] != own[2]
                assert np.unique(loader.y_train_std[0]).size == 4  # NSE* weighs every basin by its own flow


def test_values_far_from_zero_are_normalised_to_the_resolution_they_are_stored_in(tmp_path):
    """A float32 mean of 101,325 Pa is off by 0.004 Pa at most: half a step of the values themselves."""
    rng = np.random.default_rng(1)
    pressure = (101_325 + 0.5 * rng.standard_normal((4, 40))).astype(np.float32)
    store = store_of(tmp_path)
    zarr.open_group(store.path)["rain"][:] = pressure
    config = parse_config({"datasets": {"a": section(store)}, "window": WINDOW})
    with (
        headrace.open_index(build_here(config, tmp_path / "index")) as index,
        headrace.WindowLoader(index, "train", batch_size=10_000) as loader,
    ):
        batch = next(iter(loader))
        training = pressure[:, 2:30].astype(np.float64)
        wanted = (pressure.astype(np.float64) - training.mean()) / training.std()
        rows = zip(batch.basin.tolist(), batch.start.tolist(), batch.x[..., 0].double().numpy(), strict=True)
        worst = max(np.abs(x - wanted[b, s : s + 5]).max() for b, s, x in rows)
        assert worst <= 0.51 * np.spacing(np.float32(101_325)) / training.std()


@pytest.mark.parametrize("policy", ["error", "impute", "drop"])
def test_missing_statics_are_imputed_with_a_mask_or_their_basins_dropped(tmp_path, policy):
    store = store_of(tmp_path)
    columns = {"area": [1.0, float("nan") if policy != "error" else 2.0, 4.0, 8.0]}
    write_attributes(tmp_path / "a_attributes.zarr", store.basin_ids, columns)
    given = section(store, variables={"relevant": ["rain"], "target": ["flow"], "constant": ["area"]})
    if policy == "drop":
        given["basins"] = [store.basin_ids[n] for n in (0, 2, 3)]  # what drop leaves, for the oracle
    check(tmp_path, {"a": given}, missing={"static_missing": policy, "missing_policy": "fill_and_mask"})


@pytest.mark.parametrize("lacking", ["relevant", "target", "constant"])
def test_a_role_may_be_empty(tmp_path, lacking):
    store = store_of(tmp_path)
    variables = {"relevant": ["rain"], "target": ["flow"], "constant": ["area"]}
    del variables[lacking]
    check(tmp_path, {"a": section(store, variables=variables)})


def test_what_never_varies_keeps_its_unit_and_is_named_once(tmp_path, caplog):
    store = store_of(
        tmp_path, variables={"rain": ArrayLayout(absent_chunks=((0, 0),), fill_value=0.0), "flow": ArrayLayout()}
    )
    with caplog.at_level(logging.WARNING, logger="headrace.loader"):
        check(tmp_path, {"a": section(store)}, normalization={"method": "standard"})
    named = [r.getMessage() for r in caplog.records if r.name.startswith("headrace.loader")]
    assert len([text for text in named if "rain of a never varies" in text]) == 1  # by two loaders and a data set
    assert not [text for text in named if "flow" in text]


def test_the_own_std_of_each_basin_is_that_of_numpy(tmp_path):
    store = store_of(tmp_path)
    config = parse_config({"datasets": {"a": section(store)}, "window": WINDOW})
    with (
        headrace.open_index(build_here(config, tmp_path / "index")) as index,
        headrace.WindowLoader(index, "test") as loader,
    ):
        wanted = np.nanstd(store.truth["flow"][:, 2:30].astype(np.float64), axis=1)
        np.testing.assert_allclose(loader.y_train_std[0][:, 0], wanted, rtol=1e-12)


def test_basins_never_trained_on_are_scaled_as_the_training_was(tmp_path):
    store = store_of(tmp_path)
    split = {"train": list(store.basin_ids[:2]), "test": list(store.basin_ids)}
    config = parse_config({"datasets": {"a": section(store, basins=split)}, "window": WINDOW})
    unseen = [store.basin_ids[3]]
    with headrace.open_index(build_here(config, tmp_path / "index")) as index:
        with headrace.WindowLoader(index, "test", batch_size=64) as everyone:
            expected = {
                (int(b), int(s)): x
                for batch in everyone
                for b, s, x in zip(batch.basin, batch.start, batch.x, strict=True)
            }
        with headrace.WindowLoader(index, "test", batch_size=64, basins=unseen) as loader:
            (batch,) = loader
            assert set(batch.basin.tolist()) == {3}
            for b, s, x in zip(batch.basin, batch.start, batch.x, strict=True):
                torch.testing.assert_close(x, expected[int(b), int(s)], rtol=0, atol=0)
