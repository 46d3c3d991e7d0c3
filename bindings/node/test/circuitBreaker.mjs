// A breaker by name in the manner of gateways: a count that a success lowers, a wait, one trial. The page on coming from such
// code is tested with it.

const all = new Map();

export function getCircuitBreaker(name, options) {
  if (!all.has(name)) all.set(name, new CircuitBreaker(options));
  return all.get(name);
}

class CircuitBreaker {
  constructor({ failureThreshold, resetTimeout }) {
    Object.assign(this, { failureThreshold, resetTimeout, failures: 0, openedAt: undefined });
  }

  canExecute() {
    return this.openedAt === undefined || Date.now() - this.openedAt >= this.resetTimeout;
  }

  async execute(call) {
    if (!this.canExecute()) throw new Error("open");
    try {
      const value = await call();
      this.failures = Math.max(0, this.failures - 1);
      this.openedAt = undefined;
      return value;
    } catch (error) {
      this.failures += 1;
      if (this.failures >= this.failureThreshold) this.openedAt = Date.now();
      throw error;
    }
  }

  getStatus() {
    return { state: this.openedAt === undefined ? "CLOSED" : "OPEN", failures: this.failures };
  }
}
