"""A `fuseline serve` process of a test's own, and what its admin listener says."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

BINARY = Path(os.environ.get("FUSELINE_BIN", "target/release/fuseline")).resolve()
FREE_PORTS = {
    "FUSELINE_LISTEN": "127.0.0.1:0",
    "FUSELINE_ADMIN_LISTEN": "127.0.0.1:0",
    "FUSELINE_STATE": "off",
}
PATIENCE = 15.0


def until(condition, what: str, patience: float = PATIENCE):
    """Asks until the answer is truthy, and returns it."""
    end = time.monotonic() + patience
    while not (answer := condition()):
        assert time.monotonic() < end, f"waited {patience} s in vain: {what}"
        time.sleep(0.005)
    return answer


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class Gateway:
    """Runs from construction to `stop`. Both listeners choose free ports, unless `environment` names others; the log goes to
    `gateway.log` in `folder`. `under` is a command that runs it and becomes it."""

    def __init__(
        self,
        folder: Path,
        config: str | None = None,
        environment: dict[str, str] | None = None,
        under: Sequence[str | Path] = (),
    ):
        self.folder = folder
        arguments = []
        if config is not None:
            file = folder / "fuseline.toml"
            file.write_text(config)
            arguments = ["--config", file]
        self._serving: dict | None = None
        self.process = subprocess.Popen(
            [*under, BINARY, "serve", *arguments],
            cwd=folder,
            env=os.environ | FREE_PORTS | (environment or {}),
            stdout=subprocess.PIPE,
            stderr=(folder / "gateway.err").open("wb"),
        )
        self._drain = threading.Thread(target=self._keep_log, daemon=True)
        self._drain.start()
        serving = until(self._started, f"the gateway serves; see {folder}")
        self.url = f"http://{serving['listen']}"
        self.admin = f"http://{serving['admin_listen']}"

    def _keep_log(self):
        with (self.folder / "gateway.log").open("wb", buffering=0) as log:
            for line in self.process.stdout:
                log.write(line)
                if self._serving is None and b'"serving"' in line:
                    self._serving = json.loads(line)

    def _started(self):
        assert self.process.poll() is None, (self.folder / "gateway.err").read_text()
        return self._serving

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self._drain.join()

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.admin + path, timeout=PATIENCE) as answer:
            return answer.read()

    def breakers(self, provider: str) -> list[dict]:
        """The snapshots of a provider's breakers, of every scope."""
        return [breaker for breaker in json.loads(self.get("/breakers")) if breaker["provider"] == provider]

    def the_broken(self, provider: str = "primary") -> dict:
        """The one breaker of the provider that is not closed."""
        (broken,) = [breaker for breaker in self.breakers(provider) if breaker["state"] not in ("closed", "degraded")]
        return broken

    def all_closed(self, provider: str = "primary") -> bool:
        return all(breaker["state"] == "closed" for breaker in self.breakers(provider))

    def wait_for_end_of_cooldown(self, provider: str = "primary"):
        """An open breaker past its cooldown reads open until somebody calls, but refuses nobody."""
        until(lambda: self.the_broken(provider)["reason"] is None, "the cooldown ends")

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's series that carry these labels."""
        total = 0.0
        for line in self.get("/metrics").decode().splitlines():
            match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if match and match[1] == name:
                carried = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
                if labels.items() <= carried.items():
                    total += float(match[3])
        return total

    def opened(self) -> float:
        return self.metric("breaker_opened_total")
