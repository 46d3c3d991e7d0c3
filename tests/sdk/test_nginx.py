"""Behind an nginx as it comes, which buffers what is passed on unless it is told not to."""

import subprocess
import time

import httpx2
import openai
import pytest
from dialects import OPENAI
from gateway import until
from provider import Reply
from wire import CHAT, MODEL

EVENTS = 20
GAP = 0.1
PROMPT = 0.1

CONFIG = """
daemon off;
master_process off;
pid nginx.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen unix:nginx.sock;
        location / {{
            proxy_pass {url};
        }}
    }}
}}
"""


@pytest.fixture
def dialect():
    return OPENAI


@pytest.fixture
def behind_nginx(tmp_path):
    """Starts an nginx before this URL; its only door is a socket in the folder, which is returned."""
    started = []

    def start(url: str):
        (tmp_path / "nginx.conf").write_text(CONFIG.format(url=url))
        command = ["nginx", "-p", tmp_path, "-c", "nginx.conf", "-e", "nginx.log"]
        started.append(subprocess.Popen(command, cwd=tmp_path))
        socket = tmp_path / "nginx.sock"
        until(socket.exists, f"nginx listens; see {tmp_path}/nginx.log")
        return socket

    yield start
    for process in started:
        process.terminate()
        assert process.wait(10) == 0


def test_report_117_each_event_comes_through_nginx_by_itself(serve, primary, behind_nginx, measured):
    gateway = serve(primary.url)
    sent, arrived = [], []

    def script():
        yield CHAT.begin
        for number in range(EVENTS):
            yield GAP
            sent.append(time.monotonic())
            yield CHAT.word(f"{number} ")
        yield CHAT.finish
        yield CHAT.marker

    primary.answer(Reply(script=script()))
    through_nginx = openai.DefaultHttpxClient(transport=httpx2.HTTPTransport(uds=str(behind_nginx(gateway.url))))
    with OPENAI.client("http://nginx", http_client=through_nginx) as client:
        for event in OPENAI.start(client, stream=True):
            if event.choices[0].delta.content:
                arrived.append(time.monotonic())
    late = [arrival - sending for sending, arrival in zip(sent, arrived, strict=True)]
    first, latest = late[0] * 1000, max(late) * 1000
    measured(f"through nginx the first of {EVENTS} events comes after {first:.1f} ms, and each within {latest:.1f} ms")
    assert late[0] < PROMPT
    assert all(arrival < following for arrival, following in zip(arrived, sent[1:])), "none waits for the one that follows"
