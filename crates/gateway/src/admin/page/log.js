// Transitions as lines of a list: the latest first, with the reason in words.

import { el, find, glyph, hide, shortened } from "./dom.js";
import { because, length, plural, sentence, wordOf } from "./words.js";

/** Lines of the list that are shown. */
const MOST = 150;
/** The time of day. */
export const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** One transition, with the name of its breaker where it stands among others. */
export function line(event, { named }) {
  const what = el("p", { class: "what" });
  if (named) what.append(el("button", { type: "button", "data-breaker": event.breaker, title: shortened(event.breaker, 400) }, el("bdi", {}, shortened(event.breaker))), " ");
  what.append(el("span", { class: `state in-${event.to}` }, wordOf(event.to)));
  const why = [because(event)];
  if (event.incident_ms != null) why.push(`the incident lasted ${length(event.incident_ms)}`);
  return el(
    "li",
    { class: `event in-${event.to}` },
    glyph(event.to),
    what,
    el("time", { datetime: event.wall ?? false }, TIME.format(new Date(event.wall ?? event.at))),
    el("p", { class: "calm" }, sentence(why.join("; "))),
  );
}

function gap(event) {
  const words = `${plural(event.gap, "transition was", "transitions were")} not told here; the breakers' own histories have them.`;
  return el("li", { class: "event gap" }, el("p", { class: "calm" }, words));
}

/** The list of all transitions. */
export class Log {
  #list = find("log");
  #count = -1;
  #last = null;

  /** Writes the list anew if there is news. */
  show(events, { isLive }) {
    const last = events.at(-1) ?? null;
    hide(find("log-empty"), !isLive || last !== null);
    if (last === this.#last && events.length === this.#count) return;
    const known = isLive ? this.#last : last;
    [this.#last, this.#count] = [last, events.length];
    const latest = events.slice(-MOST).reverse();
    const fresh = known ? latest.indexOf(known) : 0;
    this.#list.replaceChildren(...latest.map((event) => (event.gap ? gap(event) : line(event, { named: true }))));
    [...this.#list.children].slice(0, Math.max(0, fresh)).forEach((item) => item.classList.add("fresh"));
  }
}
