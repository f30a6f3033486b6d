// The Reason panel: a scene to change, all answers, what is broadcast, and what changes without it.

import { byId, element, whenChanged } from "./dom.js";
import { ALL, COLOURS, PAINTED, RADIUS, RELATIONAL, SIDE, coveredObjects } from "./scenes.js";
import { makeSceneView } from "./scene_view.js";
import { geometryOf } from "./geometry.js";
import { describeCovered, drawDetail, isRight, makeTable } from "./answers.js";
import { cellAt } from "./map.js";
import { makeMechanism } from "./mechanism.js";
import { startCost } from "./cost.js";
import { startTries } from "./tries.js";
import { PRESETS, decodeScene, download, encodeScene, toPicture } from "./share.js";
import { panelInAddress, valueInAddress } from "./tabs.js";

const shortName = (weights) => weights.replace("sort-of-clevr/", "");
const TIMES_KEPT = 100, MOST = 12, TRIED = 40, REST_MS = 400;

export function startReason(engine, weights, latest) {
  let objects = [], selected = null, response = null, second = null, chosen = { kind: "closest", colour: "red" }, channel = null, cell = null, muted = false, addressTimer = null, speedTimer = null;
  const times = [], model = () => weights.find((each) => each.weights === byId("weights").value) ?? weights[0];
  const objectOf = (colour) => objects.find((each) => each.colour === colour);

  const view = makeSceneView(byId("scene"), {
    select, move, flip, remove,
    point: (position) => { cell = position; drawPointed(); },
  });
  const drawTable = makeTable(byId("answers"), (question) => { chosen = question; byId("ask-answer").textContent = ""; drawAnswers(); drawPointed(); });
  const drawMechanism = makeMechanism({
    onChannel: (number) => { if (number === channel && cell === null) return; [channel, cell] = [number, null]; tried("inside"); drawPointed(); send(performance.now()); },
    onCell: (position) => { if (position !== cell) { cell = position; drawPointed(); } },
    onMove: (colour, x, y) => { if (selected !== colour) select(colour); move(colour, x, y); },
  });
  const tried = startTries({
    drag: () => { byId("scene").scrollIntoView({ block: "nearest" }); byId("scene").querySelector(".object").focus(); },
    mute: () => { byId("trial").scrollIntoView({ block: "nearest" }); if (!muted) toggleMute(); },
    inside: () => { byId("mechanism").scrollIntoView(); byId("channel").focus({ preventScroll: true }); tried("inside"); },
  });

  // The scene
  function select(colour) {
    selected = colour;
    byId("flip").disabled = byId("remove").disabled = !objectOf(colour);
    byId("remove").disabled ||= objects.length < 2;
    view.draw(objects, selected);
  }
  function move(colour, x, y) {
    const clamp = (value) => Math.min(SIDE - 1 - RADIUS, Math.max(RADIUS, Math.round(value))), object = objectOf(colour), before = [object.x, object.y];
    [object.x, object.y] = [clamp(x), clamp(y)];
    if (before[0] === object.x && before[1] === object.y) return;
    tried("drag");
    update();
  }
  function flip(colour) {
    objectOf(colour).shape = objectOf(colour).shape === "circle" ? "square" : "circle";
    update();
  }
  function remove(colour) {
    const rest = objects.filter((each) => each.colour !== colour);
    if (!rest.some((each) => COLOURS.includes(each.colour))) return;
    objects = rest;
    if (chosen?.colour === colour) chosen = null;
    select(null);
    update();
  }
  function add() {
    const colour = ALL.find((each) => !objectOf(each)), free = [];
    if (!colour) return;
    const gap = (x, y) => Math.min(SIDE, ...objects.map((each) => Math.max(Math.abs(each.x - x), Math.abs(each.y - y))));
    for (let x = RADIUS; x < SIDE - RADIUS; x += 4) for (let y = RADIUS; y < SIDE - RADIUS; y += 4) free.push([gap(x, y), x, y]);
    const [, x, y] = free.reduce((a, b) => (b[0] > a[0] ? b : a));
    objects = [...objects, { colour, shape: objects.length % 2 ? "circle" : "square", x, y }];
    select(colour);
    update();
  }
  function update() {
    view.draw(objects, selected);
    byId("add").disabled = objects.length >= MOST;
    const covered = coveredObjects(objects);
    sayCovered(covered.map(describeCovered).join(" "));
    drawGeometry(objects, chosen);
    send(performance.now());
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => { if (["", "reason"].includes(panelInAddress())) history.replaceState(null, "", `#reason?scene=${encodeScene(objects)}`); }, REST_MS);
  }

  const sayCovered = whenChanged((text) => { byId("covered").hidden = !text; byId("covered").textContent = text; });

  // Answers
  const send = latest(async (start) => {
    const sent = JSON.stringify(PAINTED.map(objectOf).filter(Boolean).map((each) => [each.x, each.y, each.shape])), other = byId("second").value, asked = { objects, weights: model().weights };
    const now = await engine.reason({ ...asked, mute: muted, channel: model().has_bcn ? channel : null });
    second = now.muted ?? (other ? (await engine.reason({ objects, weights: other })).answers : null);
    response = now;
    if (channel === null && response.broadcast) { channel = strongest(); send(start); }
    if (channel >= (response.broadcast?.value.length ?? Infinity)) channel = 0;
    drawAnswers();
    view.drawMap(response.broadcast, byId("show-map").checked);
    drawPointed();
    times.push(performance.now() - start);
    if (times.length > TIMES_KEPT) times.shift();
    clearTimeout(speedTimer);
    speedTimer = setTimeout(saySpeed, REST_MS);
    byId("speed").dataset.times = times.map((each) => each.toFixed(1)).join(" ");
    byId("scene").dataset.answered = sent;
  });
  function saySpeed() {
    const median = [...times].sort((a, b) => a - b)[times.length >> 1];
    byId("speed").textContent = `The network took ${response.milliseconds.toFixed(0)} ms; from a move to its answers ${median.toFixed(0)} ms (median of ${times.length}).`;
  }
  const chosenOf = (answers) => chosen && answers?.find((each) => each.kind === chosen.kind && each.colour === chosen.colour);
  const secondName = () => (muted ? "Broadcast muted" : shortName(byId("second").value));

  const drawScore = whenChanged((right, asked, rightRelational, relational) => byId("score").replaceChildren(
    element("b", {}, `${right} of ${asked} right`), ` (${rightRelational} of ${relational} relational)`));
  const drawExperiment = whenChanged((found) => {
    const told = ([changed, asked, before, after]) => [`${changed} of ${asked}`, `(right: ${before} → ${after})`];
    if (!found) { byId("experiment").textContent = "Instead of this picture’s values, every position then gets their average over many pictures."; return; }
    const [related, relatedRight] = told(found.relational), [alone, aloneRight] = told(found.alone);
    byId("experiment").replaceChildren(element("b", {}, `${found.name}: `), element("b", { class: "count" }, `${related} relational answers`),
      ` ${muted ? "change" : "differ"} ${relatedRight}, and ${alone} of the others ${aloneRight}.`);
  });
  const drawGeometry = whenChanged((now, question) => view.drawGeometry(question ? geometryOf(now, question) : []));

  function drawAnswers() {
    if (!response) return;
    const { answers } = response, covered = coveredObjects(objects), asked = answers.filter((each) => each.truth !== null);
    drawTable(answers, second, chosen, objects, covered);
    const right = (list) => list.filter(isRight).length, of = (list, relational) => list.filter((each) => RELATIONAL.includes(each.kind) === relational && each.truth !== null);
    drawScore(right(asked), asked.length, right(of(asked, true)), of(asked, true).length);
    const part = (relational) => {
      const asked = of(answers, relational), changed = asked.filter((each) => second[answers.indexOf(each)].answer !== each.answer);
      return [changed.length, asked.length, right(asked), right(of(second, relational))];
    };
    drawExperiment(second && { name: secondName(), relational: part(true), alone: part(false) });
    const one = chosenOf(answers);
    if (one) drawDetail(one, chosenOf(second), secondName(), covered.filter((each) => each.colour === chosen.colour));
    drawGeometry(objects, one ? chosen : null);
  }
  function drawPointed() {
    if (!response) return;
    if (channel === null) return;
    view.light(cell ?? (response.broadcast?.position[channel] ?? null));
    drawMechanism({ broadcast: response.broadcast, objects, channel, cell, answer: chosenOf(response.muted ?? response.answers) });
  }

  // The channel to begin with: the strongest that comes from the object that is asked about, or else from anywhere
  function strongest() {
    const { broadcast } = response, own = objectOf(chosen?.colour) ?? objects[0];
    const cells = [-RADIUS, 0, RADIUS].flatMap((x) => [-RADIUS, 0, RADIUS].map((y) => cellAt(broadcast, (own.x + x + 0.5) / SIDE, (own.y + y + 0.5) / SIDE)));
    const size = (n) => (cells.includes(broadcast.position[n]) ? 1e6 : 0) + (broadcast.position[n] < 0 ? -1e6 : broadcast.value[n]);
    return broadcast.value.reduce((best, _, n) => (size(n) > size(best) ? n : best), 0);
  }

  // Asking chooses an answer of the table, which follows the scene as all others do
  const ask = latest(async (question) => {
    const output = byId("ask-answer");
    output.className = "";
    output.textContent = "…";
    try {
      const [answer] = (await engine.reason({ objects, questions: [question], weights: model().weights })).answers;
      chosen = { kind: answer.kind, colour: answer.colour };
      output.textContent = `Understood as: ${answer.question}`;
      send(performance.now());
    } catch (error) {
      output.className = "failed";
      output.textContent = error.message;
      if (error instanceof engine.Offline) throw error;
    }
  });

  // Scenes
  const newScene = latest(async () => show((await engine.newScene(Math.floor(Math.random() * 2 ** 32))).objects));
  function show(made) {
    objects = made;
    if (chosen && !objectOf(chosen.colour)) chosen = null;
    select(null);
    update();
  }
  const hardest = latest(async () => {
    let worst = null;
    for (let tried = 0; tried < TRIED; tried++) {
      byId("shared").textContent = `Scene ${tried + 1} of ${TRIED} …`;
      const scene = (await engine.newScene((Math.floor(Math.random() * 2 ** 31) + tried * 7919) % 2 ** 32)).objects;
      const { answers } = await engine.reason({ objects: scene, weights: model().weights });
      const sure = (each) => (isRight(each) ? each.probability : -each.probability), score = answers.reduce((sum, each) => sum + sure(each), 0);
      if (!worst || score < worst.score) worst = { scene, score };
    }
    byId("shared").textContent = "";
    show(worst.scene);
  });
  const initial = decodeScene(valueInAddress("scene"));
  addEventListener("hashchange", () => { const linked = decodeScene(valueInAddress("scene")); if (linked) show(linked); });

  // Controls
  byId("new-scene").onclick = () => newScene();
  byId("flip").onclick = () => flip(selected);
  byId("add").onclick = add;
  byId("remove").onclick = () => remove(selected);
  byId("show-map").onchange = () => view.drawMap(response?.broadcast, byId("show-map").checked);
  byId("preset").onchange = ({ target }) => {
    if (target.value === "hard") hardest(); else if (target.value) show(PRESETS[target.value]());
    target.value = "";
  };
  byId("share").onclick = async () => {
    history.replaceState(null, "", `#reason?scene=${encodeScene(objects)}`);
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    byId("shared").textContent = copied ? "Copied." : "The link is in the address bar.";
  };
  byId("download").onclick = () => {
    const one = chosenOf(response?.answers);
    download(toPicture(objects, byId("show-map").checked ? response?.broadcast : null, one && `${one.question} ${one.answer}`), "scene.png");
  };
  function toggleMute() {
    muted = !muted;
    byId("mute").setAttribute("aria-checked", muted);
    if (muted) byId("second").value = "";
    tried("mute");
    send(performance.now());
  }
  byId("mute").onclick = toggleMute;
  byId("ask-form").onsubmit = (event) => { event.preventDefault(); ask(byId("question").value); };
  for (const each of weights) for (const list of ["weights", "second"])
    byId(list).add(new Option(`${shortName(each.weights)}, ${each.has_bcn ? "with" : "without"} BCN`, each.weights));
  byId("choose-weights").hidden = byId("choose-second").hidden = weights.length < 2;
  function chooseModel() {
    byId("mute").hidden = !model().has_bcn;
    byId("trial").classList.toggle("without", !model().has_bcn);
    byId("tries").querySelectorAll("[data-try=mute], [data-try=inside]").forEach((each) => { each.disabled = !model().has_bcn; });
    if (!model().has_bcn) { muted = false; byId("mute").setAttribute("aria-checked", false); }
    if (objects.length) send(performance.now());
  }
  byId("weights").onchange = chooseModel;
  byId("second").onchange = () => {
    if (byId("second").value) { muted = false; byId("mute").setAttribute("aria-checked", false); }
    send(performance.now());
  };
  byId("more").open = matchMedia("(min-width: 44rem)").matches;
  chooseModel();
  show(initial ?? PRESETS.mute());
  startCost().catch(() => {});
}
