// The engine behind the page where there is no server: onnxruntime-web answers in the browser, from files beside the page.

import * as ort from "./ort.wasm.min.mjs";
import { COLOURS, KINDS, SIDE, phrase, pixels, questionBits, randomScene, truth, understand } from "./scenes.js";

export class Offline extends Error {}

const RUNNERS_UP = 3;
ort.env.wasm.numThreads = 1;  // more need headers that a plain file server does not send
ort.env.wasm.proxy = true;  // answers are found beside the page, which stays free to be dragged on

async function load(name) {
  try {
    const response = await fetch(name);
    if (response.ok) return response;
  } catch {}
  throw new Offline(`${name} cannot be loaded. Is the file beside the page on the server? Trying again …`);
}
const once = (make) => { let made = null; return () => (made ??= make().catch((error) => { made = null; throw error; })); };
const about = once(async () => (await load("model.json")).json());
const session = once(async () => ort.InferenceSession.create(new Uint8Array(await (await load("model.onnx")).arrayBuffer())));

export const panels = ["reason"];
export async function weights() {
  await session();
  return [await about()];
}
export const newScene = async (seed) => ({ objects: randomScene(seed) });

export async function reason({ objects, questions }) {
  const { language, answers: names, map } = await about();
  const asked = questions
    ? questions.map((each) => understand(each, language))
    : KINDS.flatMap((kind) => COLOURS.map((colour) => ({ kind, colour })));
  const began = performance.now();
  const found = await (await session()).run({ image: await image(objects), question: tensor(asked) });
  const milliseconds = performance.now() - began, size = names.length;
  const answers = asked.map((each, n) => {
    const [first, ...others] = ranked(found.logits.data.subarray(n * size, (n + 1) * size), names);
    return { ...each, question: phrase(each, language), ...first, others: others.slice(0, RUNNERS_UP), truth: truth(objects, each.kind, each.colour) };
  });
  const position = map && Array.from(found.position.data, (place, k) => (found.value.data[k] > 0 ? Number(place) : -1));
  return { answers, broadcast: map && { ...map, position }, milliseconds };
}

async function image(objects) {
  const { mean, std } = (await about()).preprocessing, bytes = pixels(objects);
  const of = (values, channel) => values[channel % values.length];
  const scaled = Float32Array.from(bytes, (value, n) => {
    const channel = Math.floor(n / (SIDE * SIDE));
    return (value / 255 - of(mean, channel)) / of(std, channel);
  });
  return new ort.Tensor("float32", scaled, [1, 3, SIDE, SIDE]);
}
function tensor(asked) {
  const bits = new Float32Array(11 * asked.length);
  asked.forEach((each, n) => bits.set(questionBits(each), 11 * n));
  return new ort.Tensor("float32", bits, [1, asked.length, 11]);
}
function ranked(logits, names) {
  const most = Math.max(...logits), shares = Array.from(logits, (each) => Math.exp(each - most));
  const sum = shares.reduce((a, b) => a + b);
  return names.map((answer, n) => ({ answer, probability: shares[n] / sum })).sort((a, b) => b.probability - a.probability);
}

export { foot as about };
const foot = "The model runs in this browser, with onnxruntime-web; the page needs no server but for its files.";
