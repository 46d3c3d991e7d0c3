// The way to the gateway: requests with the token, and the feed of transitions, read as it streams.

import { find, write } from "./dom.js";

const KEY = "fuseline-token";
/** The gateway says something at least every 15 s. */
const SILENCE = 40_000;
const PATIENCE = 10_000;
const FETCH = { cache: "no-store", credentials: "omit", redirect: "error" };
/** Longest part of the feed that is kept while its end has not come. */
const MAX_MESSAGE = 1 << 20;

/** A refusal, in the gateway's own words. */
export class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

let token = readToken();
let asking = null;

function readToken() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Asks the reader for the token, once for all who need it. */
function askForToken(wasWrong) {
  asking ??= new Promise((resolve) => {
    const [dialog, text] = [find("token"), find("token-text")];
    write(find("token-error"), wasWrong ? "That is not the token of this gateway." : "");
    const { phase } = document.body.dataset;
    document.body.dataset.phase = "locked";
    text.value = "";
    dialog.oncancel = (event) => event.preventDefault();
    dialog.querySelector("form").onsubmit = (event) => {
      event.preventDefault();
      token = text.value;
      text.value = "";
      try {
        sessionStorage.setItem(KEY, token);
      } catch {
        // It is asked for again after a reload.
      }
      dialog.close();
      document.body.dataset.phase = phase;
      asking = null;
      resolve();
    };
    if (!dialog.open) dialog.showModal();
    text.focus();
  });
  return asking;
}

/** Sends a request until it is not for want of a token that it is refused. `signal` gives one for each time that it is sent. */
async function request(path, signal, options = {}) {
  for (;;) {
    await asking;
    const shown = token;
    const headers = { ...options.headers };
    if (shown !== null) headers.authorization = `Bearer ${encoded(shown)}`;
    const answer = await fetch(path, { ...options, ...FETCH, headers, signal: signal() });
    if (answer.ok) return answer;
    const words = await wordsOf(answer);
    if (answer.status !== 401) throw new Refused(answer.status, words);
    if (shown === token) await askForToken(shown !== null);
  }
}

/** A header holds bytes: those of the text in UTF-8. */
const encoded = (text) => String.fromCharCode(...new TextEncoder().encode(text));

async function wordsOf(answer) {
  const text = await answer.text().catch(() => "");
  try {
    return String(JSON.parse(text).error ?? text);
  } catch {
    return text.slice(0, 300) || `status ${answer.status}`;
  }
}

const soon = (signal) => () => AbortSignal.any([AbortSignal.timeout(PATIENCE), ...(signal ? [signal] : [])]);

export const read = async (path, signal) => (await request(path, soon(signal))).json();

export const readText = async (path, signal) => (await request(path, soon(signal))).text();

export async function command(path, body) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: body && JSON.stringify(body) };
  return (await request(path, soon(), options)).json();
}

/** Reads the feed until it breaks: `hear(name, data)` for each message. */
export async function listen(path, signal, hear) {
  const silence = new AbortController();
  let timer;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(new Error("the gateway has gone silent")), SILENCE);
  };
  try {
    const answer = await request(path, () => {
      wait();
      return AbortSignal.any([signal, silence.signal]);
    });
    wait();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the gateway has ended the feed");
      wait();
      const messages = (rest + value).split("\n\n");
      rest = messages.pop();
      if (rest.length > MAX_MESSAGE) throw new Error("the feed makes no sense");
      messages.forEach((message) => tell(message, hear));
    }
  } finally {
    clearTimeout(timer);
  }
}

function tell(message, hear) {
  const field = (name) => message.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const [name, data] = [field("event"), field("data")];
  if (name && data) hear(name, JSON.parse(data));
}
