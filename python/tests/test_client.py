"""JSON reads and writes on a real server."""

from __future__ import annotations

import array
import collections
import datetime
import re
import traceback
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import numpy
import pandas
import pytest
from servers import Server

import sagitta
from sagitta import Collection, Sagitta, SagittaError
from sagitta.values import encode_json

LOOP: list = []
"""A list that contains itself."""
LOOP.append(LOOP)


def rows(count: int) -> list[dict]:
    return [{"id": f"v{n}", "values": [n, 1, 0], "metadata": {"n": n}} for n in range(count)]


def test_vectors_are_read_as_they_were_written(vectors: Collection) -> None:
    written = vectors.upsert(
        [
            {"id": "list", "values": [0.5, 1, 2], "metadata": {"big": 12345678901234567890}},
            {"id": "array", "values": numpy.array([0.1, 1, 2]), "metadata": {"n": numpy.int64(3)}},
            {"id": "buffer", "values": array.array("d", [0.1, 1, 2])},
        ]
    )
    assert written["inserted_count"] == 3
    assert vectors.get("list")["metadata"] == {"big": 12345678901234567890}
    found = vectors.fetch(["array", "buffer", "missing"], include_values="numpy")
    for vector in found["vectors"]:
        assert vector["values"].dtype == numpy.float32
        assert vector["values"].tolist() == numpy.array([0.1, 1, 2], numpy.float32).tolist()
    assert found["not_found"] == ["missing"]
    assert vectors.get("array")["metadata"] == {"n": 3}


def test_a_query_returns_the_nearest_with_requested_members(
    vectors: Collection,
) -> None:
    vectors.upsert(rows(5))
    reply = vectors.query(
        vector=numpy.array([1, 0, 0]),
        top_k=2,
        filter={"n": {"$lt": 4}},
        include_metadata=True,
        include_values="numpy",
    )
    assert [match["id"] for match in reply["matches"]] == ["v3", "v2"]
    assert reply["matches"][0]["values"].tolist() == [3, 1, 0]
    text = vectors.query(id="v4", top_k=1, include_values="base64")["matches"][0]["values"]
    assert sagitta.decode_values(text) == [3, 1, 0]


def test_only_the_requested_metadata_paths_are_returned(vectors: Collection) -> None:
    metadata = {"a": {"b": 1, "c": 2}, "d": 3}
    vectors.upsert([{"id": "v", "values": [1, 0, 0], "metadata": metadata}])
    paths = ["a.b"]
    found = [
        vectors.get("v", include_metadata=paths),
        *vectors.fetch(["v"], include_metadata=paths)["vectors"],
        *vectors.list(include_metadata=paths)["vectors"],
        *vectors.query(vector=[1, 0, 0], include_metadata=paths)["matches"],
    ]
    assert [one["metadata"] for one in found] == [{"a": {"b": 1}}] * 4


def test_queries_in_a_batch_have_their_own_options(vectors: Collection) -> None:
    vectors.upsert(rows(5))
    replies = vectors.query_batch(
        [{"vector": [1, 0, 0], "top_k": 1, "include_values": "numpy"}, {"id": "v0", "top_k": 3}]
    )
    assert replies[0]["matches"][0]["values"].tolist() == [4, 1, 0]
    assert len(replies[1]["matches"]) == 3


def test_pages_read_one_snapshot(vectors: Collection) -> None:
    vectors.upsert(rows(25))
    pages = vectors.query_pages(vector=[1, 0, 0], limit=10, include_values="numpy")
    first = next(pages)
    vectors.delete_many(all=True)
    rest = list(pages)
    assert [len(page["matches"]) for page in [first, *rest]] == [10, 10, 5]
    assert rest[1]["matches"][-1]["values"].tolist() == [0, 1, 0]
    assert list(vectors.list_all()) == []


def test_an_unbounded_query_matches_the_whole_collection(vectors: Collection) -> None:
    vectors.upsert(rows(250))

    def ids(**request: Any) -> list[str]:
        return [match["id"] for match in vectors.query_all(vector=[1, 0, 0], **request)]

    assert ids() == [f"v{n}" for n in reversed(range(250))]
    assert len(list(vectors.query_pages(vector=[1, 0, 0], filter={"n": {"$lt": 150}}))) == 2
    assert ids(top_k=3) == ["v249", "v248", "v247"]
    assert len(ids(score_threshold=40)) == 210
    assert len(ids(limit=7)) == 250
    assert len(ids(group_by="n", group_size=200)) == 250


def test_lists_and_their_iterators_agree(vectors: Collection) -> None:
    vectors.upsert(rows(7))
    sort = [{"field": "n", "order": "desc"}]
    page = vectors.list(sort=sort, limit=2, include_values="numpy")
    assert [vector["id"] for vector in page["vectors"]] == ["v6", "v5"]
    assert page["vectors"][0]["values"].tolist() == [6, 1, 0]
    last = vectors.list(cursor=page["next_cursor"], offset=page["total"] - 1)
    assert last["vectors"][0]["id"] == "v0"
    ids = [vector["id"] for vector in vectors.list_all(limit=3, filter={"n": {"$gt": 1}})]
    assert ids == ["v2", "v3", "v4", "v5", "v6"]


def test_named_multi_and_sparse_vectors_are_arrays_and_lists(client: Sagitta, name: str) -> None:
    client.collections.create(
        id=name,
        vectors={
            "title": {"dimension": 2},
            "tokens": {"dimension": 2, "metric": "dot", "multi": True},
        },
        sparse_vectors={"words": {}},
    )
    vectors = client.collection(name)
    tokens = numpy.array([[1, 0], [0, 2]], numpy.float32)
    sparse = {"indices": [17, 40], "values": [0.5, 2]}
    record = {"id": "a", "vectors": {"title": numpy.ones(2), "tokens": tokens}}
    vectors.upsert([{**record, "sparse_vectors": {"words": sparse}}])
    found = vectors.get("a", include_values="numpy")
    assert found["vectors"]["title"].tolist() == [1, 1]
    assert numpy.array_equal(found["vectors"]["tokens"], tokens)
    assert found["sparse_vectors"]["words"] == sparse
    asked = {"multi_vector": tokens, "using": "tokens", "include_values": "numpy"}
    assert vectors.query(**asked)["matches"][0]["score"] == 5
    assert vectors.query(sparse={"indices": [40], "values": [1]}, using="words")["matches"]
    fused = vectors.query(
        fusion={
            "parts": [
                {"vector": numpy.ones(2), "using": "title"},
                {"multi_vector": tokens, "using": "tokens"},
            ]
        }
    )
    assert fused["matches"][0]["id"] == "a"
    vectors.patch("a", vectors={"title": None})
    assert "title" not in vectors.get("a")["vectors"]


def test_vectors_are_added_filled_and_dropped(
    client: Sagitta, vectors: Collection, name: str
) -> None:
    vectors.upsert(rows(4))
    added = client.collections.update(
        name, vectors={"summary": {"dimension": 2, "metric": "dot"}}, sparse_vectors={"words": {}}
    )
    assert added["vectors"]["summary"]["dimension"] == 2
    assert vectors.query(vector=[1, 0], using="summary")["matches"] == []

    words = {"indices": [3], "values": [1]}
    one = {"id": "v0", "vectors": {"summary": numpy.array([5, 0])}, "metadata": {"n": None}}
    patched = vectors.upsert([{**one, "sparse_vectors": {"words": words}}], mode="patch")
    assert patched["updated_count"] == 1
    vectors.write_all([{"id": "v1", "vectors": {"summary": [4, 0]}}], mode="patch")
    columns = {"id": ["v2", "v3"], "vectors.summary": numpy.array([[3, 0], [2, 0]])}
    vectors.write_batches(columns, mode="patch")
    frame = pandas.DataFrame({"id": ["v2", "v3"], "vectors.summary": [[1.0, 0.0], None]})
    vectors.write_batches(frame, mode="patch")
    found = vectors.query(vector=[1, 0], using="summary", include_metadata=True)["matches"]
    assert [(match["id"], match["score"]) for match in found] == [
        ("v0", 5),
        ("v1", 4),
        ("v3", 2),
        ("v2", 1),
    ]
    assert [match["metadata"] for match in found[:2]] == [{}, {"n": 1}]
    assert vectors.get("v3")["values"] == [3, 1, 0]
    assert vectors.get("v0")["sparse_vectors"] == {"words": words}

    vectors.upsert([{"id": "v0", "vectors": {"summary": None}}], mode="patch")
    assert vectors.get("v0")["vectors"] == {}
    with pytest.raises(SagittaError) as missing:
        vectors.upsert([{"id": "other", "vectors": {"summary": [1, 0]}}], mode="patch")
    assert missing.value.code == "vector_not_found"
    left = client.collections.update(
        name, vectors={"summary": None}, sparse_vectors={"words": None}
    )
    assert "vectors" not in left
    assert "sparse_vectors" not in left


def test_changes_report_how_many_vectors_they_change(vectors: Collection) -> None:
    vectors.upsert(rows(4))
    assert vectors.update_many(filter={"n": {"$lt": 2}}, patch={"new": 1})["updated_count"] == 2
    assert vectors.count({"new": 1}) == 2
    assert vectors.delete_many(filter={"new": 1}, dry_run=True)["deleted_count"] == 2
    assert vectors.delete("v0")["deleted"] is True
    with pytest.raises(SagittaError) as missing:
        vectors.delete("v0")
    assert missing.value.code == "vector_not_found"
    assert vectors.put({"id": "v0", "values": [1, 1, 1]})["created"] is True
    etag = vectors.get("v0")["etag"]
    vectors.patch("v0", metadata={"a": 1}, if_match=etag)
    with pytest.raises(SagittaError) as stale:
        vectors.patch("v0", metadata={"a": 2}, if_match=etag)
    assert stale.value.code == "precondition_failed"
    sequence = vectors.get("v0", include_sequence=True)["sequence"]
    assert vectors.delete("v0", if_sequence=sequence)["deleted"] is True


def test_a_write_takes_effect_once_per_key(vectors: Collection) -> None:
    replies = [vectors.upsert([{"values": [1, 1, 1]}], idempotency_key="key-1") for _ in range(2)]
    assert replies[0]["ids"] == replies[1]["ids"]
    assert vectors.count() == 1
    text = vectors.upsert_text(['{"id":"t","values":[1,1,1],"metadata":{"n":1.0}}'], mode="insert")
    assert text["inserted_count"] == 1


def test_aggregates_schemas_and_recall(vectors: Collection) -> None:
    vectors.upsert(rows(10))
    counted = vectors.aggregate(facets=[{"path": "n"}], stats=[{"path": "n"}])
    assert counted["stats"][0]["mean"] == 4.5
    assert [found["path"] for found in vectors.schema()["paths"]] == ["n"]
    measured = vectors.recall(numpy.array([[1, 0, 0]]), [["v9", "v0"]])
    assert measured["recall"] == 0.5


def test_collections_aliases_and_segments(client: Sagitta, vectors: Collection, name: str) -> None:
    vectors.upsert(rows(3))
    settings = {"dimension": 3, "metric": "dot"}
    assert client.collections.create(id=name, if_not_exists=True, **settings)["vector_count"] == 3
    assert client.collections.update(name, description="text")["description"] == "text"
    assert client.collections.clone(name, id=f"{name}-b")["vector_count"] == 3
    assert client.collections.rename(f"{name}-b", f"{name}-c")["id"] == f"{name}-c"
    assert name in [one["id"] for one in client.collections.all(limit=1)]
    assert [one["state"] for one in client.collections.all_segments(name)] == ["stored"]
    client.aliases.set(f"{name}-live", name)
    client.aliases.change({f"{name}-live": f"{name}-c"})
    assert client.aliases.get(f"{name}-live")["collection"] == f"{name}-c"
    assert f"{name}-live" in [one["name"] for one in client.aliases.all()]
    assert client.aliases.delete(f"{name}-live")["deleted"] is True
    assert client.collections.delete(f"{name}-c")["deleted"] is True
    operations = [one["operation"] for one in client.audit.all(target=f"{name}-c")]
    assert operations[0] == "collection.delete"


def test_the_service_describes_itself(client: Sagitta) -> None:
    assert client.service.info()["name"] == "Sagitta"
    assert client.service.live() == {"status": "live"}
    assert client.service.ready()["status"] == "ready"
    assert "sagitta_" in client.service.metrics()
    assert client.service.openapi()["openapi"].startswith("3.")
    assert client.limits()["top_k_max"] == 10_000
    assert client.principal()["kind"] == "anonymous"


def test_an_error_names_the_problem_its_location_and_the_request(vectors: Collection) -> None:
    with pytest.raises(SagittaError) as caught:
        vectors.upsert([{"id": "a", "values": [1, 2]}])
    error = caught.value
    assert (error.code, error.status) == ("dimension_mismatch", 400)
    assert error.items[0]["pointer"] == "/vectors/0/values"
    assert error.request_id
    assert not error.retryable
    assert "/vectors/0/values" in str(error)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {1, 2},
        "\ud800",
        {(1, 2): 3},
        {1: "a", "1": "b"},
        {"a": {None: 1}},
        b"xy",
        bytearray(b"xy"),
        memoryview(b"xy"),
        numpy.array([b"xy"]),
        numpy.float32("nan"),
        numpy.datetime64("2026-01-01", "ns"),
        numpy.array(["2026-01-01"], "datetime64[ns]"),
        datetime.timedelta(1),
        pandas.NaT,
        collections.UserString("xy"),
        10**5000,
        object(),
        LOOP,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_json_cannot_express_are_not_sent(vectors: Collection, value: object) -> None:
    rows = [{"id": "a", "values": [1, 2, 3], "metadata": {"a": [1], "value": [0, value]}}]
    # An integer that Python does not write is detected only after its location has been lost.
    place = "cannot be written as JSON" + (
        ": " if isinstance(value, int) else " at /vectors/0/metadata/value/1"
    )
    with pytest.raises(SagittaError, match=place) as caught:
        vectors.upsert(rows)
    assert caught.value.code == "invalid_argument"
    assert len(str(caught.value)) < 500
    with pytest.raises(SagittaError, match=place.replace("/vectors/0/", "/1/")):
        vectors.write_all([{"id": "b", "values": [1, 2, 3]}, *rows])
    with pytest.raises(SagittaError, match="cannot be written as JSON") as caught:
        vectors.delete_many(filter={"n": {"$in": [1, value]}})
    assert caught.value.code == "invalid_argument"
    assert vectors.count() == 0


def test_python_and_numpy_values_are_written_as_json() -> None:
    time = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    naive = [time.replace(tzinfo=None), time.date()]
    hidden = numpy.ma.array([1, 2], mask=[True, False])
    value = [numpy.arange(2), range(2), (1.5, 2), {"a": numpy.float32(0.5)}, time, hidden, True]
    expected = '[[0,1],[0,1],[1.5,2],{"a":0.5},"2026-01-02T03:04:05+00:00",[null,2],true]'
    assert encode_json(value).decode() == expected
    assert encode_json(naive).decode() == '["2026-01-02T03:04:05","2026-01-02"]'


@pytest.mark.parametrize(
    ("use", "place"),
    [
        (lambda one, bad: one.upsert([{"id": "a", "values": bad}]), "/vectors/0/values"),
        (lambda one, bad: one.put({"id": "a", "values": bad}), "/values"),
        (lambda one, bad: one.write_all([{"id": "a", "values": bad}]), "/0/values"),
        (lambda one, bad: one.upsert([{"vectors": {"t": [bad]}}]), "/vectors/0/vectors/t/0"),
        (lambda one, bad: one.query(vector=bad), "/vector"),
        (lambda one, bad: one.query_batch([{"multi_vector": [bad]}]), "/queries/0/multi_vector/0"),
    ],
)
@pytest.mark.parametrize(
    "bad", [b"\x01\x02\xff", bytearray(3), numpy.ma.array([1.0, 2, 3], mask=[0, 1, 0])]
)
def test_bytes_and_masked_numbers_are_not_vectors(
    vectors: Collection, use: Callable[[Collection, object], object], place: str, bad: object
) -> None:
    with pytest.raises(SagittaError, match=f"{place}: found (bytes|bytearray|a masked)") as caught:
        use(vectors, bad)
    assert caught.value.code == "invalid_argument"
    assert vectors.count() == 0


@pytest.mark.parametrize(
    ("use", "found"),
    [
        (lambda one: one.upsert({"id": "a", "values": [1, 2, 3]}), "dict {'id': 'a', 'values': [1"),
        (lambda one: one.upsert_text('{"id":"a","values":[1,2,3]}'), 'str \'{"id":'),
        (lambda one: one.fetch("42"), "str '42', expected a list of ids"),
        (lambda one: one.delete_many(ids="42"), "str '42', expected a list of ids"),
        (lambda one: one.update_many(ids=b"42", patch={}), "bytes b'42', expected a list of ids"),
        (lambda one: one.recall([[1, 2, 3]], ["42"]), "str '42', expected a list of ids"),
        (lambda one: one.query_batch({"vector": [1, 2, 3]}), "dict {'vector': [1, 2, 3]}, expecte"),
        (lambda one: one.query(multi_vector="abc"), "str 'abc', expected vectors"),
        (lambda one: one.write_batches({"id": "abc", "values": numpy.ones((3, 3))}), "str 'abc'"),
        (lambda one: one.upsert([("a", [1, 2, 3])]), "tuple ('a', [1, 2, 3]), expected a vector"),
        (lambda one: one.write_all(["a"]), "str 'a', expected a vector"),
        (lambda one: one.query_batch(numpy.ones((1, 2))), "ndarray array([1., 1.]), expected a q"),
        (lambda one: one.query_batches([[1, 2, 3]]), "list [1, 2, 3], expected a table"),
        (lambda one: one.write_batches("a.parquet"), "str 'a.parquet', expected a table"),
        (lambda one: one.write_batches(numpy.ones((1, 2))), "ndarray array([1., 1.]), expected a "),
    ],
)
def test_arguments_of_the_wrong_kind_are_explained(
    vectors: Collection, use: Callable[[Collection], object], found: str
) -> None:
    with pytest.raises(SagittaError, match=re.escape(f"found {found}")) as caught:
        use(vectors)
    assert caught.value.code == "invalid_argument"


def test_a_vector_of_two_dimensions_is_not_sent(vectors: Collection) -> None:
    with pytest.raises(SagittaError, match=r"found shape \(1, 3\)"):
        vectors.query(vector=numpy.ones((1, 3)))


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8484", "ftp://host", "http://", "", "http://host:port", "http://host/?a=1", None],
)
def test_an_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(SagittaError, match="expected a URL"):
        Sagitta(url)


def test_keys_are_sent_and_copies_have_their_own_settings(client: Sagitta) -> None:
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(200, json={})

    with httpx.Client(transport=httpx.MockTransport(answer)) as http_client:
        one = Sagitta("http://server/v1/", api_key="secret", http_client=http_client)
        one.limits()
        one.with_options(api_key=None).limits()
        one.limits()
    assert seen == ["Bearer secret", None, "Bearer secret"]


def test_white_space_around_a_key_is_not_sent() -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(200, json={})

    with httpx.Client(transport=httpx.MockTransport(answer)) as http_client:
        one = Sagitta("http://server", api_key=" secret\n", http_client=http_client)
        one.limits()
        one.with_options(api_key="other\r\n").limits()
    assert seen == ["Bearer secret", "Bearer other"]


@pytest.mark.parametrize("key", ["sk_\nsecret", "sk_secret-ü", "sk_secret\x7f", "", b"sk_secret"])
def test_a_key_that_no_header_can_contain_is_rejected_and_not_shown(
    client: Sagitta, key: object
) -> None:
    for use in (
        lambda: Sagitta("http://server", api_key=key),
        lambda: client.with_options(api_key=key),
    ):
        with pytest.raises(SagittaError, match="api_key: expected printable ASCII") as caught:
            use()
        assert caught.value.code == "invalid_argument"
        assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_errors_contain_no_secrets(client: Sagitta, server: Server) -> None:
    with pytest.raises(SagittaError, match="without user name and password") as caught:
        Sagitta(server.url.replace("//", "//user:hidden@"))
    assert "hidden" not in str(caught.value)
    assert "hidden" not in repr(client.with_options(api_key="hidden")._core.settings)
    headers = {"x-token": "hidden\n"}
    with (
        httpx.Client(headers=headers) as http_client,
        pytest.raises(SagittaError, match="not valid HTTP") as caught,
    ):
        Sagitta(server.url, http_client=http_client).limits()
    assert caught.value.code == "invalid_argument"
    # The output of a program that does not catch the error.
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("value", ["ключ", "a\nb", "ends ", uuid.uuid4()])
def test_a_value_that_no_header_can_contain_is_not_sent(vectors: Collection, value: Any) -> None:
    vector = {"id": "a", "values": [1, 2, 3]}
    for use in (
        lambda: vectors.upsert([vector], idempotency_key=value),
        lambda: vectors.write_all([vector], idempotency_key=value),
        lambda: vectors.patch("a", metadata={}, if_match=value),
    ):
        with pytest.raises(SagittaError, match="expected printable ASCII") as caught:
            use()
        assert caught.value.code == "invalid_argument"
    assert vectors.count() == 0


def test_a_filter_that_is_too_long_for_a_url_is_not_sent(vectors: Collection) -> None:
    with pytest.raises(SagittaError, match=r"the URL of 1[0-9]{5} characters") as caught:
        vectors.schema(filter={"n": {"$in": list(range(20_000))}})
    assert caught.value.code == "invalid_argument"
    assert len(str(caught.value)) < 500


def test_a_closed_client_sends_nothing(server: Server) -> None:
    with Sagitta(server.url) as client:
        client.limits()
    with pytest.raises(SagittaError, match="the client is closed") as caught:
        client.limits()
    assert caught.value.code == "invalid_argument"


def test_a_reply_that_cannot_be_decoded_is_unexpected() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        encoded = httpx.ByteStream(b"no gzip")
        return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=encoded)

    with httpx.Client(transport=httpx.MockTransport(answer)) as http_client:
        one = Sagitta("http://server", http_client=http_client)
        with pytest.raises(SagittaError, match="cannot be read") as caught:
            one.limits()
    assert caught.value.code == "unexpected_reply"
