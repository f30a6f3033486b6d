// The Reason panel: a scene to drag, all 36 answers, a free question, the activation map, and the channels of the BCN.

import { byId, element, svg } from "./dom.js";
import { COLOURS, RADIUS, RGB, SIDE, halfWidth } from "./scenes.js";

const GRID_COLUMNS = 32, TIMES_KEPT = 100;
const ROWS = Array.from({ length: 2 * RADIUS + 1 }, (_, n) => n - RADIUS);
const MARK = { red: "R", green: "G", blue: "B", orange: "O", gray: "Gy", yellow: "Y" };
const KINDS = {
  shape: "Shape?", left: "On the left?", above: "Above the middle?",
  closest: "Shape of the closest?", furthest: "Shape of the furthest?", count: "How many of its shape?",
};
const rgb = (colour) => `rgb(${RGB[colour]})`;
const percent = (probability) => `${(100 * probability).toFixed(probability > 0.9995 || probability < 0.0005 ? 0 : 1)}\u00a0%`;

export function startReason(engine, weights, latest) {
  const picture = byId("scene"), table = byId("answers"), map = svg("g", { class: "map" });
  let objects = [], selected = null, answers = [], shown = null, broadcast = null, dragged = null;
  const times = [], buttons = {};

  // The scene, pixel for pixel as the model sees it
  const nodes = Object.fromEntries(COLOURS.map((colour) => {
    const body = svg("path", { fill: rgb(colour), class: "body" });
    const ring = svg("rect", { class: "ring", x: -6.3, y: -6.3, width: 13.6, height: 13.6, rx: 1 });
    const group = svg("g", { class: "object", tabindex: 0, role: "button", "data-colour": colour }, body, ring);
    picture.append(group);
    group.addEventListener("pointerdown", (event) => {
      // the selected object is dragged even from under another, so that an object dropped there can be moved on
      const at = pixel(event), target = selected && covers(objectOf(selected), at) ? selected : colour, object = objectOf(target);
      dragged = { colour: target, id: event.pointerId, x: object.x - at.x, y: object.y - at.y };
      picture.setPointerCapture(event.pointerId);
      select(target);
      nodes[target].focus({ preventScroll: true });
      event.preventDefault();
    });
    group.addEventListener("focus", () => select(colour));
    group.addEventListener("dblclick", () => flip(selected));
    group.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (step) { const pixels = event.shiftKey ? 5 : 1; const o = objectOf(colour); move(colour, o.x + pixels * step[0], o.y + pixels * step[1]); }
      else if (event.key === "Enter" || event.key === " ") flip(colour);
      else return;
      event.preventDefault();
    });
    return [colour, group];
  }));
  picture.append(map);
  const labels = Object.fromEntries(Object.entries(MARK).map(([colour, mark]) => {
    const ink = ["blue", "gray", "red"].includes(colour) ? "#fff" : "#000";
    const label = svg("text", { x: 0.5, y: 0.7, "aria-hidden": true, fill: ink }, mark);
    picture.append(label);
    return [colour, label];
  }));
  const pixel = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
  const objectOf = (colour) => objects.find((each) => each.colour === colour);
  const covers = (object, at) => Math.max(Math.abs(at.x - 0.5 - object.x), Math.abs(at.y - 0.5 - object.y)) <= RADIUS + 0.5;

  function drawScene() {
    for (const { colour, shape, x, y } of objects) {
      const line = (row, half = halfWidth(shape, row)) => `M${-half} ${row}h${2 * half + 1}v1h${-2 * half - 1}z`;
      nodes[colour].querySelector(".body").setAttribute("d", ROWS.map((row) => line(row)).join(""));
      for (const node of [nodes[colour], labels[colour]]) node.setAttribute("transform", `translate(${x} ${y})`);
      nodes[colour].setAttribute("aria-label", `${colour} ${shape} at ${x}, ${y}`);
      nodes[colour].classList.toggle("selected", colour === selected);
      const swatch = table.querySelector(`.swatch[data-colour=${colour}]`);
      swatch?.classList.toggle("circle", shape === "circle");
    }
  }

  function update() {
    drawScene();
    send(performance.now());
  }
  function move(colour, x, y) {
    const clamp = (value) => Math.min(SIDE - 1 - RADIUS, Math.max(RADIUS, Math.round(value)));
    const object = objectOf(colour), before = [object.x, object.y];
    [object.x, object.y] = [clamp(x), clamp(y)];
    if (before[0] !== object.x || before[1] !== object.y) update();
  }
  function flip(colour) {
    objectOf(colour).shape = objectOf(colour).shape === "circle" ? "square" : "circle";
    update();
  }
  function select(colour) {
    selected = colour;
    byId("flip").disabled = false;
    drawScene();
    drawChannels();
  }
  picture.addEventListener("pointermove", (event) => {
    if (dragged?.id !== event.pointerId) return;
    const at = pixel(event);
    move(dragged.colour, at.x + dragged.x, at.y + dragged.y);
  });
  for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => { dragged = null; });

  // Answers
  const send = latest(async (start) => {
    const sent = JSON.stringify(objects.map((each) => [each.x, each.y, each.shape]));
    const response = await engine.reason({ objects, weights: byId("weights").value || null });
    answers = response.answers;
    broadcast = response.broadcast;
    drawAnswers();
    drawMap();
    drawChannels();
    times.push(performance.now() - start);
    if (times.length > TIMES_KEPT) times.shift();
    const median = [...times].sort((a, b) => a - b)[times.length >> 1];
    byId("speed").textContent =
      `Model ${response.milliseconds.toFixed(0)} ms; from the move to the answers ${times.at(-1).toFixed(0)} ms, median ${median.toFixed(0)} ms of the last ${times.length}.`;
    byId("speed").dataset.times = times.map((each) => each.toFixed(1)).join(" ");
    picture.dataset.answered = sent;
  });

  function buildTable() {
    const head = table.tHead.insertRow();
    head.append(element("th"), ...COLOURS.map((colour) => {
      const swatch = element("span", { class: "swatch", "data-colour": colour });
      swatch.style.background = rgb(colour);
      return element("th", { scope: "col" }, swatch, colour);
    }));
    for (const [kind, title] of Object.entries(KINDS)) {
      const row = table.tBodies[0].insertRow();
      row.append(element("th", { scope: "row" }, title));
      for (const colour of COLOURS) {
        const button = document.createElement("button");
        Object.assign(button.dataset, { kind, colour });
        button.tabIndex = kind === "shape" && colour === "red" ? 0 : -1;
        buttons[`${kind} ${colour}`] = button;
        row.insertCell().append(button);
      }
    }
    const all = Object.values(buttons);
    all.forEach((button, index) => {
      button.onclick = () => { shown = button.dataset; drawAnswers(); };
      button.onkeydown = (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -6, ArrowDown: 6 }[event.key];
        const next = step && all[index + step];
        if (!next) return;
        event.preventDefault();
        button.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      };
    });
  }

  function drawAnswers() {
    for (const each of answers) {
      const button = buttons[`${each.kind} ${each.colour}`];
      const right = each.answer === each.truth;
      const label = `${each.question} ${each.answer}, ${percent(each.probability)}, ${right ? "right" : `wrong: ${each.truth}`}`;
      if (button.getAttribute("aria-label") !== label) {
        button.className = right ? "right" : "wrong";
        button.replaceChildren(
          `${right ? "✓" : "✗"} ${each.answer}`, element("small", {}, right ? percent(each.probability) : `is ${each.truth}`));
        button.setAttribute("aria-label", label);
      }
      const isShown = shown?.kind === each.kind && shown?.colour === each.colour;
      button.setAttribute("aria-pressed", isShown);
      if (isShown) byId("detail").textContent = describe(each);
    }
    const right = answers.filter((each) => each.answer === each.truth).length;
    byId("score").replaceChildren(element("b", {}, `${right} of ${answers.length} right`));
  }
  const describe = (each) =>
    `${each.question} ${each.answer}, ${percent(each.probability)} (then ${each.others.slice(0, 2).map((o) => `${o.answer} ${percent(o.probability)}`).join(", ")}). ` +
    (each.answer === each.truth ? "✓ right" : `✗ wrong, it is ${each.truth}`);

  // The BCN: position n of the feature map lies over pixel n * stride
  const stride = () => 2 ** Math.round(Math.log2(SIDE / broadcast.rows));
  const toPixel = (position) => [position % broadcast.columns, Math.floor(position / broadcast.columns)].map((n) => n * stride());

  function drawMap() {
    map.replaceChildren();
    if (!broadcast || !byId("show-map").checked) return;
    const counts = new Map();
    for (const position of broadcast.position) if (position >= 0) counts.set(position, (counts.get(position) ?? 0) + 1);
    const largest = Math.max(...counts.values());
    for (const [position, count] of counts) {
      const [x, y] = toPixel(position), half = stride() / 2;
      const left = Math.max(0, x + 0.5 - half), top = Math.max(0, y + 0.5 - half);
      const box = { x: left, y: top, width: x + 0.5 + half - left, height: y + 0.5 + half - top };
      map.append(svg("rect", { ...box, "fill-opacity": 0.15 + 0.6 * Math.sqrt(count / largest) }, svg("title", {}, `${count} channels`)));
    }
  }

  function drawChannels() {
    byId("channels").hidden = !broadcast;
    if (!broadcast) return;
    const object = selected && objectOf(selected), grid = byId("channel-grid"), distance = RADIUS + stride() / 2;
    const fromObject = (position) => {
      const [x, y] = toPixel(position);
      return object && Math.abs(x - object.x) <= distance && Math.abs(y - object.y) <= distance;
    };
    const source = broadcast.position.map((position) => (position < 0 ? "inactive" : fromObject(position) ? "selected" : "other"));
    if (grid.childElementCount !== source.length) {
      grid.replaceChildren(...source.map((_, n) => svg("rect", { x: (n % GRID_COLUMNS) + 0.08, y: Math.floor(n / GRID_COLUMNS) + 0.08 })));
      grid.setAttribute("viewBox", `0 0 ${GRID_COLUMNS} ${Math.ceil(source.length / GRID_COLUMNS)}`);
    }
    source.forEach((name, n) => { if (grid.children[n].getAttribute("class") !== name) grid.children[n].setAttribute("class", name); });
    const count = (name) => source.filter((each) => each === name).length;
    byId("channel-summary").textContent = object
      ? `The ${selected} ${object.shape} supplied ${count("selected")} of the ${source.length} channels; ${count("inactive")} are inactive.`
      : `Select an object to see which of the ${source.length} channels it supplied; ${count("inactive")} are inactive.`;
  }

  // Controls
  const newScene = latest(async () => {
    ({ objects } = await engine.newScene(Math.floor(Math.random() * 2 ** 32)));
    update();
  });
  const ask = latest(async (question) => {
    const output = byId("ask-answer");
    output.className = "";
    output.textContent = "…";
    try {
      const response = await engine.reason({ objects, questions: [question], weights: byId("weights").value || null });
      output.textContent = describe(response.answers[0]);
    } catch (error) {
      output.className = "failed";
      output.textContent = error.message;
      if (error instanceof engine.Offline) throw error;
    }
  });
  byId("new-scene").onclick = () => newScene();
  byId("flip").onclick = () => flip(selected);
  byId("show-map").onchange = drawMap;
  byId("ask-form").onsubmit = (event) => { event.preventDefault(); ask(byId("question").value); };
  for (const each of weights) byId("weights").add(new Option(`${each.weights} (${each.scale})`, each.weights));
  byId("choose-weights").hidden = weights.length < 2;
  byId("weights").onchange = update;
  buildTable();
  newScene();
}
