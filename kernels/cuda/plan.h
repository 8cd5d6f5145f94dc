// The plan of a batch: its queries, ordered so that similar ones are neighbours, and cut into slices that
// fit into the workspace.
#pragma once

#include <vector>

#include "device_state.h"
#include "scan.h"
#include "scopes.h"
#include "select.h"
#include "sieve.h"

namespace sagitta::cuda {

/** The number of no basis. */
inline constexpr uint32_t no_basis = UINT32_MAX;

/** A query of the batch. */
struct planned_query {
  /** Its index in the batch. */
  uint32_t number;
  /** What it searches: an index into batch_scopes, and the number of rows that pass. */
  uint32_t scope;
  uint64_t passing;
  double square;
  bool is_scannable;
  /** Whether all its blocks have their values on the device. */
  bool has_values;
  /** The basis of most of its rows, if head tiles may pay for them: an index into `bases`. */
  uint32_t basis;
  /** Whether it is left to the CPU: two views search one block, or the rows of the batch need more than 32 bits. */
  bool is_unsupported;
  /** The list capacity it needs; queries of one slice need the same. */
  uint32_t list_rows;
  /** A score that k rows are known to reach; −∞ at first. */
  double threshold;
  /** Whether it was scanned before, with a list that was too short. */
  bool is_repeated;
};

/** How a slice uses a sieve instead of int8 codes (sieve.h). */
struct sieve_plan {
  /** Its group is 0 if the slice does without a sieve. Coarse codes have quads. */
  scan_shape shape;
  /** For head tiles: an index into `bases`, and the level. */
  uint32_t basis = no_basis;
  uint32_t level = 0;
  /** The first pass that it replaces, and its scans, which together take the tiles of that and all later passes. */
  size_t first_pass = 0;
  std::vector<scan_pass> scans;
  uint32_t list_capacity = 0;
  /** The numbers of rows of all queries, and of one, that the first scan may leave: with more, int8 costs less. */
  uint32_t estimate_limit = 0;
  uint32_t rows_max = 0;

  bool is_used() const { return shape.group != 0; }
};

/** Queries that are searched together: they are scanned, or the few rows that pass are gathered. */
struct slice {
  std::vector<planned_query> queries;
  /** The different scopes of its queries. */
  std::vector<uint32_t> scopes;
  /** Whether the rows of each query are gathered. */
  std::vector<uint8_t> is_gathered;
  /** The basis of its queries. */
  uint32_t basis;
  scan_shape shape;
  std::vector<scan_pass> passes;
  uint32_t k_max;
  /** The number of queries, rounded up to whole groups. */
  uint32_t padded_count;
  uint32_t list_capacity;
  uint32_t found_max;
  /** Whether any query is scanned. */
  bool is_scanned;
  /** Whether there are few queries, so that the cost is in launches rather than in candidates. */
  bool is_few;
  sieve_plan sieve;
};

class batch_plan {
 public:
  batch_plan(const sagitta_device& device, const sagitta_batch& batch,
             sagitta_device_block* const* residents);
  const std::vector<resident_block>& blocks() const { return blocks_; }
  /** The same blocks with the codes of the sieve as panels; null where a block has none. */
  std::vector<resident_block> blocks_of(const sieve_plan& sieve) const;
  /** The same blocks with int8 codes, but only those that the sieve lacks. Empty if it has all of them. */
  std::vector<resident_block> blocks_beside(const sieve_plan& sieve) const;
  /** The bases of the blocks' head tiles. */
  const std::vector<const device_basis*>& bases() const { return bases_; }
  const std::vector<slice>& slices() const { return slices_; }
  /**
   * Returns slices that scan again the queries that earlier slices left undecided, with the thresholds
   * [query_count] proven by those, and with lists that are longer by the factor.
   */
  std::vector<slice> repeated_slices(const std::vector<uint32_t>& queries,
                                     const std::vector<double>& thresholds, uint32_t factor) const;
  const std::vector<planned_query>& queries() const { return queries_; }
  uint32_t tile_count() const { return tile_count_; }
  const batch_scopes& scopes() const { return scopes_; }

 private:
  void lay_out_blocks();
  void find_bases();
  void describe_queries();
  uint32_t basis_of(const scope& of) const;
  std::vector<slice> cut(std::vector<planned_query> queries) const;
  size_t take(const std::vector<planned_query>& from, size_t at, size_t end,
              std::vector<slice>& slices) const;
  void complete(slice& made) const;
  wgmma_use use_of_wgmma() const;
  sieve_plan plan_sieve(const slice& made) const;
  sieve_plan plan_coarse(const slice& made) const;
  sieve_plan plan_head(const slice& made) const;
  bool may_use_coarse(const slice& made) const;
  scan_shape shape_of_head(const slice& made, uint32_t level) const;
  double head_rows_of(const slice& made) const;
  double rows_left(const slice& made, const sieve_plan& plan, bool& is_too_many) const;
  void plan_scans(const slice& made, double affordable_rows, bool is_forced, sieve_plan& plan) const;
  uint32_t queries_to_shape(const slice& made) const;
  bool fits(const slice& made) const;
  size_t scope_bytes(const slice& made) const;
  bool is_gathered(const slice& made, const planned_query& query) const;

  const sagitta_device& device_;
  const sagitta_batch& batch_;
  sagitta_device_block* const* residents_;
  batch_scopes scopes_;
  std::vector<resident_block> blocks_;
  std::vector<const device_basis*> bases_;
  /** The basis of each block. */
  std::vector<uint32_t> basis_of_block_;
  std::vector<planned_query> queries_;
  std::vector<slice> slices_;
  uint32_t tile_count_ = 0;
};

/**
 * Returns the passes over all tiles: the first one takes at most `dense_tiles` of them, and each later one sees at
 * most `growth_max`, at least 2, times what those before it have seen. There are as few passes as possible.
 */
std::vector<scan_pass> passes_over(uint32_t tile_count, uint64_t dense_tiles, uint32_t growth_max);

/** Bytes of device memory per query of a slice. */
size_t bytes_per_query(uint32_t dimension, uint32_t list_capacity, uint32_t found_max);

/** The bytes that a sieve adds, per query, and per query including those that fill the groups. */
size_t sieve_bytes_per_query(const sieve_plan& plan);
size_t sieve_bytes_per_padded_query(const sieve_plan& plan);

}  // namespace sagitta::cuda
