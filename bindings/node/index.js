// The package for `require`.

"use strict";

const { Breaker } = require("./lib/breaker.js");
const { Cache, Chain } = require("./lib/chain.js");
const errors = require("./lib/errors.js");
const { classify } = require("./lib/judge.js");
const { Keeper, keep } = require("./lib/keep.js");
const { Clock } = require("./lib/native.js");
const { Registry, process } = require("./lib/registry.js");

module.exports.Breaker = Breaker;
module.exports.Cache = Cache;
module.exports.Chain = Chain;
module.exports.CircuitOpenError = errors.CircuitOpenError;
module.exports.Clock = Clock;
module.exports.FuselineError = errors.FuselineError;
module.exports.Keeper = Keeper;
module.exports.Registry = Registry;
module.exports.RegistryError = errors.RegistryError;
module.exports.SettingsError = errors.SettingsError;
module.exports.StreamError = errors.StreamError;
module.exports.breakers = () => process.breakers();
module.exports.classify = classify;
module.exports.events = () => process.events();
module.exports.findBreaker = (name, options) => process.findBreaker(name, options);
module.exports.getBreaker = (name, options) => process.getBreaker(name, options);
module.exports.getStatus = () => process.getStatus();
module.exports.isHealthy = (name, options) => process.isHealthy(name, options);
module.exports.keep = keep;
