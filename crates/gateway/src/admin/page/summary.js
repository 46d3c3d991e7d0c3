// The top of the page: one sentence that can be read from across the room, and the calls of the last minute.

import { find, set, write } from "./dom.js";
import { length, plural, share, turnsAway } from "./words.js";

export function summarize(model, now) {
  verdict(model.breakers, now);
  figures(model.traffic(now));
}

/** The one sentence that matters. */
function verdict(breakers, now) {
  const all = [...breakers.values()];
  const away = all.filter((breaker) => turnsAway(breaker.standing) && breaker.view.mode === "enforce");
  const worried = all.filter((breaker) => breaker.standing === "degraded").length;
  const forced = all.filter((breaker) => breaker.standing === "forced_closed").length;
  const those = plural(all.length, "breaker", "breakers");
  let [tone, text, more] = ["calm", `All ${those} closed`, "Calls pass everywhere."];
  if (!all.length) [tone, text, more] = ["calm", "Nothing to watch yet", "No call has been made."];
  else if (away.length) {
    const longest = away.reduce((a, b) => (a.lasts(now) >= b.lasts(now) ? a : b));
    tone = "bad";
    text = `${away.length} of ${those} ${away.length === 1 ? "turns" : "turn"} calls away`;
    more = `The longest for ${length(longest.lasts(now))}.`;
  } else if (worried) {
    [tone, text, more] = ["warn", `${worried} of ${those} under pressure`, "Calls pass everywhere."];
  } else if (forced) [text, more] = [`All ${those} let calls pass`, `${forced} of them by an operator's command.`];
  else if (all.length === 1) text = "The one breaker is closed";
  set(document.querySelector(".hero"), "data-tone", tone);
  write(find("verdict"), text);
  write(find("verdict-more"), more);
  document.title = away.length ? `${away.length} open · Fuseline` : "Fuseline";
}

/** The calls of the last minute. */
function figures(traffic) {
  const rate = traffic?.rate;
  figure("calls", rate === undefined ? null : rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en"));
  for (const name of ["failed", "rejected", "fallback"]) {
    const part = traffic?.[name] ?? null;
    figure(name, part === null ? null : share(part));
  }
  for (const name of ["median", "high"]) {
    const seconds = traffic?.[name] ?? null;
    const isShort = seconds !== null && seconds < 1;
    figure(name, seconds === null ? null : isShort ? String(Math.round(seconds * 1000)) : seconds.toFixed(seconds < 10 ? 1 : 0));
    write(find(`${name}-unit`), isShort ? "ms" : "s");
  }
}

function figure(name, text) {
  write(find(name), text ?? "–");
  set(find(name).parentNode, "data-empty", text === null ? "" : null);
}
