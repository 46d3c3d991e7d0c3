// Breakers by name: of the process, or of a registry of your own.

"use strict";

const { gateOf, ofGate } = require("./breaker.js");
const { RegistryError, SettingsError } = require("./errors.js");
const { Gate } = require("./gate.js");
const native = require("./native.js");
const settings = require("./settings.js");

const MOST = 500;

let nativeOf;

class Registry {
  static {
    nativeOf = (registry) => registry.#native;
  }

  #native;
  #most;
  // What was asked for, and the breaker if somebody still holds it.
  #known = new Map();

  constructor(options = {}) {
    const { maxBreakers = MOST, clock } = options;
    if (!Number.isInteger(maxBreakers) || maxBreakers < 1 || maxBreakers > 2 ** 31) {
      throw new SettingsError([`maxBreakers is ${maxBreakers}, must be an integer of 1 or more`]);
    }
    this.#most = maxBreakers;
    this.#native = options instanceof native.Registry ? options : new native.Registry(maxBreakers, clock);
  }

  getBreaker(name, options) {
    const read = settings.read(options);
    if (read.clock !== undefined) throw new SettingsError(["clock is the registry's, must be left out"]);
    const key = keyOf(name, read.model);
    const known = this.#known.get(key);
    if (known !== undefined && isBare(options)) {
      const found = this.findBreaker(name, options);
      if (found !== undefined) return found;
    }
    const got = this.#native.get(name, read.model, read.settings);
    if (!(got instanceof native.Breaker)) {
      const found = isBare(options) ? this.findBreaker(name, options) : undefined;
      if (found === undefined) throw new RegistryError(got);
      return found;
    }
    const breaker = known?.breaker.deref();
    if (breaker !== undefined && known.read !== undefined) return sameParts(name, breaker, read);
    if (breaker !== undefined) {
      // It was found before anybody asked for it with options.
      gateOf(breaker).take(read);
      return this.#keep(key, breaker, read);
    }
    return this.#keep(key, ofGate(new Gate(got, read)), read);
  }

  findBreaker(name, options) {
    const key = keyOf(name, options?.model);
    const found = this.#native.find(name, options?.model);
    if (found === null) return undefined;
    const known = this.#known.get(key);
    return known?.breaker.deref() ?? this.#keep(key, ofGate(new Gate(found, known?.read)), known?.read);
  }

  breakers() {
    const all = this.#native.names().map(({ name, model }) => this.findBreaker(name, { model }));
    return all.filter((breaker) => breaker !== undefined);
  }

  isHealthy(name, options) {
    return this.#native.find(name, options?.model)?.isAvailable() ?? true;
  }

  getStatus() {
    return this.breakers().map((breaker) => breaker.getStatus());
  }

  remove(name, options) {
    this.#known.delete(keyOf(name, options?.model));
    this.#native.remove(name, options?.model);
  }

  events() {
    return new Events(this.#native.events());
  }

  #keep(key, breaker, read) {
    this.#known.set(key, { breaker: new WeakRef(breaker), read });
    if (this.#known.size > 2 * this.#most) {
      const alive = new Set(this.#native.names().map(({ name, model }) => keyOf(name, model)));
      for (const known of this.#known.keys()) if (!alive.has(known)) this.#known.delete(known);
    }
    return breaker;
  }
}

class Events {
  #native;

  constructor(events) {
    this.#native = events;
  }

  drain() {
    return this.#native.drain();
  }
}

const keyOf = (name, model) => JSON.stringify([name, model]);

/** Whether nothing but a name was given. */
function isBare(options = {}) {
  return Object.entries(options).every(([key, value]) => key === "model" || value === undefined);
}

/** The breaker, if what is JavaScript's own of it was asked for as it is. */
function sameParts(name, breaker, read) {
  const gate = gateOf(breaker);
  const isSame =
    gate.judge === read.judge &&
    gate.check === read.check &&
    gate.fetch === read.fetch &&
    JSON.stringify(gate.limits) === JSON.stringify(read.limits);
  if (isSame) return breaker;
  const message = `breaker \`${name}\` exists with another judge, check, fetch or other timeouts; reconfigure it, or use another name`;
  throw new RegistryError({ message, isTaken: true });
}

const process = new Registry(native.Registry.process());

module.exports = { Registry, nativeOf, process };
