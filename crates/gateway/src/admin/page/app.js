// The dashboard: asks the gateway, keeps what it says in the model, shows it. Data goes one way: link, model, views.

import { Board } from "./board.js";
import { confirm, letClose } from "./commands.js";
import { Detail } from "./detail.js";
import { find, hide, set, write } from "./dom.js";
import { Refused, listen, read, readText } from "./link.js";
import { Log, TIME } from "./log.js";
import { Model } from "./model.js";
import { summarize } from "./summary.js";
import { sentence } from "./words.js";

/** Between two questions, in milliseconds; and no more than a fifth of the time is spent asking. */
const EVERY = 2_000;
const SOONER = 120;
const LONGEST_WAIT = 10_000;
const PAST = 500;

const model = new Model();
const log = new Log();
const detail = new Detail();
const board = new Board(() => show());
const now = () => Date.now();

let isListed = false;
let lastHeard = null;
/** Until when news have to wait to be asked about. */
let restsUntil = 0;
let isWoken = false;
const later = () => (isWoken = true);
let wake = later;

/** Waits so long, or until somebody calls `wake`; not at all if somebody has called meanwhile. */
function pause(ms) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      [wake, isWoken] = [later, false];
      resolve();
    };
    const timer = setTimeout(done, isWoken ? 0 : ms);
    wake = done;
  });
}

/** Asks for everything that is on show. */
async function refresh(signal) {
  const name = detail.name;
  const own = name === null ? null : read(`breakers/${encodeURIComponent(name)}`, signal).catch((error) => error);
  const [views, metrics] = await Promise.all([read("breakers", signal), readText("metrics", signal)]);
  const at = now();
  model.list(views, at);
  model.metrics(metrics, at);
  [isListed, lastHeard] = [true, at];
  show();
  const view = await own;
  if (view === null || name !== detail.name) return;
  if (view instanceof Refused) detail.miss(`${view.message}.`);
  else if (view instanceof Error) throw view;
  else if (model.breakers.has(name)) detail.show(view, model.breakers.get(name), now());
}

/** Asks again and again. News from the feed wakes it. */
async function poll(signal) {
  for (;;) {
    const begun = now();
    if (!document.hidden) await refresh(signal);
    const rest = 4 * (now() - begun);
    restsUntil = now() + rest;
    await pause(Math.max(EVERY, rest));
    signal.throwIfAborted();
  }
}

/** Something has happened: it is asked about soon, and once however much it is. */
let news = null;
function hasNews() {
  news ??= setTimeout(() => {
    news = null;
    wake();
  }, Math.max(SOONER, restsUntil - now()));
}

/** Hears transitions as they happen. Without a seat at the feed, asking alone keeps the page up to date. */
async function follow(signal) {
  const hear = (name, data) => {
    lastHeard = now();
    if (name === "missed") model.gap(data.missed, now());
    else model.add(data, now());
    if (name !== "past") hasNews();
    queue();
  };
  try {
    await listen(`events?past=${PAST}`, signal, hear);
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 503) throw error;
    link("polling", "Live, by asking");
    find("link").title = error.message;
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }
}

async function run() {
  for (let failures = 0; ; failures += 1) {
    const [end, begun] = [new AbortController(), now()];
    try {
      await refresh(end.signal);
      link("live", "Live");
      await Promise.race([poll(end.signal), follow(end.signal)]);
    } catch (error) {
      end.abort(error);
      if (!(error instanceof Refused)) console.warn(error);
      if (now() - begun > LONGEST_WAIT) failures = 0;
      await lost(error, Math.min(LONGEST_WAIT, 500 * 2 ** failures));
    }
  }
}

/** Says what is wrong, and waits before the next try. */
async function lost(error, wait) {
  const isRefused = error instanceof Refused;
  link("lost", isRefused ? "Refused" : "Disconnected");
  write(find("trouble-what"), isRefused ? "The gateway refuses to tell." : "The gateway cannot be reached.");
  const since = lastHeard === null ? "" : ` What is shown is as of ${TIME.format(lastHeard)}.`;
  write(find("trouble-why"), `${isRefused ? `${error.message}.` : "It may be stopped, or the network may be down."}${since}`);
  hide(find("trouble"), false);
  await pause(wait);
}

function link(state, words) {
  document.body.dataset.phase = state;
  write(find("link-text"), words);
  find("link").removeAttribute("title");
  if (state !== "lost") hide(find("trouble"), true);
}

let isQueued = false;
function queue() {
  if (isQueued) return;
  isQueued = true;
  requestAnimationFrame(() => {
    isQueued = false;
    show();
  });
}

/** Writes the page. */
function show() {
  log.show(model.events, { isLive: isListed });
  if (!isListed) return;
  board.show(model.breakers, now());
  board.mark(detail.name);
  summarize(model, now());
}

let ticks = 0;
setInterval(() => {
  if (document.hidden || !isListed || document.body.dataset.phase === "lost") return;
  ticks += 1;
  board.tick(model.breakers, now(), ticks % 5 === 0);
  const breaker = model.breakers.get(detail.name);
  if (breaker) detail.tick(breaker, now());
}, 1_000);

// The open breaker stands in the address, so that it can be sent to somebody, and outlives a reload.
function choose(name) {
  location.hash = name === null ? "" : `#/${encodeURIComponent(name)}`;
}

function chosen() {
  const before = detail.name;
  let name = null;
  try {
    name = location.hash.startsWith("#/") ? decodeURIComponent(location.hash.slice(2)) : null;
  } catch {
    // Not an address of ours.
  }
  if (name === before) return;
  if (name === null) {
    detail.close();
    shield();
    board.focus(before);
  } else {
    detail.open(name);
    const breaker = model.breakers.get(name);
    if (breaker) detail.tick(breaker, now());
  }
  board.mark(name);
  shield();
  wake();
}

/** Where the panel covers the page, nothing behind it can be reached. */
const narrow = matchMedia("(max-width: 1099px)");
function shield() {
  const isCovered = detail.name !== null && narrow.matches;
  for (const node of [find("main"), document.querySelector(".bar")]) node.inert = isCovered;
}


function tab(which) {
  find("columns").dataset.tab = which;
  for (const name of ["list", "log"]) set(find(`tab-${name}`), "aria-pressed", name === which);
}

const THEMES = ["auto", "dark", "light"];
function theme(next) {
  const root = document.documentElement;
  root.dataset.theme = next ? THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length] : remembered();
  write(find("theme-text"), sentence(root.dataset.theme));
  if (!next) return;
  try {
    localStorage.setItem("fuseline-theme", root.dataset.theme);
  } catch {
    // It is asked for again next time.
  }
}

function remembered() {
  try {
    const kept = localStorage.getItem("fuseline-theme");
    return THEMES.includes(kept) ? kept : "auto";
  } catch {
    return "auto";
  }
}

function key(event) {
  const isTyping = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    if (event.target === find("search") && event.target.value) {
      event.target.value = "";
      show();
    } else if (detail.name !== null) choose(null);
    else if (isTyping) event.target.blur();
    return;
  }
  if (event.key === "ArrowDown" && event.target === find("search")) board.go("first");
  else if (isTyping) return;
  else if (event.key === "/") {
    tab("list");
    find("search").focus();
  } else if (event.key === "?") find("keys").showModal();
  else if (event.key === "t") theme(true);
  else if (event.key === "j" || (event.key === "ArrowDown" && onList(event))) board.go(1);
  else if (event.key === "k" || (event.key === "ArrowUp" && onList(event))) board.go(-1);
  else if (event.key === "Home" && onList(event)) board.go("first");
  else if (event.key === "End" && onList(event)) board.go("last");
  else return;
  event.preventDefault();
}

const onList = (event) => find("list").contains(event.target);

document.addEventListener("keydown", key);
document.addEventListener("click", (event) => {
  const of = event.target.closest("[data-breaker]");
  const command = event.target.closest("[data-command]");
  if (of) choose(of.dataset.breaker);
  else if (command && detail.name !== null) confirm(detail.name, command.dataset.command, () => wake());
});
document.addEventListener("visibilitychange", () => wake());
window.addEventListener("online", () => wake());
window.addEventListener("hashchange", chosen);
narrow.addEventListener("change", shield);
find("again").addEventListener("click", () => wake());
find("detail-close").addEventListener("click", () => choose(null));
find("theme").addEventListener("click", () => theme(true));
find("help").addEventListener("click", () => find("keys").showModal());
find("tab-list").addEventListener("click", () => tab("list"));
find("tab-log").addEventListener("click", () => tab("log"));
find("reset-all").addEventListener("click", () => {
  find("keys").close();
  confirm(null, "all", () => wake());
});
letClose();
theme(false);
chosen();
run();
