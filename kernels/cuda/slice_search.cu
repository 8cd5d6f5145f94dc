#include "slice_search.h"

#include <algorithm>
#include <cstring>

namespace sagitta::cuda {
namespace {

constexpr size_t alignment = 256;

/** Rows per query in the first readback in addition to k, with scores and without. */
constexpr uint32_t usual_ties = 16;
constexpr uint32_t usual_candidates = 512;

uint32_t steps_of(uint32_t dimension) { return (dimension + step_bytes_of_mma - 1) / step_bytes_of_mma; }

uint32_t words_of(uint32_t row_count) { return (row_count + 31) / 32; }

/** Assigns aligned offsets in a workspace, one after another. */
class layout_builder {
 public:
  size_t take(size_t byte_count) {
    const size_t from = used_;
    used_ += (byte_count + alignment - 1) / alignment * alignment;
    return from;
  }
  size_t used() const { return used_; }

 private:
  size_t used_ = 0;
};

}  // namespace

slice_search::slice_search(sagitta_device& device, search_slot& slot, const sagitta_batch& batch,
                           const batch_plan& plan, const slice& what)
    : device_(device),
      slot_(slot),
      batch_(batch),
      plan_(plan),
      slice_(what),
      count_(static_cast<uint32_t>(what.queries.size())),
      block_count_(batch.block_count),
      group_count_(what.padded_count / what.shape.group) {
  for (const uint8_t gathered : what.is_gathered) has_gathered_ |= gathered != 0;
  if (what.sieve.is_used()) other_blocks_ = plan.blocks_beside(what.sieve);
  collect_bitmaps();
  lay_out();
}

void slice_search::collect_bitmaps() {
  for (const uint32_t number : slice_.scopes) {
    const scope& from = plan_.scopes().all()[number];
    for (uint32_t p = from.first_view; p < from.first_view + from.view_count; p++) {
      const sagitta_block_view& view = batch_.views[p];
      if (view.rows == nullptr || view.row_count == 0) continue;
      bitmap& known = bitmaps_[view.rows];
      known.words = std::max(known.words, words_of(view.row_count));
    }
  }
  for (auto& [rows, known] : bitmaps_) {
    known.offset = bitmap_bytes_;
    bitmap_bytes_ += size_t{known.words} * sizeof(uint32_t);
  }
}

void slice_search::lay_out() {
  const size_t queries = slice_.padded_count;
  const size_t lists = queries * slice_.list_capacity;
  layout_builder all;
  layout_.vectors = all.take(size_t{count_} * batch_.dimension * sizeof(float));
  layout_.queries = all.take(queries * sizeof(device_query));
  layout_.blocks = all.take(block_count_ * sizeof(resident_block));
  layout_.groups = all.take(size_t{group_count_} * block_count_ * sizeof(group_view));
  layout_.scope_of = all.take(queries * sizeof(uint32_t));
  // The last entry has no rows.
  layout_.scopes = all.take((slice_.scopes.size() + 1) * block_count_ * sizeof(row_view));
  const sieve_plan& sieve = slice_.sieve;
  // Passes may be launched twice: for the blocks that the sieve lacks, and for all.
  const size_t scans = slice_.passes.size() * (other_blocks_.empty() ? 1 : 2) + sieve.scans.size();
  layout_.tile_counters = all.take(scans * queries / query_block * sizeof(uint32_t));
  layout_.bitmaps = all.take(bitmap_bytes_);
  if (sieve.is_used()) {
    const size_t groups = queries / sieve.shape.group;
    layout_.sieve_blocks = all.take(block_count_ * sizeof(resident_block));
    layout_.sieve_groups = all.take(groups * block_count_ * sizeof(group_view));
    layout_.other_blocks = all.take(other_blocks_.size() * sizeof(resident_block));
    layout_.signs = all.take(sieve.basis == no_basis ? batch_.dimension : 0);
  }
  layout_.input_end = all.used();
  layout_.packed = all.take(queries * slice_.shape.padded_dimension());
  layout_.offsets = all.take(queries * sizeof(int32_t));
  layout_.weights = all.take(queries * sizeof(scan_weights));
  layout_.thresholds = all.take(queries * sizeof(double));
  layout_.rows = all.take(lists * sizeof(candidate));
  layout_.scores = all.take(lists * sizeof(candidate_score));
  if (sieve.is_used()) {
    // Queries that only fill a group match no row.
    const size_t sieve_lists = size_t{count_} * sieve.list_capacity;
    layout_.sieve_packed = all.take(queries * sieve.shape.padded_dimension());
    layout_.sieve_offsets = all.take(queries * sizeof(int32_t));
    layout_.sieve_weights = all.take(queries * sizeof(scan_weights));
    layout_.sieve_bounds = all.take(size_t{count_} * sizeof(bounded_query));
    layout_.sieve_rows = all.take(sieve_lists * sizeof(candidate));
    layout_.sieve_scores = all.take(sieve_lists * sizeof(candidate_score));
  }
  layout_.counts = all.take(queries * sizeof(uint32_t));
  if (sieve.is_used()) {
    layout_.sieve_counts = all.take(queries * sizeof(uint32_t));
    layout_.estimate = all.take(sizeof(uint32_t));
  }
  layout_.shared = all.take(size_t{count_} * sizeof(shared_list));
  layout_.outcomes = all.take(size_t{count_} * sizeof(query_outcome));
  layout_.found = all.take(size_t{count_} * slice_.found_max * sizeof(found_row));
  layout_.end = all.used();
}

const uint32_t* slice_search::resident_bitmap(const uint32_t* rows) const {
  if (rows == nullptr) return nullptr;
  return at<uint32_t>(layout_.bitmaps + bitmaps_.at(rows).offset);
}

void slice_search::write_input() {
  uint8_t* const input = slot_.input.data();
  std::memset(input + layout_.queries, 0, layout_.bitmaps - layout_.queries);
  auto* const vectors = reinterpret_cast<float*>(input + layout_.vectors);
  auto* const queries = reinterpret_cast<device_query*>(input + layout_.queries);
  for (uint32_t q = 0; q < count_; q++) {
    const planned_query& planned = slice_.queries[q];
    const sagitta_query& from = batch_.queries[planned.number];
    std::copy_n(from.vector, batch_.dimension, vectors + size_t{q} * batch_.dimension);
    device_query& query = queries[q];
    query.metric = from.metric;
    query.has_after = from.after_id != nullptr;
    query.after_score = from.after_score;
    query.square = planned.square;
    query.length = std::sqrt(planned.square);
    // Rows below a score that k rows reach are in no answer.
    query.floor = std::max(from.floor, planned.threshold);
    query.k = from.k;
    query.is_gathered = slice_.is_gathered[q] != 0;
    query.is_scanned = !query.is_gathered && planned.is_scannable;
  }
  auto* const blocks = reinterpret_cast<resident_block*>(input + layout_.blocks);
  std::copy_n(plan_.blocks().data(), block_count_, blocks);
  for (const auto& [rows, known] : bitmaps_) {
    std::memcpy(input + layout_.bitmaps + known.offset, rows, known.words * sizeof(uint32_t));
  }
  write_scopes(input);
  if (slice_.sieve.is_used()) write_sieve(input);
}

void slice_search::write_sieve(uint8_t* input) {
  const sieve_plan& sieve = slice_.sieve;
  const std::vector<resident_block> blocks = plan_.blocks_of(sieve);
  std::copy(blocks.begin(), blocks.end(), reinterpret_cast<resident_block*>(input + layout_.sieve_blocks));
  std::copy(other_blocks_.begin(), other_blocks_.end(),
            reinterpret_cast<resident_block*>(input + layout_.other_blocks));
  write_groups(input, sieve.shape.group, reinterpret_cast<group_view*>(input + layout_.sieve_groups));
  if (sieve.basis != no_basis) return;
  if (device_.rotation.dimension != batch_.dimension) {
    device_.rotation = create_rotation(batch_.dimension);
  }
  const rotation& rotation = device_.rotation;
  for (uint32_t i = 0; i < batch_.dimension; i++) {
    input[layout_.signs + i] = static_cast<uint8_t>((rotation.first[i] < 0 ? 1 : 0) |
                                                    (rotation.second[i] < 0 ? 2 : 0));
  }
}

void slice_search::write_scopes(uint8_t* input) {
  auto* const scopes = reinterpret_cast<row_view*>(input + layout_.scopes);
  for (uint32_t s = 0; s < slice_.scopes.size(); s++) {
    const scope& from = plan_.scopes().all()[slice_.scopes[s]];
    for (uint32_t p = from.first_view; p < from.first_view + from.view_count; p++) {
      const sagitta_block_view& view = batch_.views[p];
      if (plan_.scopes().passing(p) == 0) continue;
      scopes[size_t{s} * block_count_ + view.block] = {resident_bitmap(view.rows), view.row_count};
    }
  }
  auto* const scope_of = reinterpret_cast<uint32_t*>(input + layout_.scope_of);
  uint32_t current = 0;
  for (uint32_t q = 0; q < slice_.padded_count; q++) {
    if (q < count_ && slice_.queries[q].scope != slice_.scopes[current]) current++;
    scope_of[q] = q < count_ ? current : static_cast<uint32_t>(slice_.scopes.size());
  }
  write_groups(input, slice_.shape.group, reinterpret_cast<group_view*>(input + layout_.groups));
}

/** Counts only queries that are scanned: the others have no codes and therefore match no row. */
void slice_search::write_groups(const uint8_t* input, uint32_t group_size, group_view* groups) const {
  const auto* const scopes = reinterpret_cast<const row_view*>(input + layout_.scopes);
  const auto* const scope_of = reinterpret_cast<const uint32_t*>(input + layout_.scope_of);
  std::vector<const row_view*> searched;
  for (uint32_t first = 0; first < slice_.padded_count; first += group_size) {
    searched.clear();
    for (uint32_t q = first; q < std::min(first + group_size, count_); q++) {
      if (slice_.is_gathered[q] != 0 || !slice_.queries[q].is_scannable) continue;
      const row_view* const its = scopes + size_t{scope_of[q]} * block_count_;
      if (searched.empty() || searched.back() != its) searched.push_back(its);
    }
    for (uint32_t b = 0; b < block_count_; b++) {
      group_view group{};
      for (const row_view* const views : searched) {
        const row_view& common = searched.front()[b];
        group.rows = common.rows;
        group.row_count = std::max(group.row_count, views[b].row_count);
        if (views[b].rows != common.rows || views[b].row_count != common.row_count) group.is_mixed = 1;
      }
      groups[size_t{first / group_size} * block_count_ + b] = group;
    }
  }
}

candidate_lists slice_search::lists() const {
  return {at<candidate>(layout_.rows), at<candidate_score>(layout_.scores),
          at<uint32_t>(layout_.counts), slice_.list_capacity};
}

batch_state slice_search::state() const {
  batch_state state{};
  state.blocks = at<resident_block>(layout_.blocks);
  state.block_count = block_count_;
  state.panel_stride = static_cast<uint32_t>(panel_bytes(batch_.dimension));
  state.dimension = batch_.dimension;
  state.query_count = count_;
  state.queries = at<device_query>(layout_.queries);
  state.weights = at<scan_weights>(layout_.weights);
  state.thresholds = at<double>(layout_.thresholds);
  state.lists = lists();
  const tuning& tuned = device_.tuning;
  const auto blocks = static_cast<uint32_t>(device_.properties.multiProcessorCount) *
                      tuned.list_blocks_per_multiprocessor;
  state.sharing = {at<shared_list>(layout_.shared),
                   std::clamp(blocks / count_, 1u, list_parts_max), tuned.part_rows_min};
  state.outcomes = at<query_outcome>(layout_.outcomes);
  return state;
}

candidate_lists slice_search::sieve_lists() const {
  return {at<candidate>(layout_.sieve_rows), at<candidate_score>(layout_.sieve_scores),
          at<uint32_t>(layout_.sieve_counts), slice_.sieve.list_capacity};
}

uint32_t slice_search::sieve_panel_stride() const {
  const bool is_coarse = slice_.sieve.basis == no_basis;
  return static_cast<uint32_t>(is_coarse ? coarse_panel_bytes(batch_.dimension) : head_panel_bytes(batch_.dimension));
}

/** Returns the parameters of the next scan of int8 codes. */
scan_parameters slice_search::scan_of(const scan_pass& pass, bool is_dense) {
  const scan_shape& shape = slice_.shape;
  scan_parameters parameters{};
  parameters.blocks = at<resident_block>(layout_.blocks);
  parameters.block_count = block_count_;
  parameters.panel_stride = static_cast<uint32_t>(panel_bytes(batch_.dimension));
  parameters.codes_offset = fact_bytes;
  parameters.packed = at<uint8_t>(layout_.packed);
  parameters.step_count = steps_of(batch_.dimension);
  parameters.pair_count = shape.pair_count;
  parameters.chunk_count = shape.chunk_count;
  parameters.warps_across = shape.warps_across;
  parameters.ring_stages = shape.ring_stages;
  parameters.offsets = at<int32_t>(layout_.offsets);
  parameters.weights = at<scan_weights>(layout_.weights);
  parameters.groups = at<group_view>(layout_.groups);
  parameters.scopes = at<row_view>(layout_.scopes);
  parameters.scope_of = at<uint32_t>(layout_.scope_of);
  parameters.query_count = slice_.padded_count;
  parameters.pass = pass;
  parameters.tile_counters =
      at<uint32_t>(layout_.tile_counters) + scan_count_++ * (slice_.padded_count / query_block);
  parameters.is_dense = is_dense;
  parameters.lists = lists();
  return parameters;
}

void slice_search::launch_pass(size_t blocks, const scan_pass& pass, bool is_dense,
                               const run_condition& condition) {
  scan_parameters parameters = scan_of(pass, is_dense);
  parameters.blocks = at<resident_block>(blocks);
  parameters.condition = condition;
  check(scan(device_, slice_.shape, parameters), "scan");
  prune_parameters pruning{};
  pruning.state = state();
  pruning.dense_count = is_dense ? pass.tile_count * tile_rows : 0;
  pruning.condition = condition;
  check(prune_lists(pruning, device_.launches()), "prune");
}

/**
 * Runs the passes that a sieve replaces. After its first scan, the device decides whether to continue with it or to
 * scan int8 codes.
 */
void slice_search::launch_sieve() {
  const sieve_plan& sieve = slice_.sieve;
  const uint32_t* const estimate = at<uint32_t>(layout_.estimate);
  const run_condition if_many{estimate, sieve.estimate_limit, true};
  const run_condition if_few{estimate, sieve.estimate_limit, false};
  const auto launch_passes = [&](size_t blocks, const run_condition& condition) {
    for (size_t i = sieve.first_pass; i < slice_.passes.size(); i++) {
      launch_pass(blocks, slice_.passes[i], false, condition);
    }
  };
  encode_for_sieve();
  scan_sieve(sieve.scans.front(), {});
  raise(true, false, {});
  // Before the sieve's rows join the lists, whose entries are tested by their int8 codes.
  if (!other_blocks_.empty()) launch_passes(layout_.other_blocks, if_few);
  for (size_t i = 1; i < sieve.scans.size(); i++) {
    scan_sieve(sieve.scans[i], if_few);
    if (i + 1 < sieve.scans.size()) raise(false, false, if_few);
  }
  raise(false, true, if_few);
  launch_passes(layout_.blocks, if_many);
}

void slice_search::fill(sieve_queries& encoding) const {
  encoding.vectors = at<float>(layout_.vectors);
  encoding.dimension = batch_.dimension;
  encoding.real_count = count_;
  encoding.query_count = slice_.padded_count;
  encoding.shape = slice_.sieve.shape;
  encoding.queries = at<device_query>(layout_.queries);
  encoding.thresholds = at<double>(layout_.thresholds);
  encoding.bounds = at<bounded_query>(layout_.sieve_bounds);
  encoding.packed = at<uint32_t>(layout_.sieve_packed);
  encoding.offsets = at<int32_t>(layout_.sieve_offsets);
  encoding.weights = at<scan_weights>(layout_.sieve_weights);
  encoding.counts = at<uint32_t>(layout_.sieve_counts);
}

void slice_search::encode_for_sieve() {
  const sieve_plan& sieve = slice_.sieve;
  if (sieve.basis == no_basis) {
    const rotation& rotation = device_.rotation;
    coarse_encode_parameters encoding{};
    fill(encoding);
    encoding.signs = at<uint8_t>(layout_.signs);
    encoding.block = rotation.block;
    encoding.stride = rotation.stride;
    encoding.unit = rotation.unit;
    check(encode_coarse(encoding, device_.launches()), "encoding for coarse codes");
    return;
  }
  const device_basis& basis = *plan_.bases()[sieve.basis];
  head_encode_parameters encoding{};
  fill(encoding);
  encoding.matrix = reinterpret_cast<const float*>(basis.matrix.data());
  encoding.directions = directions_of_level(batch_.dimension, sieve.level);
  encoding.weight = static_cast<double>(basis.header.weights[sieve.level]);
  encoding.error = basis.error;
  encoding.estimate = at<uint32_t>(layout_.estimate);
  encoding.estimate_limit = sieve.estimate_limit;
  encoding.together = head_queries_together(batch_.dimension, encoding.directions,
                                            device_.properties.sharedMemPerBlockOptin);
  check(encode_head(encoding, device_.launches()), "encoding for head tiles");
}

void slice_search::scan_sieve(const scan_pass& pass, const run_condition& condition) {
  const sieve_plan& sieve = slice_.sieve;
  scan_parameters parameters = scan_of(pass, false);
  parameters.blocks = at<resident_block>(layout_.sieve_blocks);
  parameters.panel_stride = sieve_panel_stride();
  if (sieve.basis != no_basis) {
    // The facts of a level are before those of the levels after it.
    parameters.codes_offset = (head_levels - sieve.level) * fact_bytes;
    parameters.step_count = steps_of(directions_of_level(batch_.dimension, sieve.level));
  }
  parameters.packed = at<uint8_t>(layout_.sieve_packed);
  parameters.pair_count = sieve.shape.pair_count;
  parameters.chunk_count = sieve.shape.chunk_count;
  parameters.warps_across = sieve.shape.warps_across;
  parameters.ring_stages = sieve.shape.ring_stages;
  parameters.offsets = at<int32_t>(layout_.sieve_offsets);
  parameters.weights = at<scan_weights>(layout_.sieve_weights);
  parameters.groups = at<group_view>(layout_.sieve_groups);
  parameters.lists = sieve_lists();
  parameters.coarse_row_bytes = coarse_row_bytes(batch_.dimension);
  parameters.condition = condition;
  check(scan(device_, sieve.shape, parameters), "scan of a sieve");
}

void slice_search::raise(bool is_first, bool is_last, const run_condition& condition) {
  raise_parameters raising{};
  raising.state = state();
  raising.blocks = at<resident_block>(layout_.sieve_blocks);
  raising.panel_stride = sieve_panel_stride();
  raising.vectors = at<float>(layout_.vectors);
  raising.bounds = at<bounded_query>(layout_.sieve_bounds);
  raising.weights = at<scan_weights>(layout_.sieve_weights);
  raising.lists = sieve_lists();
  raising.estimate = is_first ? at<uint32_t>(layout_.estimate) : nullptr;
  raising.estimate_limit = slice_.sieve.estimate_limit;
  raising.rows_max = slice_.sieve.rows_max;
  raising.is_last = is_last;
  raising.condition = condition;
  check(raise_thresholds(raising, device_.launches()), "raising thresholds");
}

void slice_search::start() {
  encode_parameters encoding{};
  encoding.vectors = at<float>(layout_.vectors);
  encoding.dimension = batch_.dimension;
  encoding.real_count = count_;
  encoding.query_count = slice_.padded_count;
  encoding.shape = slice_.shape;
  encoding.queries = at<device_query>(layout_.queries);
  encoding.packed = at<uint32_t>(layout_.packed);
  encoding.offsets = at<int32_t>(layout_.offsets);
  encoding.weights = at<scan_weights>(layout_.weights);
  encoding.thresholds = at<double>(layout_.thresholds);
  encoding.counts = at<uint32_t>(layout_.counts);
  encoding.outcomes = at<query_outcome>(layout_.outcomes);
  encoding.shared = at<shared_list>(layout_.shared);
  encoding.estimate = slice_.sieve.is_used() ? at<uint32_t>(layout_.estimate) : nullptr;
  check(encode_queries(encoding, device_.launches()), "encoding");
}

void slice_search::gather() {
  gather_parameters gathering{};
  gathering.state = state();
  gathering.scopes = at<row_view>(layout_.scopes);
  gathering.scope_of = at<uint32_t>(layout_.scope_of);
  gathering.tile_count = plan_.tile_count();
  check(gather_rows(gathering, device_.launches()), "gathering");
}

/** Rows per query in the first readback: lists have room for many ties, which hardly any query has. */
uint32_t slice_search::ranks_at_once() const {
  const bool is_scored = slice_.queries.front().has_values;
  const uint64_t usual = uint64_t{slice_.k_max} + (is_scored ? usual_ties : usual_candidates);
  return static_cast<uint32_t>(std::min<uint64_t>(slice_.found_max, usual));
}

size_t slice_search::output_bytes(uint32_t ranks) const {
  return layout_.found - layout_.outcomes + size_t{count_} * ranks * sizeof(found_row);
}

void slice_search::mark(phase at) {
  const bool is_between = at == phase::scanned || at == phase::rescored;
  if (slice_.is_few && is_between) return;
  slot_.phases[static_cast<size_t>(at)].record(device_.searching);
}

void slice_search::launch() {
  const cudaStream_t stream = device_.searching;
  mark(phase::begun);
  check(cudaMemcpyAsync(slot_.workspace.data(), slot_.input.data(), layout_.input_end,
                        cudaMemcpyHostToDevice, stream),
        "queries");
  mark(phase::uploaded);
  start();
  for (size_t i = 0; i < slice_.passes.size(); i++) {
    if (slice_.sieve.is_used() && i == slice_.sieve.first_pass) {
      launch_sieve();
      break;
    }
    launch_pass(layout_.blocks, slice_.passes[i], i == 0, {});
  }
  mark(phase::scanned);
  const rescore_parameters rescoring{state(), at<float>(layout_.vectors)};
  // With few queries, another launch would take longer than the rows that it saves.
  if (!slice_.is_few && slice_.is_scanned && slice_.queries.front().has_values) {
    check(score_estimates(rescoring, device_.launches()), "scoring estimates");
  }
  if (has_gathered_) gather();
  // Pruning leaves some hundred scanned rows, or some thousand with a sieve.
  const uint32_t scanned = slice_.sieve.is_used() ? 2048 : 512;
  const uint32_t expected = has_gathered_ ? slice_.list_capacity : scanned;
  check(rescore(rescoring, expected, device_.launches()), "rescoring");
  mark(phase::rescored);
  check(select_found({state(), at<found_row>(layout_.found), slice_.found_max}, device_.launches()),
        "selecting");
  mark(phase::selected);
  check(cudaMemcpyAsync(slot_.output.data(), at<uint8_t>(layout_.outcomes),
                        output_bytes(ranks_at_once()), cudaMemcpyDeviceToHost, stream),
        "readback");
  mark(phase::read_back);
}

void slice_search::add_times(sagitta_device_times& times) const {
  const auto between = [&](phase from, phase to) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, slot_.phases[static_cast<size_t>(from)],
                               slot_.phases[static_cast<size_t>(to)]),
          "timing");
    return static_cast<double>(milliseconds);
  };
  times.upload_ms += between(phase::begun, phase::uploaded);
  times.total_ms += between(phase::begun, phase::read_back);
  if (slice_.is_few) {
    times.scan_ms += between(phase::uploaded, phase::selected);
    return;
  }
  times.scan_ms += between(phase::uploaded, phase::scanned);
  times.rescore_ms += between(phase::scanned, phase::rescored);
  times.select_ms += between(phase::rescored, phase::selected);
}

void slice_search::prepare() {
  slot_.workspace.require(layout_.end);
  slot_.input.require(layout_.input_end);
  slot_.output.require(layout_.end - layout_.outcomes);
  write_input();
}

void slice_search::wait(sagitta_device_times& times) {
  check(cudaEventSynchronize(slot_.phases[static_cast<size_t>(phase::read_back)]), "search");
  outcomes_ = reinterpret_cast<const query_outcome*>(slot_.output.data());
  found_ = reinterpret_cast<const found_row*>(slot_.output.data() +
                                              (layout_.found - layout_.outcomes));
  add_times(times);
  const uint32_t ranks = ranks_at_once();
  uint32_t ranks_needed = ranks;
  for (uint32_t q = 0; q < count_; q++) {
    ranks_needed = std::max(ranks_needed, outcomes_[q].found_count);
  }
  times.readback_bytes += output_bytes(ranks_needed);
  if (ranks_needed == ranks) return;
  const size_t from = output_bytes(ranks);
  check(cudaMemcpyAsync(slot_.output.data() + from, at<uint8_t>(layout_.outcomes + from),
                        output_bytes(ranks_needed) - from, cudaMemcpyDeviceToHost,
                        device_.searching),
        "more readback");
  device_.searching.synchronize("more readback");
}

}  // namespace sagitta::cuda
