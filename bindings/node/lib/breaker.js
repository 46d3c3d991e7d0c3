// `Breaker`: a circuit breaker around the caller's own functions, streams and `fetch`.

"use strict";

const { Gate } = require("./gate.js");
const { fetchUnder } = require("./fetch.js");
const native = require("./native.js");
const { Permit } = require("./permit.js");
const settings = require("./settings.js");
const { guardStream, isStream } = require("./streams.js");

let gateOf;
let ofGate;

class Breaker {
  #gate;
  #fetch;

  static {
    gateOf = (breaker) => breaker.#gate;
    ofGate = (gate) => new Breaker(gate);
  }

  constructor(name, options) {
    if (name instanceof Gate) {
      this.#gate = name;
      return;
    }
    const read = settings.read(options);
    this.#gate = new Gate(new native.Breaker(name, read.model, read.settings, read.clock), read);
  }

  async execute(call, options) {
    const gate = this.#gate;
    const signal = options?.signal;
    signal?.throwIfAborted();
    const place = gate.enter(options?.within);
    let value;
    try {
      value = await call(signal);
    } catch (error) {
      gate.failed(place, error, signal);
      throw error;
    }
    if (isStream(value)) return guardStream(gate, place, value, signal);
    if (gate.check === undefined) gate.success(place);
    else gate.succeeded(place, value);
    return value;
  }

  wrap(call) {
    const breaker = this;
    return function wrapped(...given) {
      return breaker.execute(() => call.apply(this, given));
    };
  }

  get fetch() {
    this.#fetch ??= (input, init) => fetchUnder(this.#gate, input, init);
    return this.#fetch;
  }

  acquire(options) {
    const place = this.#gate.enter(options?.within);
    return new Permit(this.#gate, place);
  }

  get name() {
    return this.#gate.native.name();
  }

  get scope() {
    return this.#gate.native.scope();
  }

  get state() {
    return this.#gate.native.state();
  }

  isHealthy() {
    return this.#gate.native.isAvailable();
  }

  getStatus() {
    return this.#gate.native.status();
  }

  history(after = 0) {
    return this.#gate.native.history(after);
  }

  on(event, listener) {
    this.#gate.on(event, listener);
    return this;
  }

  off(event, listener) {
    this.#gate.off(event, listener);
    return this;
  }

  forceOpen(lasting) {
    this.#command("forceOpen", lasting === undefined ? undefined : settings.milliseconds("lasting", lasting));
  }

  forceClosed(lasting) {
    this.#command("forceClosed", lasting === undefined ? undefined : settings.milliseconds("lasting", lasting));
  }

  release() {
    this.#command("release");
  }

  reset() {
    this.#command("reset");
  }

  reconfigure(options) {
    const read = settings.read(options);
    this.#command("reconfigure", read.settings);
    this.#gate.take(read);
  }

  #command(name, ...given) {
    this.#gate.native[name](...given);
    if (this.#gate.listeners !== undefined) this.#gate.tell();
  }
}

module.exports = { Breaker, gateOf, ofGate };
