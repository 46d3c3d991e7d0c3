// The code of the documentation runs, and what it replaces does what is said of it.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import OpenAI from "openai";

import { findBreaker } from "fuseline";

import { Provider } from "./provider.mjs";

const page = (name) => readFileSync(join(process.env.FUSELINE_ROOT, name), "utf8");
const blocks = (name) => [...page(name).matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);

/** Runs code as a module of its own; what it exports. */
async function run(name, code) {
  const file = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, `${name}.run.mjs`);
  writeFileSync(file, code);
  return import(pathToFileURL(file).href);
}

/** All blocks of a page in one module: each name is imported once. */
function joined(codes) {
  const imports = new Map();
  const rest = codes.join("\n").replace(/^import (.*) from (".*");$/gm, (_, names, from) => {
    const found = imports.get(from) ?? { names: new Set(), whole: undefined };
    const braced = names.match(/\{(.*)\}/);
    if (braced === null) found.whole = names;
    else for (const one of braced[1].split(",")) found.names.add(one.trim());
    imports.set(from, found);
    return "";
  });
  const heads = [...imports].map(([from, { names, whole }]) => {
    const braced = names.size > 0 ? `{ ${[...names].join(", ")} }` : undefined;
    return `import ${[whole, braced].filter(Boolean).join(", ")} from ${from};`;
  });
  return [...heads, rest].join("\n");
}

test("the guide runs", async () => {
  const { first, answer } = await run("guide", `${joined(blocks("docs/guide/node.md"))}\nexport { answer, first };`);
  assert.deepEqual([answer, first], ["all about fuses", "an answer of large"]);
});

test("the package's own page runs", async () => {
  const [code] = blocks("bindings/node/README.md");
  const { answer } = await run("readme", `${code.replace("{ fetch:", '{ apiKey: "...", fetch:').replace('"openai", {', '"readme", {')}\nexport { answer };`);
  assert.equal(answer, "any other call");
});

const down = Object.assign(new Error("down"), { status: 503 });
const provider = new Provider();
before(() => provider.start());
after(() => provider.stop());

/** What came of so many calls while the provider is down. */
async function outage(answer, calls) {
  const came = [];
  for (let call = 0; call < calls; call += 1) came.push(await answer("Why?").catch(() => "failed"));
  return came;
}

const PAGES = { opossum: [10, "opossum's place"], cockatiel: [5, "cockatiel's place"], omniroute: [5, "openai, as OmniRoute has it"] };
for (const [name, [failures, place]] of Object.entries(PAGES)) {
  for (const [at, which] of ["before", "after"].entries()) {
    test(`${name}, ${which}: good answers pass, ${failures} failures open`, async () => {
      let hits = 0;
      let isDown = false;
      globalThis.provider = async (question) => {
        hits += 1;
        if (isDown) throw down;
        return `an answer to ${question}`;
      };
      const { answer } = await run(`${name}.${which}`, blocks(`docs/migrate/${name}.md`)[at]);
      if (failures === 5) assert.equal(await answer("Why?"), "an answer to Why?");
      isDown = true;
      hits = 0;
      const came = await outage(answer, failures + 5);
      assert.deepEqual(came, [...Array(failures).fill("failed"), ...Array(5).fill("later")]);
      assert.equal(hits, failures, "nothing is sent while open");
      if (which === "after") assert.ok(Math.abs(findBreaker(place).getStatus().retryAfterMs - 31_500) <= 1_600, "30 s and up to a tenth");
    });
  }
}

for (const [at, which] of ["before", "after"].entries()) {
  test(`vern-llm, ${which}: good answers pass, 5 failures open`, async () => {
    globalThis.url = `${provider.url}/v1`;
    globalThis.client = new OpenAI({ baseURL: globalThis.url, apiKey: "key", maxRetries: 0 });
    const { answer } = await run(`vern-llm.${which}`, blocks("docs/migrate/vern-llm.md")[at]);
    provider.answer({});
    assert.match(await answer("Why?"), /All is well\./);
    provider.answer({ status: 503 });
    provider.hits = 0;
    const came = await outage(answer, 8);
    assert.deepEqual(came.slice(5), ["later", "later", "later"], came.join());
    assert.equal(provider.hits, 5);
  });
}
