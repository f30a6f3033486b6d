// Probabilities in words and as bars.

import { element } from "./dom.js";

export const percent = (probability) => `${(100 * probability).toFixed(probability > 0.9995 || probability < 0.0005 ? 0 : 1)}\u00a0%`;

// Rows of a name, a bar and its percentage; `truth` is marked.
export function bars(candidates, truth) {
  return element("div", { class: "bars" }, ...candidates.flatMap(({ answer, probability }) => {
    const bar = element("i");
    bar.style.width = `${100 * probability}%`;
    const name = answer === truth ? element("b", {}, `${answer} ✓`) : element("span", {}, answer);
    return [name, element("span", { class: "track" }, bar), element("span", { class: "percent" }, percent(probability))];
  }));
}
