"""A server that all tests share. Each test uses its own collections."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import hypothesis
import pytest
from servers import COMMAND, Server

import sagitta

_numbers = itertools.count()

# By default, an example that takes 200 ms fails, which happens on a busy machine.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if not COMMAND.exists():
        pytest.exit(f"{COMMAND} is missing; run `npm run build` first", 1)
    one = Server()
    yield one
    one.close()


@pytest.fixture
def client(server: Server) -> Iterator[sagitta.Sagitta]:
    with sagitta.Sagitta(server.url) as one:
        yield one


@pytest.fixture
async def async_client(server: Server) -> AsyncIterator[sagitta.AsyncSagitta]:
    async with sagitta.AsyncSagitta(server.url) as one:
        yield one


@pytest.fixture
def name() -> str:
    """An id that no other test has."""
    return f"test-{next(_numbers)}"


@pytest.fixture
def vectors(client: sagitta.Sagitta, name: str) -> sagitta.Collection:
    """An empty collection of three dimensions, compared by the dot product."""
    client.collections.create(id=name, dimension=3, metric="dot")
    return client.collection(name)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
