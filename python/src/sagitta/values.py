"""Converts vectors and JSON between Python and the wire. NumPy is not required, and used only for
arrays.

Arrays are sent as base64 of little-endian float32: a third of the size of decimal numbers, without
loss.
"""

from __future__ import annotations

import array
import base64
import collections
import datetime
import json
import math
import reprlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sagitta.errors import SagittaError, invalid_argument

PLACE_CHARACTERS_MAX = 200
"""Length of a location after which a message names no deeper part."""
DEPTH_MAX = 200
"""Levels of arrays and objects, far more than the server accepts. A value that contains itself
exceeds it.
"""


class _Unfit(Exception):  # noqa: N818
    """JSON cannot express the value at `place`, the keys and indexes that lead to it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.place = ""

    def under(self, key: object) -> _Unfit:
        """The same error with a location that begins at the container, which holds it at `key`."""
        self.place = f"/{key}{self.place}"
        return self


def encode_json(value: object, place: str = "") -> bytes:
    """Encodes a value as JSON. Raises `invalid_argument` for anything JSON cannot express. `place`
    is the location of the value.
    """
    try:
        plain = _plain(value, 0)
    except _Unfit as unfit:
        where = f"{place}{unfit.place}"[:PLACE_CHARACTERS_MAX]
        at = f" at {where}" if where else ""
        detail = f"the request cannot be written as JSON{at}: {unfit}"
        raise invalid_argument(detail) from None
    try:
        return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
    except ValueError as error:
        # An integer with more digits than Python writes.
        raise invalid_argument(f"the request cannot be written as JSON: {error}") from error


def _plain(value: Any, depth: int) -> object:
    """Reduces a value to dictionaries, lists, text and numbers, which json.dumps writes unchanged.

    Nothing is written as something that merely resembles it: neither bytes as numbers, nor the
    number 1 as the name "1".
    """
    if isinstance(value, str):
        return _plain_text(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise _Unfit(f"found {value}, expected a finite number")
    if depth >= DEPTH_MAX:
        raise _Unfit(
            f"expected at most {DEPTH_MAX} levels, found more, or a value that contains itself"
        )
    if isinstance(value, Mapping):
        return _plain_members(value, depth)
    if isinstance(value, (list, tuple)):
        return _plain_items(value, depth)
    if isinstance(value, datetime.date):
        # As in columns, times become text without an offset, which the server takes as UTC. NaT of
        # pandas is not equal to itself.
        if value != value:
            raise _Unfit(f"found {value}, expected a time")
        return value.isoformat()
    if _has_times(value):
        raise _Unfit(f"found {value.dtype}, expected a datetime, or text")
    # Bytes are sequences of numbers, and strings sequences of strings, but never meant as such.
    if not isinstance(value, (bytes, bytearray, memoryview, collections.UserString)):
        if hasattr(value, "tolist"):
            # Scalars and arrays of NumPy and the like. Masked elements are None.
            return _plain(value.tolist(), depth + 1)
        if isinstance(value, Sequence):
            return _plain_items(value, depth)
    raise _Unfit(f"found {_short(value)}, expected what JSON has")


def _plain_text(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _Unfit(f"found text that is not Unicode: {error}") from None
    return text


def _plain_members(value: Mapping[Any, Any], depth: int) -> dict[str, object]:
    plain = {}
    for name, part in value.items():
        if not isinstance(name, str):
            raise _Unfit(f"found the name {_short(name)}, expected text")
        try:
            plain[_plain_text(name)] = _plain(part, depth + 1)
        except _Unfit as unfit:
            raise unfit.under(name.encode(errors="replace").decode()) from None
    return plain


def _plain_items(value: Sequence[Any], depth: int) -> Sequence[object]:
    # Checks a long vector in a tenth of the time.
    if set(map(type, value)) == {float} and all(map(math.isfinite, value)):
        return list(value)
    plain = []
    at = 0
    try:
        for at, part in enumerate(value):  # noqa: B007
            plain.append(_plain(part, depth + 1))
    except _Unfit as unfit:
        raise unfit.under(at) from None
    return plain


def _has_times(value: object) -> bool:
    """Whether the value is one of NumPy's times, which `tolist` may turn into numbers."""
    kind = getattr(getattr(value, "dtype", None), "type", None)
    return getattr(kind, "__name__", "") in ("datetime64", "timedelta64")


def _short(value: object) -> str:
    return f"{type(value).__name__} {reprlib.repr(value)}"


def list_of(values: Any, place: str, expected: str) -> list[Any]:
    """The items of a sequence parameter. Text, a sequence of characters, and a mapping, a sequence
    of keys, are `invalid_argument`.
    """
    is_other = isinstance(values, (str, bytes, bytearray, memoryview, Mapping))
    if is_other or not isinstance(values, Iterable):
        raise invalid_argument(f"{place}: found {_short(values)}, expected {expected}")
    return list(values)


def wire_values(values: Any, place: str) -> object:
    """A vector of [dimension] in the form that is sent: arrays as base64, lists of numbers and
    base64 unchanged.
    """
    if isinstance(values, array.array):
        # Converts doubles, integers or floats to float32 in the byte order of the wire.
        floats = array.array("f", values)
        if sys.byteorder == "big":
            floats.byteswap()
        return base64.b64encode(floats.tobytes()).decode()
    if not hasattr(values, "__array__"):
        return values
    import numpy

    if isinstance(values, numpy.ma.MaskedArray) and numpy.ma.is_masked(values):
        raise invalid_argument(
            f"{place}: found a masked array that hides some of its numbers, expected a vector with "
            "all of them; fill them, as with values.filled(0)"
        )
    found = numpy.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "fiub":
        raise invalid_argument(
            f"{place}: expected a vector, an array of one dimension with numbers, found shape "
            f"{found.shape} of {found.dtype}"
        )
    with numpy.errstate(over="ignore"):
        # Numbers beyond float32 become infinite, and the server rejects these with their location.
        return base64.b64encode(found.astype("<f4").tobytes()).decode()


def wire_named(values: Any, place: str) -> object:
    """The vector or vectors under a name, or None to remove them."""
    if values is None or isinstance(values, str):
        return values
    is_multi = values.ndim == 2 if hasattr(values, "ndim") else _is_nested(values)
    return _wire_multi(values, place) if is_multi else wire_values(values, place)


def _wire_multi(values: Any, place: str) -> list[object]:
    return [wire_values(one, f"{place}/{at}") for at, one in enumerate(values)]


def _is_nested(values: Any) -> bool:
    return (
        isinstance(values, Sequence)
        and len(values) > 0
        and (isinstance(values[0], str) or hasattr(values[0], "__len__"))
    )


def wire_record(record: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A vector, or a change to one, in the form that is sent."""
    if not isinstance(record, Mapping):
        example = 'a vector such as {"id": "a", "values": [0.5, 1]}, or a list of them for upsert'
        raise _unexpected(record, example, place)
    wire = dict(record)
    if "values" in wire:
        wire["values"] = wire_values(wire["values"], f"{place}/values")
    if isinstance(wire.get("vectors"), Mapping):
        wire["vectors"] = {
            name: wire_named(values, f"{place}/vectors/{name}")
            for name, values in wire["vectors"].items()
        }
    return wire


def wire_query(query: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """A query, a part of a fusion or a prefetch in the form that is sent."""
    if not isinstance(query, Mapping):
        example = 'a query such as {"vector": [0.5, 1], "top_k": 10}; query_batches takes arrays'
        raise _unexpected(query, example, place)
    wire = dict(query)
    if wire.get("include_values") == "numpy":
        wire["include_values"] = "base64"
    if "vector" in wire:
        wire["vector"] = wire_values(wire["vector"], f"{place}/vector")
    if "multi_vector" in wire:
        at = f"{place}/multi_vector"
        wire["multi_vector"] = _wire_multi(list_of(wire["multi_vector"], at, "vectors"), at)
    if "fusion" in wire:
        at = f"{place}/fusion/parts"
        parts = [
            wire_query(part, f"{at}/{number}")
            for number, part in enumerate(list_of(wire["fusion"]["parts"], at, "queries"))
        ]
        wire["fusion"] = {**wire["fusion"], "parts": parts}
    if "prefetch" in wire:
        wire["prefetch"] = wire_query(wire["prefetch"], f"{place}/prefetch")
    return wire


def _unexpected(value: object, expected: str, place: str) -> SagittaError:
    at = f"{place}: " if place else ""
    return invalid_argument(f"{at}found {_short(value)}, expected {expected}")


def wire_include(include: Mapping[str, Any]) -> dict[str, Any]:
    """Options of requests whose replies cannot contain base64."""
    is_numpy = include.get("include_values") == "numpy"
    return {**include, "include_values": True} if is_numpy else dict(include)


def read_rows(rows: Sequence[Any], asked: object) -> None:
    """Replaces the values in a reply by arrays of [dimension] float32, if arrays were requested."""
    if asked != "numpy":
        return
    for row in rows:
        if "values" in row:
            row["values"] = _to_array(row["values"])
        for name, values in row.get("vectors", {}).items():
            is_multi = not isinstance(values, str) and _is_nested(values)
            row["vectors"][name] = [_to_array(v) for v in values] if is_multi else _to_array(values)


def _to_array(values: Any) -> object:
    try:
        import numpy
    except ImportError as error:
        detail = 'include_values="numpy" needs NumPy: pip install "sagitta[arrow]"'
        raise invalid_argument(detail) from error
    if not isinstance(values, str):
        return numpy.asarray(values, dtype=numpy.float32)
    # Copied, because an array over bytes is read-only.
    return numpy.frombuffer(base64.b64decode(values), dtype="<f4").astype(numpy.float32)


def decode_values(text: str) -> list[float]:
    """Decodes base64 from replies with `include_values="base64"`, without NumPy."""
    floats = array.array("f", base64.b64decode(text))
    if sys.byteorder == "big":
        floats.byteswap()
    return floats.tolist()
