// Sort-of-CLEVR in the browser: scenes, their pixels, true answers and sentences, bit for bit as in the package.

export const SIDE = 75, RADIUS = 5, MIDDLE = 37;
export const CIRCLE = [0, 3, 4, 4, 4, 5, 4, 4, 4, 3, 0];  // half the width of each row of pixels
export const RGB = {
  red: [255, 0, 0], green: [0, 255, 0], blue: [0, 0, 255], orange: [255, 156, 0], gray: [128, 128, 128], yellow: [255, 255, 0],
};
export const COLOURS = Object.keys(RGB);
// colours that no question names and no network was trained on; drawn under the others
const EXTRA_RGB = {
  cyan: [0, 200, 220], pink: [255, 130, 190], purple: [130, 40, 170], brown: [140, 80, 40], black: [0, 0, 0], teal: [0, 120, 110],
};
Object.assign(RGB, EXTRA_RGB);
export const EXTRA = Object.keys(EXTRA_RGB);
export const ALL = [...COLOURS, ...EXTRA];
export const PAINTED = [...EXTRA, ...COLOURS];  // what is painted later covers what was painted before
export const RELATIONAL = ["closest", "furthest", "count"];
export const KINDS = ["shape", "left", "above", "closest", "furthest", "count"];
const SHAPES = ["square", "circle"], NONE = 1 << 14;

// Half the width of the row of pixels so far below the centre of a shape.
export const halfWidth = (shape, row) => (shape === "circle" ? CIRCLE[row + RADIUS] : RADIUS);

// Word n of a seed: output n of SplitMix64.
const wrap = (number) => BigInt.asUintN(64, number);
function word(seed, n) {
  let z = wrap(seed + (BigInt(n) + 1n) * 0x9e3779b97f4a7c15n);
  z = wrap((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = wrap((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return z ^ (z >> 31n);
}

// Scene `seed` of the stream: all centres are drawn together until none overlap and none are ambiguous.
export function randomScene(seed) {
  const sample = word(word(0n, 3), seed), shapes = Number(word(sample, 0) & 63n);
  for (let attempt = 0; ; attempt++) {
    const low = word(sample, 64 + 2 * attempt), high = word(sample, 65 + 2 * attempt);
    const centre = (six) => RADIUS + six + (six >= MIDDLE - RADIUS);
    const objects = COLOURS.map((colour, k) => {
      const bits = Number((k < 5 ? low >> BigInt(12 * k) : high) & 4095n);
      return { colour, shape: SHAPES[(shapes >> k) & 1], x: centre(bits & 63), y: centre(bits >> 6) };
    });
    if (!overlap(objects) && !ambiguous(objects)) return objects;
  }
}
const overlap = (objects) => objects.some((a, i) =>
  objects.slice(0, i).some((b) => Math.max(Math.abs(a.x - b.x), Math.abs(a.y - b.y)) <= 2 * RADIUS));
const squared = (a, b) => (a.x - b.x) ** 2 + (a.y - b.y) ** 2;
const ambiguous = (objects) => objects.some((object) => {
  const distances = SHAPES.map((shape) =>
    objects.filter((other) => other !== object && other.shape === shape).map((other) => squared(object, other)));
  return withinAPixel(...distances.map((of) => Math.min(NONE, ...of))) || withinAPixel(...distances.map((of) => Math.max(0, ...of)));
});
function withinAPixel(a, b) {
  const rest = Math.abs(a - b) - 1;
  return rest < 0 || rest ** 2 < 4 * Math.min(a, b);
}

// The image as three planes of bytes; a later colour covers an earlier one.
export function pixels(objects) {
  const plane = SIDE * SIDE, image = new Uint8Array(3 * plane).fill(255);
  for (const { colour, shape, x, y } of inOrder(objects, PAINTED)) {
    for (let row = -RADIUS; row <= RADIUS; row++) {
      const half = halfWidth(shape, row), from = (y + row) * SIDE + x - half;
      RGB[colour].forEach((value, channel) => image.fill(value, channel * plane + from, channel * plane + from + 2 * half + 1));
    }
  }
  return image;
}
const inOrder = (objects, colours) => colours.map((colour) => objects.find((each) => each.colour === colour)).filter(Boolean);

// Of each object that others cover in part: how much of it is seen, and what covers it.
export function coveredObjects(objects) {
  const owner = new Map(), painted = inOrder(objects, PAINTED), pixelsOf = new Map();
  for (const { colour, shape, x, y } of painted) {
    const own = [];
    for (let row = -RADIUS; row <= RADIUS; row++)
      for (let column = -halfWidth(shape, row); column <= halfWidth(shape, row); column++) own.push((y + row) * SIDE + x + column);
    pixelsOf.set(colour, own);
    for (const pixel of own) owner.set(pixel, colour);
  }
  return painted.map(({ colour, shape }) => {
    const own = pixelsOf.get(colour), by = [...new Set(own.map((pixel) => owner.get(pixel)))].filter((each) => each !== colour);
    return { colour, shape, by, seen: own.filter((pixel) => owner.get(pixel) === colour).length / own.length };
  }).filter(({ seen }) => seen < 1);
}

// What a question about a colour is about: the object itself, and those that decide. Of equally distant ones the first colour counts.
export function referents(objects, kind, colour) {
  const all = inOrder(objects, ALL), own = all.find((each) => each.colour === colour), others = all.filter((each) => each !== own);
  const best = (better) => others.slice(0, 1).map((first) => others.reduce((a, b) => (better(squared(own, b), squared(own, a)) ? b : a), first));
  switch (kind) {
    case "closest": return { own, decisive: best((b, a) => b < a) };
    case "furthest": return { own, decisive: best((b, a) => b > a) };
    case "count": return { own, decisive: all.filter((each) => each.shape === own.shape) };
    default: return { own, decisive: [own] };
  }
}

// The true answer; null where there is no other object to speak of.
export function truth(objects, kind, colour) {
  const { own, decisive } = referents(objects, kind, colour);
  switch (kind) {
    case "left": return own.x > MIDDLE ? "no" : "yes";
    case "above": return own.y > MIDDLE ? "no" : "yes";
    case "count": return String(decisive.length);
    default: return decisive[0]?.shape ?? null;
  }
}

// A sentence as kind and colour; `language` holds the package's words, so that both accept the same sentences.
export function parseQuestion(sentence, language) {
  const words = (sentence.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).map((each) => (each === "grey" ? "gray" : each));
  const colours = words.filter((each) => COLOURS.includes(each));
  let kinds = Object.keys(language.signs).filter((kind) => words.some((each) => language.signs[kind].includes(each)));
  if (!kinds.length && words.includes("shape")) kinds = ["shape"];
  if (colours.length === 1 && kinds.length === 1) {
    const [kind] = kinds, [colour] = colours, signs = language.signs[kind] ?? [], yesNo = kind === "left" || kind === "above";
    const allowed = new Set([...language.small, ...(yesNo ? language.yes_no : language.other), ...signs, colour]);
    const inOrder = !yesNo || !words.slice(0, words.indexOf(colour)).some((each) => signs.includes(each));
    const ofShape = kind !== "count" || words.some((each) => ["same", "shape", "shapes"].includes(each));
    if (inOrder && ofShape && words.every((each) => allowed.has(each))) return { kind, colour };
  }
  const forms = KINDS.map((kind) => toSentence({ kind, colour: "red" }, language)).join(" ");
  throw new Error(`cannot understand '${sentence}': ask about one colour (${COLOURS.join(", ")}) like this: ${forms}`);
}
export const toSentence = ({ kind, colour }, language) => language.sentences[kind].replace("{}", colour);
