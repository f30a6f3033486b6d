// The See panel: free-text questions about a rendered scene or a picture of the user's.

import { byId } from "./dom.js";

const percent = (probability) => `${(100 * probability).toFixed(1)}\u00a0%`;

export function startSee(engine, weights, latest) {
  let image = null, truths = {};
  const normalise = (question) => question.toLowerCase().replace(/[^a-z0-9]+/g, " ").trim();

  function show(content, url, questions) {
    image = content;
    truths = Object.fromEntries(questions.map((each) => [normalise(each.question), each.answer]));
    byId("photo-shown").src = url;
    byId("photo-shown").hidden = false;
    byId("see-questions").replaceChildren(...questions.map((each) => new Option(each.question)));
    byId("see-answer").textContent = "";
  }
  const fail = (error) => {
    byId("see-answer").textContent = error.message;
    if (error instanceof engine.Offline) throw error;
  };
  const newPicture = latest(async () => {
    try {
      const scene = await engine.rendered(Math.floor(Math.random() * 2 ** 32));
      const bytes = Uint8Array.from(atob(scene.image), (letter) => letter.charCodeAt(0));
      show(bytes, `data:image/png;base64,${scene.image}`, scene.questions);
      byId("photo").value = "";
    } catch (error) { fail(error); }
  });
  byId("new-picture").onclick = () => newPicture();
  byId("photo").onchange = ({ target: { files: [file] } }) => {
    if (!file) return;
    const reader = new FileReader();
    reader.onload = () => show(file, reader.result, []);
    reader.readAsDataURL(file);
  };

  const ask = latest(async (question) => {
    byId("see-answer").textContent = "…";
    try {
      const [answer] = (await engine.ask(image, question, weights[0].weights)).answers;
      const others = answer.others.slice(0, 2).map((each) => `${each.answer} ${percent(each.probability)}`).join(", ");
      const truth = truths[normalise(question)];
      const verdict = truth === undefined ? "" : truth === answer.answer ? " ✓ right" : ` ✗ wrong, it is ${truth}`;
      byId("see-answer").textContent = `${answer.question}: ${answer.answer}, ${percent(answer.probability)} (then ${others})${verdict}`;
    } catch (error) { fail(error); }
  });
  byId("see-form").onsubmit = (event) => {
    event.preventDefault();
    if (image) ask(byId("see-question").value);
    else byId("see-answer").textContent = "Make a scene or choose a picture first.";
  };
}
