// The canonical score: the float64 value per query and row that decides every answer. C++, CUDA and
// TypeScript (src/engine/core/canonical.ts) compute the same bits.
//
// Sum of products of a and b, both float32 [dimension]:
//   1. Eight float64 lanes start at +0. lane[i mod 8] += a[i]·b[i], in order of i. A product of two
//      float32 values is exact in float64, so it makes no difference whether it is fused with the addition.
//   2. The upper half is added to the lower half, three times:
//      t[j] = lane[j] + lane[j + 4];  u[j] = t[j] + t[j + 2];  sum = u[0] + u[1].
// With p = q·x, qq = q·q and xx = x·x summed as above, and one rounding per operation:
//   dot        p
//   cosine     p / (√qq·√xx), clamped to [−1, 1]; 0 where qq or xx is 0
//   euclidean  0 − max(0, (qq − 2p) + xx)
//   jaccard    p / ((qq − p) + xx); 0 where qq and xx are 0
// Every product that is added to a sum is exact, so a compiler may fuse multiply-adds freely.
#pragma once

#include <cmath>

#include "../kernels.h"
#include "bounds.h"

namespace sagitta {

SAGITTA_HOST_DEVICE inline double canonical_score(sagitta_metric metric, double product,
                                                  double query_square, double row_square) {
  switch (metric) {
    case SAGITTA_DOT:
      return product;
    case SAGITTA_COSINE: {
      if (query_square == 0 || row_square == 0) return 0;
      const double cosine = product / (sqrt(query_square) * sqrt(row_square));
      return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
    }
    case SAGITTA_EUCLIDEAN: {
      const double squared_distance = query_square - 2 * product + row_square;
      return squared_distance > 0 ? 0 - squared_distance : 0;
    }
    case SAGITTA_JACCARD: {
      const double either = query_square - product + row_square;
      return either > 0 ? product / either : 0;
    }
  }
  return 0;
}

}  // namespace sagitta
