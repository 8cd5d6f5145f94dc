"""Streams in both directions, from anything with columns, and what happens if they are cut."""

from __future__ import annotations

import contextlib
import datetime
import io
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from servers import CuttingProxy, Server

import sagitta
import sagitta.http
from sagitta import Collection, Sagitta, SagittaError
from sagitta.arrow import BATCH_BYTES_MAX, batch_source

ROW = {"id": ["a"], "values": [[1.0, 2.0, 3.0]], "word": ["x"]}


def wave(count: int) -> dict:
    values = numpy.sin(numpy.arange(count * 3)).reshape(count, 3)
    return {"id": [f"row-{n}" for n in range(count)], "values": values, "n": range(count)}


def batches(count: int, rows: int = 100) -> Iterator[pyarrow.RecordBatch]:
    for start in range(0, count, rows):
        ids = [f"row-{n}" for n in range(start, start + rows)]
        yield pyarrow.record_batch({"id": ids, "values": [[1.0, 2.0, 3.0]] * rows})


@pytest.mark.parametrize(
    "source",
    [
        pyarrow.table(ROW),
        pyarrow.record_batch(ROW),
        pyarrow.table(ROW).to_reader(),
        [pyarrow.record_batch(ROW)],
        pyarrow.table({**ROW, "word": pyarrow.array(["x"], pyarrow.string_view())}),
        pyarrow.table({**ROW, "word": pyarrow.array(["x"]).dictionary_encode()}),
        polars.DataFrame(ROW),
        pandas.DataFrame(ROW),
        {**ROW, "values": numpy.array([[1, 2, 3]])},
        lambda: polars.DataFrame(ROW),
        polars.LazyFrame(ROW),
        lambda: polars.LazyFrame(ROW),
        iter([pyarrow.table(ROW)]),
        [polars.DataFrame(ROW)],
        (pandas.DataFrame(ROW) for _ in range(1)),
        [ROW],
    ],
    ids=lambda source: type(source).__name__,
)
def test_anything_with_columns_can_be_written(vectors: Collection, source: object) -> None:
    assert vectors.write_batches(source)["inserted_count"] == 1
    stored = vectors.get("a")
    assert (stored["values"], stored["metadata"]) == ([1, 2, 3], {"word": "x"})


def test_data_without_columns_is_rejected_before_it_is_sent(vectors: Collection) -> None:
    for source in (3, {"id": ["a", "b"], "values": [[1, 2, 3]]}, []):
        with pytest.raises(SagittaError) as caught:
            vectors.write_batches(source)
        assert caught.value.code == "invalid_argument"


@pytest.mark.parametrize(
    "frame",
    [
        pandas.DataFrame({**ROW, "bad": pandas.period_range("2026", periods=1, freq="Y")}),
        {**ROW, "bad": pandas.period_range("2026", periods=1, freq="Y")},
        {"id": ["a", "b"], "bad": [1, "x"]},
        {"id": ["a"], "bad": [numpy.ma.array([1.0, 2, 3], mask=[0, 1, 0])]},
        {**ROW, "bad": [{1, 2}]},
        pandas.DataFrame({"id": ["a", "b"], "values": [[1.0, 2, 3]] * 2, "bad": [1, "x"]}),
        pandas.DataFrame({**ROW, "bad": [{1, 2}]}),
        pandas.DataFrame({"id": ["a"], "bad": [numpy.ma.array([1.0, 2, 3], mask=[0, 1, 0])]}),
        {"id": ["a"], "bad": numpy.array([[1j, 2, 3]])},
        {"id": ["a"], "bad": numpy.array([["2024", "2025", "2026"]], "datetime64[Y]")},
        {**ROW, "bad": [2**64]},
        {**ROW, "bad": ["\ud800"]},
        pandas.DataFrame({**ROW, "bad": [2**64]}),
        pandas.DataFrame({**ROW, "bad": pandas.Series(["\ud800"], dtype=object)}),
        polars.DataFrame({**ROW, "bad": polars.Series([1], dtype=polars.Int128)}),
        lambda: polars.DataFrame({**ROW, "bad": polars.Series([1], dtype=polars.Int128)}),
        [{**ROW, "bad": "x"}],
    ],
    ids=[
        *["period", "periods", "mixed", "masked", "set", "mixed frame", "set frame"],
        *["masked frame", "complex", "times", "long", "surrogate", "long frame", "surrogate frame"],
        *["int128", "function", "row"],
    ],
)
def test_a_column_that_arrow_has_no_type_for_is_named(vectors: Collection, frame: object) -> None:
    with pytest.raises(SagittaError, match=r"column bad[:,] ") as caught:
        vectors.write_batches(frame)
    assert caught.value.code == "invalid_argument"
    assert vectors.count() == 0


def test_integers_of_uint64_are_written_from_lists(vectors: Collection) -> None:
    vectors.write_batches({**ROW, "long": [2**64 - 1]})
    assert vectors.get("a")["metadata"] == {"word": "x", "long": 2**64 - 1}


def test_tables_of_several_schemas_are_rejected(vectors: Collection) -> None:
    with pytest.raises(SagittaError, match="have several schemas") as caught:
        vectors.write_batches([pyarrow.table(ROW), pyarrow.table({**ROW, "word": [1]})])
    assert caught.value.code == "invalid_argument"


def test_datasets_of_hugging_face_can_be_written(vectors: Collection) -> None:
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({**ROW, "id": ["b"]})
    assert vectors.write_batches(data)["inserted_count"] == 1
    assert vectors.write_batches(data.to_iterable_dataset())["updated_count"] == 1
    assert vectors.get("b")["metadata"] == {"word": "x"}


def test_times_without_an_offset_are_the_same_in_columns_and_json(vectors: Collection) -> None:
    noon = datetime.datetime(2026, 1, 2, 12)
    times = {"noon": noon, "day": noon.date()}
    vectors.write_batches(pandas.DataFrame({**ROW, **{name: [one] for name, one in times.items()}}))
    vectors.upsert([{"id": "b", "values": [1, 2, 3], "metadata": times}])
    for hour, count in ((12, 2), (13, 0)):
        since = datetime.datetime(2026, 1, 2, hour, tzinfo=datetime.timezone.utc)
        assert vectors.count({"noon": {"$date": {"$gte": since}}}) == count
    assert vectors.get("a")["metadata"]["day"] == vectors.get("b")["metadata"]["day"]


def test_an_export_contains_the_written_rows(vectors: Collection) -> None:
    columns = wave(3_000)
    assert vectors.write_batches(columns)["batch_count"] == 1
    with vectors.export_batches() as stream:
        assert stream.sequence == 1
        table = pyarrow.table(stream)
    assert table["id"].to_pylist() == columns["id"]
    values = table["values"].combine_chunks().flatten().to_numpy().reshape(-1, 3)
    assert numpy.array_equal(values, columns["values"].astype(numpy.float32))
    frame = polars.DataFrame(vectors.export_batches(filter={"n": {"$gte": 2_990}}))
    assert frame["metadata"][0] == '{"n":2990}'
    typed = vectors.export_batches(metadata="columns", include_values=False).to_arrow()
    assert typed["n"].to_pylist() == list(range(3_000))
    assert typed.schema.field("n").type == pyarrow.int64()
    ids = [vector["id"] for vector in vectors.export_all(sample=10, include_values=False)]
    assert len(ids) == 10
    parquet = b"".join(vectors.export_stream(format="parquet"))
    assert pyarrow.parquet.read_table(pyarrow.BufferReader(parquet)).num_rows == 3_000


def test_an_empty_export_has_a_schema(vectors: Collection) -> None:
    assert vectors.export_batches().to_arrow().column_names == ["id", "values", "metadata"]


def test_queries_are_numbered_across_requests(vectors: Collection) -> None:
    columns = wave(250)
    vectors.write_batches(columns)
    table = vectors.query_batches(columns["values"], top_k=2, rows_per_request=100).to_arrow()
    assert table["query_index"].to_pylist() == [n for n in range(250) for _ in range(2)]
    expected = vectors.query_batch([{"vector": one, "top_k": 2} for one in columns["values"]])
    ids = [match["id"] for reply in expected for match in reply["matches"]]
    assert table["id"].to_pylist() == ids
    by_id = vectors.query_batches({"id": ["row-0"]}, top_k=1, include_metadata=True).to_arrow()
    assert by_id.column_names[-1] == "metadata"
    nothing = vectors.query_batches(columns["values"][:0]).to_arrow()
    assert nothing.num_rows == 0
    with pytest.raises(SagittaError, match="rows_per_request"):
        vectors.query_batches(columns["values"], rows_per_request=0)


def test_joins_and_projections(client: Sagitta, vectors: Collection, name: str) -> None:
    vectors.write_batches(wave(50))
    client.collections.clone(name, id=f"{name}-b")
    rows = list(vectors.join(top_k=1, filter={"n": {"$lt": 10}}))
    assert len(rows) == 10
    assert rows[0]["matches"][0]["id"] != rows[0]["id"]
    with vectors.join_batches(with_=f"{name}-b", top_k=1) as joined:
        assert joined.with_sequence is not None
        assert joined.to_arrow()["match_id"].length() == 50
    lines = b"".join(vectors.join_stream(format="ndjson", top_k=1)).splitlines()
    assert len(lines) == 50
    picture = vectors.project(sample=20, neighbors=2)
    assert picture.coordinates.shape == (20, 2)
    assert picture.neighbors.starts.tolist() == list(range(0, 41, 2))
    assert vectors.projection_batches(sample=20).to_arrow().num_rows == 20


def test_batches_are_split_to_the_limits_of_the_server() -> None:
    wide = {"values": numpy.zeros((3_000, 4_000), numpy.float32)}
    pieces = list(batch_source(wide).open())
    assert sum(piece.num_rows for piece in pieces) == 3_000
    assert max(piece.nbytes for piece in pieces) <= BATCH_BYTES_MAX


def test_an_error_of_a_stream_counts_the_durable_rows(vectors: Collection) -> None:
    def source() -> Iterator[dict]:
        yield from ({"id": f"v{n}", "values": [1, 2, 3]} for n in range(2_000))
        yield {"id": "bad", "values": [1]}
        yield from ({"id": f"w{n}", "values": [1, 2, 3]} for n in range(200_000))

    with pytest.raises(SagittaError) as caught:
        vectors.write_all(source())
    assert caught.value.code == "dimension_mismatch"
    assert caught.value.committed_count == 2_000
    assert vectors.count() == 2_000


@pytest.mark.parametrize("wrap", [lambda source: source, lambda source: lambda: source])
def test_bytes_are_a_stream_of_one_chunk(
    vectors: Collection, wrap: Callable[[object], object]
) -> None:
    lines = b'{"id":"a","values":[1,2,3]}\n{"id":"b","values":[1,2,3]}\n'
    assert vectors.write_stream(wrap(lines), format="ndjson")["upserted_count"] == 2


@pytest.mark.parametrize(
    ("source", "found"), [("a.ndjson", "str"), (io.StringIO("{}\n"), "str"), (5, "int")]
)
def test_sources_without_bytes_are_rejected(
    vectors: Collection, source: object, found: str
) -> None:
    with pytest.raises(SagittaError, match=f'mode "rb", found {found}$') as caught:
        vectors.write_stream(source, format="ndjson")
    assert caught.value.code == "invalid_argument"


def test_an_error_of_the_source_is_raised_unchanged(vectors: Collection) -> None:
    def source() -> Iterator[dict]:
        yield {"id": "a", "values": [1, 2, 3]}
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        vectors.write_all(source)
    inner = SagittaError("network_error", "of another server", retryable=True)

    def failing() -> Iterator[dict]:
        opened.append(1)
        raise inner
        yield {}

    opened: list[int] = []
    with pytest.raises(SagittaError) as caught:
        vectors.write_all(failing)
    assert caught.value is inner
    assert opened == [1]


def after_a_commit(vectors: Collection, rows: int, at: int, then: Callable[[], None]) -> Any:
    """A function that opens batches. Before it first yields batch `at`, one has been committed."""
    is_done = threading.Event()

    def source() -> Iterator[pyarrow.RecordBatch]:
        for number, batch in enumerate(batches(rows)):
            if number == at and not is_done.is_set():
                while vectors.count() == 0:
                    pass
                then()
                is_done.set()
            yield batch

    return source


def test_an_interrupted_stream_continues_after_its_durable_rows(
    server: Server, vectors: Collection, name: str
) -> None:
    proxy = CuttingProxy(server.url, requests_max=[400_000, 600_000])
    with Sagitta(proxy.url) as client:
        source = after_a_commit(vectors, 30_000, 10, lambda: None)
        written = client.collection(name).write_batches(source)
    assert proxy.connection_count == 3
    assert written["resumed_count"] > 0
    assert written["upserted_count"] == 30_000
    assert vectors.count() == 30_000
    proxy.close()


def test_an_interrupted_iterator_is_not_sent_again(
    server: Server, vectors: Collection, name: str
) -> None:
    proxy = CuttingProxy(server.url, requests_max=[250_000])
    with Sagitta(proxy.url) as client, pytest.raises(SagittaError) as caught:
        client.collection(name).write_batches(batches(30_000))
    assert caught.value.code == "network_error"
    # One request for the stream and one or more to ask what is durable.
    assert caught.value.committed_count == vectors.count() < 30_000
    assert caught.value.committed_count % 100 == 0
    proxy.close()


@pytest.mark.parametrize(
    "write",
    [
        lambda one: one.write_batches(wave(1_000)),
        lambda one: one.write_all([{"id": f"v{n}", "values": [1, 2, 3]} for n in range(1_000)]),
    ],
    ids=["arrow", "ndjson"],
)
def test_the_durable_rows_are_known_after_a_lost_reply(
    server: Server, vectors: Collection, name: str, write: Callable[[Collection], object]
) -> None:
    # The stream arrives completely, but its reply is lost.
    proxy = CuttingProxy(server.url, replies_max=[1] * 2)
    retry = sagitta.Retry(stream_attempts_max=2)
    with Sagitta(proxy.url, retry=retry) as client, pytest.raises(SagittaError) as caught:
        write(client.collection(name))
    assert caught.value.code == "network_error"
    assert caught.value.committed_count == vectors.count() == 1_000
    proxy.close()


def test_an_unreachable_server_leaves_what_earlier_attempts_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sagitta.http.time, "sleep", lambda _: None)
    stopping = {"code": "stopping", "detail": "…", "status": 503, "committed_count": 2}
    replies = iter([httpx.Response(503, json=stopping)])

    def answer(request: httpx.Request) -> httpx.Response:
        request.read()
        reply = next(replies, None)
        if reply is None:
            raise httpx.ConnectError("refused")
        return reply

    with httpx.Client(transport=httpx.MockTransport(answer)) as http_client:
        vectors = Sagitta("http://server", http_client=http_client).collection("a")
        with pytest.raises(SagittaError) as caught:
            vectors.write_batches(wave(3))
    error = caught.value
    found = (error.code, error.committed_count, error.committed_count_at_least)
    assert found == ("network_error", None, 2)


def test_a_stream_waits_for_a_server_as_long_as_a_restart_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(sagitta.http.time, "sleep", waits.append)

    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with httpx.Client(transport=httpx.MockTransport(refuse)) as http_client:
        vectors = Sagitta("http://server", http_client=http_client).collection("a")
        with pytest.raises(SagittaError) as caught:
            vectors.write_batches(wave(3))
    assert (caught.value.code, caught.value.committed_count) == ("network_error", None)
    # Eight waits for the stream and four to ask what is durable.
    assert len(waits) == 12
    assert sum(waits[:8]) >= 8


def test_a_stream_outlives_a_killed_server() -> None:
    def restart() -> None:
        server.kill()
        server.start()

    # Enough attempts, however long the server takes to come back.
    retry = sagitta.Retry(attempts_max=1_000, stream_attempts_max=1_000, delay_max=0.5)
    with (
        contextlib.closing(Server()) as server,
        Sagitta(server.url, retry=retry, circuit_breaker=False) as client,
    ):
        client.collections.create(id="a", dimension=3)
        vectors = client.collection("a")
        written = vectors.write_batches(after_a_commit(vectors, 20_000, 120, restart))
        assert written["resumed_count"] > 0
        assert written["upserted_count"] == 20_000
        assert vectors.count() == 20_000


@pytest.mark.parametrize("format", ["arrow", "ndjson", "parquet"])
def test_a_truncated_reply_is_an_error(
    server: Server, vectors: Collection, name: str, format: str
) -> None:
    vectors.write_batches(wave(20_000))
    proxy = CuttingProxy(server.url, replies_max=[200_000] * 4)
    with Sagitta(proxy.url) as client:
        cut = client.collection(name)
        with pytest.raises(SagittaError) as caught:
            list(cut.export_stream(format=format))
        assert caught.value.code == "network_error"
        with pytest.raises(SagittaError):
            cut.export_batches().to_arrow()
        with pytest.raises(SagittaError):
            list(cut.export_all())
        # A read with a non-streamed reply is sent again.
        values = wave(500)["values"]
        found = cut.query_batches(values, top_k=100, include_values=True)
        assert found.to_arrow().num_rows == 50_000
    proxy.close()


def test_leaving_a_stream_ends_the_request(server: Server, vectors: Collection, name: str) -> None:
    vectors.write_batches(wave(20_000))
    limits = httpx.Limits(max_connections=2)
    with httpx.Client(limits=limits) as http_client:
        few = Sagitta(server.url, http_client=http_client).collection(name)
        # Opens more streams than connections, which works only if each is released.
        for _ in range(5):
            with few.export_batches() as stream:
                next(stream)
        assert few.count() == 20_000
