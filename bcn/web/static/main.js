// Starts the page: tabs, the notice about a lost connection, and the panels that have weights.

import { element } from "./dom.js";
import { startReason } from "./reason.js";
import { startFind } from "./find.js";
import { startSee } from "./see.js";

const notice = document.getElementById("notice");
const RETRY_MS = 1500;
const engine = await import("./engine.js").catch((error) => {
  notice.textContent = `A part of this page could not be loaded; reload it to try again. ${error.message}`;
  notice.hidden = false;
  throw error;
});

function startTabs() {
  const all = [...document.querySelectorAll("[role=tab]")].filter((tab) => engine.panels.includes(tab.getAttribute("aria-controls")));
  for (const tab of all) tab.hidden = false;
  const select = (tab) => {
    for (const each of all) {
      const selected = each === tab;
      each.setAttribute("aria-selected", selected);
      each.tabIndex = selected ? 0 : -1;
      document.getElementById(each.getAttribute("aria-controls")).hidden = !selected;
    }
    history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`);
  };
  all.forEach((tab, index) => {
    tab.onclick = () => select(tab);
    tab.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = all[(index + step + all.length) % all.length];
      next.focus();
      select(next);
    };
  });
  const linked = all.find((tab) => location.hash === `#${tab.getAttribute("aria-controls")}`);
  if (linked) select(linked);
}

// Wraps a job so that one call runs at a time, and of the calls that come meanwhile only the last. While the server is offline it retries.
export function latest(job) {
  let running = false, waiting = null, retry = null;
  return async function run(...values) {
    if (running) { waiting = values; return; }
    running = true;
    clearTimeout(retry);
    try {
      await job(...values);
      notice.hidden = true;
    } catch (error) {
      notice.textContent = error.message;
      notice.hidden = false;
      if (error instanceof engine.Offline) retry = setTimeout(() => run(...values), RETRY_MS);
    }
    running = false;
    if (waiting) { const next = waiting; waiting = null; run(...next); }
  };
}

function showPanel(panel, usable, explanation = []) {
  const [empty, columns] = panel.querySelectorAll(".empty, .columns");
  empty.hidden = usable;
  columns.hidden = !usable;
  if (!usable) empty.replaceChildren(...explanation);
}

const start = latest(async () => {
  const weights = await engine.weights();
  const ofFamily = (family) => weights.filter((each) => each.family === family);
  const scenes = ofFamily("sort-of-clevr"), digits = ofFamily("scaled-mnist"), rendered = ofFamily("clevr");
  const hint = (dataset, recipe) => [
    `No ${dataset} weights are loaded. Train some with `, element("code", {}, `bcn train ${recipe}`),
    " and give the run's directory: ", element("code", {}, "bcn serve --weights RUN"), ".",
  ];
  showPanel(document.getElementById("reason"), scenes.length > 0, hint("Sort-of-CLEVR", "table3/multirn-h"));
  showPanel(document.getElementById("find"), digits.length > 0, hint("Scaled-MNIST", "table1/bcn"));
  if (rendered.length) { showPanel(document.getElementById("see"), true); startSee(engine, rendered, latest); }
  if (scenes.length) startReason(engine, scenes, latest);
  if (digits.length) startFind(engine, latest);
  document.querySelector("main").setAttribute("aria-busy", "false");
});

startTabs();
document.getElementById("footer").replaceChildren(...engine.footer);
start();
