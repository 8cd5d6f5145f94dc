"""The client sends the positions that replies of a cluster report with its next requests."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import pytest

from sagitta import AsyncSagitta, Sagitta, SagittaError

SESSIONS = [
    None,
    "catalogue:3,a:7",
    "catalogue:2, b:1",
    "a:x,:,c:5",
    ",".join(f"log-{i}:{i}" for i in range(40)),
    None,
]
EXPECTED = [
    None,
    None,
    "catalogue:3,a:7",
    "a:7,catalogue:3,b:1",
    "a:7,catalogue:3,b:1,c:5",
    ",".join(f"log-{i}:{i}" for i in range(8, 40)),
]


def server(sent: list[str | None]) -> httpx.MockTransport:
    """Replies with each session in turn, once with an error, and records those of the requests."""

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get("sagitta-session"))
        session = SESSIONS[len(sent) - 1]
        headers = {} if session is None else {"sagitta-session": session}
        if len(sent) == 3:
            return httpx.Response(404, json={"code": "c", "detail": "d"}, headers=headers)
        return httpx.Response(200, json={"count": 1}, headers=headers)

    return httpx.MockTransport(answer)


def test_a_client_sends_the_positions_it_has_seen() -> None:
    sent: list[str | None] = []
    client = Sagitta("http://server", http_client=httpx.Client(transport=server(sent)))
    for i in range(len(SESSIONS)):
        # A copy with other settings shares the session.
        copy = client if i % 2 else client.with_options(timeout=5)
        with pytest.raises(SagittaError) if i == 2 else contextlib.nullcontext():
            copy.collection("docs").count()
    assert sent == EXPECTED


def test_an_asynchronous_client_sends_the_positions_it_has_seen() -> None:
    sent: list[str | None] = []

    async def run() -> None:
        http_client = httpx.AsyncClient(transport=server(sent))
        client = AsyncSagitta("http://server", http_client=http_client)
        for i in range(len(SESSIONS)):
            with pytest.raises(SagittaError) if i == 2 else contextlib.nullcontext():
                await client.collection("docs").count()

    asyncio.run(run())
    assert sent == EXPECTED
