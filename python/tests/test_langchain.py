"""The documented contract of LangChain's VectorStore, in both forms, on a real server."""

from __future__ import annotations

import math

import pytest
from servers import Server

from sagitta import AsyncSagitta, Sagitta, SagittaError

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from sagitta.langchain import ROWS_PER_REQUEST, SagittaVectorStore

pytestmark = pytest.mark.anyio


class Angles(Embeddings):
    """Embeds a text that begins with a number as the direction of that many degrees."""

    def embed_query(self, text: str) -> list[float]:
        degrees = math.radians(float(text.split()[0]))
        return [math.cos(degrees), math.sin(degrees)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class Form:
    """Calls the methods of a store in their synchronous or asynchronous form."""

    def __init__(self, store: SagittaVectorStore, is_async: bool) -> None:
        self.store = store
        self._is_async = is_async

    async def __call__(self, method: str, *args: object, **kwargs: object) -> object:
        if self._is_async:
            return await getattr(self.store, f"a{method}")(*args, **kwargs)
        return getattr(self.store, method)(*args, **kwargs)


@pytest.fixture(params=["sync", "async"])
def form(
    request: pytest.FixtureRequest, client: Sagitta, async_client: AsyncSagitta, name: str
) -> Form:
    # The store gets only the client for its form, so that no method can use the other one.
    is_async = request.param == "async"
    clients = {"async_client": async_client} if is_async else {"client": client}
    return Form(SagittaVectorStore(Angles(), name, **clients), is_async)


DOCUMENTS = [
    Document(id="a", page_content="0 east", metadata={"kind": "axis"}),
    Document(id="b", page_content="10 nearly east", metadata={"kind": "other"}),
    Document(id="c", page_content="90 north", metadata={"kind": "axis"}),
]


async def test_a_new_store_is_empty(form: Form) -> None:
    assert await form("similarity_search", "0") == []
    assert await form("get_by_ids", ["a"]) == []
    assert await form("delete", ["a"]) is True


async def test_documents_are_read_as_they_were_added(form: Form) -> None:
    assert await form("add_documents", DOCUMENTS) == ["a", "b", "c"]
    assert await form("similarity_search", "1", k=2) == DOCUMENTS[:2]
    assert await form("similarity_search_by_vector", [0.0, 1.0], k=1) == DOCUMENTS[2:]
    assert await form("get_by_ids", ["c", "missing", "a"]) == [DOCUMENTS[2], DOCUMENTS[0]]


async def test_adding_a_named_vector_leaves_documents_unchanged(
    form: Form, client: Sagitta, name: str
) -> None:
    await form("add_documents", DOCUMENTS)
    client.collections.update(name, vectors={"title": {"dimension": 2}})
    client.collection(name).upsert([{"id": "a", "vectors": {"title": [1, 0]}}], mode="patch")
    assert await form("similarity_search", "1", k=2) == DOCUMENTS[:2]
    assert await form("add_documents", DOCUMENTS[2:]) == ["c"]
    client.collections.update(name, vectors={"title": None})
    assert await form("get_by_ids", ["c", "a"]) == [DOCUMENTS[2], DOCUMENTS[0]]


async def test_adding_a_document_again_replaces_it(form: Form) -> None:
    await form("add_documents", DOCUMENTS)
    again = [Document(id="a", page_content="180 west")]
    assert await form("add_documents", again) == ["a"]
    assert await form("get_by_ids", ["a"]) == again
    assert len(await form("similarity_search", "0", k=10)) == 3


async def test_missing_ids_are_generated(form: Form) -> None:
    ids = await form("add_texts", (text for text in ["0", "1", "2"]), ids=["x", None, "z"])
    assert (ids[0], ids[2]) == ("x", "z")
    assert [found.page_content for found in await form("get_by_ids", ids)] == ["0", "1", "2"]
    generated = await form("add_texts", ["5", "6"])
    assert [found.id for found in await form("get_by_ids", generated)] == generated


async def test_filters_select_documents(form: Form) -> None:
    await form("add_documents", DOCUMENTS)
    found = await form("similarity_search", "9", k=3, filter={"kind": "axis"})
    assert [document.id for document in found] == ["a", "c"]
    by_text = await form("similarity_search", "0", filter={"page_content": "90 north"})
    assert by_text == DOCUMENTS[2:]


async def test_nearer_documents_score_higher(form: Form) -> None:
    await form("add_documents", DOCUMENTS)
    found = await form("similarity_search_with_score", "0", k=3)
    assert [document.id for document, _ in found] == ["a", "b", "c"]
    cosines = [1, math.cos(math.radians(10)), 0]
    assert [score for _, score in found] == pytest.approx(cosines, abs=1e-6)
    relevant = await form("similarity_search_with_relevance_scores", "0", k=3, score_threshold=0.6)
    assert [score for _, score in relevant] == pytest.approx([1, (1 + cosines[1]) / 2], abs=1e-6)


async def test_a_threshold_drops_documents_with_lower_scores(form: Form) -> None:
    await form("add_documents", DOCUMENTS)
    limit = {"k": 3, "score_threshold": 0.5}
    assert await form("similarity_search", "0", **limit) == DOCUMENTS[:2]
    assert len(await form("similarity_search_with_score", "0", **limit)) == 2
    assert await form("similarity_search_by_vector", [0.0, 1.0], **limit) == DOCUMENTS[2:]


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("similarity_search", ["0"]),
        ("similarity_search_with_score", ["0"]),
        ("similarity_search_by_vector", [[1.0, 0.0]]),
        ("similarity_search_with_relevance_scores", ["0"]),
        ("max_marginal_relevance_search", ["0"]),
        ("max_marginal_relevance_search_by_vector", [[1.0, 0.0]]),
        ("add_texts", [["0"]]),
        ("add_documents", [DOCUMENTS]),
        ("delete", [["a"]]),
    ],
)
async def test_unknown_keywords_are_rejected(
    form: Form, method: str, arguments: list[object]
) -> None:
    await form("add_documents", DOCUMENTS)
    with pytest.raises(TypeError, match="unexpected keyword arguments: score_treshold"):
        await form(method, *arguments, score_treshold=0.5)
    assert len(await form("get_by_ids", ["a", "b", "c"])) == 3


async def test_a_document_that_the_server_would_refuse_is_not_embedded(form: Form) -> None:
    await form("add_texts", ["0 " + "ü" * 20_000], ids=["long"])
    assert len((await form("get_by_ids", ["long"]))[0].page_content) == 20_002
    form.store._embedding = None
    match = r"texts\[1\]: with its metadata the document has 41[0-9]{3} bytes, .* at most 40960"
    with pytest.raises(ValueError, match=match):
        await form("add_texts", ["0", "0 " + "ü" * 20_500])
    with pytest.raises(SagittaError, match="at /documents/0/metadata/b: found bytes"):
        await form("add_texts", ["0"], [{"b": b"xy"}])


async def test_the_batch_size_bounds_requests(form: Form) -> None:
    ids = await form("add_texts", ["0", "1", "2"], batch_size=2)
    assert len(await form("get_by_ids", ids)) == 3
    with pytest.raises(ValueError, match="expected a batch_size from 1, found 0"):
        await form("add_texts", ["0"], batch_size=0)


async def test_marginal_relevance_prefers_variety(form: Form) -> None:
    await form("add_documents", DOCUMENTS)
    nearest = await form("max_marginal_relevance_search", "1", k=2, lambda_mult=1.0)
    assert [document.id for document in nearest] == ["a", "b"]
    varied = await form("max_marginal_relevance_search", "1", k=2, lambda_mult=0.0)
    assert [document.id for document in varied] == ["a", "c"]
    few = await form("max_marginal_relevance_search", "1", k=2, fetch_k=2, lambda_mult=0.0)
    assert [document.id for document in few] == ["a", "b"]


async def test_documents_are_deleted_by_ids_by_filter_or_all(form: Form) -> None:
    await form("add_documents", DOCUMENTS)
    await form("delete", [])
    assert len(await form("similarity_search", "0")) == 3
    assert await form("delete", ["a", "missing"]) is True
    assert [found.id for found in await form("similarity_search", "0")] == ["b", "c"]
    with pytest.raises(ValueError, match="filter: found NoneType None, expected a filter"):
        await form("delete", filter=None)
    await form("delete", filter={"kind": "other"})
    assert await form("similarity_search", "0") == DOCUMENTS[2:]
    await form("delete")
    assert await form("similarity_search", "0") == []


async def test_retrievers_of_all_kinds(form: Form) -> None:
    await form("add_documents", DOCUMENTS)

    async def invoke(**settings: object) -> list[str | None]:
        retriever = form.store.as_retriever(**settings)
        is_async = form._is_async
        found = await retriever.ainvoke("1") if is_async else retriever.invoke("1")
        return [document.id for document in found]

    assert await invoke(search_kwargs={"k": 1}) == ["a"]
    assert await invoke(search_kwargs={"filter": {"kind": "axis"}}) == ["a", "c"]
    assert await invoke(search_type="mmr", search_kwargs={"k": 2, "lambda_mult": 0.0}) == ["a", "c"]
    threshold = {"score_threshold": 0.9}
    kind = "similarity_score_threshold"
    assert await invoke(search_type=kind, search_kwargs=threshold) == ["a", "b"]


async def test_more_texts_than_fit_into_a_request_are_added(form: Form) -> None:
    texts = [f"{n} of many" for n in range(ROWS_PER_REQUEST + 1)]
    ids = await form("add_texts", texts, [{"n": n} for n in range(len(texts))])
    assert len(set(ids)) == len(texts)
    last = await form("get_by_ids", ids[-1:])
    assert (last[0].page_content, last[0].metadata) == (texts[-1], {"n": len(texts) - 1})


async def test_a_text_is_not_a_list_of_its_characters(form: Form) -> None:
    await form("add_texts", ["1", "2", "3"], ids=["4", "2", "42"])
    for method, arguments in (
        ("delete", ["42"]),
        ("delete", [b"42"]),
        ("delete", [{"4": 1}]),
        ("get_by_ids", ["42"]),
        ("add_texts", ["12"]),
        ("add_texts", [["1", "2"], None, "xy"]),
        ("add_texts", [["1"], {"a": 1}]),
    ):
        keywords = {"ids": arguments.pop()} if len(arguments) == 3 else {}
        with pytest.raises(ValueError, match=r"found (str|bytes|dict) .*, expected"):
            await form(method, *arguments, **keywords)
    left = await form("get_by_ids", ["4", "2", "42"])
    assert [document.id for document in left] == ["4", "2", "42"]
    assert len(await form("similarity_search", "0", k=9)) == 3
    await form("delete", (id for id in ["42"]))
    assert await form("get_by_ids", ["42"]) == []


async def test_documents_need_a_text_but_no_metadata(form: Form) -> None:
    ids = await form("add_texts", ["0", "1"], [None, {"n": 1}])
    assert [found.metadata for found in await form("get_by_ids", ids)] == [{}, {"n": 1}]
    with pytest.raises(ValueError, match=r"metadatas\[1\]: found str 'n', expected a mapping"):
        await form("add_texts", ["0", "1"], [{}, "n"])
    with pytest.raises(ValueError, match=r"texts\[0\]: found int 5, expected a text"):
        await form("add_texts", [5])


async def test_wrong_counts_and_reserved_names_are_rejected(form: Form) -> None:
    with pytest.raises(ValueError, match="expected 2 metadatas, one per text, found 1"):
        await form("add_texts", ["0", "1"], [{}])
    with pytest.raises(ValueError, match="expected 1 ids"):
        await form("add_texts", ["0"], ids=["a", "b"])
    with pytest.raises(ValueError, match="choose another content_key"):
        await form("add_texts", ["0"], [{"page_content": "x"}])
    with pytest.raises(ValueError, match="either ids or filter"):
        await form("delete", ["a"], filter={})


def test_stores_are_created_from_texts_and_documents(server: Server, name: str) -> None:
    options = {"collection": name, "url": server.url, "metric": "euclidean", "content_key": "text"}
    store = SagittaVectorStore.from_texts(["0", "90"], Angles(), [{"n": 1}, {"n": 2}], **options)
    assert store.client.collections.get(name)["metric"] == "euclidean"
    assert store.client.collection(name).count({"text": "90"}) == 1
    same = SagittaVectorStore.from_documents(DOCUMENTS, Angles(), **options)
    assert len(same.similarity_search("0", k=9)) == 5
    scores = [score for _, score in same.similarity_search_with_relevance_scores("0", k=1)]
    assert scores == [1]
    for one in (store, same):
        one.client.close()


async def test_a_store_is_created_from_texts_without_blocking(
    async_client: AsyncSagitta, name: str
) -> None:
    store = await SagittaVectorStore.afrom_texts(
        ["0"], Angles(), ids=["a"], collection=name, async_client=async_client
    )
    assert [found.id for found in await store.asimilarity_search("5")] == ["a"]
    with pytest.raises(ValueError, match="pass client="):
        store.similarity_search("5")


def test_a_store_needs_an_address_and_may_leave_creation_to_others(
    client: Sagitta, name: str
) -> None:
    with pytest.raises(ValueError, match="either url or your own clients"):
        SagittaVectorStore(Angles(), name)
    store = SagittaVectorStore(Angles(), name, client=client, create_if_missing=False)
    for use in (lambda: store.add_texts(["0"]), lambda: store.similarity_search("0")):
        with pytest.raises(SagittaError, match="collection_not_found"):
            use()


def test_a_store_of_an_existing_collection_never_creates_it(client: Sagitta, name: str) -> None:
    store = SagittaVectorStore.from_existing_index(Angles(), name, client=client)
    for use in (lambda: store.add_texts(["0"]), lambda: store.similarity_search("0")):
        with pytest.raises(SagittaError, match="collection_not_found"):
            use()
    client.collections.create(id=name, dimension=2)
    assert store.add_texts(["0"], ids=["a"]) == ["a"]


def test_vectors_from_other_programs_have_an_empty_text(client: Sagitta, name: str) -> None:
    client.collections.create(id=name, dimension=2)
    client.collection(name).upsert([{"id": "a", "values": [1, 0], "metadata": {"n": 1}}])
    store = SagittaVectorStore(Angles(), name, client=client)
    assert store.similarity_search("0") == [Document(id="a", page_content="", metadata={"n": 1})]
