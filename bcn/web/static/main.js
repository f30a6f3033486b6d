// Starts the page: tabs, the state of the connection, and the panels that have weights.

import { startReason } from "./reason.js";
import { startFind } from "./find.js";
import { startSee } from "./see.js";

const notice = document.getElementById("notice");
const RETRY = 1500;
const engine = await import(document.documentElement.dataset.engine).catch((error) => {
  notice.textContent = `A part of this page could not be loaded; reload it to try again. ${error.message}`;
  notice.hidden = false;
  throw error;
});

function tabs() {
  const all = [...document.querySelectorAll("[role=tab]")].filter((tab) => engine.panels.includes(tab.getAttribute("aria-controls")));
  for (const tab of all) tab.hidden = false;
  const open = (tab) => {
    for (const each of all) {
      const here = each === tab;
      each.setAttribute("aria-selected", here);
      each.tabIndex = here ? 0 : -1;
      document.getElementById(each.getAttribute("aria-controls")).hidden = !here;
    }
    history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`);
  };
  all.forEach((tab, index) => {
    tab.onclick = () => open(tab);
    tab.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = all[(index + step + all.length) % all.length];
      next.focus();
      open(next);
    };
  });
  const named = all.find((tab) => location.hash === `#${tab.getAttribute("aria-controls")}`);
  if (named) open(named);
}

// Runs one job at a time; of those that come meanwhile only the last is kept. While the server is away it tries again.
export function latest(job) {
  let running = false, waiting = null, again = null;
  return async function run(...given) {
    if (running) { waiting = given; return; }
    running = true;
    clearTimeout(again);
    try {
      await job(...given);
      notice.hidden = true;
    } catch (error) {
      notice.textContent = error.message;
      notice.hidden = false;
      if (error instanceof engine.Offline) again = setTimeout(() => run(...given), RETRY);
    }
    running = false;
    if (waiting) { const next = waiting; waiting = null; run(...next); }
  };
}

function ready(panel, usable, otherwise) {
  const [empty, columns] = panel.querySelectorAll(".empty, .columns");
  empty.hidden = usable;
  columns.hidden = !usable;
  if (!usable) empty.innerHTML = otherwise;
}

const start = latest(async () => {
  const weights = await engine.weights();
  const of = (family) => weights.filter((each) => each.family === family);
  const scenes = of("sort-of-clevr"), digits = of("scaled-mnist"), rendered = of("clevr");
  const hint = (what, recipe) =>
    `No ${what} weights are loaded. Train some with <code>bcn train ${recipe}</code> and give the run's directory: <code>bcn serve --weights RUN</code>.`;
  ready(document.getElementById("reason"), scenes.length > 0, hint("Sort-of-CLEVR", "table3/multirn-h"));
  ready(document.getElementById("find"), digits.length > 0, hint("Scaled-MNIST", "table1/bcn"));
  if (rendered.length) { ready(document.getElementById("see"), true); startSee(engine, rendered, latest); }
  if (scenes.length) startReason(engine, scenes, latest);
  if (digits.length) startFind(engine, latest);
  document.querySelector("main").setAttribute("aria-busy", "false");
});

tabs();
document.getElementById("foot").innerHTML = engine.about;
start();
