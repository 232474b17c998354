"""`headrace report` takes an index or a run, and touches no file but its own."""

from command_line import run_headrace


def test_it_writes_the_page_of_an_index_and_of_a_run(pages, tmp_path):
    for place, kind in ((pages.index, "index"), (pages.run, "run")):
        out = tmp_path / "pages" / f"{kind}.html"
        outcome = run_headrace("report", place, "--out", out)
        assert outcome.code == 0, outcome.err
        assert outcome.out.startswith(f"{kind}  {out}")
        assert f"Headrace {kind}</title>" in out.read_text(encoding="utf-8")


def test_the_same_place_gives_the_same_page(pages, tmp_path):
    for name in ("a.html", "b.html"):
        assert run_headrace("report", pages.run, "--out", tmp_path / name).code == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_an_earlier_report_is_replaced_and_another_file_is_not(pages, tmp_path):
    out = tmp_path / "thesis.html"
    assert run_headrace("report", pages.run, "--out", out).code == 0
    assert run_headrace("report", pages.index, "--out", out).code == 0
    out.write_text("<h1>all of it</h1>")
    outcome = run_headrace("report", pages.index, "--out", out)
    assert outcome.code == 2
    assert "another file" in outcome.err
    assert out.read_text() == "<h1>all of it</h1>"


def test_what_is_neither_index_nor_run_is_said(pages, tmp_path):
    (tmp_path / "notes.txt").write_text("")
    outcome = run_headrace("report", tmp_path, "--out", tmp_path / "x.html")
    assert outcome.code == 2
    assert "notes.txt" in outcome.err
    absent = run_headrace("report", tmp_path / "none", "--out", tmp_path / "x.html")
    assert absent.code == 3
    assert all(word in absent.err for word in ("nothing to report on", "--out", "--run-dir", str(tmp_path / "none")))
    (tmp_path / "begun" / "parts").mkdir(parents=True)
    assert run_headrace("report", tmp_path / "begun", "--out", tmp_path / "x.html").code == 4
    assert not (tmp_path / "x.html").exists()


def test_of_several_seeds_one_has_to_be_named(tmp_path):
    (tmp_path / "runs" / "seed-3" / "checkpoints").mkdir(parents=True)
    (tmp_path / "runs" / "seeds.json").write_text("{}")
    outcome = run_headrace("report", tmp_path / "runs", "--out", tmp_path / "x.html")
    assert outcome.code == 2
    assert "seed-3" in outcome.err


def test_an_index_option_is_for_runs(pages, tmp_path):
    outcome = run_headrace("report", pages.index, "--index", pages.index, "--out", tmp_path / "x.html")
    assert outcome.code == 2
    assert "--index" in outcome.err


def test_a_wrong_index_for_a_run_is_refused_when_asked_for(pages, tmp_path):
    outcome = run_headrace("report", pages.run, "--index", tmp_path / "none", "--out", tmp_path / "x.html")
    assert outcome.code == 3
