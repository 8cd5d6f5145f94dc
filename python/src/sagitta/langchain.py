"""A vector store for LangChain on top of a collection: the extra `sagitta[langchain]`.

A document becomes a vector. Its metadata is the document's metadata plus the text under
`content_key`, so that filters can use both. Scores are Sagitta's: higher is better for every
metric.
"""

from __future__ import annotations

import array
import contextlib
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from sagitta.client import AsyncSagitta, Sagitta
from sagitta.errors import SagittaError
from sagitta.values import encode_json, list_of
from sagitta.wire import JsonObject, Match, Metric, QueryReply, Vector

Item = TypeVar("Item")

ROWS_PER_REQUEST = 500
"""Documents embedded and written at once. With 16 384 dimensions they take 44 MB of the 64 MB that
the server accepts, which leaves 40 000 characters for each text.
"""
IDS_PER_REQUEST = 1_000
"""The server's limit on the ids in one fetch."""
ABSENT: Any = object()
"""Marks a filter that was not passed. None is more likely one that a program failed to build."""
FETCH_K = 20
"""The default in LangChain's other stores."""


class SagittaVectorStore(VectorStore):
    """Documents in the collection `collection` of a server.

    Pass `url`, with `api_key` if the server needs one, or your own clients: `client` for the
    synchronous methods, `async_client` for the asynchronous ones, which never block. The first
    documents create the collection, with their dimension and `metric`, unless `create_if_missing`
    is False; until then, searches find nothing. Raises SagittaError.
    """

    def __init__(
        self,
        embedding: Embeddings,
        collection: str,
        *,
        url: str | None = None,
        api_key: str | None = None,
        client: Sagitta | None = None,
        async_client: AsyncSagitta | None = None,
        content_key: str = "page_content",
        create_if_missing: bool = True,
        metric: Metric = "cosine",
    ) -> None:
        if (url is None) == (client is None and async_client is None):
            raise ValueError("expected either url or your own clients")
        self._embedding = embedding
        self._collection = collection
        self._client = Sagitta(url, api_key=api_key) if url else client
        self._async_client = AsyncSagitta(url, api_key=api_key) if url else async_client
        self._content_key = content_key
        self._creates = create_if_missing
        self._metric = metric
        self._found_metric: Metric | None = None
        """The metric of the collection, once the collection is known to exist."""

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    @property
    def client(self) -> Sagitta:
        """The client, for operations that LangChain lacks."""
        if self._client is None:
            raise ValueError("this store has no synchronous client; pass client=")
        return self._client

    @property
    def async_client(self) -> AsyncSagitta:
        if self._async_client is None:
            raise ValueError("this store has no asynchronous client; pass async_client=")
        return self._async_client

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        batch_size: int = ROWS_PER_REQUEST,
        **kwargs: Any,
    ) -> list[str]:
        """Embeds and writes texts, replacing those with the same ids. Returns the ids in order.

        The server generates ids that are absent or None. More than `batch_size` texts (at most 500)
        take several requests, so some may already be written when an error occurs. A text and its
        metadata may take up to the server's `metadata_bytes_max`, 40 960 bytes by default. A
        ValueError names the first document that exceeds it, before any is embedded.
        """
        _refuse(kwargs)
        all_records = self._records(texts, metadatas, ids)
        if all_records:
            _require_sizes(all_records, self.client.limits()["metadata_bytes_max"])
        added: list[str] = []
        for records in _parts(all_records, _batch_size(batch_size)):
            values = self._embedding.embed_documents([text for text, _ in records])
            self._create(values)
            rows = _rows(records, values)
            reply = self.client.collection(self._collection).upsert(rows)
            added += reply.get("ids") or [row["id"] for row in rows]
        return added

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        batch_size: int = ROWS_PER_REQUEST,
        **kwargs: Any,
    ) -> list[str]:
        _refuse(kwargs)
        all_records = self._records(texts, metadatas, ids)
        if all_records:
            bytes_max = (await self.async_client.limits())["metadata_bytes_max"]
            _require_sizes(all_records, bytes_max)
        added: list[str] = []
        for records in _parts(all_records, _batch_size(batch_size)):
            values = await self._embedding.aembed_documents([text for text, _ in records])
            await self._acreate(values)
            rows = _rows(records, values)
            reply = await self.async_client.collection(self._collection).upsert(rows)
            added += reply.get("ids") or [row["id"] for row in rows]
        return added

    def delete(
        self, ids: list[str] | None = None, *, filter: JsonObject = ABSENT, **kwargs: Any
    ) -> bool:
        """Deletes the documents with the ids, some of which may be missing, or that match `filter`.

        Without either, deletes all documents.
        """
        _refuse(kwargs)
        vectors = self.client.collection(self._collection)
        for selection in _selections(ids, filter):
            with self._ignore_missing():
                vectors.delete_many(**selection)
        return True

    async def adelete(
        self, ids: list[str] | None = None, *, filter: JsonObject = ABSENT, **kwargs: Any
    ) -> bool:
        _refuse(kwargs)
        vectors = self.async_client.collection(self._collection)
        for selection in _selections(ids, filter):
            with self._ignore_missing():
                await vectors.delete_many(**selection)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents among the ids that exist, in the order of the ids."""
        vectors = self.client.collection(self._collection)
        found: list[Document] = []
        for some in _parts(_ids(ids), IDS_PER_REQUEST):
            with self._ignore_missing():
                reply = vectors.fetch(some, include_values=False)
                found += map(self._document, reply["vectors"])
        return found

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        vectors = self.async_client.collection(self._collection)
        found: list[Document] = []
        for some in _parts(_ids(ids), IDS_PER_REQUEST):
            with self._ignore_missing():
                reply = await vectors.fetch(some, include_values=False)
                found += map(self._document, reply["vectors"])
        return found

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        *,
        filter: JsonObject | None = None,
        score_threshold: float | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """The k nearest documents, best first, or only those that score at least
        `score_threshold`. `filter` is a filter of Sagitta, such as `{"year": 2024}`.
        """
        _refuse(kwargs)
        embedding = self._embedding.embed_query(query)
        return self.similarity_search_by_vector(
            embedding, k, filter=filter, score_threshold=score_threshold
        )

    async def asimilarity_search(
        self,
        query: str,
        k: int = 4,
        *,
        filter: JsonObject | None = None,
        score_threshold: float | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        _refuse(kwargs)
        embedding = await self._embedding.aembed_query(query)
        return await self.asimilarity_search_by_vector(
            embedding, k, filter=filter, score_threshold=score_threshold
        )

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: JsonObject | None = None,
        score_threshold: float | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Like similarity_search, with scores: higher is better for every metric."""
        _refuse(kwargs)
        return self._search(self._embedding.embed_query(query), _query(k, filter, score_threshold))

    async def asimilarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: JsonObject | None = None,
        score_threshold: float | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        _refuse(kwargs)
        embedding = await self._embedding.aembed_query(query)
        return await self._asearch(embedding, _query(k, filter, score_threshold))

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        *,
        filter: JsonObject | None = None,
        score_threshold: float | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        _refuse(kwargs)
        return [found for found, _ in self._search(embedding, _query(k, filter, score_threshold))]

    async def asimilarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        *,
        filter: JsonObject | None = None,
        score_threshold: float | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        _refuse(kwargs)
        return [
            found for found, _ in await self._asearch(embedding, _query(k, filter, score_threshold))
        ]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = FETCH_K,
        lambda_mult: float = 0.5,
        *,
        filter: JsonObject | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Selects k relevant but diverse documents from the `fetch_k` nearest, on the server.

        `lambda_mult` ranges from 0 for the most diversity to 1 for none.
        """
        _refuse(kwargs)
        embedding = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(
            embedding, k, fetch_k, lambda_mult, filter=filter
        )

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = FETCH_K,
        lambda_mult: float = 0.5,
        *,
        filter: JsonObject | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        _refuse(kwargs)
        embedding = await self._embedding.aembed_query(query)
        return await self.amax_marginal_relevance_search_by_vector(
            embedding, k, fetch_k, lambda_mult, filter=filter
        )

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = FETCH_K,
        lambda_mult: float = 0.5,
        *,
        filter: JsonObject | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        _refuse(kwargs)
        request = {**_query(k, filter), "mmr": _mmr(k, fetch_k, lambda_mult)}
        return [found for found, _ in self._search(embedding, request)]

    async def amax_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = FETCH_K,
        lambda_mult: float = 0.5,
        *,
        filter: JsonObject | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        _refuse(kwargs)
        request = {**_query(k, filter), "mmr": _mmr(k, fetch_k, lambda_mult)}
        return [found for found, _ in await self._asearch(embedding, request)]

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> SagittaVectorStore:
        """Creates a store with the texts. `kwargs` go to the constructor."""
        store = cls(embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> SagittaVectorStore:
        store = cls(embedding, **kwargs)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    def from_existing_index(
        cls, embedding: Embeddings, collection: str, **kwargs: Any
    ) -> SagittaVectorStore:
        """A store for an existing collection, which is never created. `kwargs` go to the
        constructor. Methods raise `collection_not_found` if the collection does not exist.
        """
        return cls(embedding, collection, create_if_missing=False, **kwargs)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Converts scores to [0, 1]. With the metric `dot`, this requires vectors of length 1."""
        if self._found_metric is None:
            record = self.client.collections.get(self._collection)
            self._found_metric = record.get("metric")
        return _relevance_of(self._found_metric)

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        if self._found_metric is None:
            record = await self.async_client.collections.get(self._collection)
            self._found_metric = record.get("metric")
        relevance = _relevance_of(self._found_metric)
        found = await self.asimilarity_search_with_score(query, k, **kwargs)
        return [(document, relevance(score)) for document, score in found]

    def _search(
        self, embedding: list[float], request: dict[str, Any]
    ) -> list[tuple[Document, float]]:
        vectors = self.client.collection(self._collection)
        with self._ignore_missing():
            return self._scored(vectors.query(vector=embedding, **request))
        return []

    async def _asearch(
        self, embedding: list[float], request: dict[str, Any]
    ) -> list[tuple[Document, float]]:
        vectors = self.async_client.collection(self._collection)
        with self._ignore_missing():
            return self._scored(await vectors.query(vector=embedding, **request))
        return []

    def _create(self, values: list[list[float]]) -> None:
        """Creates the collection unless it exists. The write reports a wrong dimension."""
        if not self._creates or self._found_metric is not None:
            return
        collections = self.client.collections
        record = None
        with self._ignore_missing():
            record = collections.get(self._collection)
        self._found_metric = (record or collections.create(**self._settings(values))).get("metric")

    async def _acreate(self, values: list[list[float]]) -> None:
        if not self._creates or self._found_metric is not None:
            return
        collections = self.async_client.collections
        record = None
        with self._ignore_missing():
            record = await collections.get(self._collection)
        record = record or await collections.create(**self._settings(values))
        self._found_metric = record.get("metric")

    def _settings(self, values: list[list[float]]) -> Any:
        settings = {"id": self._collection, "dimension": len(values[0]), "metric": self._metric}
        return {**settings, "if_not_exists": True}

    @contextlib.contextmanager
    def _ignore_missing(self) -> Iterator[None]:
        """Treats a missing collection as empty if the first documents will create it."""
        try:
            yield
        except SagittaError as error:
            if not self._creates or error.code != "collection_not_found":
                raise

    def _records(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None,
        ids: Sequence[str | None] | None,
    ) -> list[tuple[str, dict[str, Any]]]:
        """The texts, each with the vector it becomes, without values."""
        all_texts = _list_of("texts", texts, "texts")
        count = len(all_texts)
        all_metadata = _list_per_text("metadatas", metadatas, "mappings", count)
        all_ids = _list_per_text("ids", ids, "ids", count)
        records = []
        for at, text in enumerate(all_texts):
            if not isinstance(text, str):
                raise ValueError(f"texts[{at}]: found {_short(text)}, expected a text")
            record: dict[str, Any] = {"metadata": self._metadata(text, all_metadata[at], at)}
            if all_ids[at] is not None:
                record["id"] = all_ids[at]
            records.append((text, record))
        return records

    def _metadata(self, text: str, metadata: Mapping[str, Any] | None, at: int) -> dict[str, Any]:
        if metadata is None:
            return {self._content_key: text}
        if not isinstance(metadata, Mapping):
            raise ValueError(f"metadatas[{at}]: found {_short(metadata)}, expected a mapping")
        if self._content_key in metadata:
            raise ValueError(
                f'the metadata of a document has a member "{self._content_key}", which is reserved '
                "for its text; choose another content_key"
            )
        return {**metadata, self._content_key: text}

    def _scored(self, reply: QueryReply) -> list[tuple[Document, float]]:
        return [(self._document(match), match["score"]) for match in reply["matches"]]

    def _document(self, stored: Match | Vector) -> Document:
        metadata = dict(stored.get("metadata", {}))
        text = metadata.pop(self._content_key, "")
        # Vectors written by other programs may lack a text.
        content = text if isinstance(text, str) else ""
        return Document(id=stored["id"], page_content=content, metadata=metadata)


def _ids(ids: Sequence[str]) -> list[str]:
    return _list_of("ids", ids, 'a list of ids, such as ["a"] for one')


def _list_of(name: str, values: Any, expected: str) -> list[Any]:
    """Like `list_of`, but raises ValueError as this module does for all arguments."""
    try:
        return list_of(values, name, expected)
    except SagittaError as error:
        raise ValueError(error.detail) from None


def _list_per_text(name: str, values: Any, expected: str, count: int) -> list[Any]:
    if values is None:
        return [None] * count
    listed = _list_of(name, values, f"a list of {expected}, one per text")
    if len(listed) != count:
        raise ValueError(f"expected {count} {name}, one per text, found {len(listed)}")
    return listed


def _short(value: object) -> str:
    return f"{type(value).__name__} {reprlib.repr(value)}"


def _rows(records: list[tuple[str, dict[str, Any]]], values: list[list[float]]) -> Any:
    if len(values) != len(records):
        raise ValueError(f"expected {len(records)} embeddings, one per text, found {len(values)}")
    return [
        {**record, "values": array.array("f", one)}
        for (_, record), one in zip(records, values, strict=True)
    ]


def _query(
    k: int, filter: JsonObject | None, score_threshold: float | None = None
) -> dict[str, Any]:
    query: dict[str, Any] = {"top_k": k, "include_metadata": True}
    if filter is not None:
        query["filter"] = filter
    if score_threshold is not None:
        query["score_threshold"] = score_threshold
    return query


def _refuse(kwargs: Mapping[str, Any]) -> None:
    """Rejects unknown keywords. LangChain's methods accept any, but a misspelt one must not be
    ignored.
    """
    if kwargs:
        names = ", ".join(kwargs)
        raise TypeError(f"unexpected keyword arguments: {names}; help() of the method has all")


def _batch_size(batch_size: int) -> int:
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"expected a batch_size from 1, found {batch_size!r}")
    return min(batch_size, ROWS_PER_REQUEST)


def _require_sizes(records: list[tuple[str, dict[str, Any]]], bytes_max: int) -> None:
    """Rejects texts that exceed the server's limit before they are embedded, which is expensive."""
    for at, (_, record) in enumerate(records):
        byte_count = len(encode_json(record["metadata"], f"/documents/{at}/metadata"))
        if byte_count > bytes_max:
            raise ValueError(
                f"texts[{at}]: with its metadata the document has {byte_count} bytes, and the "
                f"server takes at most {bytes_max}; split the text, as with a text splitter, or "
                "raise the limit of the server (SAGITTA_METADATA_BYTES_MAX)"
            )


def _mmr(k: int, fetch_k: int, lambda_mult: float) -> dict[str, Any]:
    return {"lambda": lambda_mult, "candidates": max(k, fetch_k)}


def _selections(ids: list[str] | None, filter: JsonObject) -> Iterator[Any]:
    if filter is not ABSENT:
        if not isinstance(filter, Mapping):
            raise ValueError(
                f"filter: found {_short(filter)}, expected a filter such as {{'year': 2024}}; "
                "without the keyword, all documents are deleted"
            )
        if ids is not None:
            raise ValueError("expected either ids or filter, found both")
        yield {"filter": filter}
    elif ids is None:
        yield {"all": True}
    else:
        for some in _parts(_ids(ids), IDS_PER_REQUEST):
            yield {"ids": some}


def _relevance_of(metric: Metric | None) -> Callable[[float], float]:
    # Euclidean scores are already in (0, 1].
    return (lambda score: score) if metric == "euclidean" else (lambda score: (1 + score) / 2)


def _parts(all_items: Sequence[Item], count: int) -> Iterator[list[Item]]:
    for start in range(0, len(all_items), count):
        yield list(all_items[start : start + count])
