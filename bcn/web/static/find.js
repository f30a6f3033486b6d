// The Find panel: each loaded network classifies and localises a digit; truth, error and a running score beside it.

import { byId, element, svg } from "./dom.js";
import { bars, percent } from "./bars.js";
import { outlines } from "./map.js";
import { SIDE, makePad } from "./pad.js";

const TRAINED = [20, 75];  // pixels of ink: MNIST's digits are 20 of the 28 pixels of their box, and boxes were 28 to 105 wide
const SETTLED_MS = 900;

export function startFind(engine, latest) {
  let detections = [], truth = null, settled = null;
  const score = new Map();
  const pad = makePad(() => send());
  const send = latest(async () => {
    const known = pad.truth();
    detections = known ? (await engine.find(pad)).detections : [];
    truth = known;
    draw();
    clearTimeout(settled);
    if (known) settled = setTimeout(settle, SETTLED_MS);
  });

  const title = (each) => (each.has_bcn ? "With BCN" : "Without BCN");
  const marker = (each) => (each.has_bcn ? "+" : "×");
  const error = ({ centre }) => Math.hypot(centre[0] * SIDE - truth.x, centre[1] * SIDE - truth.y);
  const isRight = (each) => truth.digit === null || each.answer === truth.digit;

  function draw() {
    drawMarks();
    byId("find-truth").replaceChildren(...(truth ? [element("b", {}, "Truth: "), `${truth.digit === null ? "your drawing" : `a ${truth.digit}`}, its centre at x ${Math.round(truth.x)}, y ${Math.round(truth.y)} of ${SIDE} pixels.`] : []));
    byId("detections").replaceChildren(...(detections.length ? detections.map(describe) : [element("p", { class: "hint" }, "Draw a digit: what each network sees, and where, appears here.")]));
  }
  function describe(each) {
    const candidates = [each, ...each.others].sort((a, b) => a.answer.localeCompare(b.answer)), hint = (text) => element("span", { class: "hint" }, text);
    const verdict = truth.digit === null ? "" : isRight(each) ? " ✓" : ` ✗ it is ${truth.digit}`;
    const where = each.centre ? `at x ${Math.round(each.centre[0] * SIDE)}, y ${Math.round(each.centre[1] * SIDE)}, ${error(each).toFixed(1)} pixels off` : "";
    return element("div", {},
      element("h2", {}, element("span", { class: each.has_bcn ? "key cross" : "key times", "aria-hidden": true }, marker(each)), ` ${title(each)}`),
      element("p", { class: isRight(each) ? "big" : "big bad", "data-model": each.model }, `${each.answer} `, hint(`${percent(each.probability)}${verdict}`)),
      element("p", { class: "where" }, where),
      bars(candidates, truth.digit),
      element("p", { class: "hint about" }, `${each.weights}: ${each.parameters.toLocaleString("en")} parameters, trained on ${each.data} (${each.scale})`));
  }

  function drawMarks() {
    const parts = [];
    if (truth && byId("show-find-map").checked) {
      parts.push(svg("circle", { class: "truth", cx: truth.x, cy: truth.y, r: 1.6 }));
      for (const diameter of TRAINED) parts.push(svg("circle", { class: "trained", cx: truth.x, cy: truth.y, r: diameter / 2 }));
      for (const { broadcast } of detections.filter((each) => each.broadcast)) {
        const d = outlines(broadcast, SIDE, SIDE);
        parts.push(svg("path", { class: "mark", d }));
      }
    }
    for (const each of detections.filter(({ centre }) => centre)) {
      const [x, y] = each.centre.map((part) => part * SIDE), d = each.has_bcn ? "M-7 0H7M0 -7V7" : "M-5 -5L5 5M-5 5L5 -5";
      for (const name of ["cross under", each.has_bcn ? "cross" : "cross baseline"])
        parts.push(svg("path", { class: name, d, transform: `translate(${x} ${y})` }));
    }
    byId("find-map").replaceChildren(...parts);
  }

  // Once the hand rests: one sentence for those who do not see, and the score of digits that were placed
  function settle() {
    if (!detections.length) return;
    byId("found").textContent = detections.map((each) => `${title(each)}: ${each.answer}, ${percent(each.probability)}`).join(". ");
    if (truth.digit === null) return;
    for (const each of detections) {
      const so = score.get(each.weights) ?? { name: title(each), asked: 0, right: 0, off: 0 };
      score.set(each.weights, { ...so, asked: so.asked + 1, right: so.right + isRight(each), off: so.off + (each.centre ? error(each) : 0) });
    }
    byId("find-score").hidden = false;
    byId("find-score").replaceChildren(element("b", {}, "Placed digits so far: "),
      [...score.values()].map(({ name, asked, right, off }) => `${name[0].toLowerCase()}${name.slice(1)} ${right} of ${asked} right, ${(off / asked).toFixed(1)} pixels off`).join("; "), ".");
  }
  byId("show-find-map").onchange = drawMarks;
  return { begin: () => { if (!truth) pad.place({ digit: "4", x: 84, y: 44 }); } };
}
