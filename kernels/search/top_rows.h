// The order of answers (score descending, id bytes ascending) and two bounded selections: the best rows in
// that order, and the largest lower bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../kernels.h"

namespace sagitta {

/** A row of a view, with its canonical score. */
struct scored_row {
  double score;
  uint32_t view;
  uint32_t row;
};

/** Compares rows of the views of a query; ids break ties between scores. */
struct row_order {
  const sagitta_block* blocks;
  const sagitta_block_view* views;

  /** Whether `left` comes after `right`. A total order: rows with the same id are ordered by view and row. */
  bool is_worse(const scored_row& left, const scored_row& right) const;
  /** Whether the row comes after the rank key (score, id). */
  bool is_after(const scored_row& row, double score, const uint8_t* id, uint32_t id_bytes) const;
  /** Whether the row comes before the rank key. */
  bool is_before(const scored_row& row, double score, const uint8_t* id, uint32_t id_bytes) const;
};

/** The best `capacity` of the rows offered, as a heap with the worst row on top. */
class top_rows {
 public:
  void reset(uint32_t capacity) {
    capacity_ = capacity;
    rows_.clear();
  }
  bool is_full() const { return rows_.size() == capacity_; }
  /** The worst row kept. Requires a full selection with a capacity that is not 0. */
  const scored_row& worst() const { return rows_.front(); }
  void offer(const scored_row& row, const row_order& order);
  template <class Predicate>
  void erase_if(const Predicate& predicate, const row_order& order) {
    if (std::erase_if(rows_, predicate) > 0) make_heap(order);
  }
  const std::vector<scored_row>& rows() const { return rows_; }
  /** Sorts the rows, best first. */
  void sort(const row_order& order);
  /** Frees the memory. */
  void release() { std::vector<scored_row>().swap(rows_); }

 private:
  void make_heap(const row_order& order);

  uint32_t capacity_ = 0;
  std::vector<scored_row> rows_;
};

/** The `capacity` largest of the values added, and some that have not been excluded yet. */
class largest_values {
 public:
  void reset(size_t capacity);
  /** Returns the smallest of the largest; −Infinity while there are fewer values. */
  double add(const std::vector<double>& values);

 private:
  void select();

  size_t capacity_ = 0;
  double smallest_ = 0;
  std::vector<double> values_;
};

}  // namespace sagitta
