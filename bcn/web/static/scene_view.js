// The scene, pixel for pixel as the network sees it: drag, flip and remove objects; the map and a question's geometry over it.

import { svg } from "./dom.js";
import { PAINTED, RADIUS, RGB, SIDE, halfWidth } from "./scenes.js";
import { cellAt, cellBox, outlines } from "./map.js";

const MARK = { red: "R", green: "G", blue: "B", orange: "O", gray: "Gy", yellow: "Y", cyan: "C", pink: "Pk", purple: "Pu", brown: "Br", black: "Bk", teal: "T" };
const LIGHT = ["green", "orange", "yellow", "cyan", "pink"];
const ROWS = Array.from({ length: 2 * RADIUS + 1 }, (_, n) => n - RADIUS);
const DOUBLE_MS = 400;
export const rgb = (colour) => `rgb(${RGB[colour]})`;

// `act` is told what the user does: select(colour), move(colour, x, y), flip(colour), remove(colour), point(position or null).
export function makeSceneView(picture, act) {
  const nodes = {}, labels = {}, bodies = svg("g"), tags = svg("g", { "aria-hidden": true });
  const geometry = svg("g", { class: "geometry", "aria-hidden": true }), lit = svg("rect", { class: "lit", visibility: "hidden" });
  const casing = svg("path", { class: "mark casing" }), ink = svg("path", { class: "mark" });
  picture.append(bodies, svg("g", { class: "map", "aria-hidden": true }, casing, ink, lit), geometry, tags);
  let objects = [], broadcast = null, dragged = null, tapped = null, selected = null;

  const pixel = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
  const objectOf = (colour) => objects.find((each) => each.colour === colour);
  const covers = (object, at) => object && Math.max(Math.abs(at.x - 0.5 - object.x), Math.abs(at.y - 0.5 - object.y)) <= RADIUS + 0.5;

  for (const colour of PAINTED) {
    const body = svg("path", { fill: rgb(colour), class: "body" });
    const ring = svg("rect", { class: "ring", x: -6.3, y: -6.3, width: 13.6, height: 13.6, rx: 1 });
    const node = svg("g", { class: "object", tabindex: 0, role: "button", "data-colour": colour }, body, ring);
    const label = svg("text", { x: 0.5, y: 0.7, fill: LIGHT.includes(colour) ? "#000" : "#fff" }, MARK[colour]);
    node.addEventListener("pointerdown", (event) => grab(event, colour));
    node.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });  // a finger here drags, elsewhere it scrolls
    node.addEventListener("focus", () => act.select(colour));
    node.addEventListener("keydown", (event) => press(event, colour));
    [nodes[colour], labels[colour]] = [node, label];
  }

  function grab(event, touched) {
    // the selected object is dragged even from under another, so that an object dropped there can be moved on
    const at = pixel(event), colour = covers(objectOf(selected), at) ? selected : touched, object = objectOf(colour);
    const again = tapped?.colour === colour && event.timeStamp - tapped.time < DOUBLE_MS;
    tapped = again ? null : { colour, time: event.timeStamp };
    dragged = { colour, id: event.pointerId, x: object.x - at.x, y: object.y - at.y };
    picture.setPointerCapture(event.pointerId);
    act.select(colour);
    nodes[colour].focus({ preventScroll: true });
    if (again) act.flip(colour);
    event.preventDefault();
  }
  function press(event, colour) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key], { x, y } = objectOf(colour);
    if (step) { const far = event.shiftKey ? 5 : 1; act.move(colour, x + far * step[0], y + far * step[1]); }
    else if (event.key === "Enter" || event.key === " ") act.flip(colour);
    else if (event.key === "Delete" || event.key === "Backspace") act.remove(colour);
    else return;
    event.preventDefault();
  }
  picture.addEventListener("pointermove", (event) => {
    const at = pixel(event);
    if (dragged?.id === event.pointerId) {
      tapped = null;
      act.move(dragged.colour, at.x + dragged.x, at.y + dragged.y);
    } else if (!dragged && broadcast) act.point(cellAt(broadcast, at.x / SIDE, at.y / SIDE));
  });
  picture.addEventListener("pointerleave", () => act.point(null));
  for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => { dragged = null; });

  function draw(now, chosen) {
    objects = now;
    selected = chosen;
    for (const colour of PAINTED) {
      const object = objectOf(colour), node = nodes[colour];
      if (!object) { node.remove(); labels[colour].remove(); continue; }
      const { shape, x, y } = object;
      if (!node.isConnected) {
        const after = PAINTED.slice(PAINTED.indexOf(colour) + 1).map((each) => nodes[each]).find((each) => each.isConnected);
        bodies.insertBefore(node, after ?? null);
        tags.append(labels[colour]);
      }
      if (node.dataset.shape !== shape) {
        const line = (row, half = halfWidth(shape, row)) => `M${-half} ${row}h${2 * half + 1}v1h${-2 * half - 1}z`;
        node.dataset.shape = shape;
        node.firstChild.setAttribute("d", ROWS.map((row) => line(row)).join(""));
      }
      for (const each of [node, labels[colour]]) each.setAttribute("transform", `translate(${x} ${y})`);
      node.setAttribute("aria-label", `${colour} ${shape} at ${x}, ${y}`);
      node.classList.toggle("selected", colour === selected);
    }
  }

  function drawMap(now, shown) {
    broadcast = now;
    const path = now && shown ? outlines(now, SIDE, SIDE) : "";
    for (const each of [casing, ink]) each.setAttribute("d", path);
  }
  function light(position) {
    const visible = broadcast && position !== null && position >= 0;
    lit.setAttribute("visibility", visible ? "visible" : "hidden");
    if (visible) for (const [key, value] of Object.entries(cellBox(broadcast, position, SIDE, SIDE))) lit.setAttribute(key, value);
  }
  return { draw, drawMap, light, drawGeometry: (parts) => geometry.replaceChildren(...parts) };
}
