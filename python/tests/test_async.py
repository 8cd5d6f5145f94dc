"""The asynchronous client, which has the same methods as the synchronous one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

import anyio
import httpx
import numpy
import pyarrow
import pytest
from servers import Server

from sagitta import AsyncSagitta, Collection, Sagitta, SagittaError

pytestmark = pytest.mark.anyio


async def rows(count: int) -> AsyncIterator[dict]:
    for n in range(count):
        yield {"id": f"v{n}", "values": [n, 1, 0], "metadata": {"n": n}}


async def test_reads_data_that_the_other_client_wrote(
    async_client: AsyncSagitta, vectors: Collection, name: str
) -> None:
    vectors.upsert([{"id": "a", "values": [1, 2, 3]}])
    one = async_client.collection(name)
    assert await one.count() == 1
    found = await one.query(vector=numpy.ones(3), include_values="numpy")
    assert found["matches"][0]["values"].tolist() == [1, 2, 3]
    with pytest.raises(SagittaError) as caught:
        await one.get("b")
    assert caught.value.code == "vector_not_found"


async def test_streams_work_in_both_directions(
    async_client: AsyncSagitta, vectors: Collection, name: str
) -> None:
    one = async_client.collection(name)
    assert (await one.write_all(rows(3_000)))["batch_count"] == 3
    await one.write_batches({"id": ["a"], "values": numpy.ones((1, 3))})
    assert [page["has_more"] async for page in one.list_pages(limit=2_000 // 2)][-1] is False
    async with await one.export_batches() as stream:
        assert stream.schema.names == ["id", "values", "metadata"]
        first = await anext(aiter(stream))
        assert isinstance(first, pyarrow.RecordBatch)
    table = await (await one.export_batches()).to_arrow()
    assert table.num_rows == 3_001
    matches = [
        match["id"] async for match in one.query_all(vector=[1, 0, 0], score_threshold=2_990)
    ]
    assert matches == [f"v{n}" for n in range(2_999, 2_989, -1)]
    found = await (await one.query_batches(numpy.ones((5, 3)), top_k=1)).to_arrow()
    assert found["id"].to_pylist() == ["v2999"] * 5


async def test_calls_run_concurrently(
    async_client: AsyncSagitta, vectors: Collection, name: str
) -> None:
    one = async_client.collection(name)
    await one.write_all(rows(100))
    counts: list[int] = []

    async def count(n: int) -> None:
        counts.append(await one.count({"n": {"$lt": n}}))

    async with anyio.create_task_group() as tasks:
        for n in range(50):
            tasks.start_soon(count, n)
    assert sorted(counts) == list(range(50))


async def test_a_cancelled_call_leaves_the_client_usable(
    async_client: AsyncSagitta, vectors: Collection, name: str
) -> None:
    one = async_client.collection(name)
    with anyio.move_on_after(0):
        await one.count()
    assert await one.count() == 0


async def test_the_synchronous_client_cannot_read_asynchronous_iterators(
    client: Sagitta, vectors: Collection
) -> None:
    with pytest.raises(SagittaError, match="only AsyncSagitta"):
        vectors.write_all(rows(1))


async def test_leaving_an_iteration_releases_its_connection(
    async_client: AsyncSagitta, vectors: Collection, name: str
) -> None:
    one = async_client.collection(name)
    await one.write_all(rows(2_000))
    for _ in range(5):
        async with await one.export_batches() as stream:
            await anext(aiter(stream))
    assert await one.count() == 2_000


# Connections that a program leaves open when its loop ends are closed with a warning.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_client_may_be_used_on_one_event_loop_after_another(
    server: Server, vectors: Collection, name: str
) -> None:
    client = AsyncSagitta(server.url)

    async def count() -> int:
        return await client.collection(name).count()

    assert [asyncio.run(count()) for _ in range(4)] == [0, 0, 0, 0]
    # Connections of closed loops are not kept.
    assert len(client._runner._clients) == 1
    client._runner._clients.clear()
    gc.collect()


def test_closing_a_client_closes_the_connections_of_its_event_loop(
    server: Server, vectors: Collection, name: str
) -> None:
    client = AsyncSagitta(server.url)

    async def count() -> int:
        async with client:
            await client.with_options(deadline=60).collection(name).count()
            return await client.collection(name).count()

    assert [asyncio.run(count()) for _ in range(3)] == [0, 0, 0]
    assert not client._runner._clients


async def test_an_http_client_that_was_passed_in_stays_open(server: Server) -> None:
    async with httpx.AsyncClient() as http_client:
        async with AsyncSagitta(server.url, http_client=http_client) as client:
            await client.limits()
        assert not http_client.is_closed
    with pytest.raises(SagittaError, match="the client is closed"):
        await client.limits()
