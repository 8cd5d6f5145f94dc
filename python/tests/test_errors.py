"""Errors as values: what copies of them keep, even in other processes."""

from __future__ import annotations

import concurrent.futures
import copy
import multiprocessing
import pickle
from collections.abc import Callable

import pytest

from sagitta import SagittaError

PROBLEM = {
    "detail": "2 vectors are invalid",
    "errors": [
        {"pointer": "/vectors/0/values", "detail": "expected 3 numbers, found 2"},
        {"pointer": "/vectors/1/id", "detail": "expected a text"},
    ],
    "request_id": "r-1",
    "retryable": True,
    "committed_count": 7,
    "sequence": 9,
}


def failure() -> SagittaError:
    return SagittaError(
        "invalid_vector", PROBLEM["detail"], status=400, problem=PROBLEM, retry_after=2.5
    )


def fail(_: int) -> None:
    raise failure()


def pickled(error: SagittaError) -> SagittaError:
    return pickle.loads(pickle.dumps(error))


@pytest.mark.parametrize("copied", [pickled, copy.copy, copy.deepcopy])
def test_a_copy_of_an_error_keeps_all_members(
    copied: Callable[[SagittaError], SagittaError],
) -> None:
    error = failure()
    twin = copied(error)
    assert isinstance(twin, SagittaError)
    assert vars(twin) == vars(error)
    assert str(twin) == str(error)
    assert twin.items[1]["pointer"] == "/vectors/1/id"


def test_an_error_passes_through_a_process_pool() -> None:
    context = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool,
        pytest.raises(SagittaError) as caught,
    ):
        pool.submit(fail, 1).result()
    assert vars(caught.value) == vars(failure())
