// The strip: from pixels to the feature map, one channel's responses, the vector, its copies and the answer; and equation 1.

import { byId, element } from "./dom.js";
import { bars } from "./bars.js";
import { PAINTED, RADIUS, SIDE, pixels } from "./scenes.js";
import { cellBox, size } from "./map.js";

const REST_MS = 250, HATCH = 20;
const number = (value) => value.toFixed(2).replace("-", "−");

// The colours of the page, read again when they change: reading them makes the browser lay out the page.
let kept = null;
const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => { kept = null; });
function colours() {
  const style = kept ? null : getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
  return (kept ??= { ink: of("--ink"), cold: of("--cold"), text: of("--text"), ground: of("--well") });
}

// A grid of squares: `shade(n)` gives a colour and how much of it, `lit` are outlined.
function drawGrid(canvas, columns, rows, shade, lit = []) {
  const pen = canvas.getContext("2d"), { ground, text } = colours(), wide = canvas.width / columns, high = canvas.height / rows;
  pen.globalAlpha = 1;
  pen.fillStyle = ground;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  for (let n = 0; n < columns * rows; n++) {
    const [colour, share] = shade(n);
    pen.globalAlpha = share;
    pen.fillStyle = colour;
    pen.fillRect((n % columns) * wide + 0.5, Math.floor(n / columns) * high + 0.5, wide - 1, high - 1);
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = text;
  pen.lineWidth = 2.5;
  for (const n of lit) pen.strokeRect((n % columns) * wide + 1, Math.floor(n / columns) * high + 1, wide - 2, high - 2);
}

// `onChannel(number)` and `onCell(position)` are told what the user points at, `onMove(colour, x, y)` what is dragged in the picture.
export function makeMechanism({ onChannel, onCell, onMove }) {
  const canvas = (name) => byId(`step-${name}`), side = (vector) => Math.ceil(Math.sqrt(vector.length));
  let now = null, visible = false, later = null;
  // Off screen it is drawn once the pointer rests, so that a drag does not wait for it
  new IntersectionObserver(([{ isIntersecting }]) => { visible = isIntersecting; if (visible) drawAll(); }).observe(byId("mechanism"));
  dark.addEventListener("change", drawAll);

  const at = (event, target, columns, rows) => {
    const box = target.getBoundingClientRect();
    const n = (part, count) => Math.min(count - 1, Math.max(0, Math.floor(part * count)));
    return n((event.clientY - box.top) / box.height, rows) * columns + n((event.clientX - box.left) / box.width, columns);
  };
  const whenPointed = (name, tell) => { for (const event of ["pointermove", "pointerdown"]) canvas(name).addEventListener(event, (each) => { if (now) tell(each); }); };
  whenPointed("vector", (event) => {
    const width = side(now.broadcast.value), channel = at(event, canvas("vector"), width, width);
    if (channel < now.broadcast.value.length) onChannel(channel);
  });
  for (const name of ["features", "response"]) {
    whenPointed(name, (event) => { const { rows, columns } = size(now.broadcast); onCell(at(event, canvas(name), columns, rows)); });
    canvas(name).addEventListener("pointerleave", () => onCell(null));
  }
  byId("channel").oninput = ({ target }) => onChannel(Number(target.value));
  byId("cell").oninput = ({ target }) => onCell(Number(target.value));
  byId("cell").onblur = () => onCell(null);

  // Objects can be dragged here too, where the strip is in view
  let held = null;
  const picture = canvas("image"), pixelAt = ({ clientX, clientY }) => {
    const box = picture.getBoundingClientRect();
    return [((clientX - box.left) / box.width) * SIDE - 0.5, ((clientY - box.top) / box.height) * SIDE - 0.5];
  };
  const objectAt = (point, [x, y] = pixelAt(point)) => PAINTED.map((colour) => now?.objects.find((each) => each.colour === colour))
    .findLast((each) => each && Math.max(Math.abs(each.x - x), Math.abs(each.y - y)) <= RADIUS + 0.5);
  picture.addEventListener("touchstart", (event) => { if (objectAt(event.touches[0])) event.preventDefault(); }, { passive: false });
  picture.addEventListener("pointerdown", (event) => {
    const object = objectAt(event), [x, y] = pixelAt(event);
    if (!object) return;
    picture.setPointerCapture(event.pointerId);
    held = { colour: object.colour, x: object.x - x, y: object.y - y };
  });
  picture.addEventListener("pointermove", (event) => {
    const [x, y] = pixelAt(event);
    if (held) onMove(held.colour, x + held.x, y + held.y); else picture.classList.toggle("over", Boolean(objectAt(event)));
  });
  for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => { held = null; });

  // A step and its part of the equation light up together.
  for (const each of document.querySelectorAll("#strip [data-part], #equation [data-part]")) {
    const twins = document.querySelectorAll(`#mechanism [data-part="${each.dataset.part}"]`);
    const toggle = (lit) => () => twins.forEach((twin) => twin.classList.toggle("lit", lit));
    for (const event of ["pointerenter", "focusin"]) each.addEventListener(event, toggle(true));
    for (const event of ["pointerleave", "focusout"]) each.addEventListener(event, toggle(false));
  }

  function draw(state) {
    now = state.broadcast ? state : null;
    byId("mechanism").hidden = !now;
    clearTimeout(later);
    if (visible) drawAll(); else later = setTimeout(drawAll, REST_MS);
  }
  function drawAll() {
    if (!now) return;
    const { broadcast, objects, channel, cell, answer } = now, { value, position, seen, response, mean } = broadcast;
    const { rows, columns } = size(broadcast), { ink, cold, text } = colours(), largest = Math.max(...value.map(Math.abs), 1e-6);
    const source = position[channel], supplied = cell === null ? [] : position.flatMap((from, n) => (from === cell ? [n] : []));
    const signed = (part, most) => [part < 0 ? cold : ink, Math.sqrt(Math.min(1, Math.abs(part) / most))];
    const pointed = cell === null ? (source >= 0 ? [source] : []) : [cell];

    drawImage(canvas("image"), objects);
    drawGrid(canvas("features"), columns, rows, (n) => [text, 0.06 + 0.8 * seen[n]], pointed);
    const low = Math.min(...(response ?? [0])), range = Math.max(...(response ?? [1])) - low || 1;
    drawGrid(canvas("response"), columns, rows, (n) => [ink, response ? (response[n] - low) / range : 0], source >= 0 ? [source] : []);
    const width = side(value), shade = (n) => (n < value.length ? signed(value[n], largest) : [ink, 0]);
    drawGrid(canvas("vector"), width, width, (n) => (position[n] < 0 ? [text, 0.04] : shade(n)), cell === null ? [channel] : supplied);
    const copied = (mean ?? value)[channel];
    drawGrid(canvas("broadcast"), columns, rows, () => signed(copied, largest));
    if (mean) hatch(canvas("broadcast"));
    byId("value-max").textContent = position[channel] < 0 ? `channel ${channel}: not active` : `channel ${channel}: ${number(value[channel])}`;
    byId("value-broadcast").textContent = `${number(copied)} everywhere`;
    byId("broadcast-says").textContent = mean
      ? "Every position gets the average over many pictures. It says nothing about this one."
      : "Each number is copied to every position. Now each knows about the whole picture.";
    byId("step-answer").replaceChildren(...(answer ? [element("p", { class: "hint" }, answer.question), bars([answer, ...answer.others].slice(0, 3), answer.truth)]
      : [element("p", { class: "hint" }, "Choose a question in the table.")]));
    byId("channel").max = value.length - 1;
    byId("channel").value = channel;
    byId("cell").max = rows * columns - 1;
    if (cell !== null) byId("cell").value = cell;
    for (const each of document.querySelectorAll(".channels")) each.textContent = value.length;
    for (const each of document.querySelectorAll(".cells")) each.textContent = `${rows} × ${columns}`;
    say(now, source, supplied);
  }

  function drawImage(target, objects) {
    const pen = target.getContext("2d"), bytes = pixels(objects), plane = SIDE * SIDE, image = new ImageData(SIDE, SIDE);
    for (let n = 0; n < plane; n++) image.data.set([bytes[n], bytes[plane + n], bytes[2 * plane + n], 255], 4 * n);
    const small = new OffscreenCanvas(SIDE, SIDE);
    small.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, 0, 0, target.width, target.height);
  }

  function hatch(target) {
    const pen = target.getContext("2d");
    pen.strokeStyle = colours().text;
    pen.globalAlpha = 0.4;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let x = -target.height; x < target.width; x += HATCH) { pen.moveTo(x, target.height); pen.lineTo(x + target.height, 0); }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  function say({ broadcast, objects, channel, cell }, source, supplied) {
    const over = (position) => {
      const { x, y, width, height } = cellBox(broadcast, position, SIDE, SIDE);
      const near = objects.filter((each) => x < each.x + RADIUS + 1 && x + width > each.x - RADIUS && y < each.y + RADIUS + 1 && y + height > each.y - RADIUS);
      return near.length ? `over the ${near.map((each) => `${each.colour} ${each.shape}`).join(" and the ")}` : "over nothing";
    };
    const active = broadcast.position.filter((each) => each >= 0).length;
    const text = cell !== null
      ? `This position, ${over(cell)}, gives ${supplied.length} of the ${active} active channels their largest value: they are outlined.`
      : source < 0 ? `Channel ${channel} is not active: it is the same for every picture.`
        : `Channel ${channel} is largest, ${number(broadcast.value[channel])}, at a position ${over(source)}. ${broadcast.mean ? `Muted, all positions get ${number(broadcast.mean[channel])} instead.` : "This number is copied to all positions."}`;
    byId("mechanism-says").textContent = text;
    byId("channel").setAttribute("aria-valuetext", `${channel}. ${cell === null ? text : ""}`);
    byId("cell").setAttribute("aria-valuetext", cell === null ? "none" : `${cell}. ${text}`);
  }
  return draw;
}
