// The package for `import`: the same objects as `require` gives.

export {
  Breaker,
  Cache,
  Chain,
  CircuitOpenError,
  Clock,
  FuselineError,
  Keeper,
  Registry,
  RegistryError,
  SettingsError,
  StreamError,
  breakers,
  classify,
  events,
  findBreaker,
  getBreaker,
  getStatus,
  isHealthy,
  keep,
} from "./index.js";
