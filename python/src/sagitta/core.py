"""Sends API requests as flows: addresses, credentials, retries, and JSON in replies.

It does not know the routes. Each client has a Core, and each copy one with its own settings.
"""

from __future__ import annotations

import json
import random
import re
import time
import urllib.parse
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sagitta.errors import (
    SagittaError,
    error_of_problem,
    error_of_reply,
    invalid_argument,
    is_problem,
)
from sagitta.flow import Effect, Emit, Flow, Read, Reply, Request, Send, Sleep, SourceFailed
from sagitta.retry import Breaker, Retry, backoff, is_retryable, is_server_failure, retry_after_of
from sagitta.session import Session
from sagitta.values import encode_json
from sagitta.warning import warn_of_body, warn_of_head

T = TypeVar("T")

ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"
MEDIA_TYPES = {"arrow": ARROW, "ndjson": NDJSON, "parquet": "application/vnd.apache.parquet"}


@dataclass(frozen=True)
class Settings:
    """Settings that all requests of a client share."""

    root: str
    """The address of the server without `/v1`."""
    api_key: str | None = field(repr=False)
    timeout: float | None
    """Seconds without a byte after which an attempt fails; None for no limit."""
    deadline: float | None
    """Seconds for all attempts of a call until its reply begins; None for no limit."""
    retry: Retry
    breaker: Breaker | None
    random: Callable[[], float] = field(default=random.random)
    """Random numbers in [0, 1) for the jitter of retries."""
    now: Callable[[], float] = field(default=time.monotonic)
    """A monotonic clock in seconds."""
    session: Session = field(default_factory=Session)


def root_of(url: str) -> str:
    """The address without `/v1`. Raises `invalid_argument` unless it is an HTTP URL."""
    if "@" in str(url):
        # A password would appear in messages, and httpx would send it in place of the key.
        raise invalid_argument(
            "expected a URL without user name and password, found one with @; pass an api_key, or "
            "an http_client with auth"
        )
    try:
        parts = urllib.parse.urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_http = False
    if not is_http or "?" in url or "#" in url:
        raise invalid_argument(f'expected a URL such as http://127.0.0.1:8484, found "{url}"')
    return url.rstrip("/").removesuffix("/v1")


def key_of(api_key: str | None) -> str | None:
    """The key without surrounding white space, such as the line feed at the end of a file."""
    if api_key is None:
        return None
    return header_value("api_key", api_key.strip() if isinstance(api_key, str) else api_key)


def header_value(name: str, value: object) -> str:
    """Raises `invalid_argument` for a value that a header cannot contain. The message does not
    quote the value, which may be secret.
    """
    if not isinstance(value, str):
        found = f"a value of type {type(value).__name__}"
    elif value == "":
        found = "an empty text"
    elif unfit := re.search(r"[^ -~]|^ | $", value):
        found = f"U+{ord(unfit[0]):04X} at position {unfit.start() + 1} of {len(value)}"
    else:
        return value
    raise invalid_argument(
        f"{name}: expected printable ASCII characters, without spaces at the ends, found {found}"
    )


def segment(text: str) -> str:
    """An id as a path segment. Rejects `.` and `..`, which URLs resolve even when encoded."""
    if text in ("", ".", ".."):
        raise invalid_argument(
            f'the id "{text}" cannot be part of a URL; use a method that sends it in a body '
            "(upsert, fetch, delete_many)"
        )
    try:
        return urllib.parse.quote(text, safe="")
    except UnicodeEncodeError as error:
        raise invalid_argument(f"the id {text!r} is not text that can be sent: {error}") from error


class Core:
    """The requests of a client. All methods raise SagittaError."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def send(self, request: Request) -> Flow[Reply]:
        """Sends a request and returns the complete reply."""
        return self._attempts(request, is_streamed=False)

    def open(self, request: Request) -> Flow[Reply]:
        """Sends a request and returns a reply whose body is still to be read with `Read`. Retries
        only until the reply begins.
        """
        return self._attempts(request, is_streamed=True)

    def json(self, request: Request) -> Flow[Any]:
        """Sends a request and returns the reply as JSON."""
        reply = yield from self.send(request)
        body = parse_json(reply)
        warn_of_body(request, body)
        return body

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Flow[Any]:
        return self.json(Request("GET", path, is_idempotent=True, query=query or {}))

    def read(self, path: str, body: object) -> Flow[Any]:
        """A POST that may safely be sent twice."""
        return self.json(Request("POST", path, is_idempotent=True, body=body))

    def write(
        self,
        path: str,
        body: object,
        idempotency_key: str | None,
        query: Mapping[str, Any] | None = None,
        *,
        content: bytes | None = None,
        is_unlimited: bool = False,
    ) -> Flow[Any]:
        """A POST with an idempotency key: it takes effect once, however often it is sent."""
        headers = {"idempotency-key": idempotency_key or str(uuid.uuid4())}
        request = Request(
            "POST",
            path,
            is_idempotent=True,
            body=body,
            content=content,
            headers=headers,
            query=query or {},
            is_unlimited=is_unlimited,
        )
        return self.json(request)

    def _attempts(self, request: Request, is_streamed: bool) -> Flow[Reply]:
        settings = self.settings
        url = self._url(request)
        headers, content = self._encode(request)
        attempts_max = settings.retry.attempts_max
        if request.upload is not None:
            is_resendable = request.upload.is_resendable
            attempts_max = settings.retry.stream_attempts_max if is_resendable else 1
        ends_at = None if settings.deadline is None else settings.now() + settings.deadline
        last: SagittaError | None = None
        committed_count = 0
        attempt = 0
        while True:
            attempt += 1
            timeout = self._timeout(request, ends_at, last)
            sent = {**settings.session.headers(), **headers}
            send = Send(request.method, url, sent, content, timeout, is_streamed)
            try:
                reply = yield from self._attempt(request, send)
                warn_of_head(request, reply)
                return reply
            except SourceFailed as failure:
                raise failure.error from None
            except SagittaError as error:
                if error.code == "circuit_open":
                    # The last error of this call is more informative than `circuit_open`.
                    raise last or error from None
                # A later attempt may end without knowing what an earlier one has made durable.
                committed_count = max(committed_count, error.committed_count_at_least)
                error.committed_count_at_least = committed_count
                last = error
            if attempt >= attempts_max or not is_retryable(last, request.is_idempotent):
                raise last
            wait = backoff(attempt, last, settings.retry, settings.random)
            if ends_at is not None and settings.now() + wait >= ends_at:
                raise last
            yield Sleep(wait)

    def _attempt(self, request: Request, send: Send) -> Flow[Reply]:
        """Makes one attempt and reports its outcome to the circuit breaker. Raises for error
        replies, too.
        """
        breaker = self.settings.breaker
        token = breaker.admit() if breaker else None
        is_failure: bool | None = None
        try:
            reply: Reply = yield send
            self.settings.session.note(reply.headers)
            if 200 <= reply.status < 300 or reply.status == request.also_status:
                is_failure = False
                return reply
            retry_after = retry_after_of(reply.headers.get("retry-after"), time.time())
            raise error_of_reply(reply.status, reply.content, retry_after)
        except SagittaError as error:
            # A request that was not sent says nothing about the server.
            if error.code != "invalid_argument":
                is_failure = is_server_failure(error)
            raise
        finally:
            if breaker:
                breaker.settle(token, is_failure)

    def _timeout(
        self, request: Request, ends_at: float | None, last: SagittaError | None
    ) -> float | None:
        """The timeout of the next attempt in seconds. Raises if the deadline has passed."""
        timeout = None if request.is_unlimited else self.settings.timeout
        if ends_at is None:
            return timeout
        left = ends_at - self.settings.now()
        if left <= 0:
            detail = f"the deadline of {self.settings.deadline} s has passed"
            raise last or SagittaError("timeout", detail, retryable=True)
        return left if timeout is None else min(timeout, left)

    def _url(self, request: Request) -> str:
        root = self.settings.root
        query = [
            (name, value if isinstance(value, str) else encode_json(value, f"/{name}").decode())
            for name, value in request.query.items()
            if value is not None
        ]
        path = request.path if request.is_operational else f"/v1{request.path}"
        return root + path + (f"?{urllib.parse.urlencode(query)}" if query else "")

    def _encode(self, request: Request) -> tuple[dict[str, str], Any]:
        headers = {"accept": "application/json"}
        for name, value in request.headers.items():
            headers[name] = header_value(name, value)
        if self.settings.api_key is not None:
            headers["authorization"] = f"Bearer {self.settings.api_key}"
        if request.upload is not None:
            headers["content-type"] = request.upload.content_type
            return headers, request.upload
        content = request.content
        if request.body is not None:
            content = encode_json(request.body)
        if content is not None:
            headers.setdefault("content-type", "application/json")
        return headers, content


def parse_json(reply: Reply) -> Any:
    try:
        return json.loads(reply.content)
    except ValueError:
        start = reply.content[:200].decode(errors="replace").strip()
        detail = f'expected JSON, found "{start}"'
        raise SagittaError("unexpected_reply", detail, status=reply.status) from None


def pages(
    first: Mapping[str, Any], fetch: Callable[[Mapping[str, Any]], Flow[T]]
) -> Generator[Effect | Emit[T], Any, None]:
    """All pages: the first by the given request, the others by cursor alone."""
    request: Mapping[str, Any] = first
    while True:
        page: Any = yield from fetch(request)
        yield Emit(page)
        cursor = page.get("next_cursor")
        if cursor is None:
            return
        request = {"cursor": cursor}


def members(
    of_pages: Generator[Effect | Emit[Any], Any, None], name: str
) -> Generator[Effect | Emit[Any], Any, None]:
    """The members of pages, one at a time."""
    outcome: Any = None
    failure: BaseException | None = None
    while True:
        try:
            effect = of_pages.throw(failure) if failure else of_pages.send(outcome)
        except StopIteration:
            return
        failure = outcome = None
        if isinstance(effect, Emit):
            for item in effect.item[name]:
                yield Emit(item)
            continue
        try:
            outcome = yield effect
        except Exception as error:
            failure = error


def chunks_of(reply: Reply) -> Generator[Effect | Emit[bytes], Any, None]:
    """The bytes of a streamed reply."""
    while chunk := (yield Read(reply)):
        yield Emit(chunk)


def lines_of(reply: Reply) -> Generator[Effect | Emit[Any], Any, None]:
    """The rows of NDJSON. Raises the error in the last line, or `unexpected_reply`."""
    rest: list[bytes] = []
    while chunk := (yield Read(reply)):
        *lines, last = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*rest, lines[0]])
            rest = []
        rest.append(last)
        for row in rows_of(lines):
            yield Emit(row)
    for row in rows_of([b"".join(rest)]):
        yield Emit(row)


def rows_of(lines: list[bytes]) -> Iterator[Any]:
    """Parses lines of JSON and skips empty ones."""
    for line in lines:
        if not line:
            continue
        try:
            row = json.loads(line)
        except ValueError:
            start = line[:200].decode(errors="replace")
            detail = f'expected a line of JSON, found "{start}"'
            raise SagittaError("unexpected_reply", detail) from None
        problem = row.get("error") if isinstance(row, dict) else None
        if problem is not None and is_problem(problem):
            raise error_of_problem(problem)
        yield row


def sequence_of(reply: Reply, name: str = "sagitta-sequence") -> int | None:
    text = reply.headers.get(name)
    return None if text is None else int(text)
