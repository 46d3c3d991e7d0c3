// The package for `import`: the same objects as `require` gives.

export {
  Breaker,
  Chain,
  CircuitOpenError,
  Clock,
  FuselineError,
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
} from "./index.js";
