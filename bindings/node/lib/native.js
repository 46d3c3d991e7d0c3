// The native module: breakers, verdicts and watched streams.

"use strict";

let native;
try {
  native = require("../fuseline.node");
} catch (cause) {
  const place = `${process.platform}-${process.arch}`;
  throw new Error(
    `fuseline's native module does not load on ${place}: install the package built for it, or, where native modules ` +
      "cannot load at all (edge runtimes), send the calls through the Fuseline gateway",
    { cause },
  );
}

module.exports = native;
