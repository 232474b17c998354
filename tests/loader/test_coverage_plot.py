"""The picture of an index is of its records: shares per basin and year, many basins to a row, data sets apart."""

import matplotlib as mpl
import numpy as np
import pytest

import headrace
from build_here import build_here
from headrace.loader.coverage_grid import coverage_grid
from headrace.schemas.errors import ConfigError
from synthetic import write_store

STEPS = 400  # 2000 is a leap year: 366 days of it, and 34 of 2001


def section(path, basins, missing=None, variables=("rain", "flow")):
    store = write_store(path, basins=basins, steps=STEPS, variables=variables, missing=missing or {})
    inputs = {name: {"physical": name, "required": name in variables} for name in ("rain", "snow")}
    names = {"relevant": inputs, "target": ["flow"]}
    return store, {"timeseries": str(store.path), "t_range_train": ["2000-01-01", "2000-12-31"], "variables": names}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coverage")
    holes = np.zeros((30, STEPS), dtype=bool)
    holes[3, 300:390] = True
    holes[10] = True
    _, many = section(folder / "many.zarr", 30, {"flow": holes})
    _, few = section(folder / "few.zarr", 2, variables=("rain", "snow", "flow"))
    built = build_here({"datasets": {"many": many, "few": few}, "window": {"hindcast_length": 2}}, folder / "index")
    with headrace.open_index(built) as opened:
        yield opened


@pytest.fixture(autouse=True)
def plain_backend():
    mpl.use("Agg")
    yield
    from matplotlib import pyplot as plt

    plt.close("all")


def test_shares_are_those_of_the_records(index):
    grid = coverage_grid(index, "many", "flow")
    expected = np.ones((30, 2))
    expected[3] = 1 - 66 / 366, 1 - 24 / 34
    expected[10] = 0
    assert grid.years.tolist() == [2000, 2001]
    np.testing.assert_allclose(grid.share, expected)
    np.testing.assert_allclose(coverage_grid(index, "many").share, (1 + expected) / 2)
    np.testing.assert_allclose(coverage_grid(index, "many", "rain").share, 1)


def test_many_basins_share_rows_and_none_is_left_out(index):
    fine, coarse = coverage_grid(index, "many", "flow"), coverage_grid(index, "many", "flow", most_rows=7)
    assert coarse.share.shape == (7, 2)
    assert coarse.first_basin[0] == 0
    assert coarse.first_basin[-1] == 30
    means = [fine.share[a:b].mean(axis=0) for a, b in zip(coarse.first_basin[:-1], coarse.first_basin[1:], strict=True)]
    np.testing.assert_allclose(coarse.share, means)


def test_one_data_set_is_drawn_with_its_basins(index, tmp_path):
    axes = index.plot_coverage("many", "flow")
    (image,) = axes.images
    np.testing.assert_allclose(image.get_array(), coverage_grid(index, "many", "flow").share)
    assert image.get_extent() == [1999.5, 2001.5, 29.5, -0.5]
    assert [label.get_text() for label in axes.get_yticklabels()][3] == "01003500"
    axes.figure.savefig(tmp_path / "coverage.png")
    pixels = mpl.image.imread(tmp_path / "coverage.png")
    box = axes.get_window_extent()
    inside = pixels[len(pixels) - int(box.y1) + 2 : len(pixels) - int(box.y0) - 2, int(box.x0) + 2 : int(box.x1) - 2]
    colours = {tuple(int(v) for v in image.cmap(share, bytes=True)[:3]) for share in np.unique(image.get_array())}
    drawn = {tuple(colour) for colour in np.rint(255 * inside[:, :, :3]).astype(int).reshape(-1, 3).tolist()}
    assert colours <= drawn


def test_data_sets_are_bands_and_small_ones_can_be_seen(index):
    axes = index.plot_coverage()
    assert [image.get_array().shape for image in axes.images] == [(30, 2), (2, 2)]
    bottoms = [image.get_extent()[2] for image in axes.images]
    assert bottoms == [29.5, 29.5 + 0.2 * 30]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["many\n30 basins", "few\n2 basins"]


def test_it_draws_into_axes_that_are_given_and_leaves_out_what_lacks_the_variable(index):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert index.plot_coverage(variable="snow", ax=axes) is axes
    assert [image.get_array().shape for image in axes.images] == [(2, 2)]
    assert axes.get_title() == "snow"


@pytest.mark.parametrize(
    ("dataset", "variable", "known"), [("none", None, "many"), (None, "wind", "flow"), ("many", "snow", "rain")]
)
def test_unknown_names_are_refused_with_those_there_are(index, dataset, variable, known):
    with pytest.raises(ConfigError, match=known):
        index.plot_coverage(dataset, variable)


def test_dollar_signs_are_no_formula(tmp_path):
    _, data = section(tmp_path / "store.zarr", 2)
    built = build_here({"datasets": {"$\\frac{$": data}, "window": {"hindcast_length": 2}}, tmp_path / "index")
    with headrace.open_index(built) as opened:
        axes = opened.plot_coverage()
    axes.figure.savefig(tmp_path / "coverage.png")
    assert axes.get_ylabel().replace("\\$", "$") == "$\\frac{$, 2 basins"
