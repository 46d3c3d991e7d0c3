// The types are those of what is there, and say yes and no where they should.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";

import * as fuseline from "fuseline";

const require = createRequire(import.meta.url);
const here = dirname(new URL(import.meta.url).pathname);

test("the compiler passes what users write, and refuses mistakes", () => {
  const compiler = require.resolve("typescript/bin/tsc");
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", "--types", "node"];
  const files = ["uses.mts", "uses.cts"].map((name) => join(here, name));
  const { status, stdout } = spawnSync(process.execPath, [compiler, ...options, ...files], { encoding: "utf8", cwd: here });
  assert.equal(stdout, "");
  assert.equal(status, 0);
});

test("every export and every method has its type, and no more", () => {
  const types = readFileSync(join(dirname(require.resolve("fuseline")), "index.d.ts"), "utf8");
  const declared = [...types.matchAll(/^export (?:class|const|function) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(declared.sort(), Object.keys(fuseline).sort());
  const methods = (text) => [...text.matchAll(/^ {2}(?:static |readonly |private )*(\w+)[(<:]/gm)].map(([, name]) => name);
  for (const name of ["Breaker", "Cache", "Chain", "Keeper", "Registry", "Clock"]) {
    const [, body] = types.match(new RegExp(`^export class ${name}\\b[^{]*\\{\\n(.*?)^\\}`, "ms"));
    const { prototype } = fuseline[name];
    const there = Object.getOwnPropertyNames(prototype).filter((key) => key !== "constructor");
    const told = new Set(methods(body).filter((key) => !["constructor", "static", "manual", "system"].includes(key)));
    assert.deepEqual([...told].sort(), there.sort(), name);
  }
});
