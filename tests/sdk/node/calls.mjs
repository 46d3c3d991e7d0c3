// Streamed calls by the Node SDKs. Each line on standard input is a call; each line on standard output is what it gave:
// the fields of `Heard` in ../callers.py.

import { createInterface } from "node:readline";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const apis = {
  chat: {
    sdk: OpenAI,
    open: (client, { model, messages }, options) =>
      client.chat.completions.create({ model, messages, stream: true }, options),
    hear(event, heard) {
      for (const choice of event.choices ?? []) {
        heard.begun += choice.delta.role ? 1 : 0;
        heard.text += choice.delta.content ?? "";
        for (const call of choice.delta.tool_calls ?? []) heard.tool += call.function.arguments ?? "";
        heard.finish = choice.finish_reason ?? heard.finish;
      }
      if (event.usage) heard.tokens = event.usage.total_tokens;
    },
  },
  responses: {
    sdk: OpenAI,
    open: (client, { model, messages }, options) =>
      client.responses.create({ model, input: messages, stream: true }, options),
    hear(event, heard) {
      if (event.type === "response.created") heard.begun += 1;
      if (event.type === "response.output_text.delta") heard.text += event.delta;
      if (event.type === "response.function_call_arguments.delta") heard.tool += event.delta;
      if (event.type === "response.completed") heard.finish = event.response.status;
      if (event.type === "error") heard.told = event.message;
    },
  },
  messages: {
    sdk: Anthropic,
    open: (client, { model, messages }, options) =>
      client.messages.create({ model, messages, max_tokens: 64, stream: true }, options),
    hear(event, heard) {
      if (event.type === "message_start") heard.begun += 1;
      if (event.type === "content_block_delta") {
        heard.text += event.delta.text ?? "";
        heard.tool += event.delta.partial_json ?? "";
      }
      if (event.type === "message_delta") {
        heard.finish = event.delta.stop_reason;
        heard.tokens = event.usage.output_tokens;
      }
    },
  },
};

function classesOf(error) {
  const names = [];
  for (let kind = Object.getPrototypeOf(error); kind; kind = Object.getPrototypeOf(kind)) {
    names.push(kind.constructor.name);
  }
  return names;
}

async function heardOf(call) {
  const heard = { text: "", tool: "", finish: null, tokens: null, begun: 0, told: null, raised: null };
  const api = apis[call.api];
  const client = new api.sdk({
    baseURL: call.base_url,
    apiKey: "caller-key",
    maxRetries: call.max_retries,
    logLevel: "off",
  });
  const options = { signal: AbortSignal.timeout(call.patience_ms) };
  try {
    for await (const event of await api.open(client, call, options)) api.hear(event, heard);
  } catch (error) {
    heard.raised = { classes: classesOf(error), message: error.message, status: error.status ?? null };
  }
  return heard;
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await heardOf(JSON.parse(line))));
}
