// Streams of items under a permit: how one ends settles it.

"use strict";

const { StreamError } = require("./errors.js");
const { forgotten } = require("./gate.js");
const { LONGEST } = require("./settings.js");

const USUAL = { firstToken: 60_000, stall: 30_000 };
const LATE = Symbol("late");

/** Whether a result has only begun. */
function isStream(value) {
  return typeof value === "object" && value !== null && typeof value[Symbol.asyncIterator] === "function";
}

/** The same stream, whose items pass by the permit. An object that is no iterator itself (an SDK's stream) stays the one it is. */
function guardStream(gate, place, stream, signal, ended) {
  if (stream instanceof ReadableStream) {
    const guard = new Guard(gate, place, stream.getReader(), (reader) => reader.read(), signal, ended);
    return guard.own(readable(guard));
  }
  if (typeof stream.next === "function") {
    const guard = new Guard(gate, place, stream[Symbol.asyncIterator](), (items) => items.next(), signal, ended);
    return guard.own(iterable(guard));
  }
  let begin = stream[Symbol.asyncIterator];
  const guarded = function guarded() {
    const guard = new Guard(gate, place, begin.call(stream), (items) => items.next(), signal, ended);
    begin = unguarded;
    guard.stream = new WeakRef(stream);
    guard.held = stream; // not forgotten while somebody reads
    return iterable(guard);
  };
  const unguarded = begin;
  Object.defineProperty(stream, Symbol.asyncIterator, { value: guarded, configurable: true, writable: true });
  gate.watchOver(stream, place);
  return stream;
}

class Guard {
  constructor(gate, place, source, read, signal, ended) {
    Object.assign(this, { gate, place, source, read, signal, ended });
    this.limit = gate.limits.firstToken ?? USUAL.firstToken;
    this.isOver = false;
    this.isSettled = false;
  }

  /** As long as `stream` is held by somebody, it may be read. */
  own(stream) {
    this.stream = new WeakRef(stream);
    this.gate.watchOver(stream, this.place);
    return stream;
  }

  /** The next item, or the end. */
  async next() {
    if (this.isOver) return { done: true, value: undefined };
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(reject, Math.min(this.limit, LONGEST), LATE);
    });
    let item;
    try {
      item = await Promise.race([this.read(this.source), late]);
    } catch (error) {
      throw error === LATE ? this.stalled() : this.broken(error);
    } finally {
      clearTimeout(timer);
    }
    this.limit = this.gate.limits.stall ?? USUAL.stall;
    if (item.done) this.end(() => this.gate.success(this.place));
    else if (!this.isSettled && this.gate.item(this.place)) this.settled();
    return item;
  }

  stalled() {
    const kind = "stream_stall";
    this.end(() => this.gate.failure(this.place, kind));
    this.leave().catch(() => {});
    const message = `no item of the stream within ${this.limit} ms`;
    return new StreamError({ message, ending: kind, kind });
  }

  broken(error) {
    this.end(() => this.gate.failed(this.place, error, this.signal));
    return error;
  }

  /** Nobody reads on. */
  async leave(value) {
    this.end(() => this.gate.cancel(this.place));
    if (typeof this.source.cancel === "function") await this.source.cancel(value);
    else await this.source.return?.(value);
  }

  end(settle) {
    this.isOver = true;
    this.ended?.();
    if (this.isSettled) return;
    settle();
    this.settled();
  }

  /** The place may be another's from now on. */
  settled() {
    this.isSettled = true;
    const stream = this.stream?.deref();
    if (stream !== undefined) forgotten.unregister(stream);
  }
}

function iterable(guard) {
  return {
    next: () => guard.next(),
    async return(value) {
      await guard.leave(value);
      return { done: true, value };
    },
    async throw(error) {
      await guard.leave();
      throw error;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

function readable(guard) {
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await guard.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => guard.leave(reason),
    },
    { highWaterMark: 0 },
  );
}

module.exports = { guardStream, isStream };
