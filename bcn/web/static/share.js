// Scenes to keep: in the address, as a picture, and some to begin with.

import { ALL, SIDE, pixels } from "./scenes.js";
import { outlines } from "./map.js";

const SCALE = 8, FORM = /^([a-f0-9])([sc])(\d\d)(\d\d)$/;

// Four characters and a number for each object: which colour, which shape, where.
export const encodeScene = (objects) => objects.map(({ colour, shape, x, y }) =>
  ALL.indexOf(colour).toString(16) + shape[0] + [x, y].map((each) => String(each).padStart(2, "0")).join("")).join("-");

// null for what is no scene.
export function decodeScene(text) {
  const objects = (text ?? "").split("-").map((part) => FORM.exec(part)).map((match) => match && {
    colour: ALL[parseInt(match[1], 16)], shape: match[2] === "s" ? "square" : "circle", x: Number(match[3]), y: Number(match[4]),
  });
  const inside = (value) => value >= 5 && value <= 69;
  const valid = objects.every((each) => each?.colour && inside(each.x) && inside(each.y));
  return valid && new Set(objects.map((each) => each.colour)).size === objects.length ? objects : null;
}

const place = (list) => list.map(([colour, shape, x, y]) => ({ colour, shape, x, y }));
export const PRESETS = {
  mute: () => decodeScene("0s4066-1c1332-2c3612-3c6917-4s1860-5c3026"),  // where a muted broadcast changes seven answers of multirn-h
  corners: () => place([["red", "square", 5, 5], ["green", "circle", 69, 5], ["blue", "circle", 5, 69], ["orange", "square", 69, 69], ["gray", "circle", 31, 38], ["yellow", "square", 45, 35]]),
  covered: () => place([["red", "square", 20, 24], ["green", "circle", 50, 50], ["blue", "circle", 55, 18], ["orange", "square", 20, 24], ["gray", "circle", 57, 54], ["yellow", "square", 15, 60]]),
  crowd: () => ALL.map((colour, n) => ({ colour, shape: (n * 7) % 3 ? "square" : "circle", x: 10 + (n % 4) * 18 + (n % 3), y: 12 + Math.floor(n / 4) * 24 + (n % 2) * 4 })),
};

// The scene as the network sees it, enlarged, with the map over it, and below it a question and its answer.
export function toPicture(objects, broadcast, caption) {
  const canvas = document.createElement("canvas"), side = SIDE * SCALE, pen = canvas.getContext("2d");
  canvas.width = side;
  canvas.height = side + (caption ? 48 : 0);
  const bytes = pixels(objects), plane = SIDE * SIDE;
  for (let n = 0; n < plane; n++) {
    pen.fillStyle = `rgb(${bytes[n]},${bytes[plane + n]},${bytes[2 * plane + n]})`;
    pen.fillRect((n % SIDE) * SCALE, Math.floor(n / SIDE) * SCALE, SCALE, SCALE);
  }
  if (broadcast) {
    const path = new Path2D(outlines(broadcast, side, side));
    for (const [colour, width] of [["#fff", 6], ["#b5179e", 3]]) { pen.strokeStyle = colour; pen.lineWidth = width; pen.stroke(path); }
  }
  if (caption) {
    pen.fillStyle = "#fff";
    pen.fillRect(0, side, side, 48);
    pen.fillStyle = "#1b1b1a";
    pen.font = "18px system-ui, sans-serif";
    pen.fillText(caption, 12, side + 30, side - 24);
  }
  return canvas;
}
export function download(canvas, name) {
  const link = document.createElement("a");
  link.href = canvas.toDataURL("image/png");
  link.download = name;
  link.click();
}
