"""Writes the corpus: small files of each format that programs other than ours write. Needs numpy, pyarrow and h5py."""

import json
import os
import sys

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet

os.chdir(sys.argv[1])
values = np.array([[0.5, 1], [3, -4], [6, 7], [9, 10]], dtype=np.float32)
ids = [f"r{n}é" for n in range(4)]
metadata = [json.dumps({"n": n, "tags": ["x", None], "deep": {"a": [n]}}) for n in range(4)]


def made(folder):
    os.makedirs(folder, exist_ok=True)
    return folder


def stream(name, table, **options):
    with pa.OSFile(f"{made('arrow-stream')}/{name}.arrows", "wb") as sink:
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(table, max_chunksize=3)


fixed = pa.FixedSizeListArray.from_arrays(values.reshape(-1), 2)
plain = pa.table({"id": ids, "values": fixed, "metadata": metadata})
typed = pa.table({
    "id": pa.array(ids).dictionary_encode(),
    "vector": pa.array(values.tolist(), pa.list_(pa.float64())),
    "year": pa.array([1, None, 3, 4], pa.int16()),
    "when": pa.array([0, 1, None, 3], pa.timestamp("ms", "UTC")),
    "tags": pa.array([["a"], [], None, ["b", None]], pa.list_(pa.utf8())),
    "place": pa.array([{"lat": 1.5, "lon": None}, None, {"lat": 0, "lon": 1}, None]),
    "flag": pa.array([True, None, False, True]),
    "price": pa.array([None, "1.5", "2.25", "3"]).cast(pa.decimal128(9, 2)),
})
stream("plain", plain)
stream("typed", typed)
stream("lz4", plain, compression="lz4")
stream("zstd", typed, compression="zstd")
for name, table in {"plain": plain, "typed": typed}.items():
    feather.write_feather(table, f"{made('arrow-file')}/{name}.arrow", compression="uncompressed")
    parquet.write_table(table, f"{made('parquet')}/{name}.parquet", compression="snappy")
feather.write_feather(plain, "arrow-file/zstd.arrow", compression="zstd")
parquet.write_table(plain, "parquet/pages.parquet", compression="zstd", data_page_size=16, use_dictionary=False)

for name, kind in {"f4": "<f4", "f8": ">f8", "i2": "<i2"}.items():
    np.save(f"{made('npy')}/{name}.npy", values.astype(kind))
np.save("npy/fortran.npy", np.asfortranarray(values))
np.savez(f"{made('npz')}/two.npz", vectors=values, others=np.asfortranarray(values))
np.savez_compressed("npz/deflated.npz", vectors=values.astype(np.float64))
with h5py.File(f"{made('hdf5')}/plain.hdf5", "w") as file:
    file["train"] = values
with h5py.File("hdf5/chunked.hdf5", "w") as file:
    file.create_dataset("train", data=values.astype(np.float64), chunks=(2, 2), compression="gzip")

with open(f"{made('records')}/rows.fvecs", "wb") as file:
    for row in values:
        file.write(np.int32(2).tobytes() + row.tobytes())
with open("records/rows.fbin", "wb") as file:
    file.write(np.array(values.shape, dtype=np.int32).tobytes() + values.tobytes())
with open("records/rows.i8bin", "wb") as file:
    file.write(np.array(values.shape, dtype=np.int32).tobytes() + values.astype(np.int8).tobytes())

rows = [{"id": i, "values": v, "metadata": json.loads(m)} for i, v, m in zip(ids, values.tolist(), metadata)]
with open(f"{made('text')}/rows.ndjson", "w") as file:
    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
with open("text/rows.csv", "w") as file:
    file.write('id,values,title\n')
    file.writelines(f'"{i}","{v}","a ""quoted"", title"\n' for i, v in zip(ids, values.tolist()))

bodies = {
    "batch": {"vectors": rows, "mode": "insert"},
    "single": {"id": "a", "values": "AAAAPwAAgD8=", "metadata": {"n": 1.0, "m": [1e2, -0.0, 12345678901234567890]}},
    "sparse": {"vectors": [{"id": "b", "values": [1, 2], "sparse_vectors": {"t": {"indices": [1], "values": [2]}}}]},
}
for name, body in bodies.items():
    with open(f"{made('json-body')}/{name}.txt", "w") as file:
        file.write(json.dumps(body, ensure_ascii=name == "single"))

data = b"".join(f"{n} and more of it, again and again; ".encode() for n in range(30))
for codec in ["lz4", "zstd"]:
    with open(f"{made(codec)}/text.frame", "wb") as file:
        file.write(pa.compress(data, codec=codec, asbytes=True))
    with open(f"{codec}/random.frame", "wb") as file:
        file.write(pa.compress(np.random.default_rng(1).bytes(200), codec=codec, asbytes=True))
