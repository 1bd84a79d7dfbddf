"use strict";
(() => {
  const KINDS = ["raw", "calibrated"];
  const page = JSON.parse(document.getElementById("page-data").textContent);

  const fixed = (value) => value.toFixed(4);
  const count = (value) => value.toLocaleString("en");

  // A curve stands in the page as bare arrays: named here.
  function curveOf(view, key) {
    const [where, ...rest] = key.split(":");
    const pair = rest.length ? view[where][rest.join(":")] : view[where];
    return pair.map((arrays) => Object.fromEntries(view.columns.map((name, i) => [name, arrays[i]])));
  }

  function binRows(curves, kinds) {
    return curves.flatMap((curve, k) => !kinds.includes(KINDS[k]) ? [] : curve.pairs.map((pairs, i) => ({
      kind: KINDS[k], pairs, score: curve.scores[i], right: curve.right[i], low: curve.low[i], high: curve.high[i],
      bar: `${curve.low[i].toFixed(3)} to ${curve.high[i].toFixed(3)}`,
    })));
  }

  // Raw and calibrated stand side by side in each bin.
  function barRows(curves, kinds) {
    return curves.flatMap((curve, k) => {
      const place = kinds.indexOf(KINDS[k]);
      const width = 1 / curve.histogram.length;
      return place < 0 ? [] : curve.histogram.map((pairs, i) => ({
        kind: KINDS[k], pairs, start: (i + (place + 0.06) / kinds.length) * width, end: (i + (place + 0.94) / kinds.length) * width,
        range: `${(i * width).toFixed(2)} to ${((i + 1) * width).toFixed(2)}`,
      }));
    });
  }

  // A table that is wider than the page says so.
  function hint() {
    document.querySelectorAll(".scroll").forEach((box) => {
      const more = box.scrollWidth > box.clientWidth + 1;
      if (box.classList.toggle("sideways", more) && !box.previousElementSibling?.matches(".hint")) {
        const text = Object.assign(document.createElement("p"), { className: "hint", textContent: "The table goes on to the right →" });
        box.before(text);
      }
    });
  }

  function fillTable(body, rows) {
    body.replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr");
      const texts = [row.kind, fixed(row.score), fixed(row.right), `${fixed(row.low)} to ${fixed(row.high)}`, count(row.pairs)];
      texts.forEach((text, i) => {
        const cell = line.insertCell();
        cell.textContent = text;
        if (i) cell.className = "n";
      });
      return line;
    }));
  }

  // RETURNS: What draws the pictures of the section anew, which no longer fit where the window changes.
  function start(view, section) {
    const $ = (selector) => section.querySelector(selector);
    const which = $(".which");
    const chosen = () => {
      const kind = section.querySelector("input[type=radio]:checked").value;
      return kind === "both" ? KINDS : [kind];
    };
    const draw = () => {
      const curves = curveOf(view, which.value);
      const kinds = chosen();
      const total = curves[0].pairs.reduce((sum, n) => sum + n, 0);
      $(".caption").textContent = `${which.selectedOptions[0].textContent}: ${count(total)} pairs`;
      fillTable($(".bins"), binRows(curves, KINDS));
      $(".diagram").replaceChildren(pictures.diagram(binRows(curves, kinds), kinds));
      $(".scores").replaceChildren(pictures.scores(barRows(curves, kinds)));
    };
    const drawAll = () => {
      draw();
      $(".coverage").replaceChildren(pictures.coverage(view.coverage, KINDS));
      $(".errors").replaceChildren(pictures.errors(view.errors, KINDS));
      $(".slices")?.replaceChildren(pictures.errors(view.slices, KINDS, "Calibration error by slice; its values are in the table below"));
    };
    which.addEventListener("change", draw);
    section.querySelectorAll("input[type=radio]").forEach((input) => input.addEventListener("change", draw));
    table(section, (tag) => {
      which.value = `tags:${tag}`;
      draw();
      which.focus({ preventScroll: true });
      which.scrollIntoView({ block: "center" });
    });
    return drawAll;
  }

  // Every head is a button that sorts, every tag with pairs a button that draws it.
  function table(section, show) {
    const body = section.querySelector(".tags tbody");
    const rows = [...body.rows];
    section.querySelectorAll(".tags thead th").forEach((head, column) => {
      asButton(head).addEventListener("click", () => sort(body, head, column));
    });
    section.querySelectorAll(".tags th.drawn").forEach((cell) => {
      const tag = cell.textContent;
      asButton(cell).addEventListener("click", () => show(tag));
    });
    const find = section.querySelector(".find");
    find.addEventListener("input", () => {
      const wanted = find.value.trim().toLowerCase();
      rows.forEach((row) => { row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted); });
      const left = rows.filter((row) => !row.hidden).length;
      section.querySelector(".found").textContent = wanted ? `${count(left)} of ${count(rows.length)}` : "";
    });
  }

  function asButton(cell) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...cell.childNodes);
    cell.append(button);
    return button;
  }

  function sort(body, head, column) {
    const numeric = head.dataset.kind === "number";
    const before = head.getAttribute("aria-sort");
    const down = before ? before === "ascending" : numeric;
    head.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = [...body.rows].map((row) => {
      const text = row.cells[column].textContent;
      return { row, key: numeric ? parseFloat(text.replace(/,/g, "")) : text };
    });
    const known = keyed.filter(({ key }) => !Number.isNaN(key));
    known.sort((a, b) => (down ? -1 : 1) * (numeric ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true })));
    body.append(...known.map(({ row }) => row), ...keyed.filter(({ key }) => Number.isNaN(key)).map(({ row }) => row));
  }

  function switches(sections) {
    const buttons = [...document.querySelectorAll(".switch")];
    const show = (chosen) => {
      sections.forEach((section, i) => section.classList.toggle("away", i !== chosen));
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen)));
    };
    buttons.forEach((button, i) => button.addEventListener("click", () => { show(i); hint(); }));
    show(0);
  }

  document.documentElement.classList.add("scripted");
  const sections = [...document.querySelectorAll(".view")];
  switches(sections);
  const drawn = page.views.map((view, i) => start(view, sections[i]));
  const drawAll = () => {
    drawn.forEach((draw) => draw());
    hint();
  };
  drawAll();
  window.addEventListener("resize", drawAll);
  document.querySelectorAll("details").forEach((part) => part.addEventListener("toggle", hint));
  const opened = [];
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details:not([open])").forEach((part) => { part.open = true; opened.push(part); });
  });
  window.addEventListener("afterprint", () => opened.splice(0).forEach((part) => { part.open = false; }));
  document.documentElement.dataset.drawn = "yes";
})();
