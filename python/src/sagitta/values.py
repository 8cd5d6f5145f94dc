"""Vectors and JSON between Python and the wire. NumPy is used where arrays come in, and not
required.

Arrays are sent as base64 of little-endian float32: a third of the size of decimal numbers, without
loss.
"""

from __future__ import annotations

import array
import base64
import datetime
import json
import reprlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sagitta.errors import SagittaError, invalid_argument

PLACE_CHARACTERS_MAX = 200
"""After which a message names no deeper part."""


def encode_json(value: object, place: str = "") -> bytes:
    """Throws `invalid_argument` for what JSON does not have; `place` is that of the value."""
    try:
        return _dump(value)
    except (TypeError, ValueError, RecursionError) as error:
        at = place + _place_of_fault(value)
        where = f" at {at}" if at else ""
        raise invalid_argument(f"the request cannot be written as JSON{where}: {error}") from error


def _dump(value: object) -> bytes:
    return json.dumps(
        value, default=_plain, allow_nan=False, separators=(",", ":"), ensure_ascii=False
    ).encode()


def _place_of_fault(value: object) -> str:
    """The keys and indexes that lead to the innermost part that cannot be written."""
    place = ""
    # Bounded, because what contains itself has no innermost part.
    while len(place) < PLACE_CHARACTERS_MAX:
        for key, part in _parts(value):
            if not _is_writable(part):
                value, place = part, f"{place}/{key}"
                break
        else:
            break
    return place


def _parts(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, (list, tuple)) else ()


def _is_writable(value: object) -> bool:
    try:
        _dump(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _plain(value: object) -> object:
    """The JSON for what json.dumps does not know: scalars and arrays of NumPy, times, mappings."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise TypeError(f"{value!r} has no time zone")
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"expected what JSON has, found {type(value).__name__}")


def wire_values(values: Any) -> object:
    """A vector of [dimension] as it is sent: arrays as base64, lists of numbers and base64 as they
    are.
    """
    if isinstance(values, array.array):
        # Of doubles, integers or floats; float32 in the order of the wire.
        floats = array.array("f", values)
        if sys.byteorder == "big":
            floats.byteswap()
        return base64.b64encode(floats.tobytes()).decode()
    if not hasattr(values, "__array__"):
        return values
    import numpy

    found = numpy.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "fiub":
        raise invalid_argument(
            f"expected a vector, an array of one dimension with numbers, found shape {found.shape} "
            f"of {found.dtype}"
        )
    with numpy.errstate(over="ignore"):
        # What is beyond float32 becomes infinite, which the server rejects with its place.
        return base64.b64encode(found.astype("<f4").tobytes()).decode()


def wire_named(values: Any) -> object:
    """One or several vectors under a name, or None to remove them."""
    if values is None or isinstance(values, str):
        return values
    is_multi = values.ndim == 2 if hasattr(values, "ndim") else _is_nested(values)
    return [wire_values(one) for one in values] if is_multi else wire_values(values)


def _is_nested(values: Any) -> bool:
    return len(values) > 0 and (isinstance(values[0], str) or hasattr(values[0], "__len__"))


def wire_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A vector, or a change of one, as it is sent."""
    if not isinstance(record, Mapping):
        example = 'a vector such as {"id": "a", "values": [0.5, 1]}, or a list of them for upsert'
        raise _unexpected(record, example)
    wire = dict(record)
    if "values" in wire:
        wire["values"] = wire_values(wire["values"])
    if wire.get("vectors") is not None:
        wire["vectors"] = {name: wire_named(values) for name, values in wire["vectors"].items()}
    return wire


def wire_query(query: Mapping[str, Any]) -> dict[str, Any]:
    """A query, a part of a fusion or a prefetch as it is sent."""
    if not isinstance(query, Mapping):
        example = 'a query such as {"vector": [0.5, 1], "top_k": 10}; query_batches takes arrays'
        raise _unexpected(query, example)
    wire = dict(query)
    if wire.get("include_values") == "numpy":
        wire["include_values"] = "base64"
    if "vector" in wire:
        wire["vector"] = wire_values(wire["vector"])
    if "multi_vector" in wire:
        wire["multi_vector"] = [wire_values(values) for values in wire["multi_vector"]]
    if "fusion" in wire:
        parts = [wire_query(part) for part in wire["fusion"]["parts"]]
        wire["fusion"] = {**wire["fusion"], "parts": parts}
    if "prefetch" in wire:
        wire["prefetch"] = wire_query(wire["prefetch"])
    return wire


def _unexpected(value: object, expected: str) -> SagittaError:
    found = f"{type(value).__name__} {reprlib.repr(value)}"
    return invalid_argument(f"found {found}, expected {expected}")


def wire_include(include: Mapping[str, Any]) -> dict[str, Any]:
    """For requests whose replies cannot have base64."""
    is_numpy = include.get("include_values") == "numpy"
    return {**include, "include_values": True} if is_numpy else dict(include)


def read_rows(rows: Sequence[Any], asked: object) -> None:
    """Replaces the values of the rows of a reply by arrays of [dimension] float32, if these were
    asked.
    """
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
    # A copy, because an array over bytes cannot be written to.
    return numpy.frombuffer(base64.b64decode(values), dtype="<f4").astype(numpy.float32)


def decode_values(text: str) -> list[float]:
    """The numbers of base64 as replies have it with `include_values="base64"`, without NumPy."""
    floats = array.array("f", base64.b64decode(text))
    if sys.byteorder == "big":
        floats.byteswap()
    return floats.tolist()
