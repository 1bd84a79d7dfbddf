"use strict";
// Numbers -> SVG: axes, lines, points and bars. Colours and lines are those of the page's style, so that one drawing serves light, dark and paper.
const pictures = (() => {
  const LEFT = 66, RIGHT = 14, BOTTOM = 44, LEGEND = 28;
  const SHAPES = { circle: "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0", square: "M-4,-4h8v8h-8z" };
  // What is said by colour is said by shape too: nobody needs to tell colours apart.
  const LOOKS = { raw: "circle", calibrated: "square" };
  const LETTERS = 17; // of a name beside the axis

  function element(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  }

  // Round numbers from low to high, about so many.
  function ticks(low, high, wanted = 5) {
    const rough = (high - low || 1) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((times) => times * power >= rough * 0.999);
    const first = Math.ceil(low / step - 1e-9);
    return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
  }

  const digits = (values) => {
    const step = values.length > 1 ? values[1] - values[0] : 1;
    return Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  };
  const plain = (values) => (value) => value.toFixed(digits(values));
  const percent = (values) => (value) => `${(100 * value).toFixed(Math.max(0, digits(values) - 2))}%`;
  const short = (name) => (name.length > LETTERS ? `${name.slice(0, LETTERS - 1)}…` : name);

  // What a pointer finds out about a mark.
  const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
  function explain(mark, facts) {
    mark.addEventListener("pointerenter", (event) => {
      tip.replaceChildren(...facts.map(([title, value]) => {
        const line = document.createElement("div");
        line.append(Object.assign(document.createElement("span"), { textContent: title }), ` ${value}`);
        return line;
      }));
      document.body.append(tip);
      tip.hidden = false;
      tip.style.left = `${Math.max(0, Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8))}px`;
      tip.style.top = `${Math.max(0, Math.min(event.clientY + 12, window.innerHeight - tip.offsetHeight - 8))}px`;
    });
    mark.addEventListener("pointerleave", () => { tip.hidden = true; });
    return mark;
  }

  const room = () => Math.max(260, Math.min(560, document.querySelector("main").clientWidth - 32));

  // A picture with its axes, and where values stand in it. x, y: { from, to, title, ticks, format, names, root (a scale of square roots), grid };
  // a y axis with names has bands in the place of numbers.
  function frame(label, height, x, y, kinds) {
    const left = y.names ? 130 : LEFT, top = kinds ? LEGEND : 8;
    const whole = room(), width = whole - left - RIGHT;
    const size = { viewBox: `0 0 ${whole} ${top + height + BOTTOM}`, width: whole, height: top + height + BOTTOM };
    const svg = element("svg", { ...size, role: "img", "aria-label": label });
    const share = (axis, value) => {
      if (axis.names) return (axis.names.indexOf(value) + 0.5) / axis.names.length;
      const [from, to, at] = [axis.from, axis.to, value].map(axis.root ? Math.sqrt : Number);
      return to > from ? (at - from) / (to - from) : 0.5;
    };
    const place = {
      x: (value) => left + width * share(x, value),
      y: (value) => (y.names ? top + height * share(y, value) : top + height * (1 - share(y, value))),
    };
    const add = (name, attributes, ...children) => {
      const made = element(name, attributes, ...children);
      svg.append(made);
      return made;
    };
    const floor = top + height;
    x.ticks.forEach((value) => {
      const at = place.x(value);
      if (x.grid) add("line", { class: "grid", x1: at, x2: at, y1: top, y2: floor });
      add("text", { x: at, y: floor + 16, "text-anchor": "middle" }, x.format(value));
    });
    (y.names || y.ticks).forEach((value) => {
      const at = place.y(value);
      if (!y.names) add("line", { class: "grid", x1: left, x2: left + width, y1: at, y2: at });
      add("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, y.names ? short(value) : y.format(value));
    });
    add("line", { class: "axis", x1: left, x2: left + width, y1: floor, y2: floor });
    if (!y.names) add("line", { class: "axis", x1: left, x2: left, y1: top, y2: floor });
    if (x.title) add("text", { x: left + width / 2, y: floor + 36, "text-anchor": "middle" }, x.title);
    const middle = top + height / 2;
    if (y.title) add("text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, y.title);
    (kinds || []).forEach((kind, i) => {
      const at = left + 8 + 110 * i;
      add("path", { class: `key ${kind}`, d: SHAPES[LOOKS[kind]], transform: `translate(${at} 12)` });
      add("text", { x: at + 10, y: 16 }, kind);
    });
    const point = (kind, x, y, facts) => {
      const made = { class: `point ${kind}`, d: SHAPES[LOOKS[kind]], transform: `translate(${place.x(x)} ${place.y(y)})` };
      return explain(add("path", made), facts);
    };
    const line = (kind, points) => {
      const path = points.map(([x, y], i) => `${i ? "L" : "M"}${place.x(x).toFixed(1)},${place.y(y).toFixed(1)}`).join("");
      return add("path", { class: `curve ${kind}`, d: path });
    };
    const rule = (style, from, to) => {
      const [x1, y1, x2, y2] = [place.x(from[0]), place.y(from[1]), place.x(to[0]), place.y(to[1])];
      return add("line", { class: style, x1, y1, x2, y2 });
    };
    return { svg, place, add, point, line, rule };
  }

  const FIFTHS = [0, 0.2, 0.4, 0.6, 0.8, 1];
  const unit = (more) => ({ from: 0, to: 1, ticks: FIFTHS, format: plain(FIFTHS), grid: true, ...more });

  // Reliability: rows with kind, score, right, low, high, pairs; the diagonal is the truth.
  function diagram(rows, kinds) {
    const made = frame("Reliability diagram; its values are in the table below", 380, unit({ title: "mean score of the bin" }),
      unit({ title: "share that is right" }), kinds);
    made.rule("truth", [0, 0], [1, 1]);
    kinds.forEach((kind) => {
      const own = rows.filter((row) => row.kind === kind);
      own.forEach((row) => made.rule(`reach ${kind}`, [row.score, row.low], [row.score, row.high]));
      if (own.length) made.line(kind, own.map((row) => [row.score, row.right]));
    });
    rows.forEach((row) => made.point(row.kind, row.score, row.right, [
      ["scores", row.kind], ["mean score", row.score.toFixed(3)], ["right", row.right.toFixed(3)], ["95 %", row.bar],
      ["pairs", row.pairs.toLocaleString("en")],
    ]));
    return made.svg;
  }

  // How many scores lie where: rows with kind, start, end (where the bar stands), range, pairs.
  function scores(rows) {
    const most = Math.max(1, ...rows.map((row) => row.pairs));
    const marks = [...new Set([0, most / 4, most].map(Math.round))];
    const format = (value) => value.toLocaleString("en", { notation: "compact" });
    const y = { from: 0, to: most, root: true, ticks: marks, format, title: "pairs (√ scale)" };
    const made = frame("How many scores lie where", 90, unit({ title: "score of a pair", grid: false }), y);
    rows.forEach((row) => {
      const x = made.place.x(row.start), top = made.place.y(row.pairs);
      const bar = { class: `bar ${row.kind}`, x, y: top, width: made.place.x(row.end) - x, height: made.place.y(0) - top };
      explain(made.add("rect", bar), [["scores", row.kind], ["from, to", row.range], ["pairs", row.pairs.toLocaleString("en")]]);
    });
    return made.svg;
  }

  // The lowest and highest of some values with round numbers around them.
  function around(values, format, wanted) {
    const low = Math.min(...values), high = Math.max(...values);
    const marks = ticks(low, high === low ? low + 0.01 : high, wanted);
    const step = marks.length > 1 ? marks[1] - marks[0] : 0.01;
    const [from, to] = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
    const all = ticks(from, to > from ? to : from + step, Math.max(1, Math.round((to - from) / step)));
    return { from, to: to > from ? to : from + step, ticks: all, format: format(all) };
  }

  // Accuracy of the most confident share: shares, and raw and calibrated accuracy of each.
  function coverage(curves, kinds) {
    const y = around(kinds.flatMap((kind) => curves[kind]).concat(curves.shares.length ? [] : [0, 1]), percent, 5);
    const made = frame("Accuracy against coverage; values are in the table below", 220,
      unit({ title: "share kept, most confident first", format: percent(FIFTHS), grid: false }), { ...y, title: "accuracy of what is kept" }, kinds);
    kinds.filter(() => curves.shares.length).forEach((kind) => {
      made.line(kind, curves.shares.map((share, i) => [share, curves[kind][i]]));
      // What a pointer finds is broader than what is seen.
      curves.shares.forEach((share, i) => {
        const spot = made.add("circle", { class: "unseen", cx: made.place.x(share), cy: made.place.y(curves[kind][i]), r: 5 });
        const facts = [["scores", kind], ["kept", `${Math.round(100 * share)}%`], ["right", `${(100 * curves[kind][i]).toFixed(2)}%`]];
        explain(spot, facts);
      });
    });
    return made.svg;
  }

  // The error before and after, of all and of each group, with its 95 % interval and what chance would show (Kranzlein et al. 2021, figures 2 and 3).
  function errors(marks, kinds, label = "Calibration error by group; its values are in the table below") {
    const values = marks.flatMap((mark) => [mark.raw, mark.calibrated, mark.true_high, mark.floor95]).filter((value) => value !== null);
    const x = { ...around([0, ...values], plain, 5), title: "calibration error (lower is better)", grid: true };
    const made = frame(label, 26 * Math.max(1, marks.length), x,
      { names: marks.map((mark) => mark.name) }, kinds);
    marks.forEach((mark) => {
      const { x, y } = made.place, at = y(mark.name);
      if (mark.floor95 !== null) made.add("rect", { class: "floor", x: x(0), y: at - 9, width: x(mark.floor95) - x(0), height: 18 });
      made.rule("change", [mark.raw, mark.name], [mark.calibrated, mark.name]);
      if (mark.true_low !== null) made.rule("interval", [mark.true_low, mark.name], [mark.true_high, mark.name]);
      const numbers = [["raw", mark.raw], ["calibrated", mark.calibrated], ["95 % from", mark.true_low], ["95 % to", mark.true_high],
        ["chance, up to", mark.floor95]];
      const facts = [["of", mark.name], ...numbers.map(([title, value]) => [title, value === null ? "–" : value.toFixed(4)]),
        ["pairs", mark.pairs.toLocaleString("en")]];
      kinds.forEach((kind) => made.point(kind, mark[kind], mark.name, facts));
    });
    return made.svg;
  }

  return { diagram, scores, coverage, errors };
})();
