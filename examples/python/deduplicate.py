"""Finds rows that are nearly the same by joining a collection with itself, and deletes all but
one of each group.

    python deduplicate.py
"""

import os

import pyarrow as pa

from sagitta import Collection

collection = Collection(os.environ.get("SAGITTA_URL", "http://127.0.0.1:8484"), "python-duplicates")
collection.create(dimension=2, metric="euclidean")
points = [[0, 0], [0, 0.001], [0.001, 0], [5, 5], [9, 9], [9, 9.001]]
collection.write(
    [
        pa.record_batch(
            {
                "id": [f"p{at}" for at in range(len(points))],
                "values": pa.array(points, pa.list_(pa.float32(), 2)),
            }
        )
    ]
)

# A score of 0.99 is a distance of 0.01. Every pair comes twice, once from each side.
pairs = 0
keeper_of = {}
for batch in collection.join(score_threshold=0.99):
    for left, right in zip(batch["id"].to_pylist(), batch["match_id"].to_pylist()):
        pairs += 1
        keeper_of[right] = min(keeper_of.get(right, right), left)
doomed = [name for name, keeper in keeper_of.items() if keeper < name]

print("pairs:", pairs, "deleted:", collection.delete(doomed), "left:", collection.count())
