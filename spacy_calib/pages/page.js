"use strict";
(() => {
  const KINDS = ["raw", "calibrated"];
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const OPTIONS = { renderer: "svg", actions: false, ast: true, tooltip: { disableDefaultStyle: true, theme: "page" } };
  const MARGIN = 90; // of a picture's width, for axis and title

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

  const kept = (curves) => KINDS.flatMap((kind) => curves.shares.map((share, i) => ({ kind, share, accuracy: curves[kind][i] })));

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

  const room = () => Math.max(180, Math.min(560, document.querySelector("main").clientWidth - 32) - MARGIN);

  function embed(element, spec, label, datasets) {
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", label);
    return vegaEmbed(element, { ...spec, width: room(), datasets }, OPTIONS).then((result) => result.view);
  }

  async function start(view, section) {
    const $ = (selector) => section.querySelector(selector);
    const which = $(".which");
    const chosen = () => {
      const kind = section.querySelector("input[type=radio]:checked").value;
      return kind === "both" ? KINDS : [kind];
    };
    const all = curveOf(view, "all");
    const [diagram, scores, coverage, errors] = await Promise.all([
      embed($(".diagram"), view.specs.diagram, "Reliability diagram; its values are in the table below", { bins: binRows(all, KINDS) }),
      embed($(".scores"), view.specs.scores, "How many scores lie where", { scores: barRows(all, KINDS) }),
      embed($(".coverage"), view.specs.coverage, "Accuracy against coverage; values are in the table below", { coverage: kept(view.coverage) }),
      embed($(".errors"), view.specs.errors, "Calibration error by group; its values are in the table below", {}),
    ]);
    const draw = async () => {
      const curves = curveOf(view, which.value);
      const kinds = chosen();
      const total = curves[0].pairs.reduce((sum, n) => sum + n, 0);
      $(".caption").textContent = `${which.selectedOptions[0].textContent}: ${count(total)} pairs`;
      fillTable($(".bins"), binRows(curves, KINDS));
      await Promise.all([
        diagram.data("bins", binRows(curves, kinds)).runAsync(),
        scores.data("scores", barRows(curves, kinds)).runAsync(),
      ]);
    };
    which.addEventListener("change", draw);
    section.querySelectorAll("input[type=radio]").forEach((input) => input.addEventListener("change", draw));
    table(section, (tag) => {
      which.value = `tags:${tag}`;
      draw();
      which.focus({ preventScroll: true });
      which.scrollIntoView({ block: "center" });
    });
    await draw();
    return [diagram, scores, coverage, errors];
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
  const overTime = page.watch ? [embed(document.querySelector(".over-time"), page.watch, "Expected accuracy over time; values are in the table below", {})] : [];
  Promise.all([...page.views.map((view, i) => start(view, sections[i])), ...overTime]).then((drawn) => {
    window.addEventListener("resize", hint);
    document.querySelectorAll("details").forEach((part) => part.addEventListener("toggle", hint));
    hint();
    const resize = () => drawn.flat().forEach((picture) => picture.width(room()).runAsync());
    window.addEventListener("resize", resize);
    const opened = [];
    window.addEventListener("beforeprint", () => {
      document.querySelectorAll("details:not([open])").forEach((part) => { part.open = true; opened.push(part); });
    });
    window.addEventListener("afterprint", () => opened.splice(0).forEach((part) => { part.open = false; }));
    document.documentElement.dataset.drawn = "yes";
  });
})();
