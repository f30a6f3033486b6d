// What a relation costs as the number of objects grows: RN looks at pairs, multiRN at objects.

import { byId, element, svg } from "./dom.js";

const BOX = { left: 48, right: 346, top: 14, bottom: 184 }, NAMES = { rn: "RN", multirn: "multiRN" };
const UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const short = (number) => { const [unit, letter] = UNITS.find(([each]) => number >= each) ?? [1, ""]; return `${Number((number / unit).toPrecision(3))}\u00a0${letter}`; };
const seconds = (ms) => (ms === null ? "not measured" : ms < 1000 ? `${ms.toPrecision(2)} ms` : `${(ms / 1000).toPrecision(3)} s`);

export async function startCost() {
  const { objects, kinds, source } = await (await fetch("cost.json")).json();
  const plot = byId("cost-plot"), slider = byId("cost-n"), all = Object.values(kinds).flatMap((each) => each.macs);
  const scale = (values, from, to) => {
    const [low, high] = [Math.log(Math.min(...values)), Math.log(Math.max(...values))];
    return (value) => from + ((Math.log(value) - low) / (high - low)) * (to - from);
  };
  const x = scale(objects, BOX.left, BOX.right), y = scale(all, BOX.bottom, BOX.top);
  const cursor = svg("line", { class: "cursor", y1: BOX.top, y2: BOX.bottom }), dots = svg("g");
  for (const power of [7, 9, 11, 13].map((exponent) => 10 ** exponent).filter((each) => each < Math.max(...all) * 2))
    plot.append(svg("line", { class: "grid", x1: BOX.left, x2: BOX.right, y1: y(power), y2: y(power) }), svg("text", { x: BOX.left - 6, y: y(power) + 4, "text-anchor": "end" }, short(power)));
  for (const n of objects) plot.append(svg("text", { x: x(n), y: BOX.bottom + 16, "text-anchor": "middle" }, n === 3600 ? "" : n));
  plot.append(svg("text", { x: (BOX.left + BOX.right) / 2, y: BOX.bottom + 32, "text-anchor": "middle" }, "objects n"), cursor);
  for (const [kind, { macs }] of Object.entries(kinds)) {
    const last = [x(objects.at(-1)), y(macs.at(-1))];
    plot.append(svg("path", { class: `curve ${kind}`, d: `M${macs.map((each, n) => `${x(objects[n])} ${y(each)}`).join("L")}` }),
      svg("text", { class: `name ${kind}`, x: last[0] - 6, y: last[1] + (kind === "rn" ? 40 : -10), "text-anchor": "end" }, kind === "rn" ? "RN: n²" : "multiRN: n"));
  }
  plot.append(dots);
  function draw() {
    const n = Number(slider.value), at = objects[n], ratio = kinds.rn.macs[n] / kinds.multirn.macs[n];
    cursor.setAttribute("x1", x(at));
    cursor.setAttribute("x2", x(at));
    dots.replaceChildren(...Object.entries(kinds).map(([kind, { macs }]) => svg("circle", { class: kind, cx: x(at), cy: y(macs[n]), r: 5 })));
    slider.setAttribute("aria-valuetext", `${at} objects`);
    byId("cost-says").replaceChildren(element("p", {}, element("b", {}, `${at} objects: `), `RN needs ${Math.round(ratio)} times as many operations.`),
      element("dl", {}, ...Object.entries(kinds).flatMap(([kind, { macs, ms }]) => [element("dt", { class: kind }, NAMES[kind]), element("dd", {}, `${short(macs[n])} multiply-adds, ${seconds(ms[n])}`)])));
  }
  slider.max = objects.length - 1;
  slider.oninput = draw;
  byId("cost-source").textContent = `Operations of one question, forward. ${source}`;
  byId("cost").hidden = false;
  draw();
}
