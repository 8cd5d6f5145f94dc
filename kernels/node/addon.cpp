// The CPU kernels as a Node addon. It does no arithmetic: it checks shapes, borrows the memory of typed
// arrays, and keeps the searches of the process under ticket numbers. The thread that creates a search,
// those that work on it and the one that takes its hits share only the ticket.

#include <napi.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

// Must follow a header of the C library, which defines __GLIBC__.
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "../kernels.h"
#include "batch.h"
#include "json.h"

using namespace sagitta::addon;

namespace {

using search_pointer = std::shared_ptr<sagitta_search>;

/** All searches of the process. */
class search_table {
 public:
  uint32_t add(sagitta_search* search) {
    const std::lock_guard lock(mutex_);
    const uint32_t ticket = next_ticket_++;
    searches_[ticket] = search_pointer(search, sagitta_search_destroy);
    return ticket;
  }
  /** Returns null for a search that was released or never existed. */
  search_pointer find(uint32_t ticket) {
    const std::lock_guard lock(mutex_);
    const auto found = searches_.find(ticket);
    return found == searches_.end() ? nullptr : found->second;
  }
  void remove(uint32_t ticket) {
    const std::lock_guard lock(mutex_);
    searches_.erase(ticket);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint32_t, search_pointer> searches_;
  uint32_t next_ticket_ = 1;
};

search_table& searches() {
  static search_table table;
  return table;
}

void require_ok(Napi::Env env, sagitta_status status, const char* what) {
  switch (status) {
    case SAGITTA_OK: return;
    case SAGITTA_OUT_OF_MEMORY:
    case SAGITTA_OUT_OF_HOST_MEMORY:
      throw Napi::Error::New(env, std::string(what) + ": out of memory");
    case SAGITTA_UNSUPPORTED_TARGET:
      throw Napi::RangeError::New(env, std::string(what) + ": not available on this machine");
    case SAGITTA_NOT_DONE: throw Napi::Error::New(env, std::string(what) + ": not complete");
    case SAGITTA_DEVICE_LOST: throw Napi::Error::New(env, std::string(what) + ": the device is lost");
    case SAGITTA_CANCELLED: throw Napi::Error::New(env, std::string(what) + ": cancelled");
    case SAGITTA_INVALID_ARGUMENT:
      throw Napi::RangeError::New(env, std::string(what) + ": an argument is out of range");
  }
}

// ── targets and codes ─────────────────────────────────────────────────────────────────────

Napi::Value targets(const Napi::CallbackInfo& info) {
  const Napi::Array names = Napi::Array::New(info.Env());
  for (uint32_t i = 0; i < sagitta_target_count(); i++) {
    names.Set(i, Napi::String::New(info.Env(), sagitta_target_name(i)));
  }
  return names;
}

Napi::Value selected_target(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), sagitta_selected_target());
}

void select_target(const Napi::CallbackInfo& info) {
  const std::string name = info[0].As<Napi::String>();
  require_ok(info.Env(), sagitta_select_target(name.c_str()), "target");
}

/**
 * The version of the codes, which are stored in files. It is raised with every change of layout.h or of the
 * meaning of a row's codes, such as the rotation. Codes of other versions are computed again.
 */
constexpr uint32_t codes_version = 4;

Napi::Value get_codes_version(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), codes_version);
}

/** codeByteLengths(rowCount, dimension): bytes of each array; 0 for an array that the dimension does not have. */
Napi::Value code_byte_lengths(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const uint32_t row_count = argument(info, 0);
  const uint32_t dimension = argument(info, 1);
  const auto number = [&](size_t bytes) { return Napi::Number::New(env, static_cast<double>(bytes)); };
  const auto lengths = Napi::Object::New(env);
  lengths.Set("tiles", number(sagitta_codes_bytes(row_count, dimension)));
  lengths.Set("coarse", number(sagitta_coarse_bytes(row_count, dimension)));
  lengths.Set("refinement", number(sagitta_refinement_bytes(row_count, dimension)));
  return lengths;
}

/** alignmentOffset(bytes): the first offset in the array at which codes may start. */
Napi::Value alignment_offset(const Napi::CallbackInfo& info) {
  const auto address = reinterpret_cast<uintptr_t>(array_from<Napi::Uint8Array>(info[0], "bytes").Data());
  const uintptr_t past = address % SAGITTA_CODES_ALIGNMENT;
  const uintptr_t offset = past == 0 ? 0 : SAGITTA_CODES_ALIGNMENT - past;
  return Napi::Number::New(info.Env(), static_cast<double>(offset));
}

/** encode(values, dimension, from, to, tiles, coarse or null, refinement or null) */
void encode(const Napi::CallbackInfo& info) {
  const auto values = array_from<Napi::Float32Array>(info[0], "values");
  const uint32_t dimension = argument(info, 1);
  const uint32_t from = argument(info, 2);
  const uint32_t to = argument(info, 3);
  auto tiles = array_from<Napi::Uint8Array>(info[4], "tiles");
  require(info.Env(), dimension > 0 && values.ElementLength() / dimension >= to,
          "encode: there are fewer values than rows");
  require(info.Env(), tiles.ElementLength() >= sagitta_codes_bytes(to, dimension),
          "encode: the codes do not fit their array");
  require_ok(info.Env(), sagitta_encode(values.Data(), dimension, from, to, tiles.Data()), "encode");
  if (!info[5].IsTypedArray()) return;
  auto coarse = array_from<Napi::Uint8Array>(info[5], "coarse");
  auto refinement = array_from<Napi::Uint8Array>(info[6], "refinement");
  require(info.Env(),
          coarse.ElementLength() >= sagitta_coarse_bytes(to, dimension) &&
              refinement.ElementLength() >= sagitta_refinement_bytes(to, dimension),
          "encode: the coarse codes do not fit their arrays");
  require_ok(info.Env(),
             sagitta_encode_coarse(values.Data(), dimension, from, to, coarse.Data(), refinement.Data()),
             "encode");
}

/** basisByteLength(dimension): the bytes of a basis; 0 for dimensions without head tiles. */
Napi::Value basis_byte_length(const Napi::CallbackInfo& info) {
  const size_t bytes = sagitta_basis_bytes(argument(info, 0));
  return Napi::Number::New(info.Env(), static_cast<double>(bytes));
}

/** learnBasis(values, rowCount, dimension, previous or null, basis): the bytes written; 0 if there is no use in one. */
Napi::Value learn_basis(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto values = array_from<Napi::Float32Array>(info[0], "values");
  const uint32_t row_count = argument(info, 1);
  const uint32_t dimension = argument(info, 2);
  auto basis = array_from<Napi::Uint8Array>(info[4], "basis");
  require(env, dimension > 0 && values.ElementLength() / dimension >= row_count,
          "learnBasis: there are fewer values than rows");
  require(env, basis.ElementLength() >= sagitta_basis_bytes(dimension),
          "learnBasis: the basis does not fit its array");
  const uint8_t* previous = nullptr;
  size_t previous_bytes = 0;
  if (info[3].IsTypedArray()) {
    const auto known = array_from<Napi::Uint8Array>(info[3], "previous");
    previous = known.Data();
    previous_bytes = known.ElementLength();
  }
  size_t written = 0;
  require_ok(env,
             sagitta_learn_basis(values.Data(), row_count, dimension, previous, previous_bytes, basis.Data(),
                                 &written),
             "learnBasis");
  return Napi::Number::New(env, static_cast<double>(written));
}

/** isBasis(bytes, dimension): whether these are the unchanged bytes of a basis for this dimension. */
Napi::Value is_basis(const Napi::CallbackInfo& info) {
  const auto bytes = array_from<Napi::Uint8Array>(info[0], "bytes");
  const int is_one = sagitta_is_basis(bytes.Data(), bytes.ElementLength(), argument(info, 1));
  return Napi::Boolean::New(info.Env(), is_one != 0);
}

/** headByteLength(rowCount, dimension) */
Napi::Value head_byte_length(const Napi::CallbackInfo& info) {
  const size_t bytes = sagitta_head_bytes(argument(info, 0), argument(info, 1));
  return Napi::Number::New(info.Env(), static_cast<double>(bytes));
}

/** encodeHead(values, dimension, from, to, basis, head) */
void encode_head(const Napi::CallbackInfo& info) {
  const auto values = array_from<Napi::Float32Array>(info[0], "values");
  const uint32_t dimension = argument(info, 1);
  const uint32_t from = argument(info, 2);
  const uint32_t to = argument(info, 3);
  const auto basis = array_from<Napi::Uint8Array>(info[4], "basis");
  auto head = array_from<Napi::Uint8Array>(info[5], "head");
  require(info.Env(), dimension > 0 && values.ElementLength() / dimension >= to,
          "encodeHead: there are fewer values than rows");
  require(info.Env(), head.ElementLength() >= sagitta_head_bytes(to, dimension),
          "encodeHead: the codes do not fit their array");
  require_ok(info.Env(),
             sagitta_encode_head(values.Data(), dimension, from, to, basis.Data(), basis.ElementLength(),
                                 head.Data(), head.ElementLength()),
             "encodeHead");
}

// ── scores of rows ────────────────────────────────────────────────────────────────────────

/**
 * scoreRows(rows, numbers, squares or null, scores): fills scores [numbers, vectors]. `rows` holds the
 * dimension, the number of the metric, values and vectors.
 */
void score_rows(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto from = info[0].As<Napi::Object>();
  const auto values = array_of<Napi::Float32Array>(from, "values");
  const auto vectors = array_of<Napi::Float32Array>(from, "vectors");
  const auto numbers = array_from<Napi::Uint32Array>(info[1], "numbers");
  auto scores = array_from<Napi::Float64Array>(info[3], "scores");
  sagitta_scoring scoring{};
  scoring.dimension = number_of(from, "dimension");
  require(env, scoring.dimension > 0, "scoreRows: the dimension is 0");
  const size_t row_count = values.ElementLength() / scoring.dimension;
  const size_t vector_count = vectors.ElementLength() / scoring.dimension;
  const uint32_t* const rows = numbers.Data();
  const size_t count = numbers.ElementLength();
  require(env, std::all_of(rows, rows + count, [&](uint32_t row) { return row < row_count; }),
          "scoreRows: there are fewer values than rows");
  require(env, scores.ElementLength() >= count * vector_count,
          "scoreRows: the scores do not fit their array");
  const uint32_t metric = number_of(from, "metricNumber");
  require(env, metric <= SAGITTA_JACCARD, "scoreRows: unknown metric");
  scoring.values = values.Data();
  scoring.vectors = vectors.Data();
  scoring.vector_count = static_cast<uint32_t>(vector_count);
  scoring.rows = rows;
  scoring.row_count = static_cast<uint32_t>(count);
  scoring.metric = static_cast<sagitta_metric>(metric);
  if (info[2].IsTypedArray()) {
    const auto squares = array_from<Napi::Float64Array>(info[2], "squares");
    require(env, squares.ElementLength() >= count, "scoreRows: there are fewer squares than rows");
    scoring.squares = squares.Data();
  }
  require_ok(env, sagitta_score_rows(&scoring, scores.Data()), "scoreRows");
}

/**
 * multiply(left, right, sizes, isRightTransposed, products): `sizes` are the count of matrices, the rows of the left ones,
 * the length of these rows and the columns of the right ones.
 */
void multiply(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto left = array_from<Napi::Float32Array>(info[0], "left");
  const auto right = array_from<Napi::Float32Array>(info[1], "right");
  const auto sizes = array_from<Napi::Uint32Array>(info[2], "sizes");
  auto products = array_from<Napi::Float32Array>(info[4], "products");
  require(env, sizes.ElementLength() == 4, "multiply: expected four sizes");
  sagitta_factors factors{left.Data(), right.Data(), sizes[0], sizes[1], sizes[2], sizes[3], 0};
  factors.is_right_transposed = info[3].As<Napi::Boolean>() ? 1 : 0;
  const auto holds = [&](const Napi::Float32Array& array, uint32_t rows, uint32_t columns) {
    return array.ElementLength() / std::max(factors.count, 1u) >= uint64_t{rows} * columns;
  };
  require(env, holds(left, factors.rows, factors.inner), "multiply: the left matrices do not fit their array");
  require(env, holds(right, factors.inner, factors.columns), "multiply: the right matrices do not fit their array");
  require(env, holds(products, factors.rows, factors.columns), "multiply: the products do not fit their array");
  require_ok(env, sagitta_multiply(&factors, products.Data()), "multiply");
}

// ── searches ──────────────────────────────────────────────────────────────────────────────

/** createSearch(batch): returns a ticket. The arrays of blocks and bitmaps must live until `release`. */
Napi::Value create_search(const Napi::CallbackInfo& info) {
  const auto tables = read_batch(info[0].As<Napi::Object>());
  const sagitta_batch batch = tables.view();
  sagitta_search* search = nullptr;
  require_ok(info.Env(), sagitta_search_create(&batch, &search), "search");
  return Napi::Number::New(info.Env(), searches().add(search));
}

/** createCount(batch, scores, idOffsets [n + 1], ids): returns the ticket of a search that counts rows. */
Napi::Value create_count(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto tables = read_batch(info[0].As<Napi::Object>());
  const auto scores = array_from<Napi::Float64Array>(info[1], "scores");
  const auto offsets = array_from<Napi::Uint32Array>(info[2], "idOffsets");
  const auto ids = array_from<Napi::Uint8Array>(info[3], "ids");
  require(env, offsets.ElementLength() == scores.ElementLength() + 1,
          "createCount: scores and ids have different counts");
  std::vector<sagitta_rank_key> rank_keys(scores.ElementLength());
  for (size_t i = 0; i < rank_keys.size(); i++) {
    const uint32_t* const id = offsets.Data() + i;
    require(env, id[0] <= id[1] && id[1] <= ids.ElementLength(), "createCount: ids are out of bounds");
    rank_keys[i] = {scores.Data()[i], ids.Data() + id[0], id[1] - id[0]};
  }
  const sagitta_batch batch = tables.view();
  sagitta_search* search = nullptr;
  require_ok(env,
             sagitta_search_create_count(&batch, rank_keys.data(),
                                         static_cast<uint32_t>(rank_keys.size()), &search),
             "createCount");
  return Napi::Number::New(env, searches().add(search));
}

search_pointer require_search(const Napi::CallbackInfo& info) {
  search_pointer search = searches().find(argument(info, 0));
  require(info.Env(), search != nullptr, "search: unknown ticket");
  return search;
}

/** cost(ticket): the estimated nanoseconds on one thread. */
Napi::Value cost(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), sagitta_search_cost(require_search(info).get()));
}

/** work(ticket): whether this call completed the search. A released search has no work. */
Napi::Value work(const Napi::CallbackInfo& info) {
  const search_pointer search = searches().find(argument(info, 0));
  int is_done = 0;
  if (search != nullptr) {
    const sagitta_status status = sagitta_search_work(search.get(), &is_done);
    if (status != SAGITTA_CANCELLED) require_ok(info.Env(), status, "search");
  }
  return Napi::Boolean::New(info.Env(), is_done != 0);
}

/** isDone(ticket): whether there is a result to take, or an error instead. */
Napi::Value is_done(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), sagitta_search_is_done(require_search(info).get()) != 0);
}

void cancel(const Napi::CallbackInfo& info) {
  const search_pointer search = searches().find(argument(info, 0));
  if (search != nullptr) sagitta_search_cancel(search.get());
}

/** takeHits(ticket): columns; the hits of query i are at offsets[i] .. offsets[i + 1]. */
Napi::Value take_hits(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const search_pointer search = require_search(info);
  std::vector<sagitta_hits> all;
  for (sagitta_hits hits{};;) {
    const sagitta_status status =
        sagitta_search_hits(search.get(), static_cast<uint32_t>(all.size()), &hits);
    if (status == SAGITTA_INVALID_ARGUMENT) break;
    require_ok(env, status, "search");
    all.push_back(hits);
  }
  return columns_of(env, all);
}

/** takeCounts(ticket): one count per rank key. */
Napi::Value take_counts(const Napi::CallbackInfo& info) {
  const search_pointer search = require_search(info);
  const uint64_t* found = nullptr;
  uint32_t count = 0;
  require_ok(info.Env(), sagitta_search_counts(search.get(), &found, &count), "search");
  auto counts = Napi::Float64Array::New(info.Env(), count);
  for (uint32_t i = 0; i < count; i++) counts.Data()[i] = static_cast<double>(found[i]);
  return counts;
}

void release(const Napi::CallbackInfo& info) { searches().remove(argument(info, 0)); }

#if defined(__GLIBC__)
/** trimMemory(): returns unused pages of the heap to the system, including those below used ones. */
void trim_memory(const Napi::CallbackInfo&) { malloc_trim(0); }
#endif

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("targets", Napi::Function::New(env, targets));
  exports.Set("selectedTarget", Napi::Function::New(env, selected_target));
  exports.Set("selectTarget", Napi::Function::New(env, select_target));
  exports.Set("codesVersion", Napi::Function::New(env, get_codes_version));
  exports.Set("codeByteLengths", Napi::Function::New(env, code_byte_lengths));
  exports.Set("alignmentOffset", Napi::Function::New(env, alignment_offset));
  exports.Set("encode", Napi::Function::New(env, encode));
  exports.Set("basisByteLength", Napi::Function::New(env, basis_byte_length));
  exports.Set("learnBasis", Napi::Function::New(env, learn_basis));
  exports.Set("isBasis", Napi::Function::New(env, is_basis));
  exports.Set("headByteLength", Napi::Function::New(env, head_byte_length));
  exports.Set("encodeHead", Napi::Function::New(env, encode_head));
  exports.Set("scoreRows", Napi::Function::New(env, score_rows));
  exports.Set("multiply", Napi::Function::New(env, multiply));
  exports.Set("createSearch", Napi::Function::New(env, create_search));
  exports.Set("createCount", Napi::Function::New(env, create_count));
  exports.Set("cost", Napi::Function::New(env, cost));
  exports.Set("work", Napi::Function::New(env, work));
  exports.Set("isDone", Napi::Function::New(env, is_done));
  exports.Set("cancel", Napi::Function::New(env, cancel));
  exports.Set("takeHits", Napi::Function::New(env, take_hits));
  exports.Set("takeCounts", Napi::Function::New(env, take_counts));
  exports.Set("release", Napi::Function::New(env, release));
  exports.Set("cutVectors", Napi::Function::New(env, cut_vectors));
#if defined(__GLIBC__)
  exports.Set("trimMemory", Napi::Function::New(env, trim_memory));
#endif
  return exports;
}

}  // namespace

NODE_API_MODULE(sagitta, init)
