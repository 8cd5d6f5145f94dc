"""Methods of the client as flows: generators that yield effects and receive their outcomes.

A flow is written once and does no I/O. http.py runs it, either blocking or on an event loop. The
descriptors below turn it into a method of both the synchronous and the asynchronous client, with
the same types.
"""

from __future__ import annotations

import functools
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass, field
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    overload,
)

T = TypeVar("T")
P = ParamSpec("P")

Chunks: TypeAlias = "bytes | Iterable[bytes] | AsyncIterable[bytes]"


@dataclass(frozen=True)
class Upload:
    """A streamed body."""

    open: Callable[[], Chunks]
    content_type: str
    is_resendable: bool
    """Whether `open` returns the same bytes when called again, which makes a retry possible."""


@dataclass(frozen=True)
class Request:
    """An API request as a value. It does not show whether it was retried."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    """Path below `/v1`, already encoded."""
    is_idempotent: bool
    """Whether the request may be sent again if it is unknown whether it was executed. Replies 429
    and 503 are always retried, because the server has executed nothing.
    """
    query: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the query string. None is left out, and objects are sent as JSON."""
    body: object = None
    """Sent as JSON."""
    content: bytes | None = None
    """JSON text, in place of `body`."""
    upload: Upload | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_operational: bool = False
    """Whether the path is at the root, as for probes, not below `/v1`."""
    also_status: int | None = None
    """An additional status that counts as success."""
    is_unlimited: bool = False
    """Whether the reply may take any time, unless the client has a deadline."""


@dataclass(frozen=True)
class Reply:
    """A reply, whose body is complete unless it was sent with `is_streamed`."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    source: object = None
    """The source that `Read` reads from."""


@dataclass(frozen=True)
class Send:
    """Sends one attempt of a request. Its outcome is a Reply. Raises `network_error`, `timeout`."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | Upload | None
    timeout: float | None
    """Seconds without a byte."""
    is_streamed: bool


@dataclass(frozen=True)
class Read:
    """Reads the next bytes of a streamed reply, empty at its end. Raises like `Send`."""

    reply: Reply


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class Emit(Generic[T]):
    """An item of an iteration."""

    item: T


@dataclass(frozen=True)
class Head:
    """What is known about a stream before its first item."""

    sequence: int | None = None
    with_sequence: int | None = None
    schema: Any = None


Effect: TypeAlias = "Send | Read | Sleep"
Flow: TypeAlias = Generator[Effect, Any, T]
ItemFlow: TypeAlias = Generator["Effect | Emit[T]", Any, None]
StreamFlow: TypeAlias = Generator["Effect | Emit[Head] | Emit[T]", Any, None]


class SourceFailed(Exception):  # noqa: N818
    """The source of an upload raised `error`, which goes to the caller and is not retried."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class Runner(Protocol):
    """Runs flows by blocking."""

    def run(self, flow: Flow[T]) -> T: ...
    def iterate(self, flow: Generator[Any, Any, None]) -> Generator[Any, None, None]: ...


class AsyncRunner(Protocol):
    """Runs flows on an event loop."""

    async def run(self, flow: Flow[T]) -> T: ...
    def iterate(self, flow: Generator[Any, Any, None]) -> AsyncIterator[Any]: ...


class Stream(Generic[T]):
    """The items of a reply, which can be read once. Leaving the `with` block aborts the request."""

    def __init__(self, head: Head, items: Generator[T, None, None]) -> None:
        self._items = items
        self.sequence = head.sequence
        """The sequence of the snapshot, if the server sends it before the stream."""
        self.with_sequence = head.with_sequence
        """For joins, the sequence of the searched collection."""
        self.schema = head.schema
        """For record batches, their pyarrow.Schema."""

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return next(self._items)

    def to_arrow(self) -> Any:
        """Record batches: all of them as a pyarrow.Table."""
        return _table_of(self.schema, list(self))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Lets pyarrow, polars, DuckDB and others read record batches as they arrive."""
        import pyarrow

        reader = pyarrow.RecordBatchReader.from_batches(self.schema, self)
        return reader.__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        self._items.close()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncStream(Generic[T]):
    """Like Stream, for `async for` and `async with`."""

    def __init__(self, head: Head, items: AsyncIterator[T]) -> None:
        self._items = items
        self.sequence = head.sequence
        self.with_sequence = head.with_sequence
        self.schema = head.schema

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        return await self._items.__anext__()

    async def to_arrow(self) -> Any:
        """Record batches: all of them as a pyarrow.Table."""
        return _table_of(self.schema, [batch async for batch in self])

    async def aclose(self) -> None:
        await self._items.aclose()  # type: ignore[attr-defined]

    async def __aenter__(self) -> AsyncStream[T]:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _table_of(schema: Any, batches: list[Any]) -> Any:
    import pyarrow

    return pyarrow.Table.from_batches(batches, schema)


class Blocking:
    """Marks the synchronous form of a class with flows."""

    _runner: Runner


class Awaitable:
    """Marks the asynchronous form of a class with flows."""

    _runner: AsyncRunner


class _Descriptor(Generic[P, T]):
    """Preserves the name, the documentation and the signature of the flow."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Generator[Any, Any, Any]]) -> None:
        self._flow = flow
        functools.update_wrapper(self, flow)  # type: ignore[arg-type]

    def _bind(self, instance: object, start: Callable[[Any], Any]) -> Any:
        bound = self._flow.__get__(instance)

        @functools.wraps(bound)
        def method(*args: Any, **kwargs: Any) -> Any:
            return start(bound(*args, **kwargs))

        return method


class call(_Descriptor[P, T]):  # noqa: N801
    """A method with one result: `T`, or an awaitable of it."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        super().__init__(flow)

    @overload
    def __get__(self, instance: None, owner: type) -> call[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaitable, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else self._bind(instance, instance._runner.run)


class items(_Descriptor[P, T]):  # noqa: N801
    """A method that returns an iterator of `T`, which sends requests when it is advanced."""

    def __init__(self, flow: Callable[Concatenate[Any, P], ItemFlow[T]]) -> None:
        super().__init__(flow)

    @overload
    def __get__(self, instance: None, owner: type) -> items[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, instance: Awaitable, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else self._bind(instance, instance._runner.iterate)


class stream(_Descriptor[P, T]):  # noqa: N801
    """A method that sends a request and returns a Stream of `T`. Its flow emits the Head first."""

    def __init__(self, flow: Callable[Concatenate[Any, P], StreamFlow[T]]) -> None:
        super().__init__(flow)

    @overload
    def __get__(self, instance: None, owner: type) -> stream[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, Stream[T]]: ...
    @overload
    def __get__(
        self, instance: Awaitable, owner: type
    ) -> Callable[P, Coroutine[Any, Any, AsyncStream[T]]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        if isinstance(instance, Blocking):
            return self._bind(instance, functools.partial(_begin, instance._runner))
        return self._bind(instance, functools.partial(_begin_async, instance._runner))


def _begin(runner: Runner, flow: Generator[Any, Any, None]) -> Stream[Any]:
    items = runner.iterate(flow)
    return Stream(next(items), items)


async def _begin_async(runner: AsyncRunner, flow: Generator[Any, Any, None]) -> AsyncStream[Any]:
    items = runner.iterate(flow)
    return AsyncStream(await items.__anext__(), items)
