"""What a page must be for everybody who reads it, looked up in a browser that shows it."""

from typing import Any

from browser import Tab

_AUDIT = r"""
(() => {
  const shown = (el) => el.getClientRects().length > 0 && getComputedStyle(el).visibility !== "hidden";
  const parse = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (el) => {
    for (; el; el = el.parentElement) {
      const colour = parse(getComputedStyle(el).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const pale = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode, el = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE"].includes(el.tagName) || el.closest("svg") || !shown(el)) continue;
    texts++;
    const [a, b] = [light(parse(getComputedStyle(el).color)), light(behind(el))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) pale.push(`${ratio.toFixed(2)}: ${node.data.trim().slice(0, 40)}`);
  }
  const beyond = [...document.querySelectorAll("main *, header *, footer *")].filter(
    (el) => shown(el) && !el.closest(".scroll, .unseen, svg") && el.getBoundingClientRect().right > innerWidth + 1);
  const overlaps = [];
  for (const axis of document.querySelectorAll(".x, .y")) {
    const boxes = [...axis.children].filter(shown).map((el) => [el.getBoundingClientRect(), el.textContent]);
    const down = axis.className === "y", [low, high] = down ? ["top", "bottom"] : ["left", "right"];
    boxes.sort((a, b) => a[0][low] - b[0][low]);
    for (let i = 1; i < boxes.length; i++) {
      if (boxes[i][0][low] < boxes[i - 1][0][high] + 2) overlaps.push(`${boxes[i - 1][1]} | ${boxes[i][1]}`);
    }
  }
  const named = (el) => el.getAttribute("aria-label") || el.getAttribute("aria-labelledby");
  const askew = [...document.querySelectorAll(".frame")].filter((frame) => {
    const box = (name) => frame.querySelector(name).getBoundingClientRect();
    const [area, x, y] = [box(".area"), box(".x"), box(".y")];
    const apart = [area.width - x.width, area.left - x.left, area.height - y.height];
    return apart.some((pixels) => Math.abs(pixels) > 1);
  });
  const wanting = document.querySelectorAll("svg, img, [role=region], [role=group], nav, section, input");
  const unnamed = [...wanting].filter((el) =>
    !el.closest("[aria-hidden=true]") && !named(el) && !(el.labels && el.labels.length));
  const figures = [...document.querySelectorAll("figure svg[role=img]")];
  return {
    wide: document.documentElement.scrollWidth > innerWidth, beyond: beyond.map((el) => el.outerHTML.slice(0, 120)),
    pale, texts, overlaps, unnamed: unnamed.map((el) => el.outerHTML.slice(0, 120)),
    figures: figures.length, askew: askew.length,
    undescribed: figures.filter(
      (el) => !el.querySelector("title")?.textContent || !el.querySelector("desc")?.textContent).length,
    headings: [...document.querySelectorAll("h1, h2, h3, h4")].map((el) => Number(el.tagName[1])),
    anchors: [...document.querySelectorAll("nav a")].filter((a) => !document.querySelector(a.getAttribute("href")))
      .map((a) => a.href),
    repeated: [...document.querySelectorAll("[id]")].map((el) => el.id).filter((id, i, all) => all.indexOf(id) !== i),
    controls: [...document.querySelectorAll("a[href], summary, input, [tabindex='0']")].filter(shown).length,
    background: getComputedStyle(document.body).backgroundColor,
  };
})()
"""
_FOCUSED = """(() => {
  const el = document.activeElement;
  const all = [...document.querySelectorAll("a[href], summary, input, [tabindex='0']")];
  return [all.indexOf(el), el.tagName, getComputedStyle(el).outlineStyle];
})()"""


def audit(tab: Tab) -> dict[str, Any]:
    """Return what is wrong with a page, a list or a number for each rule."""
    found: dict[str, Any] = tab.run(_AUDIT)
    return found


def tab_through(tab: Tab, most: int) -> list[tuple[int, str, str]]:
    """Press Tab and return, each time, the number of the control that has the focus, its element, and its outline."""
    order = []
    for _ in range(most):
        tab.press("Tab")
        order.append(tuple(tab.run(_FOCUSED)))
    return order
