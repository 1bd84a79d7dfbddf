"use strict";
const at = (id) => document.getElementById(id);
const text = at("text"), way = at("way"), cut = at("cut"), shown = at("shown"), kinds = ["calibrated", "raw"];
const usual = Number(cut.value);
let asked = 0, cutoff = usual, moved = false;

const marksOf = (kind) => [...at(kind).querySelectorAll("[data-score]")];
const reached = (marks) => marks.filter((one) => one.hasAttribute("role"));
const percent = () => `${Number(cutoff.toFixed(1))} %`;

// The pipeline's own cut-off for what is shown, in percent: where the slider starts.
const own = () => Number(way.selectedOptions[0].dataset.cutoff);
function startCut() {
  if (!moved) cutoff = Number.isNaN(own()) ? usual : own();
  cut.value = cutoff;
}

// What is below the cut-off is underlined; the tab key stops there, and at the first mark.
function cutOff() {
  const counts = kinds.map((kind) => {
    const marks = marksOf(kind);
    for (const one of marks) one.classList.toggle("below", 100 * one.dataset.score < cutoff);
    const stops = reached(marks);
    stops.forEach((one, i) => { one.tabIndex = i === 0 || one.classList.contains("below") ? 0 : -1; });
    return `${stops.filter((one) => one.classList.contains("below")).length} of ${stops.length} by ${kind} scores`;
  });
  at("at").textContent = cutoff === own() ? `${percent()}, as set in the pipeline` : percent();
  cut.setAttribute("aria-valuetext", percent());
  at("below").textContent = `Below ${percent()}: ${counts.join(", ")}.`;
}

function tell(answer) {
  at("fault").textContent = answer.fault || "";
  shown.hidden = at("result").hidden = Boolean(answer.fault);
  at("summary").textContent = answer.summary || "";
  at("below").textContent = "";
  at("drift").textContent = answer.drift || "";
  at("drift").className = answer.verdict || "";
  // Markup of the server, in which everything of the text is escaped.
  for (const kind of kinds) at(kind).lastElementChild.innerHTML = answer[kind] || "";
  if (!answer.fault) cutOff();
}

async function show() {
  const mine = ++asked;
  document.body.setAttribute("aria-busy", "true");
  let answer;
  try {
    answer = await (await fetch(`show?${way.value}`, { method: "POST", body: text.value })).json();
  } catch {
    answer = { fault: "There is no answer: is `calib view` still running, and is the text not far too long?" };
  }
  if (mine !== asked) return; // another text was sent since
  document.body.removeAttribute("aria-busy");
  tell(answer);
}

at("ask").addEventListener("submit", (event) => { event.preventDefault(); show(); });
text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); show(); } });
way.addEventListener("change", () => { startCut(); if (text.value.trim()) show(); });
cut.addEventListener("input", () => { moved = true; cutoff = Number(cut.value); cutOff(); });
at("look").addEventListener("change", (event) => { if (event.target.name === "kind") shown.dataset.kind = event.target.value; });
shown.addEventListener("keydown", (event) => {
  const section = event.target.closest("section");
  if (event.key === "Escape") event.target.blur();
  if (!section || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
  const stops = reached(marksOf(section.id));
  const onward = (event.key === "ArrowRight") === (getComputedStyle(event.target.closest(".cb-text")).direction === "ltr");
  const next = stops[stops.indexOf(event.target) + (onward ? 1 : -1)];
  if (next) { event.preventDefault(); next.focus(); }
});
startCut();
