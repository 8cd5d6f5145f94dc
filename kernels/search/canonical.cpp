#include "canonical.h"

#include <cmath>

namespace sagitta {

double canonical_score(sagitta_metric metric, double product, double query_square,
                       double row_square) {
  switch (metric) {
    case SAGITTA_DOT:
      return product;
    case SAGITTA_COSINE: {
      if (query_square == 0 || row_square == 0) return 0;
      const double cosine = product / (std::sqrt(query_square) * std::sqrt(row_square));
      return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
    }
    case SAGITTA_EUCLIDEAN: {
      const double squared_distance = query_square - 2 * product + row_square;
      return squared_distance > 0 ? 0 - squared_distance : 0;
    }
  }
  return 0;
}

}  // namespace sagitta
