"""The vectors of one collection: JSON reads and writes. streams.py contains the streams.

Every POST that writes carries an idempotency key, so that it can be retried after a lost reply
without writing twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from typing_extensions import NotRequired, Unpack

from sagitta import wire
from sagitta.core import Core, members, pages, parse_json, segment
from sagitta.errors import SagittaError, invalid_argument
from sagitta.flow import Awaitable, Blocking, Flow, ItemFlow, Request, call, items
from sagitta.service import Group
from sagitta.streams import StreamFlows, VectorInput, VectorRecord, WriteMode
from sagitta.values import (
    encode_json,
    list_of,
    read_rows,
    wire_include,
    wire_query,
    wire_record,
    wire_values,
)

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

PAGE_MATCHES = 100
"""The server's default page size."""
MATCHES_MAX = 10_000
"""The server's limit on `top_k` and on the matches in a page of groups."""
IDS_EXPECTED = 'a list of ids, such as ["a"] for one'

IncludePlain: TypeAlias = "bool | Literal['numpy']"
"""Whether replies include vectors, as lists of numbers or as arrays of [dimension] float32."""


class StoredVector(wire.Vector):
    """A vector as `get` returns it."""

    etag: NotRequired[str]
    """The value to pass as `if_match`."""


class RecallOptions(TypedDict, total=False):
    filter: wire.JsonObject
    metric: wire.Metric
    using: str
    min_sequence: int


class ListAllOptions(TypedDict, total=False):
    limit: int | None
    """Vectors per page; 100 if absent."""
    filter: wire.JsonObject | None
    sort: Sequence[wire.SortKey] | None
    include_metadata: bool | Sequence[str] | None
    """True if absent. A list of paths returns only these."""
    include_values: IncludePlain


class ListOptions(ListAllOptions, total=False):
    offset: int | None
    cursor: str | None


class SharedFlows(Group):
    """Methods that the default collection has, too. They raise `collection_required` if none is
    configured.
    """

    def __init__(self, core: Core, runner: Any, root: str) -> None:
        """`root` is the path of the collection, empty for the default one."""
        super().__init__(core, runner)
        self._root = root

    @call
    def put(self, vector: VectorRecord) -> Flow[wire.VectorReplaced]:
        """Replaces a whole vector or creates it.

        `vector` is as for `upsert`, with an id. With `if_sequence`, it is not retried after a lost
        reply, because the retry would fail if the first attempt succeeded.
        """
        body = wire_record(vector, "")
        if "id" not in body:
            raise invalid_argument("expected a vector with an id, found none")
        path = f"{self._root}/vectors/{segment(body['id'])}"
        is_idempotent = "if_sequence" not in body
        return self._core.json(Request("PUT", path, is_idempotent=is_idempotent, body=body))

    @call
    def list(self, **page: Unpack[ListOptions]) -> Flow[wire.VectorList]:
        """One page, in insertion order or sorted by `sort`, such as `[{"field": "year"}]`."""
        return self._list(page, page.get("include_values"))

    @items
    def list_pages(self, **first: Unpack[ListAllOptions]) -> ItemFlow[wire.VectorList]:
        """All pages, from the snapshot of the first one."""
        return self._pages(first)

    @items
    def list_all(self, **first: Unpack[ListAllOptions]) -> ItemFlow[wire.Vector]:
        """Like list_pages, one vector at a time. `limit` is the page size (100)."""
        return members(self._pages(first), "vectors")

    @call
    def query(self, **request: Unpack[wire.Query]) -> Flow[wire.QueryReply]:
        """The nearest vectors, best first: `top_k` of them (10), or a page of all if only `limit`
        is given.

        Exactly one of `vector` ([dimension] numbers or an array), `id`, `multi_vector`, `embed`,
        `recommend`, `discover`, `text`, `sparse` and `fusion` defines the search.
        `include_values="numpy"` returns vectors as arrays of [dimension] float32. A higher score is
        better for every metric. Raises `dimension_mismatch`, `invalid_filter`, `vector_not_found`,
        …
        """
        return self._query(request, request.get("include_values"))

    @items
    def query_pages(self, **request: Unpack[wire.Query]) -> ItemFlow[wire.QueryReply]:
        """All pages, from the snapshot of the first one. They contain all vectors that the query
        ranks, unless `top_k`, `score_threshold` or a cursor bounds them. `limit` is the page size
        (100).
        """
        return self._query_pages(request)

    @items
    def query_all(self, **request: Unpack[wire.Query]) -> ItemFlow[wire.Match]:
        """Like query_pages, one match at a time: the whole collection, or only matches with at
        least `score_threshold`, or only the best `top_k`.
        """
        return members(self._query_pages(request), "matches")

    def _pages(self, first: Mapping[str, Any]) -> ItemFlow[Any]:
        # Later pages are requested by cursor alone, so the first request determines their content.
        asked = first.get("include_values")
        return pages(first, lambda page: self._list(page, asked))

    def _list(self, page: Mapping[str, Any], asked: object) -> Flow[Any]:
        # Sent in the body, because a filter may be longer than a URL can be.
        given = {name: value for name, value in wire_include(page).items() if value is not None}
        reply = yield from self._core.read(f"{self._root}/vectors/list", given)
        read_rows(reply["vectors"], asked)
        return reply

    def _query_pages(self, first: Mapping[str, Any]) -> ItemFlow[Any]:
        asked = first.get("include_values")
        return pages(_with_limit(first), lambda page: self._query(page, asked))

    def _query(self, request: Mapping[str, Any], asked: object) -> Flow[Any]:
        reply = yield from self._core.read(f"{self._root}/query", wire_query(request))
        read_rows(reply["matches"], asked)
        return reply


class CollectionFlows(StreamFlows, SharedFlows):
    """The vectors of one collection. Raises `collection_not_found`, even if only access is
    missing.
    """

    @call
    def upsert(
        self,
        vectors: Sequence[VectorInput],
        *,
        mode: WriteMode | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[wire.VectorsWritten]:
        """Writes all vectors or none, and returns when they are on disk.

        A vector is `{"id", "values", "metadata", …}`. The values are [dimension] numbers or an
        array, which is sent as float32. `mode="patch"` changes existing vectors: each contains its
        id and the changes, and a named vector of None is removed. Raises `dimension_mismatch`,
        `invalid_vector`, `vector_exists`, `vector_not_found`, …
        """
        records = list_of(vectors, "vectors", "a list of vectors")
        wired = [wire_record(one, f"/vectors/{at}") for at, one in enumerate(records)]
        body: dict[str, Any] = {"vectors": wired}
        if mode is not None:
            body["mode"] = mode
        return self._core.write(f"{self._root}/vectors", body, idempotency_key)

    @call
    def upsert_text(
        self,
        vectors: Sequence[str],
        *,
        mode: WriteMode | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[wire.VectorsWritten]:
        """Like upsert, for vectors that are already JSON text. Numbers keep their spelling."""
        members = b"" if mode is None else b',"mode":' + encode_json(mode)
        texts = list_of(vectors, "vectors", "a list of texts, each of which is a vector as JSON")
        content = b'{"vectors":[' + ",".join(texts).encode() + b"]" + members + b"}"
        return self._core.write(f"{self._root}/vectors", None, idempotency_key, content=content)

    @call
    def patch(
        self, id: str, *, if_match: str | None = None, **change: Unpack[wire.VectorPatch]
    ) -> Flow[wire.VectorPatched]:
        """Merges `metadata` (RFC 7396), replaces `values`, and sets named vectors; None removes
        them.

        With `if_match`, an etag from `get`, or `if_sequence`, it is not retried after a lost reply,
        because the retry would fail if the first attempt succeeded. Raises `vector_not_found`.
        """
        request = Request(
            "PATCH",
            f"{self._root}/vectors/{segment(id)}",
            is_idempotent=if_match is None and "if_sequence" not in change,
            body=wire_record(change, ""),
            headers={} if if_match is None else {"if-match": if_match},
        )
        return self._core.json(request)

    @call
    def get(
        self,
        id: str,
        *,
        include_values: IncludePlain = True,
        include_metadata: bool | Sequence[str] | None = None,
        include_sequence: bool | None = None,
    ) -> Flow[StoredVector]:
        """One vector, with all metadata or only a list of paths. Raises `vector_not_found`."""
        query = {"include_metadata": include_metadata, "include_sequence": include_sequence}
        path = f"{self._root}/vectors/{segment(id)}"
        query = wire_include({**query, "include_values": include_values})
        reply = yield from self._core.send(Request("GET", path, is_idempotent=True, query=query))
        vector = parse_json(reply)
        read_rows([vector], include_values)
        if "etag" in reply.headers:
            vector["etag"] = reply.headers["etag"]
        return vector  # type: ignore[no-any-return]

    @call
    def fetch(
        self,
        ids: Sequence[str],
        *,
        include_values: IncludePlain = True,
        include_metadata: bool | Sequence[str] = True,
        include_sequence: bool = False,
    ) -> Flow[wire.VectorsFetched]:
        """The vectors in the order of the ids. Missing ids are listed in `not_found`."""
        include = {"include_metadata": include_metadata, "include_sequence": include_sequence}
        listed = list_of(ids, "ids", IDS_EXPECTED)
        body = wire_include({"ids": listed, **include, "include_values": include_values})
        reply = yield from self._core.read(f"{self._root}/vectors/fetch", body)
        read_rows(reply["vectors"], include_values)
        return reply  # type: ignore[no-any-return]

    @call
    def delete(
        self, id: str, *, if_sequence: int | None = None, idempotency_key: str | None = None
    ) -> Flow[wire.VectorDeleted]:
        """Deletes one vector. With `if_sequence` it is not retried. Raises `vector_not_found`."""
        if if_sequence is not None:
            path = f"{self._root}/vectors/{segment(id)}"
            query = {"if_sequence": if_sequence}
            request = Request("DELETE", path, is_idempotent=False, query=query)
            return (yield from self._core.json(request))  # type: ignore[no-any-return]
        # DELETE takes no idempotency key. After a lost reply, a vector that this call deleted would
        # be indistinguishable from one that never existed.
        path = f"{self._root}/vectors/delete"
        reply = yield from self._core.write(path, {"ids": [id]}, idempotency_key)
        if reply["deleted_count"] == 1:
            return {"id": id, "deleted": True, "sequence": reply["sequence"]}
        raise SagittaError(
            "vector_not_found", f'There is no vector with the id "{id}".', status=404
        )

    @call
    def delete_many(self, **selection: Unpack[wire.VectorDelete]) -> Flow[wire.VectorsDeleted]:
        """Deletes the vectors with `ids`, those that match `filter`, or `all`.

        `dry_run` only counts them.
        """
        return self._change("delete", selection)

    @call
    def update_many(self, **update: Unpack[wire.VectorUpdate]) -> Flow[wire.VectorsUpdated]:
        """Changes the metadata of the vectors with `ids`, of those that match `filter`, or of
        `all`.

        `patch` merges (RFC 7396), `metadata` replaces. The write is atomic. `limit` bounds the
        vectors it changes: repeat it while `has_more` is true. Unchanged vectors are not written.
        """
        return self._change("update", update)

    @call
    def count(self, filter: wire.JsonObject | None = None) -> Flow[int]:
        """The exact number of vectors, or of those whose metadata matches."""
        body = {} if filter is None else {"filter": filter}
        reply = yield from self._core.read(f"{self._root}/count", body)
        return reply["count"]  # type: ignore[no-any-return]

    @call
    def aggregate(self, **request: Unpack[wire.Aggregate]) -> Flow[wire.AggregateReply]:
        """Exact facets and statistics over all vectors that match the filter."""
        return self._core.read(f"{self._root}/aggregate", request)

    @call
    def schema(
        self,
        *,
        filter: wire.JsonObject | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Flow[wire.FoundSchema]:
        """One page of the metadata paths of the vectors, with types and ranges.

        `after` is the `next_after` of the previous page.
        """
        query = {"filter": filter, "limit": limit, "after": after}
        return self._core.get(f"{self._root}/schema", query)

    @call
    def query_batch(self, queries: Sequence[wire.Query]) -> Flow[Sequence[wire.QueryReply]]:
        """Runs up to 1 024 queries on one snapshot. The replies are in the order of the queries."""
        listed = list_of(queries, "queries", "a list of queries; query takes one")
        body = {"queries": [wire_query(one, f"/queries/{at}") for at, one in enumerate(listed)]}
        reply = yield from self._core.read(f"{self._root}/query/batch", body)
        for query, result in zip(listed, reply["results"], strict=True):
            read_rows(result["matches"], query.get("include_values"))
        return reply["results"]  # type: ignore[no-any-return]

    @call
    def recall(
        self,
        vectors: Sequence[wire.Values] | NDArray[numpy.number[Any]],
        ids: Sequence[Sequence[str]],
        **options: Unpack[RecallOptions],
    ) -> Flow[wire.RecallReply]:
        """Measures the exact recall of other search results.

        `vectors` are at most 1 024 vectors or an array [queries, dimension]. The reply states what
        share of the nearest neighbours of `vectors[q]` is in `ids[q]`.
        """
        listed = list_of(vectors, "vectors", "vectors or an array [queries, dimension]")
        body = {
            "vectors": [wire_values(one, f"/vectors/{at}") for at, one in enumerate(listed)],
            "ids": [
                list_of(some, f"/ids/{at}", IDS_EXPECTED)
                for at, some in enumerate(list_of(ids, "ids", "a list of ids for each vector"))
            ],
            **options,
        }
        return self._core.read(f"{self._root}/recall", body)

    def _change(self, operation: str, change: Mapping[str, Any]) -> Flow[Any]:
        body = dict(change)
        if "ids" in body:
            body["ids"] = list_of(body["ids"], "ids", IDS_EXPECTED)
        key = body.pop("idempotency_key", None)
        return self._core.write(f"{self._root}/vectors/{operation}", body, key)


def _with_limit(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Adds a `limit`, which requests pages of all matches, to a request without any bound. The
    server would otherwise return only the ten nearest.
    """
    if any(name in request for name in ("limit", "top_k", "score_threshold", "cursor")):
        return request
    group_size = request.get("group_size")
    # An invalid size is left for the server to reject.
    size = group_size if isinstance(group_size, int) and group_size > 0 else 1
    return {**request, "limit": max(1, min(PAGE_MATCHES, MATCHES_MAX // size))}


class DefaultCollection(SharedFlows, Blocking):
    pass


class AsyncDefaultCollection(SharedFlows, Awaitable):
    pass


class Collection(CollectionFlows, Blocking):
    pass


class AsyncCollection(CollectionFlows, Awaitable):
    pass
