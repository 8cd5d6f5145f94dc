"""The only I/O of the client: runs flows over httpx, blocking or on an event loop.

Timeouts and broken connections become SagittaError. Errors of the source of an upload stay as they
are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
)
from contextlib import AsyncExitStack, ExitStack
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpx

from sagitta.errors import SagittaError, invalid_argument
from sagitta.flow import Emit, Flow, Read, Reply, Send, Sleep, SourceFailed, Upload

T = TypeVar("T")
Step = Callable[[], Any]


class HttpRunner:
    """Runs flows by blocking the calling thread."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def run(self, flow: Flow[T]) -> T:
        with ExitStack() as resources:
            resources.callback(flow.close)
            step = _start(flow)
            while True:
                try:
                    effect = step()
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
                step = self._perform(flow, effect, resources)

    def iterate(self, flow: Generator[Any, Any, None]) -> Generator[Any, None, None]:
        with ExitStack() as resources:
            resources.callback(flow.close)
            step = _start(flow)
            while True:
                try:
                    effect = step()
                except StopIteration:
                    return
                if isinstance(effect, Emit):
                    yield effect.item
                    step = _start(flow)
                else:
                    step = self._perform(flow, effect, resources)

    def _perform(self, flow: Generator[Any, Any, Any], effect: Any, resources: ExitStack) -> Step:
        """Executes an effect and returns the next step of the flow, for its outcome or error."""
        try:
            if isinstance(effect, Sleep):
                time.sleep(effect.seconds)
                outcome: object = None
            elif isinstance(effect, Read):
                outcome = _read(effect.reply)
            else:
                outcome = self._send(effect, resources)
        except (SagittaError, SourceFailed) as error:
            return _throw(flow, error)
        return lambda: flow.send(outcome)

    def _send(self, send: Send, resources: ExitStack) -> Reply:
        source = _Source(send.content) if isinstance(send.content, Upload) else None
        try:
            request = _build(self._client, send, source.read() if source else send.content)
            response = self._client.send(request, stream=True)
            if send.is_streamed and response.is_success:
                resources.callback(response.close)
                return _reply_of(response, b"", (response.iter_bytes(), send.url))
            try:
                return _reply_of(response, response.read())
            except httpx.RequestError as error:
                raise _error_of(error, send.url, is_begun=True) from _cause_of(error)
            finally:
                response.close()
        except httpx.RequestError as error:
            raise _failure(source) or _error_of(error, send.url) from _cause_of(error)
        except Exception:
            if source is not None and source.failure is not None:
                raise SourceFailed(source.failure) from None
            raise


class AsyncHttpRunner:
    """Runs flows on the event loop of the caller.

    A connection works only on the event loop that opened it. Each loop has its own connections, so
    that a program may call asyncio.run several times; those of `client` work on only one loop.
    """

    def __init__(self, client: httpx.AsyncClient | None) -> None:
        self._given = client
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    async def aclose(self) -> None:
        """Closes the connections of this event loop, but not those of a client passed in."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            # Iterates over a copy of the keys, because other threads may run loops, too.
            for other in list(self._clients):
                if other.is_closed():
                    self._clients.pop(other, None)
            client = self._clients[loop] = httpx.AsyncClient()
        return client

    async def run(self, flow: Flow[T]) -> T:
        async with AsyncExitStack() as resources:
            resources.callback(flow.close)
            step = _start(flow)
            while True:
                try:
                    effect = step()
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
                step = await self._perform(flow, effect, resources)

    async def iterate(self, flow: Generator[Any, Any, None]) -> AsyncGenerator[Any, None]:
        async with AsyncExitStack() as resources:
            resources.callback(flow.close)
            step = _start(flow)
            while True:
                try:
                    effect = step()
                except StopIteration:
                    return
                if isinstance(effect, Emit):
                    yield effect.item
                    step = _start(flow)
                else:
                    step = await self._perform(flow, effect, resources)

    async def _perform(
        self, flow: Generator[Any, Any, Any], effect: Any, resources: AsyncExitStack
    ) -> Step:
        try:
            if isinstance(effect, Sleep):
                await anyio.sleep(effect.seconds)
                outcome: object = None
            elif isinstance(effect, Read):
                outcome = await _read_async(effect.reply)
            else:
                outcome = await self._send(effect, resources)
        except (SagittaError, SourceFailed) as error:
            return _throw(flow, error)
        return lambda: flow.send(outcome)

    async def _send(self, send: Send, resources: AsyncExitStack) -> Reply:
        client = self._client()
        source = _Source(send.content) if isinstance(send.content, Upload) else None
        try:
            request = _build(client, send, source.read_async() if source else send.content)
            response = await client.send(request, stream=True)
            if send.is_streamed and response.is_success:
                resources.push_async_callback(response.aclose)
                return _reply_of(response, b"", (response.aiter_bytes(), send.url))
            try:
                return _reply_of(response, await response.aread())
            except httpx.RequestError as error:
                raise _error_of(error, send.url, is_begun=True) from _cause_of(error)
            finally:
                await response.aclose()
        except httpx.RequestError as error:
            raise _failure(source) or _error_of(error, send.url) from _cause_of(error)
        except Exception:
            if source is not None and source.failure is not None:
                raise SourceFailed(source.failure) from None
            raise


class _Source:
    """Reads the source of an upload and remembers the error it raises."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self.failure: Exception | None = None

    def read(self) -> Iterator[bytes]:
        try:
            chunks = _chunks_of(self._upload)
            if not isinstance(chunks, Iterable):
                raise invalid_argument(
                    "the source is an asynchronous iterator, which only AsyncSagitta can read"
                )
            yield from map(_checked, filter(None, chunks))
        except Exception as error:
            self.failure = error
            raise

    async def read_async(self) -> AsyncIterator[bytes]:
        try:
            chunks = _chunks_of(self._upload)
            if isinstance(chunks, AsyncIterable):
                async for chunk in chunks:
                    if chunk:
                        yield _checked(chunk)
                return
            # Runs in a thread, because the source may read files or encode large batches.
            iterator = iter(chunks)
            while (part := await anyio.to_thread.run_sync(next, iterator, None)) is not None:
                if part:
                    yield _checked(part)
        except Exception as error:
            self.failure = error
            raise


def _chunks_of(upload: Upload) -> Iterable[bytes] | AsyncIterable[bytes]:
    source: object = upload.open()
    # Iterating over bytes would yield numbers.
    if isinstance(source, bytes):
        return [source]
    if isinstance(source, (Iterable, AsyncIterable)) and not isinstance(source, str):
        return source
    raise _not_bytes(source)


def _checked(chunk: bytes) -> bytes:
    if not isinstance(chunk, (bytes, bytearray, memoryview)):
        raise _not_bytes(chunk)
    return bytes(chunk)


def _not_bytes(found: object) -> SagittaError:
    return invalid_argument(
        'expected bytes, an iterator of bytes or a file that is opened with the mode "rb", found '
        f"{type(found).__name__}"
    )


def _failure(source: _Source | None) -> SourceFailed | None:
    return SourceFailed(source.failure) if source and source.failure else None


def _start(flow: Generator[Any, Any, Any]) -> Step:
    return lambda: flow.send(None)


def _throw(flow: Generator[Any, Any, Any], error: Exception) -> Step:
    return lambda: flow.throw(error)


def _build(client: httpx.Client | httpx.AsyncClient, send: Send, content: Any) -> httpx.Request:
    """Raises `invalid_argument` for a request that cannot be sent."""
    if client.is_closed:
        raise invalid_argument("the client is closed; create a new one")
    try:
        return client.build_request(
            send.method, send.url, headers=dict(send.headers), content=content, timeout=send.timeout
        )
    except httpx.InvalidURL as error:
        raise invalid_argument(
            f"the URL of {len(send.url)} characters that begins with {send.url[:80]!r} cannot be "
            f"sent: {error}; the filter of an export or a schema is a part of the URL"
        ) from error


def _reply_of(response: httpx.Response, content: bytes, source: object = None) -> Reply:
    return Reply(response.status_code, response.headers, content, source)


def _read(reply: Reply) -> bytes:
    chunks, url = _source_of(reply)
    try:
        return next(chunks, b"")
    except httpx.RequestError as error:
        raise _error_of(error, url, is_begun=True) from _cause_of(error)


async def _read_async(reply: Reply) -> bytes:
    chunks, url = _source_of(reply)
    try:
        return await anext(chunks, b"")
    except httpx.RequestError as error:
        raise _error_of(error, url, is_begun=True) from _cause_of(error)


def _source_of(reply: Reply) -> tuple[Any, str]:
    return reply.source  # type: ignore[return-value]


def _error_of(error: httpx.RequestError, url: str, is_begun: bool = False) -> SagittaError:
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return SagittaError("timeout", f"no data from {url} in time ({reason})", retryable=True)
    if isinstance(error, httpx.LocalProtocolError):
        return invalid_argument(
            f"the request to {url} cannot be sent: it is not valid HTTP; check the headers of your "
            "http_client"
        )
    if isinstance(error, httpx.UnsupportedProtocol):
        return invalid_argument(f"the request to {url} cannot be sent: {reason}")
    if isinstance(error, (httpx.DecodingError, httpx.TooManyRedirects)):
        return SagittaError("unexpected_reply", f"the reply from {url} cannot be read: {reason}")
    detail = f"the reply from {url} was cut off" if is_begun else f"cannot reach {url}"
    hint = "" if is_begun else _hint_on(reason, url)
    return SagittaError("network_error", f"{detail}: {reason}{hint}", retryable=True)


def _hint_on(reason: str, url: str) -> str:
    """Advice for when only one side uses TLS or the certificate is not accepted."""
    if "certificate is not valid for" in reason:
        return "; use a name or an address of the certificate in the URL"
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return "; if the certificate is your own, name its authority: SSL_CERT_FILE=ca.pem"
    # The names in OpenSSL before and since 3.2.
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER_FAILURE" in reason:
        return "; the server speaks plain HTTP: use http:// in the URL"
    if "Server disconnected" in reason and url.startswith("http:"):
        return "; if the server uses TLS, use https:// in the URL"
    return ""


def _cause_of(error: httpx.RequestError) -> httpx.RequestError | None:
    """The cause to print with an error; None if it would quote headers, which include the key."""
    return None if isinstance(error, httpx.LocalProtocolError) else error
