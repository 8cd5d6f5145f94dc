#include "query_bounds.h"

#include <cfloat>
#include <cmath>
#include <limits>

#include "../layout.h"

namespace sagitta {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/** The slacks of the proof: of the weight of the norm, of the square, and of terms without a row. */
constexpr double norm_slack = 0x1p-16;
constexpr double square_slack = 0x1p-18;
constexpr double constant_slack = 0x1p-36;

/** The largest float32 that is at most `value`. */
float round_down(double value) {
  if (value > FLT_MAX) return FLT_MAX;
  if (value < -FLT_MAX) return -std::numeric_limits<float>::infinity();
  const auto nearest = static_cast<float>(value);
  return nearest > value ? std::nextafter(nearest, -FLT_MAX) : nearest;
}

float round_up(double value) { return -round_down(-value); }

/** A bound that no cosine reaches is as good as any other, and keeps the terms within the proof. */
double bounded_cosine(double bound) { return bound > 2 ? 2 : bound < -2 ? -2 : bound; }

/** How far q·x / t may be from s·I, for each unit of the row's norm; see the proof. */
double norm_error(const prepared_query& query) {
  return query.residual + norm_slack * query.code_length;
}

}  // namespace

score_bounds bounds_of(const prepared_query& query, int32_t sum, const panel_facts& facts,
                       uint32_t row) {
  const double norm = facts.norm[row];
  const double residual = facts.residual[row];
  if (residual == unscannable_residual) return {-infinity, infinity};
  const double center = query.scale * (static_cast<double>(facts.scale[row]) * sum);
  const double error = query.scale * (norm_error(query) * norm + query.code_length * residual);
  switch (query.metric) {
    case SAGITTA_DOT:
      return {center - error, center + error};
    case SAGITTA_COSINE: {
      if (norm == 0) return {0, 0};
      const double lengths = query.length * norm;
      const double slack = norm_slack;
      return {(center - error) / lengths - slack, (center + error) / lengths + slack};
    }
    case SAGITTA_EUCLIDEAN: {
      const double square = facts.square[row];
      const double middle = 2 * center - square - query.square;
      const double width = 2 * error + square_slack * square + constant_slack * query.square;
      return {middle - width, middle + width};
    }
  }
  return {-infinity, infinity};
}

scan_query create_scan_query(const prepared_query& query) {
  scan_query scan{};
  scan.packed = query.packed;
  scan.offset = query.offset;
  scan.upper_residual = round_up(query.code_length);
  scan.has_lower = query.has_after;
  const double error = norm_error(query);
  const double after = query.after_score;
  switch (query.metric) {
    case SAGITTA_DOT:
      scan.lower_norm = round_down(-error);
      scan.lower_max = round_up(after / query.scale);
      break;
    case SAGITTA_COSINE: {
      const double length = query.length / query.scale;
      scan.lower_norm = round_down(-error - (bounded_cosine(after) + norm_slack) * length);
      scan.lower_max = 0;
      break;
    }
    case SAGITTA_EUCLIDEAN: {
      scan.lower_norm = round_down(-error);
      scan.lower_square = round_down(-(1 + square_slack) / (2 * query.scale));
      const double constant = after + query.square + constant_slack * (query.square - after);
      scan.lower_max = round_up(constant / (2 * query.scale));
      break;
    }
  }
  tighten(query, -infinity, scan);
  return scan;
}

void tighten(const prepared_query& query, double threshold, scan_query& scan) {
  const double error = norm_error(query);
  scan.upper_norm = round_up(error);
  scan.upper_min = -std::numeric_limits<float>::infinity();
  if (query.metric == SAGITTA_EUCLIDEAN) {
    scan.upper_square = round_up(-(1 - square_slack) / (2 * query.scale));
  }
  if (threshold == -infinity) return;
  switch (query.metric) {
    case SAGITTA_DOT:
      scan.upper_min = round_down(threshold / query.scale);
      break;
    case SAGITTA_COSINE: {
      const double length = query.length / query.scale;
      scan.upper_norm = round_up(error - (bounded_cosine(threshold) - norm_slack) * length);
      scan.upper_min = 0;
      break;
    }
    case SAGITTA_EUCLIDEAN: {
      const double constant = threshold + query.square - constant_slack * (query.square - threshold);
      scan.upper_min = round_down(constant / (2 * query.scale));
      break;
    }
  }
}

}  // namespace sagitta
