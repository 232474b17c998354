"use strict";
(function () {
  // Maps: point at a cell, or move with the arrow keys, and it is read out below.
  function share(permille) {
    if (permille === 0 || permille === 1000) return permille / 10 + " %";
    return (permille / 10).toFixed(1).replace(/\.0$/, "") + " %";
  }
  function prepare(area) {
    const rows = JSON.parse(area.dataset.rows), columns = JSON.parse(area.dataset.columns);
    const cells = area.dataset.cells, unit = area.dataset.unit, states = area.dataset.states || "";
    const names = JSON.parse(area.dataset.stateNames || "[]");
    const cursor = area.querySelector(".cursor"), readout = area.closest("figure").querySelector(".readout");
    const at = { row: 0, column: 0 };
    function show() {
      const number = at.row * columns.length + at.column, code = cells.substr(2 * number, 2);
      const state = states ? parseInt(states[number], 36) : 0;
      const what = code === "--" ? "nothing" : state ? names[state - 1] : share(parseInt(code, 36)) + " " + unit;
      readout.textContent = rows[at.row] + ", " + columns[at.column] + ": " + what;
      cursor.hidden = false;
      cursor.style.left = 100 * at.column / columns.length + "%";
      cursor.style.top = 100 * at.row / rows.length + "%";
      cursor.style.width = 100 / columns.length + "%";
      cursor.style.height = 100 / rows.length + "%";
    }
    function hide() {
      cursor.hidden = true;
      readout.textContent = "\u00a0";
    }
    function clamp(number, size) {
      return Math.max(0, Math.min(size - 1, number));
    }
    area.addEventListener("pointermove", function (event) {
      const box = area.getBoundingClientRect();
      at.row = clamp(Math.floor((event.clientY - box.top) / box.height * rows.length), rows.length);
      at.column = clamp(Math.floor((event.clientX - box.left) / box.width * columns.length), columns.length);
      show();
    });
    area.addEventListener("pointerleave", function () {
      if (document.activeElement !== area) hide();
    });
    area.addEventListener("focus", show);
    area.addEventListener("blur", hide);
    area.addEventListener("keydown", function (event) {
      const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
        Home: [0, -columns.length], End: [0, columns.length], PageUp: [-rows.length, 0], PageDown: [rows.length, 0] };
      const move = moves[event.key];
      if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      at.row = clamp(at.row + move[0], rows.length);
      at.column = clamp(at.column + move[1], columns.length);
      show();
    });
  }
  document.querySelectorAll("[data-map]").forEach(prepare);

  // Tables wider than the page: reached by Tab, moved by the arrow keys, named by their captions.
  const scrolled = document.querySelectorAll(".scroll");
  function mark() {
    scrolled.forEach(function (place) {
      if (place.scrollWidth > place.clientWidth) {
        place.tabIndex = 0;
        place.setAttribute("role", "region");
        place.setAttribute("aria-label", place.querySelector("caption").textContent);
      } else {
        ["tabindex", "role", "aria-label"].forEach(function (name) { place.removeAttribute(name); });
      }
    });
  }
  mark();
  window.addEventListener("resize", mark);
  document.addEventListener("toggle", mark, true);

  // Long tables: look for rows by a part of their first two cells.
  const MOST = 50;
  function line(cells) {
    const made = document.createElement("tr");
    cells.forEach(function (text, number) {
      const cell = document.createElement(number ? "td" : "th");
      if (!number) cell.scope = "row";
      cell.textContent = text;
      made.append(cell);
    });
    return made;
  }
  document.querySelectorAll("[data-find]").forEach(function (place) {
    const input = place.querySelector("input");
    if (!input) return;
    const rows = JSON.parse(place.querySelector("script").textContent);
    const body = place.querySelector("tbody"), first = Array.from(body.children);
    const status = place.querySelector("[role=status]");
    input.addEventListener("input", function () {
      const wanted = input.value.trim().toLowerCase();
      if (!wanted) {
        body.replaceChildren(...first);
        status.textContent = "";
        return;
      }
      const found = rows.filter(function (cells) {
        return cells[0].toLowerCase().includes(wanted) || cells[1].toLowerCase().includes(wanted);
      });
      body.replaceChildren(...found.slice(0, MOST).map(line));
      status.textContent = found.length > MOST ? MOST + " of " + found.length.toLocaleString("en") + " shown"
        : found.length + " found";
    });
  });
})();
