// One call at a time: of the calls that come while a job runs only the last is made, and while the server is offline it is retried.

import { byId } from "./dom.js";

const RETRY_MS = 1500;

export function showNotice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

export function latest(job, isOffline) {
  let running = false, waiting = null, retry = null;
  return async function run(...values) {
    if (running) { waiting = values; return; }
    running = true;
    clearTimeout(retry);
    try {
      await job(...values);
      showNotice("");
    } catch (error) {
      showNotice(error.message);
      if (isOffline(error)) retry = setTimeout(() => run(...values), RETRY_MS);
    }
    running = false;
    if (waiting) { const next = waiting; waiting = null; await run(...next); }
  };
}
