// Eight threads that call under one breaker, each so often, every fourth time in vain.

import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";

import { getBreaker } from "fuseline";

const THREADS = 8;
const require = createRequire(import.meta.url);
// Never opens, and counts every call of its window.
const RULES = { trip: [{ rule: "rate", threshold: 1, window: "1h", minCalls: 1e9 }] };

/** What was counted, and what should have been. */
export async function crowd(name, calls) {
  const code = `
    const breaker = require(${JSON.stringify(require.resolve("fuseline"))}).getBreaker(${JSON.stringify(name)}, ${JSON.stringify(RULES)});
    const down = Object.assign(new Error("down"), { code: "ECONNRESET" });
    const fine = async () => 1;
    const fails = async () => { throw down; };
    (async () => {
      for (let number = 0; number < ${calls}; number += 1) {
        if (number % 4) await breaker.execute(fine);
        else await breaker.execute(fails).catch(() => {});
      }
    })();
  `;
  const breaker = getBreaker(name, RULES);
  const threads = Array.from({ length: THREADS }, () => new Worker(code, { eval: true }));
  await Promise.all(threads.map((thread) => new Promise((resolve, reject) => thread.on("exit", resolve).on("error", reject))));
  const [{ calls: counted, hits }] = breaker.getStatus().rules;
  return { counted: [counted, hits], wanted: [THREADS * calls, (THREADS * calls) / 4] };
}
