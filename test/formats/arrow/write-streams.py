# Writes streams and files of every type with pyarrow, polars and DuckDB into a folder, and prints their names and
# the rows that they must yield.

import datetime
import decimal
import json
import sys
import uuid

import numpy
import pyarrow as pa

folder = sys.argv[1]
written = []


def write(name, table, rows, chunk=2, **options):
    path = f"{folder}/{name}"
    with pa.ipc.new_stream(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        out.write_table(table, max_chunksize=chunk)
    with pa.ipc.new_file(f"{path}.arrow", table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        if not options.get("emit_dictionary_deltas"):
            out.write_table(table, max_chunksize=100)
    written.append({"name": name, "rows": rows, "hasFile": not options.get("emit_dictionary_deltas")})


Decimal = decimal.Decimal
utc = datetime.timezone.utc
date, time, datetime_ = datetime.date, datetime.time, datetime.datetime
struct = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.list_(pa.string()))]))])
# Name, column, and the value in the JSON of each row.
cells = [
    ("null", pa.nulls(3), ["null", "null", "null"]),
    ("bool", pa.array([True, None, False]), ["true", "null", "false"]),
    ("i8", pa.array([-128, None, 127], pa.int8()), ["-128", "null", "127"]),
    ("u32", pa.array([0, 2**32 - 1, 7], pa.uint32()), ["0", "4294967295", "7"]),
    ("i64", pa.array([-(2**63), 2**53 + 1, -1]), ["-9223372036854775808", "9007199254740993", "-1"]),
    ("u64", pa.array([0, 2**64 - 1, None], pa.uint64()), ["0", "18446744073709551615", "null"]),
    ("f32", pa.array([0.1, 1e30, None], pa.float32()), ["0.1", "1e+30", "null"]),
    ("f64", pa.array([0.1, 1e300, -2.0]), ["0.1", "1e+300", "-2"]),
    ("d128", pa.array([Decimal("123.45"), Decimal("-0.05"), None]), ["123.45", "-0.05", "null"]),
    (
        "d256",
        pa.array([Decimal("1" * 40 + ".5"), None, Decimal("-7")], pa.decimal256(60, 1)),
        ["1" * 40 + ".5", "null", "-7.0"],
    ),
    ("text", pa.array(['a"b\\\n\x01', "ä€😀", None]), ['"a\\"b\\\\\\n\\u0001"', '"ä€😀"', "null"]),
    ("large", pa.array(["x", None, ""], pa.large_string()), ['"x"', "null", '""']),
    (
        "view",
        pa.array(["short", None, "longer than twelve bytes"], pa.string_view()),
        ['"short"', "null", '"longer than twelve bytes"'],
    ),
    ("code", pa.array(["x", "y", None]).dictionary_encode(), ['"x"', '"y"', "null"]),
    ("icode", pa.array([5, None, 5]).dictionary_encode(), ["5", "null", "5"]),
    ("date", pa.array([date(2024, 2, 29), None, date(1969, 12, 31)]), ['"2024-02-29"', "null", '"1969-12-31"']),
    ("date64", pa.array([date(2024, 2, 29), None, date(1, 1, 1)], pa.date64()), ['"2024-02-29"', "null", '"0001-01-01"']),
    ("time32", pa.array([time(1, 2, 3), None, time(23, 59, 59)], pa.time32("s")), ['"01:02:03"', "null", '"23:59:59"']),
    ("time64", pa.array([time(1, 2, 3, 4), None, time(0)], pa.time64("us")), ['"01:02:03.000004"', "null", '"00:00:00.000000"']),
    (
        "ts",
        pa.array([datetime_(2024, 1, 1, 12), None, datetime_(1969, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us")),
        ['"2024-01-01T12:00:00.000000"', "null", '"1969-12-31T23:59:59.999999"'],
    ),
    (
        "tsz",
        pa.array([datetime_(2024, 1, 1, 12, tzinfo=utc), None, datetime_(1960, 1, 1, tzinfo=utc)], pa.timestamp("s", "Europe/Berlin")),
        ['"2024-01-01T12:00:00Z"', "null", '"1960-01-01T00:00:00Z"'],
    ),
    ("duration", pa.array([90500, None, -1], pa.duration("ms")), ['"PT90.5S"', "null", '"-PT0.001S"']),
    ("list", pa.array([[1, None], [], None]), ["[1,null]", "[]", "null"]),
    ("llist", pa.array([["a"], None, ["b", "c"]], pa.large_list(pa.string())), ['["a"]', "null", '["b","c"]']),
    ("fixed", pa.array([[1.5, 2.5], None, [0, -1]], pa.list_(pa.float32(), 2)), ["[1.5,2.5]", "null", "[0,-1]"]),
    ("lview", pa.array([[1, 2], None, [3]], pa.list_view(pa.int8())), ["[1,2]", "null", "[3]"]),
    (
        "struct",
        pa.array([{"a": 1, "b": {"c": ["x"]}}, None, {"a": None, "b": None}], struct),
        ['{"a":1,"b":{"c":["x"]}}', "null", '{"a":null,"b":null}'],
    ),
    ("map", pa.array([[("k", 1), ("l", None)], [], None], pa.map_(pa.string(), pa.int64())), ['{"k":1,"l":null}', "{}", "null"]),
    (
        "uuid",
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([uuid.UUID(int=1).bytes, None, uuid.UUID(int=2**127).bytes], pa.binary(16))),
        ['"00000000-0000-0000-0000-000000000001"', "null", '"80000000-0000-0000-0000-000000000000"'],
    ),
    ("json", pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"x": 1}', None, "[1]"])), ['{"x": 1}', "null", "[1]"]),
]
vectors = [[1, 2], [-3, 4], [5, 0.5]]
fixed = pa.array(vectors, pa.list_(pa.float32(), 2))
table = pa.table({"id": pa.array(["a", "ä", "€"]), "values": fixed, **{name: column for name, column, _ in cells}})
rows = [
    {
        "id": table["id"][i].as_py(),
        "values": vectors[i],
        "metadata": "{" + ",".join(f'"{name}":{texts[i]}' for name, _, texts in cells) + "}",
    }
    for i in range(3)
]
for compression in [None, "lz4", "zstd"]:
    write(f"types-{compression}", table, rows, compression=compression)
# Writers differ in how they cut the offsets and bits of slices.
wide = pa.concat_tables([table, table, table]).combine_chunks()
write("slice", wide.slice(1, 5), [rows[(i + 1) % 3] for i in range(5)], chunk=100)

plain = [{"id": str(i), "values": vectors[i], "metadata": None} for i in range(3)]
for name, kind in {
    "list": pa.list_(pa.float32()),
    "large": pa.large_list(pa.float64()),
    "view": pa.list_view(pa.float32()),
    "half": pa.list_(pa.float16(), 2),
    "fixed64": pa.list_(pa.float64(), 2),
}.items():
    as_element = numpy.float16 if name == "half" else float
    column = pa.array([[as_element(x) for x in vector] for vector in vectors], kind)
    for ids in [pa.array(range(3), pa.uint8()), pa.array(list("012")).dictionary_encode()]:
        write(f"{name}-{ids.type.id}", pa.table({"embedding": column, "id": ids}), plain)
write("int8", pa.table({"vector": pa.array([[1, -2]], pa.list_(pa.int8()))}), [{"id": None, "values": [1, -2], "metadata": None}])

objects = pa.array([{"a": 1}, None, {"a": None}])
maps = pa.array([[("k", "v")], None, []], pa.map_(pa.string(), pa.string()))
texts = pa.array(['{"a":1}', None, "{}"], pa.large_string())
for name, column, expected in [
    ("struct", objects, ['{"a":1,"n":0}', '{"n":1}', '{"a":null,"n":2}']),
    ("map", maps, ['{"k":"v","n":0}', '{"n":1}', '{"n":2}']),
    ("text", texts, ['{"a":1,"n":0}', '{"n":1}', '{"n":2}']),
]:
    table = pa.table({"values": fixed, "metadata": column, "n": pa.array(range(3))})
    rows = [{"id": None, "values": vectors[i], "metadata": expected[i]} for i in range(3)]
    write(f"metadata-{name}", table, rows)

# Dictionaries that grow or are replaced with each batch.
parts = [["x", "y"], ["x", "y", "z"], ["x", "y", "z", "ü"]]
for name, dictionaries, deltas in [("deltas", parts, True), ("replaced", [["p"], ["q", "r"], ["s"]], False)]:
    chunks = [pa.DictionaryArray.from_arrays(pa.array([len(d) - 1, 0, None], pa.int8()), pa.array(d)) for d in dictionaries]
    schema = pa.schema([("values", fixed.type), ("tag", chunks[0].type)])
    path = f"{folder}/{name}"
    with pa.ipc.new_stream(path, schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)) as out:
        for chunk in chunks:
            out.write_batch(pa.record_batch([fixed, chunk], schema=schema))
    rows = [
        {"id": None, "values": vectors[i], "metadata": json.dumps({"tag": tag}, ensure_ascii=False, separators=(",", ":"))}
        for d in dictionaries
        for i, tag in enumerate([d[-1], d[0], None])
    ]
    written.append({"name": name, "rows": rows, "hasFile": False})

try:
    import polars

    frame = polars.DataFrame(
        {"id": ["a", "an id beyond twelve bytes"], "vector": [[1.0, 2.0], [3.0, 4.0]], "tag": ["x", None], "day": [date(2024, 1, 2)] * 2},
        schema_overrides={"vector": polars.Array(polars.Float32, 2), "tag": polars.Categorical},
    )
    rows = [
        {"id": "a", "values": [1, 2], "metadata": '{"tag":"x","day":"2024-01-02"}'},
        {"id": "an id beyond twelve bytes", "values": [3, 4], "metadata": '{"tag":null,"day":"2024-01-02"}'},
    ]
    for compression in ["uncompressed", "lz4", "zstd"]:
        for level in [polars.CompatLevel.newest(), polars.CompatLevel.oldest()]:
            name = f"polars-{compression}-{level._version}"
            frame.write_ipc_stream(f"{folder}/{name}", compression=compression, compat_level=level)
            frame.write_ipc(f"{folder}/{name}.arrow", compression=compression, compat_level=level)
            written.append({"name": name, "rows": rows, "hasFile": True})
except ImportError:
    print("polars is not there", file=sys.stderr)

try:
    import duckdb

    table = duckdb.sql(
        "select i::varchar as id, [i, i + 1]::float[] as vector, {'n': i, 'd': i::decimal(9, 2)} as metadata, "
        "map {'k': i} as m from range(3) t(i)"
    ).to_arrow_table()
    rows = [
        {"id": str(i), "values": [i, i + 1], "metadata": f'{{"n":{i},"d":{i}.00,"m":{{"k":{i}}}}}'} for i in range(3)
    ]
    write("duckdb", table, rows)
except ImportError:
    print("duckdb is not there", file=sys.stderr)

print(json.dumps(written))
