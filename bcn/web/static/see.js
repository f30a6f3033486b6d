// The See panel: a rendered scene or a picture of one's own, and questions in one's own words.

const byId = (id) => document.getElementById(id);
const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;

export function startSee(engine, weights, latest) {
  let image = null, truths = {};
  const plain = (question) => question.toLowerCase().replace(/[^a-z0-9]+/g, " ").trim();

  function show(given, address, questions) {
    image = given;
    truths = Object.fromEntries(questions.map((each) => [plain(each.question), each.answer]));
    byId("photo-shown").src = address;
    byId("photo-shown").hidden = false;
    byId("see-questions").replaceChildren(...questions.map((each) => new Option(each.question)));
    byId("seen").textContent = "";
  }
  const fail = (error) => {
    byId("seen").textContent = error.message;
    if (error instanceof engine.Offline) throw error;
  };
  const newPicture = latest(async () => {
    try {
      const found = await engine.rendered(Math.floor(Math.random() * 2 ** 32));
      const bytes = Uint8Array.from(atob(found.image), (letter) => letter.charCodeAt(0));
      show(bytes, `data:image/png;base64,${found.image}`, found.questions);
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
    byId("seen").textContent = "…";
    try {
      const [found] = (await engine.ask(image, question, weights[0].weights)).answers;
      const others = found.others.slice(0, 2).map((each) => `${each.answer} ${percent(each.probability)}`).join(", ");
      const truth = truths[plain(question)];
      const verdict = truth === undefined ? "" : truth === found.answer ? " ✓ right" : ` ✗ wrong, it is ${truth}`;
      byId("seen").textContent = `${found.question}: ${found.answer}, ${percent(found.probability)} (then ${others})${verdict}`;
    } catch (error) { fail(error); }
  });
  byId("see-form").onsubmit = (event) => {
    event.preventDefault();
    if (image) ask(byId("see-question").value);
    else byId("seen").textContent = "Make a scene or choose a picture first.";
  };
}
