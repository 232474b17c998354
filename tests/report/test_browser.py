"""Reports in a real browser: at two widths, light and dark, by keyboard, with nothing asked of the network."""

import io
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from page_audit import audit, tab_through

pytestmark = pytest.mark.slow

DESKTOP, PHONE = 1280, 390
VIEWS = [(DESKTOP, False), (DESKTOP, True), (PHONE, False), (PHONE, True)]
SEEN = [(name, *view) for name in ("index_page", "run_page") for view in VIEWS]
SEEN += [("bare_page", PHONE, False), ("large", DESKTOP, False), ("large", PHONE, True)]


@pytest.mark.parametrize(("name", "width", "dark"), SEEN)
def test_a_page_is_sound(browser, pages, large_page, name, width, dark):
    page = large_page if name == "large" else getattr(pages, name)
    with browser.open(page, width=width, dark=dark) as tab:
        found = audit(tab)
        assert not found["wide"]
        assert found["beyond"] == []
        assert found["texts"] > 100
        assert found["pale"] == []
        assert found["overlaps"] == []
        assert found["askew"] == 0
        assert found["unnamed"] == []
        assert found["figures"] > 0
        assert found["undescribed"] == 0
        assert found["anchors"] == []
        assert found["repeated"] == []
        levels = found["headings"]
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        assert tab.complaints == []
        assert tab.requests == [page.as_uri()]
        picture = Image.open(io.BytesIO(tab.picture())).convert("RGB").resize((300, 200), Image.Resampling.NEAREST)
        pixels = np.asarray(picture).astype(np.int64)
        assert (pixels.mean() < 128) == dark
        assert len(np.unique(pixels @ [65_536, 256, 1])) > 20


@pytest.mark.parametrize("name", ["index_page", "run_page"])
def test_tab_reaches_every_control_in_its_order_and_shows_where_it_is(browser, pages, name):
    with browser.open(getattr(pages, name), width=DESKTOP) as tab:
        # What a closed table holds is not reached; Chromium adds stops for regions that scroll.
        number = tab.run('document.querySelectorAll("nav a, summary, input, [data-map]").length')
        order = tab_through(tab, audit(tab)["controls"])
        stops = [stop for stop in order if stop[0] >= 0]
        places = [place for place, _, _ in stops]
        first_round = places[: next((i for i in range(1, len(places)) if places[i] <= places[i - 1]), len(places))]
        assert len(first_round) >= number
        assert all(outline != "none" for _, _, outline in stops)


def test_wide_tables_are_reached_by_tab_and_others_are_not(browser, pages):
    reached = """Array.from(document.querySelectorAll(".scroll"), (el) => [el.scrollWidth > el.clientWidth, el.tabIndex,
    el.getAttribute("aria-label")])"""
    with browser.open(pages.index_page, width=PHONE) as tab:
        found = tab.run(reached)
    assert {wide for wide, _, _ in found} == {True, False}
    assert all((place == 0 and bool(label)) == wide for wide, place, label in found)


def test_a_name_without_end_breaks_instead_of_widening_its_table(browser, pages):
    lengthen = """(() => {
    const cells = Array.from(document.querySelectorAll("tbody th")).filter((el) => el.getClientRects().length > 0);
    for (const el of cells) el.textContent = "x".repeat(150);
    return cells.map((el) => el.getBoundingClientRect().width); })()"""
    with browser.open(pages.index_page, width=PHONE) as tab:
        widths = tab.run(lengthen)
    assert len(widths) > 5
    assert max(widths) < PHONE


def test_a_map_is_read_by_the_arrow_keys(browser, pages):
    with browser.open(pages.index_page, width=DESKTOP) as tab:
        tab.run('document.querySelector("[data-map]").focus()')
        readout = 'document.querySelector("[data-map]").closest("figure").querySelector(".readout").textContent'
        assert tab.run(readout) == "01000500, 2000: 100 % observed"
        tab.press("ArrowDown")
        tab.press("ArrowRight")
        assert tab.run(readout) == "<script>alert(1)</script>, 2001: 63.3 % observed"


def test_a_basin_is_found_among_ten_thousand(browser, large_page):
    with browser.open(large_page, width=PHONE) as tab:
        tab.run(
            """(() => { const input = document.querySelector("input"); input.value = "00007123";
            input.dispatchEvent(new Event("input")); })()"""
        )
        rows = 'Array.from(document.querySelectorAll("[data-find] tbody tr"), (row) => row.cells[0].textContent)'
        assert tab.run(rows) == ["00007123"]
        assert tab.run('document.querySelector("[data-find] [role=status]").textContent') == "1 found"


def test_pages_print_without_what_only_a_screen_needs(browser, pages):
    with browser.open(pages.run_page, width=DESKTOP) as tab:
        tab.send("Emulation.setEmulatedMedia", media="print")
        assert tab.run('getComputedStyle(document.querySelector("nav")).display') == "none"


def test_the_audit_sees_what_is_wrong(browser, tmp_path):
    """Of a page that breaks every rule."""
    page = tmp_path / "bad.html"
    page.write_text(
        """<!doctype html><title>bad</title><body style="background:#fff"><header><h1>bad</h1></header>
        <nav><a href="#nowhere">away</a></nav>
        <main><h3 id="a">skipped</h3><p id="a" style="color:#aaa">pale</p><div style="width:3000px">wide</div>
        <figure><svg role="img"></svg></figure><img src="none.png">
        <div class="x"><span style="position:absolute;left:0">1000000</span>
        <span style="position:absolute;left:9px">2</span></div><script>console.error("wrong")</script></main>""",
        encoding="utf-8",
    )
    with browser.open(page, width=PHONE) as tab:
        found = audit(tab)
        assert found["wide"]
        assert found["beyond"] != []
        assert [text for text in found["pale"] if "pale" in text] != []
        assert found["overlaps"] != []
        assert len(found["unnamed"]) == 3
        assert found["undescribed"] == 1
        assert len(found["anchors"]) == 1
        assert found["repeated"] == ["a"]
        assert found["headings"] == [1, 3]
        assert any("wrong" in text for text in tab.complaints)
        assert any(url.endswith("none.png") for url in tab.requests)
