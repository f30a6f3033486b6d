// What a question asks, drawn into the scene: a line to the closest, rings around the counted, the middle line.

import { svg } from "./dom.js";
import { MIDDLE, SIDE, referents } from "./scenes.js";

const RING = 8;

export function geometryOf(objects, { kind, colour }) {
  if (!objects.some((each) => each.colour === colour)) return [];
  const { own, decisive } = referents(objects, kind, colour), centre = (each) => [each.x + 0.5, each.y + 0.5];
  const twice = (name, attributes) => [svg(name, { ...attributes, class: "under" }), svg(name, attributes)];
  const ring = (each) => twice("circle", { cx: centre(each)[0], cy: centre(each)[1], r: RING });
  const line = ([x1, y1], [x2, y2]) => twice("line", { x1, y1, x2, y2 });
  switch (kind) {
    case "left": return [...line([MIDDLE + 0.5, 0], [MIDDLE + 0.5, SIDE]), ...ring(own)];
    case "above": return [...line([0, MIDDLE + 0.5], [SIDE, MIDDLE + 0.5]), ...ring(own)];
    case "closest":
    case "furthest": return [...decisive.flatMap((each) => [...line(centre(own), centre(each)), ...ring(each)])];
    default: return decisive.flatMap(ring);
  }
}
