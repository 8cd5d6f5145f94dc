"""Which requests are sent again, how long the client waits, and when it gives up."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagitta.http
from sagitta import CircuitBreaker, Retry, Sagitta, SagittaError
from sagitta.retry import Breaker, backoff, retry_after_of

OK = httpx.Response(200, json={"count": 1, "deleted_count": 1, "sequence": 1})


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "detail": "d"}, headers=headers)


BUSY = problem(503, "overloaded")
LIMITED = problem(429, "rate_limited", **{"retry-after": "2"})
BROKEN = problem(500, "internal")
FULL = problem(507, "storage_full")
GATEWAY = httpx.Response(503, text="<html>")
LOST = httpx.ReadError("reset")


class Script:
    """Answers requests with the given replies and records the requests and the waits between."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *replies: object, **options: Any) -> None:
        self._replies = list(replies)
        self.keys: list[str | None] = []
        self.waits: list[float] = []
        self.timeouts: list[float | None] = []
        self.now = 0.0
        monkeypatch.setattr(sagitta.http.time, "sleep", self._sleep)
        http_client = httpx.Client(transport=httpx.MockTransport(self._answer))
        self.client = Sagitta("http://server", http_client=http_client, **options)
        settings = dataclasses.replace(
            self.client._core.settings, random=lambda: 1.0, now=lambda: self.now
        )
        self.client._core.settings = settings

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers.get("idempotency-key"))
        self.timeouts.append(request.extensions["timeout"]["read"])
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


READ: Callable[[Sagitta], Any] = lambda client: client.collection("a").count()  # noqa: E731
WRITE: Callable[[Sagitta], Any] = lambda client: client.collection("a").delete_many(all=True)  # noqa: E731
ONCE: Callable[[Sagitta], Any] = lambda client: client.collections.delete("a")  # noqa: E731
CHECKED: Callable[[Sagitta], Any] = lambda client: client.collection("a").patch("v", if_sequence=1)  # noqa: E731


def test_a_bulk_stream_is_sent_again_without_an_idempotency_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Script(monkeypatch, LOST, OK)
    script.client.collection("a").write_all([{"id": "v", "values": [1]}], bulk=True)
    assert script.keys == [None, None]


@pytest.mark.parametrize("send", [READ, WRITE, ONCE, CHECKED])
@pytest.mark.parametrize("reply", [BUSY, LIMITED])
def test_a_request_that_was_not_executed_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, send: Callable[[Sagitta], Any], reply: object
) -> None:
    script = Script(monkeypatch, reply, OK)
    send(script.client)
    assert script.waits == [2.0 if reply is LIMITED else 0.1]


@pytest.mark.parametrize("reply", [LOST, httpx.ReadTimeout("slow"), BROKEN, GATEWAY])
def test_only_safe_requests_are_sent_again_after_a_lost_reply(
    monkeypatch: pytest.MonkeyPatch, reply: object
) -> None:
    for send in (READ, WRITE):
        script = Script(monkeypatch, reply, OK)
        send(script.client)
        assert len(script.keys) == 2
        assert script.keys[0] == script.keys[1]
    for send in (ONCE, CHECKED):
        script = Script(monkeypatch, reply)
        with pytest.raises(SagittaError):
            send(script.client)


@pytest.mark.parametrize("reply", [problem(400, "invalid_request"), FULL])
def test_a_request_that_a_retry_cannot_help_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch, reply: object
) -> None:
    with pytest.raises(SagittaError):
        READ(Script(monkeypatch, reply).client)


def test_waits_double_and_the_last_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, LOST, LOST, BROKEN, BUSY, problem(503, "starting"))
    with pytest.raises(SagittaError) as caught:
        READ(script.client)
    assert caught.value.code == "starting"
    assert script.waits == [0.1, 0.2, 0.4, 0.8]


def test_a_long_retry_after_is_left_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, problem(429, "rate_limited", **{"retry-after": "31"}))
    with pytest.raises(SagittaError) as caught:
        READ(script.client)
    assert caught.value.retry_after == 31


def test_a_deadline_bounds_all_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, *[BUSY] * 9, deadline=1.0, timeout=0.9)
    with pytest.raises(SagittaError) as caught:
        READ(script.client)
    # The wait of 0.8 s after the fourth attempt would end after the deadline.
    assert caught.value.code == "overloaded"
    assert script.waits == [0.1, 0.2, 0.4]
    assert script.timeouts == pytest.approx([0.9, 0.9, 0.7, 0.3])


def test_nothing_is_sent_to_a_failing_server_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    breaker = CircuitBreaker(failures_max=3, cool_down=5)
    script = Script(
        monkeypatch, *[BROKEN] * 3, OK, retry=Retry(attempts_max=1), circuit_breaker=breaker
    )
    clock = Breaker(breaker, lambda: script.now)
    script.client._core.settings = dataclasses.replace(script.client._core.settings, breaker=clock)
    for _ in range(3):
        with pytest.raises(SagittaError, match="internal"):
            READ(script.client)
    with pytest.raises(SagittaError) as caught:
        READ(script.client)
    assert (caught.value.code, caught.value.retry_after) == ("circuit_open", 5)
    script.now = 5
    assert READ(script.client) == 1


def test_a_request_that_was_not_sent_does_not_count_as_a_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaker = CircuitBreaker(failures_max=2, cool_down=1e6)
    once = Retry(attempts_max=1)
    script = Script(monkeypatch, BROKEN, BROKEN, retry=once, circuit_breaker=breaker)
    long = {"n": {"$in": list(range(20_000))}}
    for send, code in (
        (READ, "internal"),
        (lambda client: client.collection("a").schema(filter=long), "invalid_argument"),
        (READ, "internal"),
        (READ, "circuit_open"),
    ):
        with pytest.raises(SagittaError) as caught:
            send(script.client)
        assert caught.value.code == code


def test_a_failed_trial_opens_the_breaker_again_and_an_unknown_one_does_not() -> None:
    now = 0.0
    breaker = Breaker(CircuitBreaker(failures_max=1, cool_down=5), lambda: now)
    breaker.settle(breaker.admit(), True)
    now = 5.0
    trial = breaker.admit()
    with pytest.raises(SagittaError):
        breaker.admit()
    breaker.settle(trial, None)
    breaker.settle(breaker.admit(), True)
    with pytest.raises(SagittaError):
        breaker.admit()
    now = 10.0
    breaker.settle(breaker.admit(), False)
    breaker.settle(breaker.admit(), False)


@given(
    attempt=st.integers(1, 10_000),
    random=st.floats(0, 1, exclude_max=True),
    retry_after=st.none() | st.floats(0, 30),
)
def test_waits_are_bounded(attempt: int, random: float, retry_after: float | None) -> None:
    error = SagittaError("overloaded", "d", retry_after=retry_after)
    wait = backoff(attempt, error, Retry(), lambda: random)
    assert max(0.05, retry_after or 0) <= wait <= max(5, retry_after or 0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, None), ("3", 3), ("0", None), ("soon", None), ("Thu, 01 Jan 1970 00:00:09 GMT", 9)],
)
def test_retry_after_is_read_as_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert retry_after_of(text, 0.0) == seconds


def test_an_error_says_when_the_reply_is_not_from_sagitta(monkeypatch: pytest.MonkeyPatch) -> None:
    for reply in (httpx.Response(200, text="<html>"), httpx.Response(404, text="<html>")):
        with pytest.raises(SagittaError, match="<html>") as caught:
            READ(Script(monkeypatch, reply).client)
        assert caught.value.code == "unexpected_reply"
        assert caught.value.status == reply.status_code


def test_an_error_names_an_unreachable_server() -> None:
    with (
        Sagitta("http://127.0.0.1:9", retry=Retry(attempts_max=1)) as client,
        pytest.raises(SagittaError, match=r"cannot reach http://127\.0\.0\.1:9") as caught,
    ):
        client.limits()
    assert caught.value.code == "network_error"
