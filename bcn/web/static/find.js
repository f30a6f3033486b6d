// The Find panel: draw a digit anywhere; each loaded model classifies and localises it.

import { byId, element, svg } from "./dom.js";

const SIDE = 128;

export function startFind(engine, latest) {
  const pad = byId("pad"), canvas = byId("ink"), pen = canvas.getContext("2d", { willReadFrequently: true });
  let last = null, stamp = null, detections = [];
  pen.lineCap = pen.lineJoin = "round";
  pen.textAlign = "center";
  pen.textBaseline = "middle";

  function clear() {
    pen.fillStyle = "#000";
    pen.fillRect(0, 0, SIDE, SIDE);
    pen.fillStyle = pen.strokeStyle = "#fff";
  }
  const empty = () => !pen.getImageData(0, 0, SIDE, SIDE).data.some((value, index) => index % 4 === 0 && value > 0);
  const send = latest(async () => {
    if (empty()) { detections = []; draw(); return; }
    // toBlob would wait for the browser to be idle
    const image = Uint8Array.from(atob(canvas.toDataURL("image/png").split(",")[1]), (letter) => letter.charCodeAt(0));
    detections = (await engine.find(image)).detections;
    draw();
  });

  // Pen
  const position = (event) => {
    const box = pad.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE];
  };
  pad.addEventListener("pointerdown", (event) => {
    if (stamp) { stamp = null; clear(); }
    pad.setPointerCapture(event.pointerId);
    last = position(event);
    stroke(last, last);
  });
  pad.addEventListener("pointermove", (event) => {
    if (!last) return;
    const next = position(event);
    stroke(last, next);
    last = next;
  });
  for (const end of ["pointerup", "pointercancel"]) pad.addEventListener(end, () => { last = null; });
  function stroke(from, to) {
    pen.lineWidth = byId("pen").value;
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
    send();
  }

  // Keys: a digit to move about
  pad.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-4, 0], ArrowRight: [4, 0], ArrowUp: [0, -4], ArrowDown: [0, 4] }[event.key];
    if (/^[0-9]$/.test(event.key)) stamp = { x: SIDE / 2, y: SIDE / 2, size: 60, ...stamp, digit: event.key };
    else if (stamp && step) { stamp.x += step[0]; stamp.y += step[1]; }
    else if (stamp && ["+", "=", "-"].includes(event.key)) stamp.size *= event.key === "-" ? 0.9 : 1.1;
    else return;
    event.preventDefault();
    stamp.size = Math.min(120, Math.max(24, stamp.size));
    stamp.x = Math.min(SIDE - 10, Math.max(10, stamp.x));
    stamp.y = Math.min(SIDE - 10, Math.max(10, stamp.y));
    clear();
    pen.font = `${stamp.size}px sans-serif`;
    pen.fillText(stamp.digit, stamp.x, stamp.y);
    send();
  });

  // Detections
  const percent = (probability) => `${(100 * probability).toFixed(1)}\u00a0%`;
  const title = (each) => (each.has_bcn ? "With BCN" : "Without BCN");
  const marker = (each) => (each.has_bcn ? "+" : "×");

  function draw() {
    drawMap();
    const empty = element("p", {}, "Draw a digit: its class and its centre appear here.");
    byId("detections").replaceChildren(...(detections.length ? detections.map(describe) : [empty]));
  }
  function describe(each) {
    const candidates = [each, ...each.others].sort((a, b) => a.answer.localeCompare(b.answer));
    const where = each.centre ? `, centre ${marker(each)} at x ${Math.round(each.centre[0] * SIDE)}, y ${Math.round(each.centre[1] * SIDE)}` : "";
    const bars = candidates.flatMap(({ answer, probability }) => {
      const bar = element("i");
      bar.style.width = `${100 * probability}%`;
      return [element("span", {}, answer), bar, element("span", { class: "percent" }, percent(probability))];
    });
    const hint = (text) => element("span", { class: "hint" }, text);
    return element("div", {},
      element("h2", {}, `${title(each)} `, hint(`${each.model} (${each.scale})`)),
      element("p", { class: "big", "data-model": each.model }, `${each.answer} `, hint(`${percent(each.probability)}${where}`)),
      element("div", { class: "bars" }, ...bars));
  }

  function drawMap() {
    const parts = [];
    for (const each of detections) {
      if (each.broadcast && byId("show-find-map").checked) {
        const counts = new Map();
        for (const position of each.broadcast.position) if (position >= 0) counts.set(position, (counts.get(position) ?? 0) + 1);
        const largest = Math.max(...counts.values()), step = SIDE / each.broadcast.columns;
        for (const [position, count] of counts) {
          const x = (position % each.broadcast.columns) * step, y = Math.floor(position / each.broadcast.columns) * step;
          parts.push(svg("rect", { class: "map", x, y, width: step, height: step, "fill-opacity": 0.3 + 0.6 * Math.sqrt(count / largest) }));
        }
      }
      if (each.centre) {
        const [x, y] = each.centre.map((part) => part * SIDE), d = each.has_bcn ? "M-7 0H7M0 -7V7" : "M-5 -5L5 5M-5 5L5 -5";
        for (const name of ["cross under", each.has_bcn ? "cross" : "cross baseline"])
          parts.push(svg("path", { class: name, d, transform: `translate(${x} ${y})` }));
      }
    }
    byId("find-map").replaceChildren(...parts);
  }

  byId("clear").onclick = () => { stamp = null; clear(); send(); };
  byId("show-find-map").onchange = drawMap;
  clear();
}
