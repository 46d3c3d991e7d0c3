"""Two replicas that share a Redis are restarted one after the other, under load."""

import itertools
import json
import shutil
import socket
import subprocess
import threading
from http.client import HTTPConnection

import pytest
from conftest import FROM_SPARE
from gateway import Gateway, free_port, until
from provider import Reply
from wire import MODEL

CALLERS = 8
WORDS = 10


@pytest.fixture
def redis(tmp_path):
    port = free_port()
    command = [shutil.which("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", tmp_path]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until(lambda: is_open(port), "redis serves")
    yield f"redis://127.0.0.1:{port}/0"
    server.terminate()
    server.wait()


def is_open(port: int) -> bool:
    with socket.socket() as knock:
        return knock.connect_ex(("127.0.0.1", port)) == 0


class Replica:
    """One of the two, at an address that stays."""

    def __init__(self, folder, config: str):
        folder.mkdir()
        self.folder, self.config, self.port = folder, config, free_port()
        self.start()

    def start(self):
        self.gateway = Gateway(self.folder, self.config, {"FUSELINE_LISTEN": f"127.0.0.1:{self.port}"})

    def restart(self):
        assert self.gateway.stop() == 0
        self.start()


def ask(replicas, first: int, stream: bool) -> str:
    """One call, by a balancer that goes on to the next replica where a connection is refused, and only there."""
    body = json.dumps({"model": MODEL, "stream": stream, "messages": [{"role": "user", "content": "How are things?"}]})
    for replica in (replicas[first], replicas[1 - first]):
        connection = HTTPConnection("127.0.0.1", replica.port, timeout=20)
        try:
            connection.connect()
        except ConnectionRefusedError:
            continue
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, text
        return text
    raise AssertionError("no replica listens")


def test_no_call_is_lost_and_no_breaker_forgets(tmp_path, redis, primary, spare):
    primary.answer(Reply(status=503))
    spare.answer(Reply(text=" ".join([FROM_SPARE] * WORDS), words=WORDS, gap=0.03))
    config = f"""
        fleet = "{redis}"
        [providers.primary]
        protocol = "openai"
        base_url = "{primary.url}/v1"
        api_key = "primary-key"
        [providers.spare]
        protocol = "openai"
        base_url = "{spare.url}/v1"
        api_key = "spare-key"
        [[routes]]
        model = "*"
        targets = [{{ provider = "primary" }}, {{ provider = "spare" }}]
        retries = 0
        [breaker]
        cooldown = "10m"
        max_cooldown = "10m"
        """
    replicas = [Replica(tmp_path / name, config) for name in ("one", "two")]
    lost, answered, done = [], [], threading.Event()

    def call(number: int):
        for turn in itertools.count(number):
            if done.is_set():
                return
            try:
                text = ask(replicas, turn % 2, stream=turn % 3 == 0)
                assert "data: [DONE]" in text or json.loads(text)["choices"][0]["finish_reason"] == "stop"
                answered.append(turn)
            except Exception as error:  # whatever it is, a call was lost
                lost.append(repr(error))

    callers = [threading.Thread(target=call, args=(number,)) for number in range(CALLERS)]
    for caller in callers:
        caller.start()
    is_open_on = lambda replica: any(breaker["state"] == "open" for breaker in replica.gateway.breakers("primary"))
    try:
        until(lambda: all(map(is_open_on, replicas)), "the breaker is open on both")
        before = primary.hits
        for replica in replicas:
            replica.restart()
            until(lambda: is_open_on(replica), "the newcomer knows that the circuit is open")
            served = len(answered)
            until(lambda: len(answered) > served + CALLERS, "the load goes on")
    finally:
        done.set()
        for caller in callers:
            caller.join()
    try:
        assert lost == []
        assert primary.hits - before <= CALLERS, "at most what a newcomer sends before it has heard of the fleet"
        assert len(answered) > 4 * CALLERS
    finally:
        for replica in replicas:
            assert replica.gateway.stop() == 0
