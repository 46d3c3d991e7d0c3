// State in a file, and a fleet over Redis.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { Registry, SettingsError, keep } from "fuseline";

const require = createRequire(import.meta.url);
const RULES = { trip: [{ rule: "consecutive", failures: 2 }], cooldown: "60s" };

const folder = mkdtempSync(join(tmpdir(), "fuseline-"));
after(() => rmSync(folder, { recursive: true }));

async function until(condition, patience = 10_000) {
  const end = performance.now() + patience;
  while (!(await condition())) {
    assert.ok(performance.now() < end, "waited in vain");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("an open breaker is open in the next process", () => {
  const state = join(folder, "state.db");
  const registry = new Registry();
  const keeper = keep({ state, registry });
  assert.equal(keeper.health(), undefined, "it is in no fleet");
  const breaker = registry.getBreaker("openai", RULES);
  for (let failure = 0; failure < 2; failure += 1) breaker.acquire().failure("overloaded");
  keeper.close();
  keeper.close();
  const code = `
    const { findBreaker, getBreaker, keep } = require(${JSON.stringify(require.resolve("fuseline"))});
    const keeper = keep({ state: ${JSON.stringify(state)} });
    const found = findBreaker("openai");
    const breaker = getBreaker("openai", { ...${JSON.stringify(RULES)}, timeouts: { stall: "5s" } });
    const { state, retryAfterMs, rules } = breaker.getStatus();
    console.log(state, retryAfterMs > 50_000 && retryAfterMs <= 66_000, rules.length, rules[0].threshold, found === breaker);
    try {
      getBreaker("openai", { cooldown: "5s" });
    } catch (error) {
      console.log(error.isTaken);
    }
    keeper.close();
  `;
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", code], { encoding: "utf8" });
  assert.equal(stdout, "open true 1 2 true\ntrue\n", stderr);
});

test("what cannot be used is told, and no secret with it", () => {
  assert.throws(() => keep({ state: join(folder, "nowhere", "state.db") }), /state is .*nowhere.*; set `state` to another file/);
  assert.throws(() => keep({}), { problems: ["state or fleet must be given, or both"] });
  assert.throws(() => keep({ path: "x" }), SettingsError);
  assert.throws(() => keep({ fleet: "http://localhost" }), /redis:/);
  assert.throws(() => keep({ fleet: "rediss://localhost", caFile: join(folder, "nowhere.pem") }), { code: "ENOENT" });
  const empty = join(folder, "empty.pem");
  writeFileSync(empty, "no certificate");
  assert.throws(
    () => keep({ fleet: "rediss://me:secret@localhost", caFile: empty }),
    ({ message }) => message.endsWith("empty.pem, must hold certificates in PEM") && !message.includes("secret"),
  );
});

test("replicas open together on the provider's own word", async () => {
  const port = await new Promise((resolve) => {
    const free = createServer().listen(0, "127.0.0.1", () => {
      const { port } = free.address();
      free.close(() => resolve(port));
    });
  });
  const redis = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]);
  const registries = [new Registry(), new Registry()];
  const keepers = registries.map((registry) => keep({ fleet: `redis://127.0.0.1:${port}`, registry }));
  try {
    for (const registry of registries) registry.getBreaker("openai", RULES);
    await until(() => keepers.every((keeper) => keeper.health().replicas === 2 && !keeper.health().isDegraded));
    registries[0].getBreaker("openai").acquire().failure("rate_limit", { retryAfterMs: 300_000, openNow: true });
    await until(() => registries[1].findBreaker("openai").state === "open", 2_000);
    const { retryAfterMs, why } = registries[1].findBreaker("openai").getStatus();
    assert.ok(retryAfterMs > 250_000 && retryAfterMs <= 330_000);
    assert.equal(why.why.cause, "fleet");
  } finally {
    for (const keeper of keepers) keeper.close();
    redis.kill();
  }
});

test("without Redis each decides by itself", () => {
  const registry = new Registry();
  const keeper = keep({ fleet: "redis://127.0.0.1:9", registry });
  const breaker = registry.getBreaker("openai", RULES);
  for (let failure = 0; failure < 2; failure += 1) breaker.acquire().failure("overloaded");
  assert.deepEqual([breaker.state, keeper.health().isDegraded], ["open", true]);
  keeper.close();
});
