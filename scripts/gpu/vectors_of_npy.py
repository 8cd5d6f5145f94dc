"""Writes the vectors of a .npy file, [rows, dimension] of any type, as raw float32, and prints their dimension.

    vectors_of_npy.py FROM TO

Exits with 77 without numpy.
"""

import sys

try:
    import numpy
except ImportError as error:
    print(f"numpy cannot be imported: {error}", file=sys.stderr)
    sys.exit(77)

vectors = numpy.load(sys.argv[1]).astype("float32")
vectors.tofile(sys.argv[2])
print(vectors.shape[1])
