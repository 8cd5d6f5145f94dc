"""Warnings in replies: a request was carried out, but probably not as intended.

All methods issue them through `warnings.warn`, because the results of many methods have no room for
them: a count, rows, record batches.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from sagitta.flow import Reply, Request

HEADER = "sagitta-warnings"
"""Header with the warnings of a streamed reply, as JSON."""

PACKAGE = os.path.dirname(__file__) + os.sep


class SagittaWarning(UserWarning):
    """A warning from the server, for example about a path in a filter that no vector has."""

    code: str
    """`unknown_path`."""
    path: str
    """The path in the metadata."""
    detail: str
    """A sentence that suggests the path that was probably meant."""

    def __init__(self, message: str, code: str = "", path: str = "", detail: str = "") -> None:
        super().__init__(message, code, path, detail)
        self.code = code
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return str(self.args[0])


def warn_of_head(request: Request, reply: Reply) -> None:
    """Issues the warnings in the headers of a reply."""
    if text := reply.headers.get(HEADER):
        _warn(request, json.loads(text))


def warn_of_body(request: Request, body: Any) -> None:
    """Issues the warnings in a JSON reply, or in the parts of a reply to a batch."""
    if not isinstance(body, dict):
        return
    for part in (body, *body.get("results", ())):
        if found := part.get("warnings"):
            _warn(request, found)


def _warn(request: Request, found: Sequence[Mapping[str, Any]]) -> None:
    for one in found:
        message = f"{one['detail']} ({one['in']} of {request.method} {request.path})"
        warning = SagittaWarning(message, one["code"], one["path"], one["detail"])
        warnings.warn(warning, stacklevel=_stack_level())


def _stack_level() -> int:
    """The `stacklevel` for `warnings.warn` that points to the line which called the client."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
        level += 1
    return level
