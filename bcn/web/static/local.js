// The engine of the page as a static site: onnxruntime-web runs the model in the browser, from files beside the page.

import * as ort from "./ort.wasm.min.mjs";
import { COLOURS, KINDS, SIDE, toSentence, pixels, questionBits, randomScene, truth, parseQuestion } from "./scenes.js";

export class Offline extends Error {}

const RUNNERS_UP = 3;
ort.env.wasm.numThreads = 1;  // more need headers that a plain file server does not send
ort.env.wasm.proxy = true;  // the model runs in a worker, so that the page stays responsive

async function load(name) {
  try {
    const response = await fetch(name);
    if (response.ok) return response;
  } catch {}
  throw new Offline(`${name} cannot be loaded. Is the file beside the page on the server? Trying again …`);
}
const once = (make) => { let made = null; return () => (made ??= make().catch((error) => { made = null; throw error; })); };
const description = once(async () => (await load("model.json")).json());
const session = once(async () => ort.InferenceSession.create(new Uint8Array(await (await load("model.onnx")).arrayBuffer())));

export const panels = ["reason"];
export async function weights() {
  await session();
  return [await description()];
}
export const newScene = async (seed) => ({ objects: randomScene(seed) });

export async function reason({ objects, questions }) {
  const { language, answers: names, map, can_die: canDie } = await description();
  const encoded = questions
    ? questions.map((each) => parseQuestion(each, language))
    : KINDS.flatMap((kind) => COLOURS.map((colour) => ({ kind, colour })));
  const start = performance.now();
  const outputs = await (await session()).run({ image: await imageTensor(objects), question: questionTensor(encoded) });
  const milliseconds = performance.now() - start, size = names.length;
  const answers = encoded.map((each, n) => {
    const [first, ...others] = rank(outputs.logits.data.subarray(n * size, (n + 1) * size), names);
    return { ...each, question: toSentence(each, language), ...first, others: others.slice(0, RUNNERS_UP), truth: truth(objects, each.kind, each.colour) };
  });
  const position = map && Array.from(outputs.position.data, (cell, k) => (!canDie || outputs.value.data[k] > 0 ? Number(cell) : -1));
  return { answers, broadcast: map && { ...map, position }, milliseconds };
}

async function imageTensor(objects) {
  const { mean, std } = (await description()).preprocessing, bytes = pixels(objects);
  const forChannel = (values, channel) => values[channel % values.length];
  const scaled = Float32Array.from(bytes, (value, n) => {
    const channel = Math.floor(n / (SIDE * SIDE));
    return (value / 255 - forChannel(mean, channel)) / forChannel(std, channel);
  });
  return new ort.Tensor("float32", scaled, [1, 3, SIDE, SIDE]);
}
function questionTensor(questions) {
  const bits = new Float32Array(11 * questions.length);
  questions.forEach((each, n) => bits.set(questionBits(each), 11 * n));
  return new ort.Tensor("float32", bits, [1, questions.length, 11]);
}
function rank(logits, names) {
  const largest = Math.max(...logits), weights = Array.from(logits, (each) => Math.exp(each - largest));
  const sum = weights.reduce((a, b) => a + b);
  return names.map((answer, n) => ({ answer, probability: weights[n] / sum })).sort((a, b) => b.probability - a.probability);
}

export const footer = ["The model runs in this browser, with onnxruntime-web; the page needs a server for its files alone."];
