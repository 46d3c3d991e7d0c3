"""What every SDK test starts from: a dialect, two providers, and a gateway before them."""

import socket

import pytest
from callers import Node
from dialects import ANTHROPIC, OPENAI
from gateway import Gateway
from provider import Provider, Reply

FROM_PRIMARY = "From the primary."
FROM_SPARE = "From the spare."


@pytest.fixture(params=[OPENAI, ANTHROPIC], ids=lambda dialect: dialect.name)
def dialect(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "streamed"])
def stream(request):
    return request.param


@pytest.fixture
def primary():
    provider = Provider(Reply(text=FROM_PRIMARY))
    yield provider
    provider.close()


@pytest.fixture
def spare():
    provider = Provider(Reply(text=FROM_SPARE))
    yield provider
    provider.close()


@pytest.fixture
def closed_port():
    """The URL of a port that refuses connections and that nobody else can take meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def launch(tmp_path):
    """Starts a gateway with a configuration, and sees to it that it ends well."""
    started = []

    def start(config: str, environment: dict[str, str] | None = None) -> Gateway:
        gateway = Gateway(tmp_path, config, environment)
        started.append(gateway)
        return gateway

    yield start
    for gateway in started:
        assert gateway.stop() == 0, "the gateway ends well"


@pytest.fixture
def serve(launch, dialect):
    """Starts a gateway whose one route leads to these URLs in order: `primary`, then `spare`."""

    def start(*urls: str, breaker: str = "", timeouts: str = "", route: str = "retries = 0", top: str = "") -> Gateway:
        names = ["primary", "spare"][: len(urls)]
        providers = "".join(
            f"""
            [providers.{name}]
            protocol = "{dialect.name}"
            base_url = "{url}{dialect.base}"
            api_key = "{name}-key"
            """
            for name, url in zip(names, urls)
        )
        targets = ", ".join(f'{{ provider = "{name}" }}' for name in names)
        return launch(
            f"""
            {top}
            {providers}
            [[routes]]
            model = "*"
            targets = [{targets}]
            {route}

            [timeouts]
            {timeouts}

            [breaker]
            trip = [{{ rule = "consecutive", failures = 5 }}]
            jitter = 0.0
            {breaker}
            """
        )

    return start


@pytest.fixture
def serve_two(launch, primary, spare):
    """Starts a gateway before the two providers of OpenAI's dialect, with everything at its default but what is given."""

    def start(breaker: str = "", route: str = "", timeouts: str = "", spare_model: str = "spare-model") -> Gateway:
        return launch(
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
            model = "*"
            targets = [{{ provider = "primary" }}, {{ provider = "spare", model = "{spare_model}" }}]
            {route}

            [timeouts]
            {timeouts}

            [breaker]
            {breaker}
            """
        )

    return start


@pytest.fixture(scope="session")
def node():
    process = Node()
    yield process
    process.close()


@pytest.fixture
def measured(record_property):
    """Takes a line to be shown below the results."""
    return lambda line: record_property("measured", line)


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.getreports("passed"):
        for name, line in report.user_properties:
            terminalreporter.write_line(f"{name}: {line}")


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """What a page's snippets run on."""
    from snippets import KEYS, Stage

    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    stage = Stage(tmp_path)
    yield stage
    stage.close()
