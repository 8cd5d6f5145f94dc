"""The two clients, `Sagitta` and `AsyncSagitta`, which have the same methods."""

from __future__ import annotations

import copy
import dataclasses
import time
from typing import Literal, TypedDict

import httpx
from typing_extensions import Unpack

from sagitta import service, wire
from sagitta.collection import (
    AsyncCollection,
    AsyncDefaultCollection,
    Collection,
    DefaultCollection,
)
from sagitta.core import Core, Settings, key_of, root_of, segment
from sagitta.flow import Awaitable, Blocking, Flow, call
from sagitta.http import AsyncHttpRunner, HttpRunner
from sagitta.retry import Breaker, CircuitBreaker, Retry
from sagitta.service import Group

TIMEOUT = 60.0
"""Seconds. The server's request deadline is 30 s; a reply that takes twice as long is lost."""


class Options(TypedDict, total=False):
    """Settings that a copy of a client may override."""

    api_key: str | None
    timeout: float | None
    deadline: float | None
    retry: Retry


class ClientFlows(Group):
    """The methods that both clients offer directly."""

    @call
    def limits(self) -> Flow[wire.Limits]:
        """Every limit of the service, by name: `top_k_max`, `page_limit_max`, …"""
        return self._core.get("/limits")

    @call
    def principal(self) -> Flow[wire.Principal]:
        """Who the caller is and what its credential permits."""
        return self._core.get("/principal")


class Sagitta(ClientFlows, Blocking):
    """A client for the server at `url`, such as `http://127.0.0.1:8484`. Thread-safe.

    `api_key` is sent as a bearer token, without surrounding white space. `timeout`: seconds without
    a byte after which an attempt fails; None for no limit. `deadline`: seconds for all attempts of
    a call until its reply begins; None for no limit. `http_client`: your own httpx.Client, for
    example with proxies or private CAs, which you close yourself.

    Close the client or use it in a `with` block. Raises `invalid_argument` for an invalid URL or
    key.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float | None = TIMEOUT,
        deadline: float | None = None,
        retry: Retry | None = None,
        circuit_breaker: CircuitBreaker | Literal[False] | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        settings = _settings(url, api_key, timeout, deadline, retry or Retry(), circuit_breaker)
        self._owned = http_client is None
        self._http_client = http_client or httpx.Client()
        self._assign(Core(settings), HttpRunner(self._http_client))

    def _assign(self, core: Core, runner: HttpRunner) -> None:
        super().__init__(core, runner)
        self.collections = service.Collections(core, runner)
        self.aliases = service.Aliases(core, runner)
        self.keys = service.Keys(core, runner)
        self.backups = service.Backups(core, runner)
        self.audit = service.Audit(core, runner)
        self.service = service.Service(core, runner)
        self.default_collection = DefaultCollection(core, runner, "")
        """The server's default collection, if one is configured."""

    def collection(self, id: str) -> Collection:
        """The vectors of a collection. Sends no request."""
        return Collection(self._core, self._runner, f"/collections/{segment(id)}")

    def with_options(self, **options: Unpack[Options]) -> Sagitta:
        """A copy of the client with other settings, as in
        `with_options(deadline=2).collections.list()`.

        It shares the connections, so only the original needs to be closed.
        """
        client = copy.copy(self)
        client._owned = False
        client._assign(_with_options(self._core, options), self._runner)
        return client

    def close(self) -> None:
        if self._owned:
            self._http_client.close()

    def __enter__(self) -> Sagitta:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncSagitta(ClientFlows, Awaitable):
    """Like Sagitta, for asyncio: methods are awaited, and iterators are used with `async for`.

    It may be used on several event loops, each with its own connections. Your own `http_client`
    works on only one of them.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float | None = TIMEOUT,
        deadline: float | None = None,
        retry: Retry | None = None,
        circuit_breaker: CircuitBreaker | Literal[False] | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        settings = _settings(url, api_key, timeout, deadline, retry or Retry(), circuit_breaker)
        self._owned = http_client is None
        self._assign(Core(settings), AsyncHttpRunner(http_client))

    def _assign(self, core: Core, runner: AsyncHttpRunner) -> None:
        super().__init__(core, runner)
        self.collections = service.AsyncCollections(core, runner)
        self.aliases = service.AsyncAliases(core, runner)
        self.keys = service.AsyncKeys(core, runner)
        self.backups = service.AsyncBackups(core, runner)
        self.audit = service.AsyncAudit(core, runner)
        self.service = service.AsyncService(core, runner)
        self.default_collection = AsyncDefaultCollection(core, runner, "")

    def collection(self, id: str) -> AsyncCollection:
        """The vectors of a collection. Sends no request."""
        return AsyncCollection(self._core, self._runner, f"/collections/{segment(id)}")

    def with_options(self, **options: Unpack[Options]) -> AsyncSagitta:
        """A copy of the client with other settings. It shares the connections."""
        client = copy.copy(self)
        client._owned = False
        client._assign(_with_options(self._core, options), self._runner)
        return client

    async def aclose(self) -> None:
        """Closes the connections of this event loop. The next call opens new ones."""
        if self._owned:
            await self._runner.aclose()

    async def __aenter__(self) -> AsyncSagitta:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _settings(
    url: str,
    api_key: str | None,
    timeout: float | None,
    deadline: float | None,
    retry: Retry,
    circuit_breaker: CircuitBreaker | Literal[False] | None,
) -> Settings:
    breaker = None
    if circuit_breaker is not False:
        # By default, a single call cannot open the breaker.
        attempts_max = max(retry.attempts_max, retry.stream_attempts_max)
        failures_max = max(CircuitBreaker().failures_max, 2 * attempts_max)
        limits = circuit_breaker or CircuitBreaker(failures_max=failures_max)
        breaker = Breaker(limits, time.monotonic)
    return Settings(root_of(url), key_of(api_key), timeout, deadline, retry, breaker)


def _with_options(core: Core, options: Options) -> Core:
    if "api_key" in options:
        options = {**options, "api_key": key_of(options["api_key"])}
    return Core(dataclasses.replace(core.settings, **options))
