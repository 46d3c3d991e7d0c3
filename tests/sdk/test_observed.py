"""An outage as everybody sees it who watches: log, metrics, webhook, alert, the list and the feed of the admin listener
agree on what happened and why, and afterwards on how long it took. A real Prometheus watches, too, and every panel of the
dashboard shows something of it."""

import json
import re
import socketserver
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from conftest import FROM_PRIMARY
from dialects import OPENAI
from gateway import PATIENCE, until
from provider import Reply
from snippets import blocks
from wire import MODEL

DEPLOY = Path(__file__).parents[2] / "deploy"
BREAKER = f"primary/{MODEL}"
SOON = 5.0
# The alerts as they ship, but in seconds instead of minutes.
FASTER = {"> 60": "> 1", "[1m]": "[3s]", "[2m]": "[3s]", "offset 1m": "offset 3s", "for: 5m": "for: 1s"}


class Told:
    """Whoever is posted to: what came."""

    def __init__(self):
        self.events: list[dict] = []
        events = self.events

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                events.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hook():
    told = Told()
    yield told
    told.close()


class Prometheus:
    """Watches a gateway five times a second, with the alerts of `deploy`, in seconds instead of minutes."""

    def __init__(self, folder: Path, admin: str):
        rules = (DEPLOY / "alerts.yml").read_text()
        for written, instead in FASTER.items():
            assert written in rules, written
            rules = rules.replace(written, instead)
        (folder / "alerts.yml").write_text(rules)
        (folder / "fuseline-admin-token").write_text("asked for by no gateway that has none")
        (config,) = blocks("docs/guide/seeing-it.md", "yaml")
        config = config.replace("127.0.0.1:8081", admin.removeprefix("http://"))
        often = "global: { scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms }\n"
        (folder / "prometheus.yml").write_text(often + config)
        log = folder / "prometheus.log"
        self.process = subprocess.Popen(
            ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=log.open("wb"),
        )
        listens = until(lambda: re.search(r"Listening on.*?(127\.0\.0\.1:\d+)", log.read_text()), f"it listens; see {log}")
        self.url = f"http://{listens[1]}/api/v1"
        until(self._is_ready, "it watches")

    def _is_ready(self):
        try:
            return self.ask("up") == [1.0]
        except OSError:
            return False

    def _get(self, path: str, **asked):
        with urllib.request.urlopen(f"{self.url}/{path}?{urllib.parse.urlencode(asked)}", timeout=PATIENCE) as answer:
            return json.load(answer)["data"]

    def ask(self, query: str) -> list[float]:
        return [float(series["value"][1]) for series in self._get("query", query=query)["result"]]

    def over(self, query: str, begin: float, end: float) -> list[float]:
        """Every number that the query gave in this time."""
        series = self._get("query_range", query=query, start=begin, end=end, step="0.5")["result"]
        numbers = [float(value) for one in series for _, value in one["values"]]
        return [number for number in numbers if number == number]

    def firing(self) -> list[dict]:
        return [alert["labels"] for alert in self._get("alerts")["alerts"] if alert["state"] == "firing"]

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


@pytest.fixture
def watch(tmp_path):
    started = []

    def start(gateway) -> Prometheus:
        started.append(Prometheus(tmp_path, gateway.admin))
        return started[0]

    yield start
    for prometheus in started:
        prometheus.stop()


@pytest.fixture
def feed():
    """Listens to the gateway's feed from now on."""
    opened = []

    def listen(gateway) -> list[dict]:
        events: list[dict] = []
        answer = urllib.request.urlopen(gateway.admin + "/events", timeout=60)
        opened.append(answer)
        assert answer.readline() == b": listening\n"

        def read():
            for line in answer:
                if line.startswith(b"data:"):
                    events.append(json.loads(line[5:]))

        threading.Thread(target=read, daemon=True).start()
        return events

    yield listen


class Traffic(threading.Thread):
    """Calls, plain and streamed in turn, until it is told to stop."""

    def __init__(self, gateway):
        super().__init__()
        self.texts: list[str] = []
        self._client = OPENAI.client(gateway.url)
        self._over = threading.Event()

    def run(self):
        while not self._over.wait(0.03):
            self.texts.append(OPENAI.ask(self._client, stream=len(self.texts) % 2 == 0))

    def stop(self):
        self._over.set()
        self.join()


def lines(gateway) -> list[dict]:
    """The transitions in the log."""
    logged = [json.loads(line) for line in (gateway.folder / "gateway.log").read_text().splitlines()]
    return [line for line in logged if line["message"] == "breaker" and line["breaker"] == BREAKER]


def into(events: list[dict], state: str) -> list[dict]:
    return [event for event in events if event.get("breaker") == BREAKER and event["to"] == state]


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_everybody_who_watches_an_outage_agrees(launch, primary, spare, hook, watch, feed):
    gateway = launch(
        f"""
        [providers.primary]
        protocol = "openai"
        base_url = "{primary.url}/v1"
        api_key = "primary-key"
        [providers.spare]
        protocol = "openai"
        base_url = "{spare.url}/v1"
        api_key = "spare-key"
        [[routes]]
        model = "{MODEL}"
        retries = 0
        targets = [{{ provider = "primary" }}, {{ provider = "spare" }}]
        [breaker]
        trip = [{{ rule = "consecutive", failures = 3 }}]
        cooldown = "1500ms"
        backoff = 1
        jitter = 0.0
        [[webhooks]]
        url = "{hook.url}"
        states = ["degraded", "open", "half_open", "closed"]
        """
    )
    prometheus, events = watch(gateway), feed(gateway)
    traffic = Traffic(gateway)
    traffic.start()
    try:
        began = time.time()
        until(lambda: len(traffic.texts) > 20, "all is well for a while")
        primary.answer(Reply(status=503))
        dead = time.time()

        open_series = f'breaker_state{{scope="model",provider="primary",model="{MODEL}",state="open"}}'
        fires = {"alertname": "FuselineIncident", "severity": "critical", "scope": "model", "provider": "primary"}

        def agree():
            shown = {breaker["name"]: breaker for breaker in gateway.breakers("primary")}.get(BREAKER, {})
            return (
                shown.get("state") in ("open", "half_open")
                and into(hook.events, "open")
                and into(events, "open")
                and into(lines(gateway), "open")
                and prometheus.over(open_series, dead, time.time()).count(1.0)
                and any(alert.items() >= (fires | {"model": MODEL}).items() for alert in prometheus.firing())
            )

        until(agree, "log, list, feed, metrics, webhook and alert tell of the outage", SOON + 1.0)
        opened = moment(into(hook.events, "open")[0]["at"])
        assert time.time() - opened < SOON

        # What happened, and why.
        logged, posted, heard = into(lines(gateway), "open")[0], into(hook.events, "open")[0], into(events, "open")[0]
        assert posted == heard
        assert (logged["from"], logged["to"]) == (posted["from"], posted["to"])
        assert logged["why"] == posted["text"] and posted["text"].startswith("consecutive 3/3")
        detail = json.loads(gateway.get("/breakers/" + urllib.parse.quote(BREAKER, safe="")))
        assert posted["text"] in [change["text"] for change in detail["history"] if change["to"] == "open"]

        until(lambda: "FuselineFallback" in {alert["alertname"] for alert in prometheus.firing()}, "the fallback is noticed")
        primary.answer(Reply(text=FROM_PRIMARY))
        until(gateway.all_closed, "it closes again")
        closed = until(lambda: into(hook.events, "closed") and into(events, "closed") and into(lines(gateway), "closed"), "it is told")
        until(lambda: prometheus.ask(f'breaker_state{{model="{MODEL}",provider="primary",state="closed"}}') == [1.0], "it is seen")
        until(lambda: not prometheus.firing(), "the alerts end")
    finally:
        traffic.stop()
    ended = time.time()

    # How long it took, to the second.
    posted, heard = into(hook.events, "closed"), into(events, "closed")
    assert len(posted) == len(closed) == 1 and posted == heard
    took = moment(posted[0]["at"]) - opened
    told = {
        "log": closed[0]["incident_seconds"],
        "webhook": posted[0]["incident_ms"] / 1000,
        "feed": heard[0]["incident_ms"] / 1000,
        "metric": max(prometheus.over(f'breaker_incident_seconds{{model="{MODEL}",provider="primary"}}', began, ended)),
    }
    assert all(abs(seconds - took) < 1.0 for seconds in told.values()), (told, took)
    asked = f'{{scope="model",provider="primary",model="{MODEL}"}}'
    assert prometheus.ask("breaker_incident_seconds" + asked) == [0.0]
    assert prometheus.ask("breaker_opened_total" + asked) == [float(len(into(hook.events, "open")))]
    assert prometheus.ask("breaker_closed_total" + asked) == [1.0]
    assert prometheus.ask("breaker_open_seconds_total" + asked)[0] <= took + 0.1
    assert FROM_PRIMARY in traffic.texts[-1]

    panels = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    queries = [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]
    assert len(queries) > 20
    for title, query in queries:
        query = query.replace("$__rate_interval", "3s").replace("$provider", ".*")
        assert prometheus.over(query, began, ended), f"{title} shows nothing: {query}"
