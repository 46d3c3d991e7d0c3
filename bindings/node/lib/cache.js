// `Cache`: the last good results by request, bounded by bytes and by age.

"use strict";

const { SettingsError } = require("./errors.js");
const { guarded } = require("./gate.js");
const { Clock } = require("./native.js");
const { chosen, milliseconds } = require("./settings.js");

const TTL = 600_000;
const MAX_BYTES = 64 << 20;

class Cache {
  #ttl;
  #maxBytes;
  #sizeOf;
  #clock;
  // Oldest first.
  #kept = new Map();
  #bytes = 0;

  constructor(options = {}) {
    const { ttl = TTL, maxBytes = MAX_BYTES, sizeOf = bytesOf, clock = Clock.system() } = chosen(options, [
      ...["ttl", "maxBytes", "sizeOf", "clock"],
    ]);
    const problems = [];
    if (!(maxBytes >= 0)) problems.push(`maxBytes is ${maxBytes}, must be a number of 0 or more`);
    if (typeof sizeOf !== "function") problems.push(`sizeOf is ${typeof sizeOf}, must be a function`);
    if (problems.length > 0) throw new SettingsError(problems);
    this.#ttl = milliseconds("ttl", ttl);
    this.#maxBytes = maxBytes;
    this.#sizeOf = sizeOf;
    this.#clock = clock;
  }

  keep(key, value) {
    textOf(key);
    this.#drop(key);
    const bytes = guarded(() => this.#sizeOf(key, value));
    if (!(bytes <= this.#maxBytes)) return;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes + bytes <= this.#maxBytes) break;
      this.#drop(oldest);
    }
    this.#kept.set(key, { value, bytes, since: this.#clock.now() });
    this.#bytes += bytes;
  }

  recall(key) {
    const kept = this.#kept.get(textOf(key));
    if (kept === undefined) return undefined;
    const ageMs = this.#clock.now() - kept.since;
    if (ageMs <= this.#ttl) return { value: kept.value, ageMs };
    this.#drop(key);
    return undefined;
  }

  get size() {
    return this.#kept.size;
  }

  #drop(key) {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0;
    this.#kept.delete(key);
  }
}

/** What a key and its result hold, roughly: two bytes a letter. */
function bytesOf(key, value) {
  if (ArrayBuffer.isView(value)) return 2 * key.length + value.byteLength;
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return 2 * (key.length + text.length);
}

/** The key itself. Objects are refused: no two of them are the same, and as texts many are. */
function textOf(key) {
  if (typeof key === "string") return key;
  throw new TypeError(`key is ${key === null ? "null" : typeof key}, must be a text, such as JSON.stringify([user, question])`);
}

module.exports = { Cache, textOf };
