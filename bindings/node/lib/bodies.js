// The bodies of fetched answers: whoever reads one reads it under its permit, and how it ends settles that.

"use strict";

const { StreamError } = require("./errors.js");
const { faultOf } = require("./judge.js");
const { LONGEST } = require("./settings.js");

// A stream that nobody reads any more.
const forgotten = new FinalizationRegistry((body) => body.leave());

/** A streamed answer, watched for what its events say. */
class WatchedBody {
  #pending;

  constructor(call, body, watch) {
    Object.assign(this, { call, watch, reader: body.getReader(), cause: undefined });
  }

  async pull(controller) {
    const { watch } = this;
    for (;;) {
      if (watch.asked()) return this.#finish(controller);
      const out = await this.#next();
      this.#told();
      if (out === undefined || out.byteLength === 0) continue;
      return controller.enqueue(new Uint8Array(out));
    }
  }

  /** What goes on of the next chunk; nothing where a limit has passed. */
  async #next() {
    const { watch } = this;
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, Math.min(watch.timeLeft() ?? 0, LONGEST));
    });
    this.#pending ??= this.reader.read();
    try {
      const item = await Promise.race([this.#pending, late]);
      if (item === undefined) return undefined;
      this.#pending = undefined;
      return item.done ? watch.end() : watch.chunk(item.value);
    } catch (error) {
      this.#pending = undefined;
      this.cause = error;
      if (!this.call.caller?.aborted) return watch.broke(faultOf(error) === "stall" ? "stall" : "reset");
      watch.close();
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  #finish(controller) {
    const { watch, cause } = this;
    const failure = watch.failure();
    const isOwn = cause !== undefined && (failure === null || failure.ending === "stream_broken");
    this.leave();
    if (isOwn) controller.error(cause);
    else if (failure === null) controller.close();
    else controller.error(new StreamError(failure, { cause }));
  }

  leave(reason) {
    this.watch.close();
    this.#told();
    this.call.done();
    this.#pending?.catch(() => {});
    this.reader.cancel(reason).catch(() => {});
    this.call.abort(reason);
  }

  #told() {
    if (this.call.gate.listeners !== undefined) this.call.gate.tell();
  }
}

/** Any other body, of which only the end says something; `chunks` come first. */
class PlainBody {
  constructor(call, body, chunks) {
    Object.assign(this, { call, chunks, reader: body.getReader() });
  }

  async pull(controller) {
    const { call } = this;
    if (this.chunks.length > 0) return controller.enqueue(this.chunks.shift());
    try {
      const { done, value } = await this.reader.read();
      if (!done) return controller.enqueue(value);
      call.settle((place) => call.gate.success(place));
      call.done();
      controller.close();
    } catch (error) {
      controller.error(call.broke(error));
    }
  }

  leave(reason) {
    this.call.left();
    this.reader.cancel(reason).catch(() => {});
  }
}

/** That of an error which an SDK may repeat. Whoever reads it gives the error on: the call has failed. */
class FailedBody {
  constructor(gate, failed, body) {
    Object.assign(this, { gate, failed, body });
  }

  pull(controller) {
    this.gate.repeats.tell(this.failed);
    if (this.body.byteLength > 0) controller.enqueue(new Uint8Array(this.body));
    controller.close();
  }

  leave() {} // it will be repeated, or time tells
}

/** What is read under a body. */
function streamOf(body) {
  const source = {
    pull: (controller) => body.pull(controller),
    cancel: (reason) => body.leave(reason),
  };
  const stream = new ReadableStream(source, { highWaterMark: 0 });
  forgotten.register(stream, body);
  return stream;
}

module.exports = { FailedBody, PlainBody, WatchedBody, streamOf };
