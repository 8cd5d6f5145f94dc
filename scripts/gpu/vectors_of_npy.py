"""Writes mixtures of the vectors of a .npy file, [rows, dimension] of any type, and then some of its vectors, as raw
float32, and prints their dimension.

    vectors_of_npy.py FROM TO ROWS

A mixture is x_a + 0.4 (x_b - x_c), so that any number of rows has the spectrum of the vectors. Up to 4,096 vectors are
in no mixture and come last: the queries of a bench. Exits with 77 without numpy.
"""

import sys

try:
    import numpy
except ImportError as error:
    print(f"numpy cannot be imported: {error}", file=sys.stderr)
    sys.exit(77)

ROWS_AT_ONCE = 65_536

vectors = numpy.load(sys.argv[1]).astype("float32")
held_out = min(len(vectors) // 4, 4_096)
mixed = vectors[:-held_out]
random = numpy.random.default_rng(1)
left = int(sys.argv[3])
with open(sys.argv[2], "wb") as file:
    while left > 0:
        count = min(left, ROWS_AT_ONCE)
        a, b, c = random.integers(len(mixed), size=(3, count))
        (mixed[a] + numpy.float32(0.4) * (mixed[b] - mixed[c])).tofile(file)
        left -= count
    vectors[-held_out:].tofile(file)
print(vectors.shape[1])
