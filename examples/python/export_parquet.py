"""Exports a collection to a pyarrow table, and to a Parquet file batch by batch.

    python export_parquet.py even.parquet
"""

import json
import os
import sys

import pyarrow as pa
import pyarrow.parquet

from sagitta import Collection

collection = Collection(os.environ.get("SAGITTA_URL", "http://127.0.0.1:8484"), "python-example")
path = sys.argv[1] if len(sys.argv) > 1 else "even.parquet"

# A small part fits into memory as a table.
table = collection.export(filter={"number": {"$lt": 3}}).read_all()
print("table:", table.num_rows, "rows,", table.schema.field("values").type)
print("metadata:", json.loads(table["metadata"][0].as_py()))

# A whole collection may not fit in memory, so it is written batch by batch.
with collection.export(filter={"parity": "even"}) as reader:
    with pa.parquet.ParquetWriter(path, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
print("file:", pa.parquet.read_metadata(path).num_rows, "rows")
