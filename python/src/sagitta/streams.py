"""The methods of one collection that send or receive streams: Arrow, NDJSON and Parquet.

Requests are retried until the reply begins. A truncated reply always ends in an error and never
looks like a complete one.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from typing_extensions import NotRequired, Unpack

from sagitta import arrow, wire
from sagitta.core import ARROW, MEDIA_TYPES, NDJSON, chunks_of, lines_of, rows_of, sequence_of
from sagitta.errors import SagittaError, invalid_argument
from sagitta.flow import (
    Chunks,
    Emit,
    Flow,
    Head,
    ItemFlow,
    Reply,
    Request,
    StreamFlow,
    Upload,
    call,
    items,
    stream,
)
from sagitta.retry import is_server_failure
from sagitta.service import Group
from sagitta.values import encode_json, wire_record

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray

WriteMode: TypeAlias = 'wire.WriteMode | Literal["patch"]'
"""`patch` changes what the vectors in the request contain and leaves the rest as it is."""
VectorSource: TypeAlias = "Iterable[VectorInput] | AsyncIterable[VectorInput]"
VectorInput: TypeAlias = "VectorRecord | wire.PatchInput"
"""A vector to write or, in the mode `patch`, the changes to one."""

CUT_OFF = {ARROW: b"\xff\xff\xff\xff", NDJSON: b"{"}
"""A stream that ends before its first row is complete, by media type."""
CHUNK_BYTES = 65_536
"""Lines are collected into chunks, since a chunk per line would cost more than the encoding."""


class VectorRecord(wire.RecordInput, total=False):
    """A vector to write: with `values`, with `embed`, or with neither if it has no values."""

    values: wire.Values
    """The vector, [dimension]."""
    embed: str
    """A text that the collection's model turns into values."""


class WriteOptions(TypedDict, total=False):
    mode: WriteMode
    """`upsert` if absent."""
    idempotency_key: str
    """Identifies the stream, so that it can be sent again, even after your program has ended: the
    server skips what is durable. Generated if absent. A stream is sent again only if its source can
    be opened again.
    """
    bulk: bool
    """For large imports into a cluster: the node that receives the stream turns its rows into
    segment files itself, so that several nodes can take streams at once. Only for the mode
    `upsert` and streams of about 64 MB. There is no idempotency key: a broken stream is sent again
    from its first row, so every row should have an id.
    """


class ColumnOptions(WriteOptions, total=False):
    id_column: str
    """`id` if absent."""
    vector_column: str
    """The first of `values`, `vector` and `embedding` that exists, if absent."""


class QueryOptions(TypedDict, total=False):
    """Defaults for queries. A column of the same name overrides an option for each query."""

    top_k: int
    """10 if absent."""
    filter: wire.JsonObject
    using: str
    metric: wire.Metric
    score_threshold: float
    group_by: str
    group_size: int
    include_metadata: bool | Sequence[str]
    include_values: bool
    min_sequence: int
    vector_column: str
    ignore_columns: bool
    """Whether to leave out columns that are not options of a query; otherwise they are errors."""


class ExportOptions(TypedDict, total=False):
    filter: wire.JsonObject
    sample: int
    """The number of rows to return, chosen by the hashes of their ids."""
    seed: int
    include_values: bool
    include_metadata: bool


class ColumnExportOptions(ExportOptions, total=False):
    """Options of replies with columns."""

    metadata: Literal["text", "columns"]
    """`columns` returns a typed column for each metadata path in place of one of JSON text."""


class JoinMatch(TypedDict):
    id: str
    score: float
    distance: NotRequired[float]
    metadata: NotRequired[wire.JsonObject]


class JoinRow(TypedDict):
    """A row of the collection and its matches, possibly none."""

    id: str
    matches: list[JoinMatch]


@dataclass(frozen=True)
class Neighbors:
    """The neighbours of row i of a projection are `starts[i]:starts[i + 1]`, nearest first."""

    metric: Literal["cosine", "euclidean"]
    starts: NDArray[numpy.uint32]
    rows: NDArray[numpy.uint32]
    """Indexes of rows."""
    distances: NDArray[numpy.float32]


@dataclass(frozen=True)
class Projected:
    """The rows of a projection as columns, in insertion order."""

    sequence: int
    variance_ratios: list[float]
    """The share of the variance that each component explains."""
    ids: list[str]
    coordinates: NDArray[numpy.float32]
    """[rows, dimensions]."""
    neighbors: Neighbors | None
    """Present only if requested."""


class StreamFlows(Group):
    """The streams of the collection at the path `_root`."""

    _root: str

    @call
    def write_stream(
        self,
        source: Chunks | Callable[[], Chunks],
        *,
        format: Literal["arrow", "ndjson"],
        **options: Unpack[ColumnOptions],
    ) -> Flow[wire.VectorsWritten]:
        """Writes a stream of bytes in ingest batches, with bounded memory on both sides.

        `source` is an iterator of bytes, a file in mode "rb", bytes, or a function. If it is a
        *function* that opens the same bytes each time, an interrupted stream is sent again under
        the same idempotency key, and the server skips what is durable. `committed_count` of an
        error counts the durable rows. Errors of the source are raised unchanged.
        """
        open_source, is_resendable = _opener(source)
        upload = Upload(open_source, MEDIA_TYPES[format], is_resendable)
        return self._write(upload, options)

    @call
    def write_all(
        self,
        vectors: VectorSource | Callable[[], VectorSource],
        **options: Unpack[WriteOptions],
    ) -> Flow[wire.VectorsWritten]:
        """Like write_stream, for any number of vectors as for `upsert`, sent as NDJSON.

        Lists and functions can be sent again after an interruption, iterators cannot.
        """
        open_source, is_resendable = _opener(vectors)
        upload = Upload(lambda: _encode_lines(open_source()), NDJSON, is_resendable)
        return self._write(upload, options)

    @call
    def write_batches(
        self, source: Any, **options: Unpack[ColumnOptions]
    ) -> Flow[wire.VectorsWritten]:
        """Like write_stream, for columns, which are sent as Arrow and never copied as a whole.

        `source` is a pyarrow Table, RecordBatch, RecordBatchReader or dataset, an iterable of
        record batches, a data frame (pandas, polars, anything with `__arrow_c_stream__` or
        `__dataframe__`), a mapping of names to columns (lists, or arrays, [rows, dimension] for
        vectors), or a function that returns one of these. Tables, data frames, mappings and
        functions can be sent again after an interruption. The column `values`, `vector` or
        `embedding` contains the vectors and `id` the ids. Every other column becomes a member of
        the metadata.
        """
        batches = arrow.batch_source(source)
        upload = Upload(lambda: arrow.encode_batches(batches), ARROW, batches.is_resendable)
        return self._write(upload, options)

    @stream
    def query_batches(
        self, queries: Any, *, rows_per_request: int = 1_000, **options: Unpack[QueryOptions]
    ) -> StreamFlow[pyarrow.RecordBatch]:
        """Runs any number of queries, one per row, in constant memory.

        `queries` is an array [queries, dimension] or a source as for write_batches, with a column
        `vector` (or `values`, `embedding`) or `id`. The matches come in batches with the columns
        `query_index` (from 0), `rank` (from 1), `id`, `score`, and `distance`, `metadata`, `values`
        where they apply. A query without matches has no row.

        The queries are sent `rows_per_request` at a time. The matches of one request must fit in
        memory. Each request reads the newest state, so later requests see writes made in between.
        An interrupted request is sent again.
        """
        if rows_per_request < 1:
            raise invalid_argument(f"expected rows_per_request from 1, found {rows_per_request}")
        start = 0
        is_begun = False
        for part in arrow.query_parts(queries, rows_per_request):
            reply = yield from self._core.send(self._query_part(part, options))
            schema, batches = arrow.decode_batches(reply.content)
            if not is_begun:
                yield Emit(Head(sequence_of(reply), None, schema))
                is_begun = True
            for batch in batches:
                yield Emit(arrow.shift_queries(batch, start))
            start += part.num_rows
        if not is_begun:
            raise invalid_argument("expected at least one record batch of queries, found none")

    @stream
    def export_stream(
        self,
        *,
        format: Literal["arrow", "ndjson", "parquet"],
        **options: Unpack[ColumnExportOptions],
    ) -> StreamFlow[bytes]:
        """Every row of one snapshot as bytes, in insertion order."""
        reply = yield from self._core.open(self._export(format, options))
        yield Emit(_snapshot_of(reply))
        yield from chunks_of(reply)

    @stream
    def export_batches(
        self, **options: Unpack[ColumnExportOptions]
    ) -> StreamFlow[pyarrow.RecordBatch]:
        """Every row of one snapshot in batches: `id`, `values`, and `metadata` as JSON text.

        With `metadata="columns"`, each metadata path is a typed column instead.

        The stream implements `__arrow_c_stream__`, so polars, DuckDB and pyarrow read it in
        constant memory.
        """
        reply = yield from self._core.open(self._export("arrow", options))
        yield from arrow.read_batches(reply, _snapshot_of(reply))

    @items
    def export_all(self, **options: Unpack[ExportOptions]) -> ItemFlow[wire.Vector]:
        """Every row of one snapshot, one at a time in insertion order."""
        reply = yield from self._core.open(self._export("ndjson", options))
        yield from lines_of(reply)

    @items
    def join(self, *, with_: str | None = None, **request: Unpack[wire.Join]) -> ItemFlow[JoinRow]:
        """The nearest neighbours of every row, one row at a time in insertion order.

        They come from this collection or from `with_`. At least one of `top_k` and
        `score_threshold` is required.
        """
        reply = yield from self._core.open(self._join("ndjson", with_, request))
        yield from lines_of(reply)

    @stream
    def join_stream(
        self,
        *,
        format: Literal["arrow", "ndjson"],
        with_: str | None = None,
        **request: Unpack[wire.Join],
    ) -> StreamFlow[bytes]:
        """The nearest neighbours of every row, as bytes."""
        reply = yield from self._core.open(self._join(format, with_, request))
        yield Emit(_snapshot_of(reply))
        yield from chunks_of(reply)

    @stream
    def join_batches(
        self, *, with_: str | None = None, **request: Unpack[wire.Join]
    ) -> StreamFlow[pyarrow.RecordBatch]:
        """The nearest neighbours of every row in batches: `id`, `rank`, `match_id`, `score`, and
        `metadata` if requested.
        """
        reply = yield from self._core.open(self._join("arrow", with_, request))
        yield from arrow.read_batches(reply, _snapshot_of(reply))

    @stream
    def projection_stream(
        self, *, format: Literal["arrow", "ndjson"], **request: Unpack[wire.Projection]
    ) -> StreamFlow[bytes]:
        """The coordinates of a sample along its principal components, as bytes."""
        reply = yield from self._core.open(self._projection(format, request))
        yield Emit(_snapshot_of(reply))
        yield from chunks_of(reply)

    @stream
    def projection_batches(
        self, **request: Unpack[wire.Projection]
    ) -> StreamFlow[pyarrow.RecordBatch]:
        """The coordinates of a sample in batches: `id`, `coordinates`, and `neighbors` and
        `distances` if requested.
        """
        reply = yield from self._core.open(self._projection("arrow", request))
        yield from arrow.read_batches(reply, _snapshot_of(reply))

    @call
    def project(self, **request: Unpack[wire.Projection]) -> Flow[Projected]:
        """The coordinates of a sample as arrays. Needs NumPy."""
        reply = yield from self._core.send(self._projection("ndjson", request))
        return _projected(reply)

    def _write(self, upload: Upload, options: Mapping[str, Any]) -> Flow[Any]:
        query = dict(options)
        key = query.pop("idempotency_key", None)
        if key is None and not query.get("bulk"):
            # Even a source that cannot be opened again needs a key, to ask what is durable.
            key = str(uuid.uuid4())
        request = Request(
            "POST",
            f"{self._root}/vectors",
            is_idempotent=upload.is_resendable,
            query=query,
            upload=upload,
            headers={} if key is None else {"idempotency-key": key},
        )
        try:
            return (yield from self._core.json(request))
        except SagittaError as error:
            is_unknown = error.committed_count is None and is_server_failure(error)
            if is_unknown and key is not None:
                known = yield from self._committed(request, upload.content_type)
                if known is not None:
                    error.committed_count, error.sequence = known.committed_count, known.sequence
                    error.committed_count_at_least = known.committed_count_at_least
            raise

    def _committed(self, request: Request, content_type: str) -> Flow[SagittaError | None]:
        """How much of a stream is durable after its reply was lost; None if the server is
        unreachable.

        Sends the stream again, but ends it within the first row: nothing is written, and the error
        counts the rows that earlier attempts have made durable.
        """
        again = dataclasses.replace(
            request,
            is_idempotent=True,
            upload=None,
            content=CUT_OFF[content_type],
            headers={**request.headers, "content-type": content_type},
        )
        try:
            yield from self._core.send(again)
        except SagittaError as error:
            return None if error.committed_count is None else error
        return None

    def _query_part(self, part: Any, options: Mapping[str, Any]) -> Request:
        return Request(
            "POST",
            f"{self._root}/query/batch",
            is_idempotent=True,
            query=options,
            content=arrow.encode_batch(part),
            headers={"content-type": ARROW, "accept": ARROW},
        )

    def _export(self, format: str, options: Mapping[str, Any]) -> Request:
        return Request(
            "GET",
            f"{self._root}/export",
            is_idempotent=True,
            query={"format": format, **options},
            headers={"accept": MEDIA_TYPES[format]},
        )

    def _join(self, format: str, with_: str | None, request: Mapping[str, Any]) -> Request:
        body = {**request} if with_ is None else {**request, "with": with_}
        return self._streamed("join", format, body)

    def _projection(self, format: str, request: Mapping[str, Any]) -> Request:
        return self._streamed("projection", format, request)

    def _streamed(self, operation: str, format: str, body: Mapping[str, Any]) -> Request:
        return Request(
            "POST",
            f"{self._root}/{operation}",
            is_idempotent=True,
            body=body,
            headers={"accept": MEDIA_TYPES[format]},
        )


def _opener(source: Any) -> tuple[Callable[[], Any], bool]:
    """A function that opens a source, and whether it can be opened again."""
    if callable(source):
        return source, True
    is_container = hasattr(source, "__len__")
    return (lambda: source), is_container


def _encode_lines(vectors: Any) -> Chunks:
    """Encodes one vector per line."""
    return _encode_async(vectors) if isinstance(vectors, AsyncIterable) else _encode(vectors)


def _encode(vectors: Iterable[VectorRecord]) -> Iterator[bytes]:
    lines = bytearray()
    for row, vector in enumerate(vectors):
        lines += _line(vector, row)
        if len(lines) >= CHUNK_BYTES:
            yield bytes(lines)
            lines.clear()
    yield bytes(lines)


async def _encode_async(vectors: AsyncIterable[VectorRecord]) -> Any:
    lines = bytearray()
    row = 0
    async for vector in vectors:
        lines += _line(vector, row)
        row += 1
        if len(lines) >= CHUNK_BYTES:
            yield bytes(lines)
            lines.clear()
    yield bytes(lines)


def _line(vector: VectorRecord, row: int) -> bytes:
    """Encodes a vector as a line. `row` counts from 0."""
    return encode_json(wire_record(vector, f"/{row}"), f"/{row}") + b"\n"


def _snapshot_of(reply: Reply) -> Head:
    return Head(sequence_of(reply), sequence_of(reply, "sagitta-with-sequence"))


def _projected(reply: Reply) -> Projected:
    import numpy

    lines = list(rows_of(reply.content.split(b"\n")))
    if not lines or "row_count" not in lines[0]:
        detail = "expected a line with row_count at the beginning of the reply, found none"
        raise SagittaError("unexpected_reply", detail)
    head, rows = lines[0], lines[1:]
    neighbors = None
    if "neighbor_metric" in head:
        counts = [len(row["neighbors"]) for row in rows]
        neighbors = Neighbors(
            metric=head["neighbor_metric"],
            starts=numpy.cumsum([0, *counts], dtype=numpy.uint32),
            rows=numpy.array([at for row in rows for at in row["neighbors"]], numpy.uint32),
            distances=numpy.array([one for row in rows for one in row["distances"]], numpy.float32),
        )
    return Projected(
        sequence=head["sequence"],
        variance_ratios=head["variance_ratios"],
        ids=[row["id"] for row in rows],
        coordinates=numpy.array([row["coordinates"] for row in rows], numpy.float32),
        neighbors=neighbors,
    )
