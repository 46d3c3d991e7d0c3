"""The two SDKs, called the same way."""

from dataclasses import dataclass
from types import ModuleType

import anthropic
import openai
from wire import MODEL

_MESSAGES = [{"role": "user", "content": "How are things?"}]


@dataclass(frozen=True)
class Dialect:
    """One SDK. `errors` are the classes it raises by status."""

    name: str
    sdk: ModuleType
    errors: dict[int, type[Exception]]
    base: str

    def client(self, url: str, **options):
        """A client of the server at this URL; it retries only where asked to."""
        maker = getattr(self.sdk, "OpenAI" if self.sdk is openai else "Anthropic")
        return maker(**{"base_url": url + self.base, "api_key": "caller-key", "max_retries": 0, **options})

    def start(self, client, *, stream: bool):
        """One call: the parsed answer, or the open stream."""
        if self.sdk is openai:
            return client.chat.completions.create(model=MODEL, messages=_MESSAGES, stream=stream)
        return client.messages.create(model=MODEL, messages=_MESSAGES, max_tokens=64, stream=stream)

    def ask(self, client, *, stream: bool = False) -> str:
        """One call, read to its end: the text of the answer."""
        answer = self.start(client, stream=stream)
        if stream:
            with answer:
                return "".join(self._text(event) for event in answer)
        if self.sdk is openai:
            return answer.choices[0].message.content
        return answer.content[0].text

    def _text(self, event) -> str:
        if self.sdk is openai:
            return (event.choices[0].delta.content or "") if event.choices else ""
        return event.delta.text if event.type == "content_block_delta" else ""

    def refusal(self, error) -> dict:
        """The inner error object of an answer, after its envelope was checked."""
        envelope = error.response.json()
        if self.sdk is openai:
            assert envelope.keys() == {"error"}
            assert envelope["error"].keys() >= {"message", "type", "param", "code"}
        else:
            assert envelope["type"] == "error"
            assert envelope["error"].keys() >= {"type", "message"}
        return envelope["error"]


OPENAI = Dialect(
    name="openai",
    sdk=openai,
    base="/v1",
    errors={
        400: openai.BadRequestError,
        401: openai.AuthenticationError,
        403: openai.PermissionDeniedError,
        404: openai.NotFoundError,
        413: openai.APIStatusError,
        422: openai.UnprocessableEntityError,
        503: openai.InternalServerError,
    },
)
ANTHROPIC = Dialect(
    name="anthropic",
    sdk=anthropic,
    base="",
    errors={
        400: anthropic.BadRequestError,
        401: anthropic.AuthenticationError,
        403: anthropic.PermissionDeniedError,
        404: anthropic.NotFoundError,
        413: anthropic.ContentTooLargeError,
        422: anthropic.UnprocessableEntityError,
        503: anthropic.InternalServerError,
    },
)
