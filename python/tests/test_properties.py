"""Properties of all vectors, metadata and replies, tested by hypothesis with random ones."""

from __future__ import annotations

import itertools
import json
import urllib.parse

import numpy
import pyarrow
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sagitta import Collection, SagittaError
from sagitta.arrow import _MessageReader
from sagitta.core import segment
from sagitta.values import decode_values, encode_json, wire_values

_ids = itertools.count()
DIMENSION = 3
floats = st.floats(-1e6, 1e6, width=32)
on_server = settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1))
def test_base64_keeps_every_bit(values: list[float]) -> None:
    assert decode_values(str(wire_values(numpy.array(values, numpy.float32), ""))) == values


@on_server
@given(
    values=st.lists(floats, min_size=DIMENSION, max_size=DIMENSION),
    metadata=st.dictionaries(texts, json_values, max_size=4),
)
def test_written_values_are_read_back(
    vectors: Collection, values: list[float], metadata: dict[str, object]
) -> None:
    id = f"v{next(_ids)}"
    try:
        vectors.upsert([{"id": id, "values": numpy.array(values), "metadata": metadata}])
    except SagittaError as error:
        # Some names and numbers are not allowed. Everything that is accepted must come back.
        assert error.code in ("invalid_metadata", "invalid_argument")
        return
    stored = vectors.get(id, include_values="numpy")
    assert stored["values"].tolist() == values
    assert stored["metadata"] == metadata


@given(texts)
def test_an_id_is_a_single_path_segment(id: str) -> None:
    if id in (".", ".."):
        return
    path = segment(id)
    assert "/" not in path
    assert urllib.parse.unquote(path) == id


@given(json_values)
def test_python_reads_back_the_json_it_wrote(value: object) -> None:
    try:
        encoded = encode_json(value)
    except SagittaError as error:
        assert error.code == "invalid_argument"
        return
    assert json.loads(encoded) == value


@given(
    rows=st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=4),
    cuts=st.lists(st.integers(0, 4_000), max_size=20),
    compression=st.sampled_from([None, "lz4", "zstd"]),
)
def test_an_arrow_stream_may_arrive_in_any_pieces(
    rows: list[list[int]], cuts: list[int], compression: str | None
) -> None:
    schema = pyarrow.schema([("a", pyarrow.int64()), ("b", pyarrow.string())])
    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    with pyarrow.ipc.new_stream(sink, schema, options=options) as writer:
        for numbers in rows:
            strings = [str(number) for number in numbers]
            writer.write_batch(pyarrow.record_batch([numbers, strings], schema=schema))
    content = sink.getvalue().to_pybytes()
    reader = _MessageReader()
    found = []
    places = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    for start, end in itertools.pairwise(places):
        reader.append(content[start:end])
        if reader.schema() is not None:
            found += [batch.column(0).to_pylist() for batch in reader.take_batches()]
    assert reader.is_ended
    assert reader.schema() == schema
    assert found == rows


@given(st.binary(min_size=8, max_size=200))
def test_bytes_that_are_not_arrow_are_an_unexpected_reply(content: bytes) -> None:
    reader = _MessageReader()
    reader.append(content)
    try:
        if reader.schema() is not None:
            list(reader.take_batches())
    except SagittaError as error:
        assert error.code == "unexpected_reply"
