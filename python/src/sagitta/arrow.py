"""Encodes and decodes record batches with pyarrow, the extra `sagitta[arrow]`. Does no I/O.

Anything with columns can be a source: Arrow's own objects, data frames by protocol (their libraries
are not imported), and mappings of names to lists and NumPy arrays.
"""

from __future__ import annotations

import io
import reprlib
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from sagitta.errors import SagittaError, invalid_argument
from sagitta.flow import Effect, Emit, Flow, Head, Read, Reply

if TYPE_CHECKING:
    import pyarrow

ROWS_MAX = 10_000
"""Rows per batch sent: the server holds a batch in memory and commits it as a whole."""
BATCH_BYTES_MAX = 16_000_000
OTHER_KINDS = "cmMOSU"
"""Kinds of NumPy types that cannot be the numbers of a vector."""
MESSAGE_BYTES_MAX = 1 << 31
"""A longer message indicates that the bytes are not Arrow."""


def load_pyarrow() -> Any:
    """Imports pyarrow. Raises `invalid_argument` if it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        detail = 'this method needs pyarrow: pip install "sagitta[arrow]"'
        raise invalid_argument(detail) from error
    return pyarrow


@dataclass(frozen=True)
class BatchSource:
    """Batches with one schema, each of at most ROWS_MAX rows and about BATCH_BYTES_MAX bytes."""

    open: Callable[[], Iterator[pyarrow.RecordBatch]]
    is_resendable: bool
    """Whether `open` returns the same batches when called again."""


def batch_source(data: Any) -> BatchSource:
    """The batches of anything with columns, or of a function that opens it.

    Readers and other iterators can be read only once. A function makes them resendable.
    """
    load_pyarrow()
    data = _collected(data)
    if callable(data) and not hasattr(data, "__arrow_c_stream__"):
        return BatchSource(lambda: _pieces(_reader_of(_collected(data())), ROWS_MAX), True)
    is_resendable = isinstance(data, Mapping) or hasattr(data, "__len__") or _has_batches(data)
    return BatchSource(lambda: _pieces(_reader_of(data), ROWS_MAX), is_resendable)


def _collected(data: Any) -> Any:
    """Collects a polars LazyFrame, whose rows may be in a different order the next time."""
    return data.collect() if hasattr(data, "collect") and hasattr(data, "lazy") else data


def query_parts(data: Any, rows_max: int) -> Iterator[pyarrow.RecordBatch]:
    """Queries in batches of at most `rows_max` rows. An array [queries, dimension] contains
    vectors.
    """
    is_vectors = getattr(data, "ndim", None) == 2 and not hasattr(data, "columns")
    source = {"vector": data} if is_vectors else data
    return _pieces(_reader_of(_collected(source() if callable(source) else source)), rows_max)


def encode_batches(source: BatchSource) -> Iterator[bytes]:
    """The bytes of an Arrow stream, batch by batch. Raises `invalid_argument` without a batch."""
    pa = load_pyarrow()
    sink = _Sink()
    writer = None
    for batch in source.open():
        if writer is None:
            writer = pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), batch.schema)
        try:
            writer.write_batch(batch)
        except pa.ArrowInvalid as error:
            raise invalid_argument(f"the record batches have several schemas: {error}") from error
        yield sink.take()
    if writer is None:
        raise invalid_argument("expected at least one record batch, found none")
    writer.close()
    yield sink.take()


def encode_batch(batch: pyarrow.RecordBatch) -> bytes:
    return b"".join(encode_batches(BatchSource(lambda: iter([batch]), True)))


def decode_batches(content: bytes) -> tuple[pyarrow.Schema, list[pyarrow.RecordBatch]]:
    """The schema and the batches of a complete reply."""
    pa = load_pyarrow()
    try:
        reader = pa.ipc.open_stream(content)
        return reader.schema, list(reader)
    except pa.ArrowInvalid as error:
        raise _not_arrow(str(error)) from error


def read_batches(reply: Reply, head: Head) -> Generator[Effect | Emit[Head] | Emit[Any], Any, None]:
    """Emits the head with the schema, then the batches of a streamed reply as they arrive."""
    messages = _MessageReader()
    schema = yield from _read_schema(reply, messages)
    yield Emit(Head(head.sequence, head.with_sequence, schema))
    while True:
        for batch in messages.take_batches():
            yield Emit(batch)
        if messages.is_ended:
            return
        chunk = yield Read(reply)
        if not chunk:
            raise _not_arrow("the stream has no end")
        messages.append(chunk)


def _read_schema(reply: Reply, messages: _MessageReader) -> Flow[Any]:
    while (schema := messages.schema()) is None:
        chunk = yield Read(reply)
        if not chunk:
            raise _not_arrow("it ended before its schema")
        messages.append(chunk)
    return schema


class _MessageReader:
    """Splits an Arrow stream into messages. pyarrow can do this only for files that it reads."""

    _RECORD_BATCH = 3
    """`MessageHeader.RecordBatch` in Message.fbs of Arrow."""

    def __init__(self) -> None:
        self._pa = load_pyarrow()
        self._bytes = bytearray()
        self._prefix = bytearray()
        """The messages that every batch needs: the schema and the dictionaries."""
        self.is_ended = False

    def append(self, chunk: bytes) -> None:
        self._bytes += chunk

    def schema(self) -> Any:
        """The schema, or None while it is incomplete."""
        if not self._prefix:
            message = self._next()
            if message is None:
                return None
            self._prefix += message[1]
        return self._open(b"").schema

    def take_batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Removes and yields the complete batches."""
        while (message := self._next()) is not None:
            kind, content = message
            if kind == self._RECORD_BATCH:
                yield self._open(content).read_next_batch()
            else:
                self._prefix += content

    def _open(self, content: bytes) -> Any:
        try:
            return self._pa.ipc.open_stream(bytes(self._prefix) + content)
        except self._pa.ArrowInvalid as error:
            raise _not_arrow(str(error)) from error

    def _next(self) -> tuple[int, bytes] | None:
        """The kind and the bytes of the next message; None at the end or if it is incomplete.

        A message consists of 0xffffffff, the length of its metadata as int32, the metadata and a
        body.
        """
        if self.is_ended or len(self._bytes) < 8:
            return None
        marker, metadata_length = struct.unpack_from("<Ii", self._bytes)
        if marker != 0xFFFFFFFF or not 0 <= metadata_length < MESSAGE_BYTES_MAX:
            raise _not_arrow(f"it has the bytes {bytes(self._bytes[:16])!r}")
        if metadata_length == 0:
            self.is_ended = True
            return None
        if len(self._bytes) < 8 + metadata_length:
            return None
        kind, body_length = _message_of(self._bytes, 8, metadata_length)
        length = 8 + metadata_length + body_length
        if len(self._bytes) < length:
            return None
        content = bytes(memoryview(self._bytes)[:length])
        del self._bytes[:length]
        return kind, content


def _message_of(content: bytearray, start: int, length: int) -> tuple[int, int]:
    """The kind of a message and the length of its body: fields 1 and 3 of its flatbuffer."""
    try:
        table = start + struct.unpack_from("<I", content, start)[0]
        fields = table - struct.unpack_from("<i", content, table)[0]
        fields_length = struct.unpack_from("<H", content, fields)[0]

        def field(number: int, form: str) -> int:
            at = 4 + 2 * number
            offset = struct.unpack_from("<H", content, fields + at)[0] if at < fields_length else 0
            return cast(int, struct.unpack_from(form, content, table + offset)[0]) if offset else 0

        kind, body_length = field(1, "<B"), field(3, "<q")
    except struct.error as error:
        raise _not_arrow(f"a message of {length} bytes has no header") from error
    if not 0 <= body_length < MESSAGE_BYTES_MAX:
        raise _not_arrow(f"a message has a body of {body_length} bytes")
    return kind, body_length


def _not_arrow(reason: str) -> SagittaError:
    return SagittaError("unexpected_reply", f"expected an Arrow stream, but {reason}")


def _has_batches(data: object) -> bool:
    """Whether the data is a dataset or similar, which can be read again."""
    return hasattr(data, "to_batches") and hasattr(data, "schema")


def _reader_of(data: Any) -> Iterable[pyarrow.RecordBatch]:
    """The batches of an object with columns, or of an iterable of such objects."""
    found = _batches_of(data)
    if found is not None:
        return found
    if isinstance(data, Iterable) and not isinstance(data, str):
        return _batches_of_items(data)
    raise _no_columns(data)


def _batches_of_items(items: Iterable[Any]) -> Iterator[pyarrow.RecordBatch]:
    for item in items:
        found = _batches_of(item)
        if found is None:
            raise _no_columns(item)
        yield from found


def _batches_of(data: Any) -> Iterable[pyarrow.RecordBatch] | None:
    """The batches of an object with columns; None for any other object."""
    try:
        return _convert(data)
    except _unfit() as error:
        name = _failing_column(data)
        at = "" if name is None else f"column {name}: "
        raise invalid_argument(f"{at}Arrow has no type for the values: {error}") from error


def _failing_column(data: Any) -> object:
    """The first column of a data frame that Arrow cannot convert."""
    names = getattr(data, "columns", ())
    return next((name for name in names if not _is_convertible(data[[name]])), None)


def _is_convertible(data: Any) -> bool:
    try:
        _convert(data)
    except _unfit():
        return False
    return True


def _unfit() -> tuple[type[Exception], ...]:
    """The errors of Arrow for values that it has no type for: its own, and Python's for long
    integers and for text that is not Unicode.
    """
    return (load_pyarrow().ArrowException, OverflowError, UnicodeError)


def _convert(data: Any) -> Iterable[pyarrow.RecordBatch] | None:
    pa = load_pyarrow()
    if isinstance(data, pa.RecordBatch):
        return [data]
    if isinstance(data, Mapping):
        return [_batch_of(data)]
    if _is_hugging_face(data):
        return _batches_of_items(data.with_format("arrow").iter(batch_size=ROWS_MAX))
    # polars: its own stream contains string views, which the cast below would copy.
    if hasattr(data, "to_arrow"):
        return _convert(data.to_arrow())
    if hasattr(data, "select_dtypes"):
        # pandas.
        for name, values in data.items():
            _require_plain_cells(name, values)
    if hasattr(data, "__arrow_c_stream__"):
        return cast("Iterable[pyarrow.RecordBatch]", pa.RecordBatchReader.from_stream(data))
    if _has_batches(data):
        return cast("Iterable[pyarrow.RecordBatch]", data.to_batches())
    if hasattr(data, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return cast("Iterable[pyarrow.RecordBatch]", from_dataframe(data).to_batches())
    return None


def _is_hugging_face(data: object) -> bool:
    """Whether the data is a Dataset or an IterableDataset of Hugging Face."""
    return hasattr(data, "with_format") and hasattr(data, "iter")


def _no_columns(found: object) -> SagittaError:
    return invalid_argument(
        f"found {type(found).__name__} {reprlib.repr(found)}, expected a table, a data frame, "
        'columns such as {"id": ids, "values": array}, record batches, or a function that returns '
        "one of them; queries may be an array [queries, dimension]"
    )


def _batch_of(columns: Mapping[str, Any]) -> pyarrow.RecordBatch:
    """A table of lists and arrays. An array [rows, dimension] becomes a column of vectors."""
    pa = load_pyarrow()
    arrays = {name: _column_of(name, values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise invalid_argument(f"expected columns of the same length, found {lengths}")
    return pa.RecordBatch.from_pydict(arrays)


def _column_of(name: str, values: Any) -> Any:
    pa = load_pyarrow()
    if isinstance(values, (str, bytes, bytearray, memoryview, Mapping)):
        # Arrow would make the characters a column.
        raise invalid_argument(
            f"column {name}: found {type(values).__name__} {reprlib.repr(values)}, expected a list "
            "or an array with a value for each row"
        )
    if getattr(values, "ndim", None) != 2:
        _require_plain_cells(name, values)
        try:
            return _array_of(values)
        except _unfit() as error:
            detail = f"column {name}: Arrow has no type for the values: {error}"
            raise invalid_argument(detail) from error
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "O") in OTHER_KINDS:
        # NumPy would turn these into numbers: dates into days, complex numbers into real parts.
        raise invalid_argument(f"column {name}: found {dtype}, expected vectors of numbers")
    flat = pa.array(values.astype("float32", copy=False).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def _array_of(values: Any) -> Any:
    pa = load_pyarrow()
    try:
        return pa.array(values)
    except OverflowError:
        # Without a type, Python integers are int64.
        return pa.array(values, pa.uint64())


def _require_plain_cells(name: object, values: Iterable[Any]) -> None:
    """Rejects cells that Arrow would misread: sets as lists, and the hidden numbers of masked
    arrays as visible ones.
    """
    if not isinstance(values, (list, tuple)) and not _is_object_array(values):
        return
    for row, one in enumerate(values):
        if isinstance(one, (set, frozenset)) or _hides_some(one):
            raise invalid_argument(
                f"column {name}, row {row}: found {type(one).__name__} {reprlib.repr(one)}, "
                "expected a list, or an array that hides nothing"
            )


def _is_object_array(values: object) -> bool:
    return getattr(getattr(values, "dtype", None), "kind", "") == "O"


def _hides_some(value: object) -> bool:
    mask = getattr(value, "mask", None) if hasattr(value, "filled") else None
    return mask is not None and bool(mask.any())


def _pieces(batches: Iterable[pyarrow.RecordBatch], rows_max: int) -> Iterator[pyarrow.RecordBatch]:
    pa = load_pyarrow()
    for batch in batches:
        if not isinstance(batch, pa.RecordBatch):
            raise _no_columns(batch)
        _require_meaning(batch)
        plain = _without_views(batch)
        row_bytes = max(1, plain.nbytes // max(1, plain.num_rows))
        rows = max(1, min(rows_max, BATCH_BYTES_MAX // row_bytes))
        # Even a batch without rows carries a schema.
        for start in range(0, max(1, plain.num_rows), rows):
            yield plain.slice(start, rows)


def _require_meaning(batch: pyarrow.RecordBatch) -> None:
    """Rejects extension types such as the periods of pandas: the server would see only what Arrow
    stores for them, such as meaningless integers.
    """
    pa = load_pyarrow()
    for one in batch.schema:
        is_own = isinstance(one.type, pa.BaseExtensionType)
        if is_own and pa.types.is_integer(one.type.storage_type):
            raise invalid_argument(
                f"column {one.name}: found the type {one.type.extension_name}, which Arrow stores "
                f"as {one.type.storage_type}; convert it to text, numbers or timestamps"
            )


def _without_views(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Replaces string views, which the server does not read, by strings."""
    pa = load_pyarrow()
    if not any(pa.types.is_string_view(one.type) for one in batch.schema):
        return batch
    fields = [
        one.with_type(pa.large_string()) if pa.types.is_string_view(one.type) else one
        for one in batch.schema
    ]
    return batch.cast(pa.schema(fields))


class _Sink(io.RawIOBase):
    """Keeps the output of pyarrow until it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self._chunks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._chunks.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        whole = b"".join(self._chunks)
        self._chunks.clear()
        return whole


def shift_queries(batch: pyarrow.RecordBatch, by: int) -> pyarrow.RecordBatch:
    """Shifts `query_index` so that it counts from the first query of all parts."""
    pa = load_pyarrow()
    if by == 0:
        return batch
    from pyarrow import compute

    at = batch.schema.get_field_index("query_index")
    one = batch.schema.field(at)
    shifted = compute.add(batch.column(at), by).cast(one.type)
    columns = [*batch.columns]
    columns[at] = shifted
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
