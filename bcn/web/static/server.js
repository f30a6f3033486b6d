// The engine of the page when `bcn serve` runs: every call goes to its JSON interface.

import { element } from "./dom.js";

export class Offline extends Error {}

async function call(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Offline("The server does not answer. Is bcn serve still running? Trying again …");
  }
  const body = await response.json().catch(() => ({ error: `the server failed (${response.status})` }));
  if (!response.ok) throw new Error(body.error ?? `the server failed (${response.status})`);
  return body;
}

const post = (path, value) =>
  call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });

const send = (path, image) => call(path, { method: "POST", headers: { "Content-Type": "image/png" }, body: image });

export const weights = () => call("api/weights");
export const newScene = (seed) => call(`api/scene?seed=${seed}`);
export const rendered = (seed, weights) => call(`api/rendered?${new URLSearchParams({ seed, weights })}`);
export const reason = (scene) => post("api/reason", scene);
export const find = (pad) => send("api/find", pad.png());
export const ask = (image, questions, weights) =>
  send(`api/ask?${new URLSearchParams([...questions.map((each) => ["question", each]), ["weights", weights]])}`, image);
export const howToLoad = "bcn serve --weights RUN";
export const footer = ["Everything runs on the machine of ", element("code", {}, "bcn serve"), "; nothing is loaded from elsewhere. Programs can use its ", element("a", { href: "docs" }, "JSON interface"), "."];
