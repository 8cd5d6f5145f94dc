// The order of answers, (score descending, id bytes ascending), and the bounded selections that keep
// the best in that order: rows with their exact scores, and lower bounds of scores alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../kernels.h"

namespace sagitta {

/** One row of one part, with its canonical score. */
struct scored_row {
  double score;
  uint32_t part;
  uint32_t row;
};

/** What decides among rows: the blocks of a query's parts, whose ids break ties. */
struct row_order {
  const sagitta_block* blocks;
  const sagitta_part* parts;

  /** Whether `left` comes after `right`. Total: rows with one id, versions of a vector, go by place. */
  bool is_worse(const scored_row& left, const scored_row& right) const;
  /** Whether the row comes after the place (score, id). */
  bool is_after(const scored_row& row, double score, const uint8_t* id, uint32_t id_bytes) const;
};

/** The best `capacity` of the rows offered. A heap with the worst row on top. */
class top_rows {
 public:
  void reset(uint32_t capacity) {
    capacity_ = capacity;
    rows_.clear();
  }
  bool is_full() const { return rows_.size() == capacity_; }
  /** The worst kept; only when full, and capacity is not 0. */
  const scored_row& worst() const { return rows_.front(); }
  void offer(const scored_row& row, const row_order& order);
  const std::vector<scored_row>& rows() const { return rows_; }
  /** Best first. */
  void sort(const row_order& order);
  /** Gives its memory back. */
  void release() { std::vector<scored_row>().swap(rows_); }

 private:
  uint32_t capacity_ = 0;
  std::vector<scored_row> rows_;
};

/** The `capacity` largest of the values added. A heap with the smallest on top. */
class largest_values {
 public:
  void reset(size_t capacity) {
    capacity_ = capacity;
    values_.clear();
  }
  bool is_full() const { return values_.size() == capacity_; }
  /** The smallest kept; only when full. */
  double smallest() const { return values_.front(); }
  void add(double value);
  const std::vector<double>& values() const { return values_; }
  void release() { std::vector<double>().swap(values_); }

 private:
  void replace_smallest(double value);

  size_t capacity_ = 0;
  std::vector<double> values_;
};

}  // namespace sagitta
