"""The demo works only in folders of its own, and fails loudly when its model has learnt too little."""

import numpy as np
import pytest

from command_line import run_headrace
from headrace.demo.config_text import CONFIG_TEXT
from headrace.demo.folder import DemoFolder
from headrace.demo.run import DemoError, DemoScore, check_scores
from headrace.schemas.errors import ConfigError


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("all of it")
    outcome = run_headrace("demo", "--out", tmp_path)
    assert outcome.code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_refused(tmp_path):
    (tmp_path / "demo").write_text("a file")
    with pytest.raises(ConfigError):
        DemoFolder.claim(tmp_path / "demo")


def test_its_own_folder_is_taken_again_without_the_old_run(tmp_path):
    folder = DemoFolder.claim(tmp_path / "demo")
    folder.config.write_text(CONFIG_TEXT)
    for kept in (folder.run, folder.path / "longer"):
        kept.mkdir()
        (kept / "metrics.csv").touch()
    again = DemoFolder.claim(tmp_path / "demo")
    assert not again.run.exists()
    assert (again.path / "longer" / "metrics.csv").exists()


def test_an_edited_configuration_is_not_replaced(tmp_path):
    folder = DemoFolder.claim(tmp_path)
    folder.config.write_text(CONFIG_TEXT + "# mine\n")
    with pytest.raises(ConfigError, match="edited"):
        DemoFolder.claim(tmp_path)
    assert folder.config.read_text().endswith("# mine\n")


@pytest.mark.parametrize(
    ("nse", "climatology", "good"),
    [
        (0.8, 0.2, True),
        (0.5, 0.2, True),
        (0.49, 0.0, False),
        (0.6, 0.4, False),
        (np.nan, 0.1, False),
        (0.8, np.nan, False),
    ],
)
def test_every_data_set_must_reach_both_thresholds(nse, climatology, good):
    fine = DemoScore(dataset_id="alpine", nse=0.9, climatology=0.1)
    scores = [fine, DemoScore(dataset_id="lowland", nse=nse, climatology=climatology)]
    if good:
        check_scores(scores)
    else:
        with pytest.raises(DemoError, match="lowland") as caught:
            check_scores(scores)
        assert caught.value.exit_code == 1
        assert "alpine" not in str(caught.value)
