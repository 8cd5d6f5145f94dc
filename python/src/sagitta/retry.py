"""The retry policy and the circuit breaker, without their own clocks or I/O.

A request that might take effect twice is never sent twice.
"""

from __future__ import annotations

import email.utils
import threading
from collections.abc import Callable
from dataclasses import dataclass

from sagitta.errors import SagittaError

RETRY_AFTER_MAX = 30.0
"""The longest Retry-After in seconds that is honoured. Beyond it, the caller gets the error."""

PERMANENT_STATUSES = (501, 505, 507)
"""Statuses that a retry cannot change, such as not implemented and a full disk."""


@dataclass(frozen=True)
class Retry:
    """How often to send a request again, and after which delays."""

    attempts_max: int = 5
    """The number of attempts, including the first."""
    stream_attempts_max: int = 9
    """The number for streamed writes: 8 to 16 seconds, which outlast a restart of the server."""
    delay_base: float = 0.1
    """Seconds before the second attempt, doubled before each later one."""
    delay_max: float = 5.0
    """Upper bound of the delay in seconds."""


@dataclass(frozen=True)
class CircuitBreaker:
    """When to stop sending requests to a server that fails."""

    failures_max: int = 10
    """Consecutive failures after which nothing is sent."""
    cool_down: float = 5.0
    """Seconds until one request is let through as a trial."""


def is_server_failure(error: SagittaError) -> bool:
    """Whether the server failed, not the request. The circuit breaker counts such failures."""
    if error.code in ("network_error", "timeout"):
        return True
    status = error.status or 0
    return status >= 500 and status not in PERMANENT_STATUSES


def is_retryable(error: SagittaError, is_idempotent: bool) -> bool:
    """`is_idempotent`: whether the request can safely take effect twice."""
    if (error.retry_after or 0) > RETRY_AFTER_MAX:
        return False
    if error.status == 429:
        return True
    # The first attempt, whose reply was lost, is still running, and its reply will be stored.
    if error.code == "idempotency_in_flight":
        return True
    # Sagitta's own 503 means that nothing was executed, unlike a gateway's.
    if error.status == 503 and error.code != "unexpected_reply":
        return True
    return is_idempotent and is_server_failure(error)


def backoff(attempt: int, error: SagittaError, retry: Retry, random: Callable[[], float]) -> float:
    """Seconds to wait after attempt number `attempt` (from 1); `random` is in [0, 1)."""
    # The exponent is bounded so that the power fits into a float.
    wait_max = min(retry.delay_max, retry.delay_base * 2.0 ** min(attempt - 1, 64))
    # Half of the wait is random, so that clients rejected together do not retry together.
    return max(wait_max * (0.5 + 0.5 * random()), error.retry_after or 0.0)


def retry_after_of(text: str | None, now: float) -> float | None:
    """The seconds in a Retry-After header, which states seconds or a date. `now` is Unix time."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - now
        except ValueError:
            return None
    return seconds if seconds > 0 else None


class Breaker:
    """Rejects calls for a while after consecutive failures, then admits one trial. Thread-safe."""

    def __init__(self, settings: CircuitBreaker, now: Callable[[], float]) -> None:
        """`now` is a monotonic clock in seconds."""
        self._settings = settings
        self._now = now
        self._lock = threading.Lock()
        self._failure_count = 0
        self._open_until: float | None = None
        self._trial: object | None = None

    def admit(self) -> object:
        """Admits a call and returns a token for `settle`. Raises `circuit_open`."""
        with self._lock:
            token = object()
            if self._open_until is None:
                return token
            wait = self._open_until - self._now()
            # A trial is in flight and its end is unknown, so the cool-down serves as an estimate.
            if wait <= 0 and self._trial is not None:
                wait = self._settings.cool_down
            if wait > 0:
                detail = f"not sent: too many requests failed in a row; retry in {wait:.1f} s"
                raise SagittaError("circuit_open", detail, retryable=True, retry_after=wait)
            self._trial = token
            return token

    def settle(self, token: object, is_failure: bool | None) -> None:
        """Reports how the call ended; None if the caller gave up before the outcome was known."""
        with self._lock:
            is_trial = token is self._trial
            if is_trial:
                self._trial = None
            if is_failure is None:
                return
            if not is_failure:
                self._failure_count = 0
                self._open_until = None
                self._trial = None
                return
            self._failure_count += 1
            # A request that was sent before the breaker opened and fails now does not extend the
            # wait.
            is_closed = self._open_until is None
            is_full = self._failure_count >= self._settings.failures_max
            if is_trial or (is_closed and is_full):
                self._open_until = self._now() + self._settings.cool_down
