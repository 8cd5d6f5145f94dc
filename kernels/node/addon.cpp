// The kernels as a Node addon. Does no arithmetic: checks shapes, borrows the memory of typed
// arrays, and keeps the searches of the process under numbers, so that the thread that makes one,
// the threads that work on it and the one that takes its hits need to share nothing but a number.

#include <napi.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "../kernels.h"

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
  /** Null when it was released, or never was. */
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

void require(Napi::Env env, bool holds, const std::string& what) {
  if (!holds) throw Napi::RangeError::New(env, what);
}

void require(Napi::Env env, sagitta_status status, const char* what) {
  switch (status) {
    case SAGITTA_OK: return;
    case SAGITTA_OUT_OF_MEMORY:
      throw Napi::Error::New(env, std::string(what) + ": out of memory");
    case SAGITTA_UNSUPPORTED_TARGET:
      throw Napi::RangeError::New(env, std::string(what) + ": this machine does not have it");
    case SAGITTA_NOT_DONE: throw Napi::Error::New(env, std::string(what) + ": not done");
    case SAGITTA_DEVICE_LOST: throw Napi::Error::New(env, std::string(what) + ": no device");
    case SAGITTA_CANCELLED: throw Napi::Error::New(env, std::string(what) + ": cancelled");
    case SAGITTA_INVALID_ARGUMENT:
      throw Napi::RangeError::New(env, std::string(what) + ": an argument is out of range");
  }
}

napi_typedarray_type type_of(const Napi::Uint8Array*) { return napi_uint8_array; }
napi_typedarray_type type_of(const Napi::Int32Array*) { return napi_int32_array; }
napi_typedarray_type type_of(const Napi::Uint32Array*) { return napi_uint32_array; }
napi_typedarray_type type_of(const Napi::Float32Array*) { return napi_float32_array; }
napi_typedarray_type type_of(const Napi::Float64Array*) { return napi_float64_array; }

/** The value as this kind of typed array; TypeError when it is anything else. */
template <class Array>
Array array_from(const Napi::Value& value, const char* name) {
  const Array* const wanted = nullptr;
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type_of(wanted)) {
    throw Napi::TypeError::New(value.Env(), std::string(name) + " is not the typed array it should be");
  }
  return value.As<Array>();
}

template <class Array>
Array array_of(const Napi::Object& from, const char* name) {
  return array_from<Array>(from.Get(name), name);
}

uint32_t number_of(const Napi::Object& from, const char* name) {
  return from.Get(name).As<Napi::Number>().Uint32Value();
}

uint32_t argument(const Napi::CallbackInfo& info, size_t index) {
  return info[index].As<Napi::Number>().Uint32Value();
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
  require(info.Env(), sagitta_select_target(name.c_str()), "target");
}

Napi::Value codes_byte_length(const Napi::CallbackInfo& info) {
  const size_t bytes = sagitta_codes_bytes(argument(info, 0), argument(info, 1));
  return Napi::Number::New(info.Env(), static_cast<double>(bytes));
}

/** How far into the array codes may begin. */
Napi::Value alignment_offset(const Napi::CallbackInfo& info) {
  const auto address = reinterpret_cast<uintptr_t>(array_from<Napi::Uint8Array>(info[0], "bytes").Data());
  const uintptr_t past = address % SAGITTA_CODES_ALIGNMENT;
  const uintptr_t offset = past == 0 ? 0 : SAGITTA_CODES_ALIGNMENT - past;
  return Napi::Number::New(info.Env(), static_cast<double>(offset));
}

/** encode(values, dimension, from, to, codes) */
void encode(const Napi::CallbackInfo& info) {
  const auto values = array_from<Napi::Float32Array>(info[0], "values");
  const uint32_t dimension = argument(info, 1);
  const uint32_t from = argument(info, 2);
  const uint32_t to = argument(info, 3);
  auto codes = array_from<Napi::Uint8Array>(info[4], "codes");
  require(info.Env(), dimension > 0 && values.ElementLength() / dimension >= to,
          "encode: fewer values than rows");
  require(info.Env(), codes.ElementLength() >= sagitta_codes_bytes(to, dimension),
          "encode: no room for the codes");
  require(info.Env(), sagitta_encode(values.Data(), dimension, from, to, codes.Data()), "encode");
}

// ── searches ──────────────────────────────────────────────────────────────────────────────

std::vector<sagitta_block> read_blocks(const Napi::Array& from, uint32_t dimension) {
  std::vector<sagitta_block> blocks(from.Length());
  for (uint32_t i = 0; i < blocks.size(); i++) {
    const auto object = from.Get(i).As<Napi::Object>();
    sagitta_block& block = blocks[i];
    block.row_count = number_of(object, "rowCount");
    const auto values = array_of<Napi::Float32Array>(object, "values");
    const auto id_offsets = array_of<Napi::Int32Array>(object, "idOffsets");
    const auto id_bytes = array_of<Napi::Uint8Array>(object, "idBytes");
    require(from.Env(), values.ElementLength() / dimension >= block.row_count,
            "block: fewer values than rows");
    require(from.Env(), id_offsets.ElementLength() > block.row_count, "block: fewer ids than rows");
    require(from.Env(),
            static_cast<size_t>(id_offsets.Data()[block.row_count]) <= id_bytes.ElementLength(),
            "block: ids beyond their bytes");
    block.values = values.Data();
    block.id_offsets = id_offsets.Data();
    block.id_bytes = id_bytes.Data();
    if (!object.Get("codes").IsTypedArray()) continue;
    const auto codes = array_of<Napi::Uint8Array>(object, "codes");
    require(from.Env(), codes.ElementLength() >= sagitta_codes_bytes(block.row_count, dimension),
            "block: fewer codes than rows");
    block.codes = codes.Data();
  }
  return blocks;
}

/** Three numbers a part: block, row count, and bitmap plus one or 0. */
std::vector<sagitta_part> read_parts(const Napi::Object& batch) {
  const auto table = array_of<Napi::Uint32Array>(batch, "parts");
  const auto bitmaps = batch.Get("bitmaps").As<Napi::Array>();
  std::vector<Napi::Uint32Array> words(bitmaps.Length());
  for (uint32_t i = 0; i < words.size(); i++) {
    words[i] = array_from<Napi::Uint32Array>(bitmaps.Get(i), "bitmap");
  }
  std::vector<sagitta_part> parts(table.ElementLength() / 3);
  for (size_t i = 0; i < parts.size(); i++) {
    const uint32_t* const row = table.Data() + 3 * i;
    parts[i] = {nullptr, row[0], row[1]};
    if (row[2] == 0) continue;
    require(batch.Env(), row[2] <= words.size(), "part: no such bitmap");
    const Napi::Uint32Array& bitmap = words[row[2] - 1];
    require(batch.Env(), bitmap.ElementLength() * 32 >= row[1], "part: a bitmap ends too early");
    parts[i].rows = bitmap.Data();
  }
  return parts;
}

/**
 * Columns, one value a query: `vectors` [n, dimension], `metrics`, `ks`, `floors`, `afterScores`,
 * `partOffsets` [n + 1], and ids of positions as `afterOffsets` [n + 1] into `afterIds`, where no
 * bytes mean no position.
 */
std::vector<sagitta_query> read_queries(const Napi::Object& batch, uint32_t dimension) {
  const Napi::Env env = batch.Env();
  const auto vectors = array_of<Napi::Float32Array>(batch, "vectors");
  const auto metrics = array_of<Napi::Uint8Array>(batch, "metrics");
  const auto ks = array_of<Napi::Uint32Array>(batch, "ks");
  const auto floors = array_of<Napi::Float64Array>(batch, "floors");
  const auto after_scores = array_of<Napi::Float64Array>(batch, "afterScores");
  const auto after_offsets = array_of<Napi::Uint32Array>(batch, "afterOffsets");
  const auto after_ids = array_of<Napi::Uint8Array>(batch, "afterIds");
  const auto part_offsets = array_of<Napi::Uint32Array>(batch, "partOffsets");
  const size_t count = ks.ElementLength();
  require(env, vectors.ElementLength() == count * dimension, "queries: vectors");
  require(env,
          metrics.ElementLength() == count && floors.ElementLength() == count &&
              after_scores.ElementLength() == count &&
              after_offsets.ElementLength() == count + 1 && part_offsets.ElementLength() == count + 1,
          "queries: columns of different lengths");
  std::vector<sagitta_query> queries(count);
  for (size_t i = 0; i < count; i++) {
    sagitta_query& query = queries[i];
    const uint32_t* const id = after_offsets.Data() + i;
    require(env, id[0] <= id[1] && id[1] <= after_ids.ElementLength(), "queries: ids of positions");
    require(env, part_offsets.Data()[i] <= part_offsets.Data()[i + 1], "queries: parts");
    require(env, metrics.Data()[i] <= SAGITTA_EUCLIDEAN, "queries: metric");
    query.vector = vectors.Data() + i * dimension;
    query.metric = static_cast<sagitta_metric>(metrics.Data()[i]);
    query.k = ks.Data()[i];
    query.floor = floors.Data()[i];
    query.after_score = after_scores.Data()[i];
    query.after_id = id[0] == id[1] ? nullptr : after_ids.Data() + id[0];
    query.after_id_bytes = id[1] - id[0];
    query.first_part = part_offsets.Data()[i];
    query.part_count = part_offsets.Data()[i + 1] - query.first_part;
  }
  return queries;
}

/** createSearch(batch): a ticket. The arrays of blocks and the bitmaps must live until `release`. */
Napi::Value create_search(const Napi::CallbackInfo& info) {
  const auto from = info[0].As<Napi::Object>();
  const uint32_t dimension = number_of(from, "dimension");
  require(info.Env(), dimension > 0, "dimension");
  const auto blocks = read_blocks(from.Get("blocks").As<Napi::Array>(), dimension);
  const auto parts = read_parts(from);
  const auto queries = read_queries(from, dimension);
  const sagitta_batch batch = {blocks.data(),
                               parts.data(),
                               queries.data(),
                               static_cast<uint32_t>(blocks.size()),
                               static_cast<uint32_t>(parts.size()),
                               static_cast<uint32_t>(queries.size()),
                               dimension,
                               number_of(from, "workerCount")};
  sagitta_search* search = nullptr;
  require(info.Env(), sagitta_search_create(&batch, &search), "search");
  return Napi::Number::New(info.Env(), searches().add(search));
}

search_pointer require_search(const Napi::CallbackInfo& info) {
  search_pointer search = searches().find(argument(info, 0));
  require(info.Env(), search != nullptr, "search: no such ticket");
  return search;
}

/** cost(ticket): nanoseconds on one thread, roughly. */
Napi::Value cost(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), sagitta_search_cost(require_search(info).get()));
}

/** work(ticket): whether the search is complete now. A search that was released has no work. */
Napi::Value work(const Napi::CallbackInfo& info) {
  const search_pointer search = searches().find(argument(info, 0));
  int is_done = 0;
  if (search != nullptr) {
    const sagitta_status status = sagitta_search_work(search.get(), &is_done);
    if (status != SAGITTA_CANCELLED) require(info.Env(), status, "search");
  }
  return Napi::Boolean::New(info.Env(), is_done != 0);
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
  size_t total = 0;
  for (sagitta_hits hits{};;) {
    const sagitta_status status =
        sagitta_search_hits(search.get(), static_cast<uint32_t>(all.size()), &hits);
    if (status == SAGITTA_INVALID_ARGUMENT) break;
    require(env, status, "search");
    all.push_back(hits);
    total += hits.count;
  }
  auto offsets = Napi::Uint32Array::New(env, all.size() + 1);
  auto parts = Napi::Uint32Array::New(env, total);
  auto rows = Napi::Uint32Array::New(env, total);
  auto scores = Napi::Float64Array::New(env, total);
  auto scanned = Napi::Float64Array::New(env, all.size());
  auto rescored = Napi::Float64Array::New(env, all.size());
  uint32_t at = 0;
  for (size_t i = 0; i < all.size(); i++) {
    const sagitta_hits& hits = all[i];
    offsets.Data()[i] = at;
    std::copy_n(hits.parts, hits.count, parts.Data() + at);
    std::copy_n(hits.rows, hits.count, rows.Data() + at);
    std::copy_n(hits.scores, hits.count, scores.Data() + at);
    scanned.Data()[i] = static_cast<double>(hits.scanned_count);
    rescored.Data()[i] = static_cast<double>(hits.rescored_count);
    at += hits.count;
  }
  offsets.Data()[all.size()] = at;
  const auto taken = Napi::Object::New(env);
  taken.Set("offsets", offsets);
  taken.Set("parts", parts);
  taken.Set("rows", rows);
  taken.Set("scores", scores);
  taken.Set("scannedCounts", scanned);
  taken.Set("rescoredCounts", rescored);
  return taken;
}

void release(const Napi::CallbackInfo& info) { searches().remove(argument(info, 0)); }

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("targets", Napi::Function::New(env, targets));
  exports.Set("selectedTarget", Napi::Function::New(env, selected_target));
  exports.Set("selectTarget", Napi::Function::New(env, select_target));
  exports.Set("codesByteLength", Napi::Function::New(env, codes_byte_length));
  exports.Set("alignmentOffset", Napi::Function::New(env, alignment_offset));
  exports.Set("encode", Napi::Function::New(env, encode));
  exports.Set("createSearch", Napi::Function::New(env, create_search));
  exports.Set("cost", Napi::Function::New(env, cost));
  exports.Set("work", Napi::Function::New(env, work));
  exports.Set("cancel", Napi::Function::New(env, cancel));
  exports.Set("takeHits", Napi::Function::New(env, take_hits));
  exports.Set("release", Napi::Function::New(env, release));
  return exports;
}

}  // namespace

NODE_API_MODULE(sagitta, init)
