// The See panel: a picture of one's own, and questions in one's own words.

const byId = (id) => document.getElementById(id);

export function startSee(engine, weights, latest) {
  byId("photo").onchange = (event) => {
    const reader = new FileReader();
    reader.onload = () => { byId("photo-shown").src = reader.result; byId("photo-shown").hidden = false; };
    if (event.target.files[0]) reader.readAsDataURL(event.target.files[0]);
  };
  const ask = latest(async (image, question) => {
    byId("seen").textContent = "…";
    try {
      const [found] = (await engine.ask(image, question, weights[0].weights)).answers;
      const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;
      const others = found.others.slice(0, 2).map((each) => `${each.answer} ${percent(each.probability)}`).join(", ");
      byId("seen").textContent = `${found.question}: ${found.answer}, ${percent(found.probability)} (then ${others})`;
    } catch (error) {
      byId("seen").textContent = error.message;
      if (error instanceof engine.Offline) throw error;
    }
  });
  byId("see-form").onsubmit = (event) => {
    event.preventDefault();
    const image = byId("photo").files[0];
    if (image) ask(image, byId("see-question").value);
    else byId("seen").textContent = "Choose a picture first.";
  };
}
