// The drawing pad: a pen, and digits to place, move and size. What it holds is known: where the ink is, and which digit was placed.

import { byId, element } from "./dom.js";

export const SIDE = 128;
const STEP = 4, SMALLEST = 16, LARGEST = 120;

export function makePad(onChange) {
  const pad = byId("pad"), canvas = byId("ink"), pen = canvas.getContext("2d", { willReadFrequently: true });
  let last = null, stamp = null, held = null;
  pen.lineCap = pen.lineJoin = "round";
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";

  function clear() {
    pen.fillStyle = "#000";
    pen.fillRect(0, 0, SIDE, SIDE);
    pen.fillStyle = pen.strokeStyle = "#fff";
  }
  const position = (event) => {
    const box = pad.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE];
  };
  pad.addEventListener("pointerdown", (event) => {
    pad.setPointerCapture(event.pointerId);
    const at = position(event);
    if (stamp && Math.hypot(at[0] - stamp.x, at[1] - stamp.y) < stamp.size * 0.7) { held = [stamp.x - at[0], stamp.y - at[1]]; return; }
    if (stamp) { stamp = null; clear(); }
    last = at;
    stroke(at, at);
  });
  pad.addEventListener("pointermove", (event) => {
    const at = position(event);
    if (held) place({ x: at[0] + held[0], y: at[1] + held[1] });
    else if (last) { stroke(last, at); last = at; }
  });
  for (const end of ["pointerup", "pointercancel"]) pad.addEventListener(end, () => { last = held = null; });
  function stroke(from, to) {
    pen.lineWidth = byId("pen").value;
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
    onChange();
  }

  // A digit in the middle of its box, whatever the font's ascent
  function place(change) {
    stamp = { x: SIDE / 2, y: SIDE / 2, size: Number(byId("size").value), ...stamp, ...change };
    const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
    stamp.size = clamp(stamp.size, SMALLEST, LARGEST);
    [stamp.x, stamp.y] = [stamp.x, stamp.y].map((each) => clamp(each, 10, SIDE - 10));
    byId("size").value = stamp.size;
    clear();
    pen.font = `${stamp.size}px sans-serif`;
    const { actualBoundingBoxAscent: ascent, actualBoundingBoxDescent: descent } = pen.measureText(stamp.digit);
    pen.fillText(stamp.digit, stamp.x, stamp.y + (ascent - descent) / 2);
    onChange();
  }
  pad.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
    if (/^[0-9]$/.test(event.key)) place({ digit: event.key });
    else if (stamp && step) place({ x: stamp.x + step[0], y: stamp.y + step[1] });
    else if (stamp && ["+", "=", "-"].includes(event.key)) place({ size: stamp.size * (event.key === "-" ? 0.9 : 1.1) });
    else return;
    event.preventDefault();
  });
  byId("size").oninput = ({ target }) => { if (stamp) place({ size: Number(target.value) }); };
  byId("clear").onclick = () => { stamp = null; clear(); onChange(); };
  byId("digits").append(...Array.from({ length: 10 }, (_, digit) => {
    const button = element("button", { "aria-label": `Place a ${digit}` }, String(digit));
    button.onclick = () => place({ digit: String(digit) });
    return button;
  }));
  clear();

  // What is on the pad: the digit that was placed, or null, and the centre of mass of the ink, which is the centre of a digit's box in MNIST.
  function truth() {
    const { data } = pen.getImageData(0, 0, SIDE, SIDE);
    let mass = 0, across = 0, down = 0;
    for (let n = 0; n < SIDE * SIDE; n++) {
      const ink = data[4 * n];
      mass += ink;
      across += ink * ((n % SIDE) + 0.5);
      down += ink * (Math.floor(n / SIDE) + 0.5);
    }
    return mass ? { digit: stamp?.digit ?? null, x: across / mass, y: down / mass } : null;
  }
  // toBlob would wait for the browser to be idle
  const png = () => Uint8Array.from(atob(canvas.toDataURL("image/png").split(",")[1]), (letter) => letter.charCodeAt(0));
  const gray = () => Uint8Array.from({ length: SIDE * SIDE }, ((data) => (_, n) => data[4 * n])(pen.getImageData(0, 0, SIDE, SIDE).data));
  return { truth, png, gray, place };
}
