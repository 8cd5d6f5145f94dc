"""Warnings in replies, which reach the program whatever its methods return."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable

import numpy
import pytest

from sagitta import AsyncSagitta, Collection, Sagitta, SagittaWarning

FILTER = {"yaer": 2023}
DETAIL = 'No vector has metadata at "yaer"; did you mean "year"?'

CALLS: dict[str, Callable[[Collection], object]] = {
    "count": lambda vectors: vectors.count(FILTER),
    "list": lambda vectors: vectors.list(filter=FILTER),
    "list_all": lambda vectors: list(vectors.list_all(filter=FILTER)),
    "query": lambda vectors: vectors.query(vector=[1, 0, 0], filter=FILTER),
    "query_batch": lambda vectors: vectors.query_batch([{"vector": [1, 0, 0], "filter": FILTER}]),
    "query_batches": lambda vectors: list(
        vectors.query_batches(numpy.ones((2, 3), numpy.float32), filter=FILTER)
    ),
    "aggregate": lambda vectors: vectors.aggregate(filter=FILTER, facets=[{"path": "year"}]),
    "schema": lambda vectors: vectors.schema(filter=FILTER),
    "recall": lambda vectors: vectors.recall([[1, 0, 0]], [["a"]], filter=FILTER),
    "delete_many": lambda vectors: vectors.delete_many(filter=FILTER),
    "update_many": lambda vectors: vectors.update_many(filter=FILTER, patch={"n": 1}),
    "export_all": lambda vectors: list(vectors.export_all(filter=FILTER)),
    "export_batches": lambda vectors: list(vectors.export_batches(filter=FILTER)),
    "join": lambda vectors: list(vectors.join(top_k=1, filter=FILTER)),
    "projection_batches": lambda vectors: list(vectors.projection_batches(filter=FILTER)),
    "project": lambda vectors: vectors.project(filter=FILTER),
}


@pytest.fixture
def written(vectors: Collection) -> Collection:
    vectors.upsert([{"id": n, "values": [1, len(n), 0], "metadata": {"year": 2023}} for n in "ab"])
    return vectors


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_misspelt_path_causes_a_warning_at_the_line_of_the_call(
    written: Collection, call: Callable[[Collection], object]
) -> None:
    with pytest.warns(SagittaWarning) as caught:
        call(written)
    (one,) = caught
    assert isinstance(one.message, SagittaWarning)
    assert one.message.detail == DETAIL
    assert (one.message.code, one.message.path) == ("unknown_path", "yaer")
    assert str(one.message).startswith(f"{DETAIL} (filter of ")
    assert one.filename == __file__


@pytest.mark.anyio
async def test_the_asynchronous_client_warns_at_the_line_of_the_call_too(
    async_client: AsyncSagitta, written: Collection, name: str
) -> None:
    with pytest.warns(SagittaWarning) as caught:
        assert await async_client.collection(name).count(FILTER) == 0
    assert [one.filename for one in caught] == [__file__]


def test_warning_filters_turn_warnings_into_errors_or_silence_them(written: Collection) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", SagittaWarning)
        with pytest.raises(SagittaWarning, match="did you mean"):
            written.count(FILTER)
        with pytest.raises(SagittaWarning, match="did you mean"):
            written.export_batches(filter=FILTER)
        assert written.count({"year": 2023}) == 2
        warnings.simplefilter("ignore", SagittaWarning)
        assert written.count(FILTER) == 0


def test_a_warning_survives_pickling(written: Collection) -> None:
    with pytest.warns(SagittaWarning) as caught:
        written.count(FILTER)
    copied = pickle.loads(pickle.dumps(caught[0].message))
    assert (str(copied), copied.path) == (str(caught[0].message), "yaer")


def test_correct_calls_cause_no_warnings(client: Sagitta, written: Collection) -> None:
    assert written.count({"year": {"$gt": 2000}}) == 2
    assert written.delete_many(filter={"year": 1})["deleted_count"] == 0
