// Starts the page: tabs, and the panels that have weights.

import { byId, element } from "./dom.js";
import { latest as makeLatest, showNotice } from "./latest.js";
import { startTabs } from "./tabs.js";
import { startReason } from "./reason.js";
import { startFind } from "./find.js";
import { startSee } from "./see.js";

const engine = await import("./engine.js").catch((error) => {
  showNotice(`A part of this page could not be loaded; reload it to try again. ${error.message}`);
  throw error;
});
const latest = (job) => makeLatest(job, (error) => error instanceof engine.Offline), panels = {};

// A panel starts what it shows when it is first looked at.
let begun = null;
const begin = (name) => { begun = name; panels[name]?.begin?.(); };

function showPanel(panel, usable, explanation) {
  panel.querySelector(".empty").hidden = usable;
  panel.querySelector(".content").hidden = !usable;
  if (!usable) panel.querySelector(".empty").replaceChildren(...explanation);
}

const start = latest(async () => {
  const weights = await engine.weights((share, what) => {
    byId("loading").hidden = share >= 1;
    byId("progress").value = share;
    byId("loading-what").textContent = what;
  });
  const scenes = weights.filter((each) => each.family === "sort-of-clevr"), digits = weights.filter((each) => each.family === "scaled-mnist"), words = weights.filter((each) => each.words);
  const hint = (dataset, recipe) => [
    `No ${dataset} weights are loaded. Train some with `, element("code", {}, `bcn train ${recipe}`), `, and give them to the page: `, element("code", {}, engine.howToLoad), ".",
  ];
  showPanel(byId("reason"), scenes.length > 0, hint("Sort-of-CLEVR", "table3/multirn-h"));
  showPanel(byId("find"), digits.length > 0, hint("Scaled-MNIST", "table1/bcn"));
  showPanel(byId("see"), words.length > 0, hint("CLEVR", "table4/multirn-h"));
  if (scenes.length) startReason(engine, scenes, latest);
  if (digits.length) panels.find = startFind(engine, latest);
  if (words.length) panels.see = startSee(engine, words, latest);
  document.querySelector("main").setAttribute("aria-busy", "false");
  if (begun) begin(begun);
});

startTabs(begin);
byId("footer").replaceChildren(...engine.footer);
start();
