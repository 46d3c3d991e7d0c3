// `keep`: state that outlives the process, and the fleet: the same store and the same protocol as the gateway's.

"use strict";

const { randomBytes } = require("node:crypto");
const { readFileSync } = require("node:fs");

const { SettingsError } = require("./errors.js");
const native = require("./native.js");
const registry = require("./registry.js");
const { chosen } = require("./settings.js");

class Keeper {
  #native;

  constructor(native) {
    this.#native = native;
  }

  health() {
    return this.#native.health() ?? undefined;
  }

  close() {
    this.#native.close();
  }
}

function keep(options = {}) {
  const { state, fleet, caFile, prefix = "fuseline", registry: of = registry.process } = chosen(options, [
    ...["state", "fleet", "caFile", "prefix", "registry"],
  ]);
  if (state === undefined && fleet === undefined) throw new SettingsError(["state or fleet must be given, or both"]);
  const authorities = caFile === undefined ? undefined : readFileSync(caFile);
  if (authorities !== undefined && !authorities.includes("-----BEGIN CERTIFICATE-----")) {
    throw new SettingsError([`caFile is ${caFile}, must hold certificates in PEM`]);
  }
  // As much chance as a number holds exactly.
  const replica = randomBytes(6).readUIntBE(0, 6);
  const meeting = fleet === undefined ? undefined : { url: fleet, authorities, prefix, replica };
  return new Keeper(new native.Keeper(registry.nativeOf(of), state, meeting));
}

module.exports = { Keeper, keep };
