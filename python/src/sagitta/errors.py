"""The client's only exception, for error replies and for failures to reach the server.

Branch on `code`, which never changes its meaning. The message is meant for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from sagitta.wire import ErrorCode, ProblemIssue

ClientCode: TypeAlias = Literal[
    "network_error", "timeout", "unexpected_reply", "invalid_argument", "circuit_open"
]
"""Codes of errors that do not come from the server.

`network_error`: the connection failed or broke before the reply was complete. `timeout`: no data
arrived for `timeout` seconds, or `deadline` seconds have passed. `unexpected_reply`: the reply is
not from Sagitta but perhaps from a proxy. `invalid_argument`: nothing was sent, because an argument
is invalid. `circuit_open`: nothing was sent, because the server failed several times in a row.
"""


class SagittaError(Exception):
    """A request that failed."""

    code: ErrorCode | ClientCode
    status: int | None
    """HTTP status; None without a reply."""
    detail: str
    """What was expected, what was found and where."""
    items: Sequence[ProblemIssue]
    """One entry per invalid part of the request, at most 100."""
    request_id: str | None
    """Identifies the request in the server's log."""
    retryable: bool
    """Whether the same request may succeed later."""
    retry_after: float | None
    """Seconds to wait before the next attempt; None if unknown."""
    committed_count: int | None
    """For a streamed write, the number of its rows, counted from the first, that are durable. The
    client asks the server after a lost reply; None if it was unreachable.
    """
    committed_count_at_least: int
    """`committed_count` or, if that is unknown, what earlier attempts learned; 0 if nothing."""
    sequence: int | None
    """The sequence of the write that made the last of those rows durable."""

    def __init__(
        self,
        code: ErrorCode | ClientCode,
        detail: str,
        *,
        status: int | None = None,
        problem: Mapping[str, Any] | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        problem = problem or {}
        # Copies, even in other processes, are made from the arguments without defaults.
        super().__init__(code, detail)
        self.code = code
        self.detail = detail
        self.status = problem.get("status") if status is None else status
        self.items = problem.get("errors", ())
        self.request_id = problem.get("request_id")
        self.retryable = problem.get("retryable", retryable)
        self.retry_after = retry_after
        self.committed_count = problem.get("committed_count")
        self.committed_count_at_least = self.committed_count or 0
        self.sequence = problem.get("sequence")

    def __str__(self) -> str:
        """The code and the detail, then each invalid part on its own line if there are several."""
        lines = [f"{item['pointer']}: {item['detail']}" for item in self.items]
        return "\n  ".join([f"{self.code}: {self.detail}", *(lines if len(lines) > 1 else [])])


def invalid_argument(detail: str) -> SagittaError:
    return SagittaError("invalid_argument", detail)


def error_of_reply(status: int, body: bytes, retry_after: float | None) -> SagittaError:
    """The error for an unsuccessful reply."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if is_problem(problem):
        return error_of_problem(problem, status=status, retry_after=retry_after)
    start = body[:200].decode(errors="replace").strip()
    found = f'"{start}"' if start else "an empty body"
    detail = f"expected a problem+json body with status {status}, found {found}"
    return SagittaError("unexpected_reply", detail, status=status, retry_after=retry_after)


def error_of_problem(
    problem: Mapping[str, Any], *, status: int | None = None, retry_after: float | None = None
) -> SagittaError:
    """The error for a problem document, from a reply or from the end of a stream."""
    code = cast(ErrorCode, problem["code"])
    return SagittaError(
        code, problem["detail"], status=status, problem=problem, retry_after=retry_after
    )


def is_problem(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("code"), str) and "detail" in value
