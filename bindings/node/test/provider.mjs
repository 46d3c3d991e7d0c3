// A provider on loopback that answers as a test says, and remembers who asked and who left.

import { createServer } from "node:http";

const chunk = (delta, finish = null) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "large", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const event = (value) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;

const CHAT = {
  whole: (text) => ({
    id: "c",
    object: "chat.completion",
    model: "large",
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
  }),
  begin: chunk({ role: "assistant", content: "" }),
  word: (text) => chunk({ content: text }),
  end: `${chunk({}, "stop")}data: [DONE]\n\n`,
  failure: `data: ${JSON.stringify({ error: { type: "server_error", message: "broken" } })}\n\n`,
  spent: { status: 429, body: { error: { type: "insufficient_quota", code: "insufficient_quota", message: "spent" } } },
};

const MESSAGES = {
  whole: (text) => ({
    id: "m",
    type: "message",
    role: "assistant",
    model: "large",
    content: text === "" ? [] : [{ type: "text", text }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 2 },
  }),
  begin:
    event({ type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "large", content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 0 } } }) +
    event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  word: (text) => event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
  end:
    event({ type: "content_block_stop", index: 0 }) +
    event({ type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 2 } }) +
    event({ type: "message_stop" }),
  failure: event({ type: "error", error: { type: "overloaded_error", message: "busy" } }),
  spent: { status: 400, body: { type: "error", error: { type: "invalid_request_error", message: "Your credit balance is too low" } } },
};

export const wireOf = (path) => (path.endsWith("/messages") ? MESSAGES : CHAT);

/** How a stream can end but well. */
export const SILENCE = Symbol("silence");
export const CUT = Symbol("cut");
export const RESET = Symbol("reset");

export class Provider {
  hits = 0;
  left = 0;
  asked = [];
  #replies = [{}];
  #server;
  #arrived;

  /** From now on these, one a request; the last repeats. */
  answer(...replies) {
    this.#replies = replies;
  }

  /** Until the next request is here. */
  arrival() {
    return new Promise((resolve) => (this.#arrived = resolve));
  }

  async start() {
    this.#server = createServer((request, response) => this.#serve(request, response));
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
    return this;
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request, response) {
    let body = "";
    for await (const part of request) body += part;
    this.hits += 1;
    const asked = body === "" ? {} : JSON.parse(body);
    this.asked.push({ path: request.url, headers: request.headers, body: asked });
    this.#arrived?.();
    response.on("close", () => (this.left += response.writableFinished ? 0 : 1));
    const reply = this.#replies.length > 1 ? this.#replies.shift() : this.#replies[0];
    if (reply.instead === SILENCE) return;
    if (reply.instead === RESET) return void request.socket.resetAndDestroy();
    const wire = wireOf(request.url);
    if (reply.status !== undefined || reply.body !== undefined) {
      const { status = 200, headers = {}, body = { error: { message: "as told" } } } = reply;
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(typeof body === "string" ? body : JSON.stringify(body));
    } else if (asked.stream) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      await this.#stream(wire, reply.script ?? ["begin", "All ", "is ", "well.", "end"], response);
    } else {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(wire.whole("All is well.")));
    }
  }

  async #stream(wire, script, response) {
    for (const step of script) {
      if (step === SILENCE) return;
      if (step === CUT) return void response.end();
      if (step === RESET) return void response.socket.resetAndDestroy();
      if (typeof step === "function") await step();
      else response.write(["begin", "end", "failure"].includes(step) ? wire[step] : wire.word(step));
    }
    response.end();
  }
}
