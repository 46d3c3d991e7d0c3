// One breaker, with all that it remembers, and its switches.

import { line as lineOf, strip } from "./chart.js";
import { el, find, hide, set, write } from "./dom.js";
import { line } from "./log.js";
import { because, clock, countsTo, does, kindOf, length, plural, sentence, share, wordOf } from "./words.js";

const SCOPES = { provider: "provider", model: "model", key: "key" };
const RULES = {
  consecutive: "in a row",
  window: "failures in the window",
  rate: "share of failures",
  slow: "share of slow calls",
  cusum: "failures, less what successes take off",
};

export class Detail {
  #panel = find("detail");
  #shown = null;
  name = null;

  /** Opens the panel for this breaker; what it remembers comes with `show`. */
  open(name) {
    this.name = name;
    hide(this.#panel, false);
    document.body.dataset.detail = "open";
    this.#panel.scrollTop = 0;
    this.#shown = null;
    this.#panel.dataset.loading = "yes";
    write(find("detail-name"), name);
    this.#panel.focus();
  }

  close() {
    this.name = null;
    hide(this.#panel, true);
    delete document.body.dataset.detail;
  }

  /** The breaker is not there, or no more. */
  miss(words) {
    this.#panel.dataset.loading = "missing";
    write(find("detail-why"), words);
  }

  /** Writes what the gateway remembers of the breaker. */
  show(view, breaker, now) {
    delete this.#panel.dataset.loading;
    write(find("detail-kind"), `${SCOPES[view.scope] ?? view.scope} of ${view.provider}${view.mode === "enforce" ? "" : `, mode ${view.mode}`}`);
    write(find("detail-why"), view.why ? sentence(because(view.why)) + "." : "It has never left closed.");
    set(find("detail-why"), "title", view.why?.text ?? null);
    const note = find("detail-note");
    hide(note, !view.note);
    write(note.firstElementChild, view.note ?? "");
    this.#rules(view.rules);
    this.#failures(view, now);
    this.#counts(view);
    const history = view.history.map((event) => ({ ...event, at: now - event.ms_ago }));
    const key = view.history.map((event) => `${event.to} ${event.cause}`).join() + view.name;
    if (key !== this.#shown) find("detail-history").replaceChildren(...history.reverse().map((event) => line(event, { named: false })));
    this.#shown = key;
    if (!history.length) find("detail-history").replaceChildren(el("li", { class: "calm" }, "Nothing yet."));
    this.tick(breaker, now);
    this.draw(breaker, now);
  }

  /** What passes with time, and the state itself. */
  tick(breaker, now) {
    const { standing, view } = breaker;
    set(this.#panel, "data-standing", standing);
    set(this.#panel, "class", `detail in-${standing}`);
    set(find("detail-glyph"), "href", `#${standing}`);
    write(find("detail-state"), `${wordOf(standing)} for ${length(breaker.lasts(now))}`);
    write(find("detail-does"), does(view));
    const left = breaker.left(now);
    write(find("detail-clock"), left && left.ms > 0 ? `${sentence(countsTo(view))} ${clock(left.ms)}` : "");
    const isForced = view.state === "forced_open" || view.state === "forced_closed";
    this.#panel.querySelector("[data-command=release]").disabled = !isForced && standing !== "held";
  }

  draw(breaker, now) {
    strip(find("detail-strip"), breaker, now);
    const isKnown = lineOf(find("detail-line"), breaker.samples);
    hide(find("detail-share"), !isKnown);
    const failing = breaker.failing(now);
    write(find("detail-share-now"), failing === null ? "" : `${share(failing)} %`);
  }

  #rules(rules) {
    const lines = rules.map((rule) => {
      const isShare = rule.calls !== null;
      const number = (value) => (isShare ? `${share(value)} %` : String(Math.round(value * 100) / 100));
      const seen = `${number(rule.observed)} of ${number(rule.threshold)}${isShare ? `, ${plural(rule.calls, "call", "calls")}` : ""}`;
      const meter = el("meter", { min: 0, max: 1, value: Math.min(1, rule.observed / (rule.threshold || 1)), "aria-label": seen });
      const text = rule.armed ? seen : `${seen} – too few calls to count`;
      return el("li", { "data-armed": rule.armed ? "yes" : "no" }, el("b", {}, rule.rule), el("span", { class: "calm" }, RULES[rule.rule] ?? "failures of this kind"), meter, el("span", { class: "seen" }, text));
    });
    find("detail-rules").replaceChildren(...(lines.length ? lines : [el("li", { class: "calm" }, "None: it never opens by itself.")]));
  }

  #failures(view, now) {
    const kinds = Object.entries(view.kinds).map(([kind, count]) => el("li", {}, `${kindOf(kind)} × ${count}`));
    const last = view.last_failures.at(-1);
    if (last) {
      const code = last.code === null ? "" : ` ${last.code}`;
      kinds.push(el("li", { class: "plain calm" }, `the last: ${kindOf(last.kind)}${code}, ${length(last.ms_ago)} ago`));
    }
    find("detail-failures").replaceChildren(...(kinds.length ? kinds : [el("li", { class: "plain calm" }, "Nothing since it was last closed.")]));
  }

  #counts(view) {
    const rejected = Object.entries(view.rejected).filter(([, count]) => count > 0);
    const counts = [
      ["attempts", view.attempts],
      ["failed", view.failures],
      ["failures in a row", view.run],
      ["opened", view.opened],
      ["failed probes", view.episodes || null],
      ...rejected.map(([reason, count]) => [`turned away, ${reason}`, count]),
      ["under way", view.in_flight || null],
      ["came too late to count", view.late || null],
      ["incident so far", view.incident_ms === null ? null : length(view.incident_ms)],
    ].filter(([, value]) => value !== null);
    const cells = counts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, typeof value === "number" ? value.toLocaleString("en") : value)));
    find("detail-counts").replaceChildren(...cells);
  }
}
