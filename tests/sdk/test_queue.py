"""A call that waits, as the SDKs see it: 202 where they expect an answer, and the answer where it says that it will be."""

import anthropic
import openai
import pytest
from dialects import OPENAI
from gateway import Gateway, until
from provider import Reply
from wire import MODEL

ASKED = [{"role": "user", "content": "How are things?"}]


@pytest.fixture
def gateway(tmp_path, dialect, primary):
    primary.answer(Reply(status=503))
    config = f"""
        [providers.primary]
        protocol = "{dialect.name}"
        base_url = "{primary.url}{dialect.base}"
        api_key = "key"
        [[routes]]
        model = "*"
        targets = [{{ provider = "primary" }}]
        retries = 0
        on_exhausted = ["queue"]
        [breaker]
        cooldown = "200ms"
        successes_to_close = 1
        """
    gateway = Gateway(tmp_path, config, {"FUSELINE_STATE": "fuseline.db"})
    yield gateway
    assert gateway.stop() == 0, "the gateway ends well"


def queue(dialect, client) -> str:
    """Makes a call that is queued, and gives back where its answer will be."""
    if dialect is OPENAI:
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=ASKED)
    else:
        raw = client.messages.with_raw_response.create(model=MODEL, messages=ASKED, max_tokens=9)
    assert raw.status_code == 202
    return raw.headers["location"]


def test_a_call_that_waits_is_fetched_by_the_sdk_that_made_it(gateway, dialect, primary):
    client = dialect.client(gateway.url)
    place = queue(dialect, client)
    assert client.get(place, cast_to=object)["status"] in ("queued", "sending")
    primary.answer(Reply(text="Late, but good."))
    until(lambda: "status" not in client.get(place, cast_to=object), "the call is sent")
    if dialect is OPENAI:
        answer = client.get(place, cast_to=openai.types.chat.ChatCompletion)
        assert answer.choices[0].message.content == "Late, but good."
    else:
        answer = client.get(place, cast_to=anthropic.types.Message)
        assert answer.content[0].text == "Late, but good."
    other = dialect.client(gateway.url, api_key="another's")
    with pytest.raises(dialect.errors[404]) as refused:
        other.get(place, cast_to=object)
    assert "no queued call of yours" in dialect.refusal(refused.value)["message"]
