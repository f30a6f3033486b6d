// The See panel: questions in words about a rendered scene or a picture of the user's.

import { byId, element, svg } from "./dom.js";
import { bars, percent } from "./bars.js";
import { outlines } from "./map.js";
import { readWords, tokenize } from "./words.js";

const LARGEST = 480;  // pixels of the longer side of a picture that is sent: networks see 128 or 224

export function startSee(engine, weights, latest) {
  let image = null, questions = [], broadcast = null, asked = null, pictures = 0, madeFor = null;  // what data its model knows
  const answerBox = byId("see-answer"), answers = new Map(), model = () => weights.find((each) => each.weights === byId("see-weights").value) ?? weights[0];
  const normalise = (question) => tokenize(question).join(" ");

  function show(content, url, list) {
    [image, questions, broadcast, asked] = [content, list, null, null];
    answers.clear();
    byId("photo-shown").src = url;
    byId("photo-shown").hidden = false;
    byId("drop-hint").hidden = true;
    answerBox.replaceChildren();
    byId("see-map").replaceChildren();
    askAll();
  }
  const fail = (error) => {
    answerBox.replaceChildren(element("p", { class: "failed" }, error.message));
    if (error instanceof engine.Offline) throw error;
  };

  // Pictures; the last one that was asked for is shown, however long a scene takes to render
  const newPicture = latest(async () => {
    const picture = ++pictures, { weights: name, data } = model();
    try {
      const scene = await engine.rendered(Math.floor(Math.random() * 2 ** 32), name);
      if (picture !== pictures) return;
      const bytes = Uint8Array.from(atob(scene.image), (letter) => letter.charCodeAt(0));
      byId("photo").value = "";
      madeFor = data;
      show(bytes, `data:image/png;base64,${scene.image}`, scene.questions);
    } catch (error) { byId("drop-hint").textContent = error.message; fail(error); }
  });
  async function take(file) {
    if (!file) return;
    pictures += 1;
    madeFor = null;
    try {
      const picture = await createImageBitmap(file), share = Math.min(1, LARGEST / Math.max(picture.width, picture.height));
      const canvas = element("canvas", { width: Math.max(1, Math.round(picture.width * share)), height: Math.max(1, Math.round(picture.height * share)) });
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      const url = canvas.toDataURL("image/png");
      show(Uint8Array.from(atob(url.split(",")[1]), (letter) => letter.charCodeAt(0)), url, []);
    } catch { answerBox.replaceChildren(element("p", { class: "failed" }, `${file.name} is no picture that this browser can read: choose a PNG or JPEG file.`)); }
  }
  byId("new-picture").onclick = () => newPicture();
  byId("photo").onchange = ({ target: { files: [file] } }) => take(file);
  for (const name of ["dragover", "dragleave", "drop"]) byId("drop").addEventListener(name, (event) => {
    event.preventDefault();
    byId("drop").classList.toggle("over", name === "dragover");
    if (name === "drop") take(event.dataTransfer.files[0]);
  });

  // Answers
  const truthOf = (question) => questions.find((each) => normalise(each.question) === normalise(question))?.answer;
  const askAll = latest(async () => {
    questions = questions.filter(({ question }) => readWords(question, model()).some((each) => each.read));
    if (questions.length) {
      const response = await engine.ask(image, questions.map((each) => each.question), model().weights);
      questions.forEach((each, n) => answers.set(each.question, response.answers[n]));
      broadcast = response.broadcast;
    }
    drawChips();
    if (questions.length) choose(questions[0].question);
    drawMap();
  });
  const ask = latest(async (question) => {
    answerBox.replaceChildren(element("p", {}, "…"));
    try {
      const response = await engine.ask(image, [question], model().weights);
      broadcast = response.broadcast;
      drawAnswer(question, response.answers[0]);
      drawMap();
    } catch (error) { fail(error); }
  });
  function choose(question) {
    byId("see-question").value = question;
    checkWords();
    // What is broadcast after asking differs from question to question
    if (answers.has(question) && (model().has_bcn || !broadcast)) drawAnswer(question, answers.get(question)); else ask(question);
  }
  function drawAnswer(question, answer) {
    asked = question;
    const truth = truthOf(question), verdict = truth === undefined ? "" : truth === answer.answer ? " ✓ right" : ` ✗ wrong, it is ${truth}`;
    answerBox.replaceChildren(
      ...(truth === undefined ? [element("p", { class: "hint" }, `Read as: ${answer.question}`)] : []),
      element("p", { class: truth === undefined || truth === answer.answer ? "big" : "big bad" }, answer.answer, element("span", { class: "hint" }, ` ${percent(answer.probability)}${verdict}`)),
      bars([answer, ...answer.others].slice(0, 4), truth));
    placeAnswer();
  }
  // Below its question, or above all of them
  function placeAnswer() {
    const chips = [...byId("chips").querySelectorAll(".chip")], chosen = chips.find((each) => each.dataset.question === asked);
    for (const each of chips) each.setAttribute("aria-pressed", each === chosen);
    if (chosen) chosen.after(answerBox); else byId("chips").before(answerBox);
  }
  function drawChips() {
    byId("chips").replaceChildren(...questions.map(({ question, answer: truth }) => {
      const answer = answers.get(question), right = answer?.answer === truth;
      const said = answer ? element("span", { class: right ? "said" : "said bad" }, right ? `✓ ${answer.answer}` : `✗ ${answer.answer}, it is ${truth}`) : "";
      const chip = element("button", { class: "chip", "data-question": question, "aria-pressed": false }, `${question} `, said);
      chip.onclick = () => choose(question);
      return chip;
    }));
    placeAnswer();
    const known = questions.filter(({ question }) => answers.has(question)), right = known.filter(({ question, answer }) => answers.get(question).answer === answer).length;
    byId("see-score").hidden = !known.length;
    byId("see-score").textContent = `${right} of ${known.length} right. ${model().weights}: ${model().parameters.toLocaleString("en")} parameters, trained on ${model().data} (${model().scale}).`;
  }
  function drawMap() {
    byId("see-positions").hidden = byId("see-legend").hidden = !broadcast;
    const shown = broadcast && byId("show-see-map").checked, picture = byId("photo-shown"), width = 3, height = (3 * (picture.naturalHeight || 2)) / (picture.naturalWidth || 3);
    byId("see-map").setAttribute("viewBox", `0 0 ${width} ${height}`);
    byId("see-map").replaceChildren(...(shown ? ["mark casing", "mark"].map((name) => svg("path", { class: name, d: outlines(broadcast, width, height) })) : []));
  }

  // Words that the network does not know, while they are typed
  function checkWords() {
    const words = readWords(byId("see-question").value, model());
    const told = words.filter((each) => each.read !== each.word && /\w/.test(each.word));
    byId("see-words").replaceChildren(...told.flatMap(({ word, read, nearest }) => [
      element("s", {}, word), read ? ` is read as ${read}. ` : nearest ? ` is not known; did you mean ${nearest}? ` : " is not known. "]));
  }
  byId("see-question").oninput = checkWords;
  byId("see-form").onsubmit = (event) => {
    event.preventDefault();
    if (image) ask(byId("see-question").value);
    else answerBox.replaceChildren(element("p", {}, "Make a scene or choose a picture first."));
  };
  byId("show-see-map").onchange = drawMap;
  byId("photo-shown").onload = drawMap;
  for (const each of weights) byId("see-weights").add(new Option(each.weights, each.weights));
  byId("choose-see-weights").hidden = weights.length < 2;
  byId("see-weights").onchange = () => {
    answers.clear();
    checkWords();
    if (!image || (madeFor !== null && madeFor !== model().data)) newPicture(); else askAll();
  };
  return { begin: () => { checkWords(); if (!image) newPicture(); } };
}
