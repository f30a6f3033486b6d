// The table of all questions and answers, and the one that is chosen in full.

import { byId, element, whenChanged } from "./dom.js";
import { bars, percent } from "./bars.js";
import { COLOURS, RELATIONAL } from "./scenes.js";
import { rgb } from "./scene_view.js";

const UNSURE = 0.9;
const KINDS = {
  closest: ["Shape of the closest?", "closest"], furthest: ["Shape of the furthest?", "furthest"], count: ["How many of its shape?", "count"],
  shape: ["Shape?", "shape"], left: ["On the left?", "left"], above: ["Above the middle?", "above"],
};
const GROUPS = ["Relational: about the other objects, too", "About the object alone"];
const GLYPH = { square: "■", circle: "●" };
export const isRight = (each) => each.answer === each.truth;

export function makeTable(table, onChoose) {
  const buttons = {}, head = table.tHead.insertRow(), heads = {};
  head.append(element("td"), ...COLOURS.map((colour) => {
    const swatch = element("span", { class: "swatch", "data-colour": colour });
    swatch.style.background = rgb(colour);
    return (heads[colour] = element("th", { scope: "col" }, swatch, element("span", { class: "name" }, colour)));
  }));
  const bodies = GROUPS.map((title) => {
    const body = table.createTBody(), row = body.insertRow();
    row.className = "group";
    row.append(element("th", { scope: "rowgroup", colspan: COLOURS.length + 1 }, title));
    return body;
  });
  for (const [kind, [long, short]] of Object.entries(KINDS)) {
    const row = bodies[RELATIONAL.includes(kind) ? 0 : 1].insertRow();
    row.append(element("th", { scope: "row" }, element("span", { class: "long" }, long), element("span", { class: "short", "aria-hidden": true }, short)));
    for (const colour of COLOURS) {
      const bar = element("i"), text = element("span", { "aria-hidden": true }), button = element("button", { "data-kind": kind, "data-colour": colour, tabindex: -1, hidden: "" }, text, bar);
      row.insertCell().append(button);
      buttons[`${kind} ${colour}`] = { button, text, bar };
    }
  }
  const all = Object.values(buttons).map((each) => each.button);
  all.forEach((button, index) => {
    button.onclick = () => onChoose({ kind: button.dataset.kind, colour: button.dataset.colour });
    button.onkeydown = (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -6, ArrowDown: 6 }[event.key];
      if (!step) return;
      event.preventDefault();
      for (let next = index + step; next >= 0 && next < all.length; next += step)
        if (!all[next].hidden) { button.tabIndex = -1; all[next].tabIndex = 0; all[next].focus(); return; }
    };
  });

  // `second` holds other answers to the same questions, of the muted network or of another.
  function draw(answers, second, chosen, objects, covered) {
    const drawn = new Set();
    answers.forEach((each, n) => {
      const key = `${each.kind} ${each.colour}`, { button, text, bar } = buttons[key], other = second?.[n];
      drawn.add(button);
      const state = each.truth === null ? "moot" : !isRight(each) ? "wrong" : each.probability < UNSURE ? "unsure" : "right";
      const differs = other && other.answer !== each.answer ? ` ${other.answer} ${isRight(other)}` : "";
      const label = `${each.question} ${each.answer}, ${percent(each.probability)}, ${isRight(each) ? "right" : `wrong: ${each.truth}`}`;
      button.hidden = false;
      if (button.dataset.now !== label + differs) {
        button.dataset.now = label + differs;
        button.setAttribute("aria-label", differs ? `${label}; ${each.answer} → ${other.answer}` : label);
        button.className = differs ? `${state} differs` : state;
        bar.style.width = `${100 * each.probability}%`;
        const mark = { wrong: "✗ ", unsure: "? " }[state] ?? "";
        text.replaceChildren(mark, ...glyph(each.answer));
        if (differs) text.append(" ", element("small", { class: isRight(other) ? "other" : "other bad" }, "→", ...glyph(other.answer)));
      }
      button.setAttribute("aria-pressed", chosen?.kind === each.kind && chosen?.colour === each.colour);
    });
    for (const button of all) if (!drawn.has(button)) button.hidden = true;
    if (!all.some((button) => button.tabIndex === 0 && !button.hidden)) all.find((button) => !button.hidden).tabIndex = 0;
    for (const colour of COLOURS) {
      const object = objects.find((each) => each.colour === colour), hidden = covered.find((each) => each.colour === colour);
      heads[colour].classList.toggle("absent", !object);
      heads[colour].classList.toggle("covered", Boolean(hidden));
      heads[colour].firstChild.classList.toggle("circle", object?.shape === "circle");
    }
  }
  return draw;
}
const glyph = (answer) => [GLYPH[answer] ?? answer, ...(GLYPH[answer] ? [element("span", { class: "word" }, ` ${answer}`)] : [])];

// The chosen answer: question, probabilities, verdict.
export const drawDetail = whenChanged((each, other, name, hidden) => {
  const verdict = (one) => (one.truth === null ? "there is no other object" : isRight(one) ? "✓ right" : `✗ wrong, it is ${one.truth}`);
  const side = (one, title) => element("div", {}, ...(title ? [element("h3", {}, title)] : []),
    element("p", { class: isRight(one) ? "verdict" : "verdict bad" }, element("b", {}, one.answer), ` ${verdict(one)}`),
    bars([one, ...one.others], one.truth));
  const parts = [element("h2", {}, each.question), element("div", { class: "sides" }, side(each, other ? "As it is" : ""), ...(other ? [side(other, name)] : []))];
  if (hidden.length) parts.splice(1, 0, element("p", { class: "note" }, hidden.map(describeCovered).join(" ")));
  byId("detail").replaceChildren(...parts);
});
export const describeCovered = ({ colour, shape, by, seen }) =>
  `The ${colour} ${shape} is ${seen ? `partly covered by ${by.join(" and ")}: ${Math.round(100 * seen)}\u00a0% of it can be seen.` : `covered by ${by.join(" and ")}: nothing of it can be seen, so no network can know.`}`;
