// The engine of the page as a static site: onnxruntime-web runs the models in the browser, from files beside the page.

import * as ort from "./ort.wasm.min.mjs";
import { COLOURS, KINDS, pixels, parseQuestion, randomScene, toSentence, truth } from "./scenes.js";
import { readPlanes } from "./resize.js";
import { readWords } from "./words.js";

export class Offline extends Error {}

const RUNNERS_UP = 3, UNKNOWN = 1, FIRST_WORD = 2, WASM = "ort-wasm-simd-threaded.wasm";
ort.env.wasm.numThreads = 1;  // more need headers that a plain file server does not send
ort.env.wasm.proxy = true;  // models run in a worker, so that the page stays responsive

// Files, with word of how much of all that is under way has come
let tell = () => {};
const coming = { size: 0, read: 0 };
function tellHow() {
  const { size, read } = coming, megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  tell(Math.min(0.99, read / size), read < size ? `Loading the network into your browser: ${megabytes(read)} of ${megabytes(size)} MB` : "Starting the network …");
}
function tellDone() {
  if (coming.read < coming.size) return;
  Object.assign(coming, { size: 0, read: 0 });
  tell(1, "");
}
async function load(name) {
  let response = null;
  try { response = await fetch(name); } catch {}
  if (!response?.ok) throw new Offline(`${name} cannot be loaded. Is the file beside the page on the server? Trying again …`);
  return response;
}
async function loadBytes(name) {
  const size = (await about()).sizes[name], bytes = new Uint8Array(size);
  let read = 0;
  coming.size += size;
  try {
    const reader = (await load(name)).body.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      bytes.set(part.value, read);
      read += part.value.length;
      coming.read += part.value.length;
      tellHow();
    }
    return bytes;
  } catch (error) {
    coming.size -= size;
    coming.read -= read;
    throw error;
  }
}
const kept = new Map();
function once(key, make) {
  if (!kept.has(key)) kept.set(key, make().catch((error) => { kept.delete(key); throw error; }));
  return kept.get(key);
}
const about = () => once("about", async () => (await load("models.json")).json());
const scenes = () => once("scenes", async () => (await load("rendered.json")).json());
const runtime = () => once("runtime", async () => { ort.env.wasm.wasmBinary = (await loadBytes(WASM)).buffer; });
const session = (file) => once(file, async () => {
  const [content] = await Promise.all([loadBytes(file), runtime()]);
  const made = await inTurn(() => ort.InferenceSession.create(content));
  tellDone();
  return made;
});
const sessions = (files) => Promise.all(files.map(session));
// The runtime starts one session at a time
let last = Promise.resolve();
const inTurn = (make) => (last = last.then(make, make));
const modelOf = async (family, name) => {
  const { models } = await about();
  return models.find((each) => each.weights === name) ?? models.find((each) => each.family === family);
};

export async function weights(progress) {
  tell = progress;
  const { models } = await about(), scene = models.find((each) => each.family === "sort-of-clevr");
  if (scene) await sessions(Object.values(scene.files));
  return models;
}
export const newScene = async (seed) => ({ objects: randomScene(seed) });
export async function rendered(seed, weights) {
  const model = (await about()).models.find((each) => each.weights === weights), all = (await scenes())[model?.pictures] ?? [];
  if (!all.length) throw new Error("There are no pictures for this model here: choose one of your own.");
  return all[seed % all.length];
}

// What models take and give
function imageTensor(bytes, channels, { preprocessing: { mean, std }, image: { height, width } }) {
  const plane = height * width, part = (values, n) => values[Math.floor(n / plane) % values.length];
  return new ort.Tensor("float32", Float32Array.from(bytes, (value, n) => (value / 255 - part(mean, n)) / part(std, n)), [1, channels, height, width]);
}
function rank(logits, names) {
  const largest = Math.max(...logits), weights = Array.from(logits, (each) => Math.exp(each - largest)), sum = weights.reduce((a, b) => a + b);
  const [first, ...others] = names.map((answer, n) => ({ answer, probability: weights[n] / sum })).sort((a, b) => b.probability - a.probability);
  return { ...first, others };
}
const rows = ({ data }, size) => Array.from({ length: data.length / size }, (_, n) => data.subarray(n * size, (n + 1) * size));
function broadcastOf(model, outputs) {
  if (!model.map) return null;
  const value = Array.from(outputs.value.data), active = model.typical?.active;
  const position = Array.from(outputs.position.data, (cell, k) => ((!model.can_die || value[k] > 0) && (active?.[k] ?? true) ? Number(cell) : -1));
  return { ...model.map, position, value };
}
// The CNN runs once; what follows, once for each vector. What is given to the worker is gone, so it gets copies.
const copy = ({ type, data, dims }) => new ort.Tensor(type, data.slice(), dims);
async function answer(model, image, question, vectors = (own) => [own]) {
  const [encoder, answerer] = await sessions([model.files.encoder, model.files.answerer]), seen = await encoder.run({ image }), answers = [];
  for (const vector of vectors(seen.value)) {
    const { logits } = await answerer.run({ map: copy(seen.map), question: copy(question), ...(vector ? { vector: copy(vector) } : {}) });
    answers.push(rows(logits, model.answers.length).map((each) => rank(each, model.answers)));
  }
  return { seen, answers };
}

export async function reason({ objects, questions = null, weights = null, mute = false, channel = null }) {
  const model = await modelOf("sort-of-clevr", weights), { language, typical } = model, named = (colour) => objects.some((each) => each.colour === colour);
  const asked = questions ? questions.map((each) => parseQuestion(each, language)) : KINDS.flatMap((kind) => COLOURS.filter(named).map((colour) => ({ kind, colour })));
  const missing = asked.find(({ colour }) => !named(colour));
  if (missing) throw new Error(`there is no ${missing.colour} object in this scene: ask about one that is there`);
  const size = language.bits.shape[0].length, bits = new Float32Array(size * asked.length), start = performance.now();
  asked.forEach(({ kind, colour }, n) => bits.set(language.bits[kind][COLOURS.indexOf(colour)], size * n));
  const mean = mute ? [new ort.Tensor("float32", Float32Array.from(typical.mean), [1, typical.mean.length])] : [];
  const { seen, answers } = await answer(model, imageTensor(pixels(objects), 3, model), new ort.Tensor("float32", bits, [1, asked.length, size]), (own) => [own, ...mean]);
  const check = (each, n) => ({ ...asked[n], question: toSentence(asked[n], language), ...each, others: each.others.slice(0, RUNNERS_UP), truth: truth(objects, asked[n].kind, asked[n].colour) });
  const [own, muted] = answers.map((list) => list.map(check)), broadcast = broadcastOf(model, seen);
  if (broadcast) Object.assign(broadcast, { mean: mute ? typical.mean : null, seen: distances(seen.map, typical.empty), response: channel === null ? null : Array.from(rows(seen.response, seen.response.data.length / broadcast.value.length)[channel]) });
  return { answers: own, muted: muted ?? null, broadcast, milliseconds: performance.now() - start };
}
// How far each position is from that of an empty image, as a share of the largest.
function distances({ data, dims: [, channels, height, width] }, empty) {
  const size = height * width, all = Array.from({ length: size }, (_, n) => {
    let sum = 0;
    for (let c = 0; c < channels; c++) sum += (data[c * size + n] - empty[c * size + n]) ** 2;
    return Math.sqrt(sum);
  });
  const largest = Math.max(...all, 1e-6);
  return all.map((each) => each / largest);
}

export async function find(pad) {
  const models = (await about()).models.filter((each) => each.family === "scaled-mnist"), detections = [];
  const classifiers = await sessions(models.map((each) => each.files.classifier));
  for (const [n, model] of models.entries()) {
    const outputs = await classifiers[n].run({ image: imageTensor(pad.gray(), 1, model) });
    const centre = outputs.centre && model.localise ? { centre: Array.from(outputs.centre.data) } : {};
    detections.push({ ...model, ...rank(outputs.logits.data, model.answers), ...centre, broadcast: broadcastOf(model, outputs) });
  }
  return { detections };
}

export async function ask(image, questions, weights) {
  const model = (await about()).models.find((each) => each.weights === weights), { width, height } = model.image, index = new Map(model.words.map((word, n) => [word, n + FIRST_WORD]));
  const read = questions.map((question) => readWords(question, model).flatMap((each) => (each.read === null ? [null] : each.read.split(" ").filter(Boolean))));
  const lost = read.findIndex((words) => words.every((each) => each === null));
  if (lost >= 0) throw new Error(`'${questions[lost]}' has no word that was trained on: ask with words such as ${model.words.slice(0, 12).join(", ")}`);
  const longest = Math.max(...read.map((words) => words.length)), tokens = new BigInt64Array(longest * questions.length);
  read.forEach((words, n) => words.forEach((word, k) => { tokens[n * longest + k] = BigInt(word === null ? UNKNOWN : index.get(word)); }));
  const planes = imageTensor(await readPlanes(image, width, height), 3, model);
  const { seen, answers: [found] } = await answer(model, planes, new ort.Tensor("int64", tokens, [1, questions.length, longest]));
  const answers = found.map((each, n) => ({ question: read[n].map((word) => word ?? "?").join(" "), ...each }));
  return { answers, broadcast: broadcastOf(model, seen) };
}

export const howToLoad = "bcn export RUN site --to web";
export const footer = ["The networks run in this browser, with onnxruntime-web; the page needs a server for its files alone, and loads nothing from elsewhere."];
