// The list of breakers: worst first, searched and filtered, one row a breaker that is written only where it differs.

import { moves, strip } from "./chart.js";
import { arrange, el, find, glyph, hide, set, shortened, svg, write } from "./dom.js";
import { STANDINGS, about, clock, countsTo, does, length, reason, sentence, share, wordOf } from "./words.js";

const ORDER = new Intl.Collator("en", { numeric: true });
const byWorst = (a, b) => a.rank - b.rank || ORDER.compare(a.name, b.name);

/** A breaker's line. */
class Row {
  constructor(name) {
    this.button = el("button", { type: "button", class: "name", tabindex: "-1", title: shortened(name, 400) });
    this.picture = glyph("closed");
    this.state = el("span", { class: "state" });
    this.lasts = el("span", { class: "calm lasts" });
    this.mode = el("span", { class: "mode", hidden: true });
    this.why = el("p", { class: "why" });
    this.clock = el("span", { class: "clock" });
    this.fuse = el("i", { class: "fuse", "aria-hidden": "true" });
    this.failed = el("span", { class: "number" });
    this.turned = el("span", { class: "number" });
    this.strip = svg("svg", { class: "strip", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.item = el(
      "li",
      { class: "row", "data-breaker": name },
      this.picture,
      el("div", { class: "who" }, this.button, this.mode),
      el("div", { class: "stands" }, this.state, this.lasts),
      el("div", { class: "reason" }, this.why, this.clock),
      el("div", { class: "numbers" }, this.failed, this.turned),
      this.strip,
      this.fuse,
    );
    this.cell = el("i", { "data-breaker": name });
    this.#label(name);
  }

  #label(name) {
    const at = name.search(/[/#]/);
    const parts = at > 0 ? [el("span", { class: "calm" }, name.slice(0, at + 1)), shortened(name.slice(at + 1))] : [shortened(name)];
    this.button.append(el("bdi", {}, ...parts));
  }

  /** Writes everything that a report may have changed. */
  show(breaker, now) {
    const { view, standing } = breaker;
    if (this.standing !== standing) {
      set(this.item, "class", `row in-${standing}${this.standing ? " changed" : ""}`);
      set(this.cell, "class", `in-${standing}`);
      set(this.picture.firstChild, "href", `#${standing}`);
      write(this.state, wordOf(standing));
      this.standing = standing;
      this.hasMoved = true;
    }
    write(this.mode, view.mode);
    hide(this.mode, view.mode === "enforce");
    const told = reason(view);
    write(this.why, sentence(told));
    set(this.why, "title", told ? does(view) : null);
    const failing = breaker.failing(now);
    write(this.failed, failing === null ? "" : `${share(failing)} % failed`);
    set(this.failed, "data-much", failing >= 0.5 ? "much" : failing > 0 ? "some" : null);
    const turned = Object.values(view.rejected).reduce((sum, count) => sum + count, 0);
    write(this.turned, turned ? `${turned.toLocaleString("en")} turned away` : "");
    this.tick(breaker, now);
  }

  /** Writes what passes with time alone. */
  tick(breaker, now) {
    const lasts = breaker.lasts(now);
    write(this.lasts, breaker.standing === "closed" ? about(lasts) : `for ${length(lasts)}`);
    const left = breaker.left(now);
    const isDue = breaker.standing === "open" && breaker.view.mode === "enforce" && (!left || left.ms === 0);
    write(this.clock, isDue ? "next call is a probe" : left ? `${countsTo(breaker.view)} ${clock(left.ms)}` : "");
    const part = left ? (left.ms / left.whole).toFixed(3) : "0";
    if (part !== this.part) this.fuse.style.setProperty("--left", part);
    this.part = part;
  }

  draw(breaker, now) {
    strip(this.strip, breaker, now);
  }
}

export class Board {
  #rows = new Map();
  #list = find("list");
  #map = find("map");
  #chips = new Map();
  #only = new Set();
  #search = find("search");
  #current = null;
  #signature = "";

  constructor(onFilter) {
    for (const standing of Object.keys(STANDINGS)) {
      const number = el("b", {}, "0");
      const chip = el("button", { type: "button", class: `chip in-${standing}`, "aria-pressed": "false", hidden: true }, glyph(standing), wordOf(standing), number);
      chip.addEventListener("click", () => {
        if (!this.#only.delete(standing)) this.#only.add(standing);
        set(chip, "aria-pressed", this.#only.has(standing));
        onFilter();
      });
      this.#chips.set(standing, { chip, number });
      find("chips").append(chip);
    }
    this.#search.addEventListener("input", onFilter);
    this.#list.addEventListener("animationend", (event) => event.target.classList.remove("changed"));
    find("clear").addEventListener("click", () => {
      this.clear();
      onFilter();
      this.#search.focus();
    });
  }

  /** Takes every filter away. */
  clear() {
    this.#search.value = "";
    this.#only.clear();
    for (const { chip } of this.#chips.values()) set(chip, "aria-pressed", "false");
  }

  /** Brings rows, order, chips and map into line with the model. */
  show(breakers, now) {
    const sorted = [...breakers.values()].sort(byWorst);
    for (const [name, row] of this.#rows) {
      if (!breakers.has(name)) {
        row.item.remove();
        row.cell.remove();
        this.#rows.delete(name);
      }
    }
    const text = this.#search.value.trim().toLowerCase();
    let shown = 0;
    for (const breaker of sorted) {
      let row = this.#rows.get(breaker.name);
      if (!row) this.#rows.set(breaker.name, (row = new Row(breaker.name)));
      row.show(breaker, now);
      if (row.hasMoved || breaker.events.length !== row.drawn) row.draw(breaker, now);
      row.drawn = breaker.events.length;
      row.hasMoved = false;
      hide(row.item, !this.#fits(breaker, text));
      if (!row.item.hidden) shown += 1;
    }
    const signature = sorted.map((breaker) => breaker.name).join("\n");
    if (signature !== this.#signature) {
      this.#signature = signature;
      const rows = sorted.map((breaker) => this.#rows.get(breaker.name));
      arrange(this.#list, rows.map((row) => row.item));
      arrange(this.#map, rows.map((row) => row.cell));
    }
    this.#count(sorted);
    this.#keepStop();
    hide(find("empty"), sorted.length > 0);
    hide(find("none"), sorted.length === 0 || shown > 0);
    set(this.#map, "data-size", sorted.length > 150 ? "many" : sorted.length > 12 ? "some" : "few");
  }

  #fits(breaker, text) {
    if (this.#only.size && !this.#only.has(breaker.standing)) return false;
    if (!text) return true;
    const told = `${breaker.name} ${wordOf(breaker.standing)} ${reason(breaker.view)}`.toLowerCase();
    return text.split(/\s+/).every((word) => told.includes(word));
  }

  #count(sorted) {
    const counts = new Map();
    for (const { standing } of sorted) counts.set(standing, (counts.get(standing) ?? 0) + 1);
    for (const [standing, { chip, number }] of this.#chips) {
      const count = counts.get(standing) ?? 0;
      write(number, String(count));
      hide(chip, count === 0 && !this.#only.has(standing));
    }
  }

  /** As time goes by. */
  tick(breakers, now, redraws) {
    for (const [name, row] of this.#rows) {
      const breaker = breakers.get(name);
      if (!breaker || row.item.hidden) continue;
      row.tick(breaker, now);
      if (redraws && moves(breaker, now)) row.draw(breaker, now);
    }
  }

  /** One row is the list's stop for the Tab key: the one last stood on, else the first. */
  #keepStop() {
    const row = this.#current && this.#rows.get(this.#current);
    if (row && !row.item.hidden) return;
    this.#stopAt(this.#visible()[0]);
  }

  #stopAt(item) {
    const before = this.#current && this.#rows.get(this.#current);
    if (before) before.button.tabIndex = -1;
    this.#current = item?.dataset.breaker ?? null;
    if (item) this.#rows.get(this.#current).button.tabIndex = 0;
  }

  #visible() {
    return [...this.#list.children].filter((item) => !item.hidden);
  }

  /** Goes to the row so far from the present one; `from` may also be "first" or "last". */
  go(step) {
    const items = this.#visible();
    if (!items.length) return;
    const at = items.findIndex((item) => item.contains(document.activeElement));
    const places = { first: 0, last: items.length - 1 };
    const wanted = places[step] ?? (at < 0 ? 0 : at + step);
    this.focus(items[Math.min(items.length - 1, Math.max(0, wanted))].dataset.breaker);
  }

  focus(name) {
    const row = this.#rows.get(name);
    if (!row) return;
    this.#stopAt(row.item);
    row.button.focus();
    row.item.scrollIntoView({ block: "nearest" });
  }

  /** Marks the row whose details are open. */
  mark(name) {
    for (const [of, row] of this.#rows) set(row.item, "aria-current", of === name ? "true" : null);
  }
}
