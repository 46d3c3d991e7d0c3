"""A caller's own mistakes open nothing, and arrive as the provider sent them."""

import pytest
from conftest import FROM_PRIMARY
from provider import Reply

TIMES = 60


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_sixty_of_them_open_nothing_and_arrive_byte_for_byte(serve, dialect, primary, status):
    # Spaces, an escape and a letter beyond ASCII: whoever parsed and wrote it again would change it.
    sent = (
        b'{ "type":"error",  "error" : {"type": "scripted_error","message":"n\\u00e4y, \xc3\xa4 mistake",'
        b' "param":null, "code":null} }\r\n'
    )
    gateway = serve(primary.url)
    client = dialect.client(gateway.url)
    assert dialect.ask(client) == FROM_PRIMARY
    before = gateway.opened()
    primary.answer(Reply(status=status, body=sent))
    for turn in range(TIMES):
        with pytest.raises(dialect.errors[status]) as raised:
            dialect.ask(client, stream=turn % 2 == 1)
        assert raised.value.status_code == status
        assert raised.value.response.content == sent
    assert primary.hits == 1 + TIMES
    assert gateway.opened() == before == 0
    assert gateway.all_closed()
    assert all(breaker["run"] == 0 for breaker in gateway.breakers("primary"))

    primary.answer(Reply(text=FROM_PRIMARY))
    assert dialect.ask(client) == FROM_PRIMARY
