// See batch.h.

#include "batch.h"

#include <algorithm>

namespace sagitta::addon {

void require(Napi::Env env, bool holds, const std::string& what) {
  if (!holds) throw Napi::RangeError::New(env, what);
}

uint32_t number_of(const Napi::Object& from, const char* name) {
  return from.Get(name).As<Napi::Number>().Uint32Value();
}

uint32_t argument(const Napi::CallbackInfo& info, size_t index) {
  return info[index].As<Napi::Number>().Uint32Value();
}

sagitta_batch batch_tables::view() const {
  return {blocks.data(),
          views.data(),
          queries.data(),
          static_cast<uint32_t>(blocks.size()),
          static_cast<uint32_t>(views.size()),
          static_cast<uint32_t>(queries.size()),
          dimension,
          worker_count,
          method};
}

namespace {

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
            "block: there are fewer values than rows");
    require(from.Env(), id_offsets.ElementLength() > block.row_count, "block: there are fewer ids than rows");
    require(from.Env(),
            static_cast<size_t>(id_offsets.Data()[block.row_count]) <= id_bytes.ElementLength(),
            "block: ids end beyond their bytes");
    block.values = values.Data();
    block.id_offsets = id_offsets.Data();
    block.id_bytes = id_bytes.Data();
    if (!object.Get("codes").IsTypedArray()) continue;
    const auto codes = array_of<Napi::Uint8Array>(object, "codes");
    require(from.Env(), codes.ElementLength() >= sagitta_codes_bytes(block.row_count, dimension),
            "block: there are fewer codes than rows");
    block.codes = codes.Data();
    if (!object.Get("coarse").IsTypedArray()) continue;
    const auto coarse = array_of<Napi::Uint8Array>(object, "coarse");
    const auto refinement = array_of<Napi::Uint8Array>(object, "refinement");
    require(from.Env(),
            coarse.ElementLength() >= sagitta_coarse_bytes(block.row_count, dimension) &&
                refinement.ElementLength() >= sagitta_refinement_bytes(block.row_count, dimension),
            "block: there are fewer coarse codes than rows");
    block.coarse = coarse.Data();
    block.refinement = refinement.Data();
    if (!object.Get("head").IsTypedArray()) continue;
    const auto basis = array_of<Napi::Uint8Array>(object, "basis");
    const auto head = array_of<Napi::Uint8Array>(object, "head");
    require(from.Env(), head.ElementLength() >= sagitta_head_bytes(block.row_count, dimension),
            "block: there are fewer head tiles than rows");
    block.basis = basis.Data();
    block.basis_bytes = basis.ElementLength();
    block.head = head.Data();
    block.head_bytes = head.ElementLength();
  }
  return blocks;
}

/** Three numbers per view: block, row count, and 1 + the index of its bitmap, or 0 for all rows. */
std::vector<sagitta_block_view> read_views(const Napi::Object& batch) {
  const auto table = array_of<Napi::Uint32Array>(batch, "views");
  const auto bitmaps = batch.Get("bitmaps").As<Napi::Array>();
  std::vector<Napi::Uint32Array> words(bitmaps.Length());
  for (uint32_t i = 0; i < words.size(); i++) {
    words[i] = array_from<Napi::Uint32Array>(bitmaps.Get(i), "bitmap");
  }
  std::vector<sagitta_block_view> views(table.ElementLength() / 3);
  for (size_t i = 0; i < views.size(); i++) {
    const uint32_t* const row = table.Data() + 3 * i;
    views[i] = {nullptr, row[0], row[1]};
    if (row[2] == 0) continue;
    require(batch.Env(), row[2] <= words.size(), "view: the bitmap does not exist");
    const Napi::Uint32Array& bitmap = words[row[2] - 1];
    require(batch.Env(), bitmap.ElementLength() * 32 >= row[1], "view: the bitmap has fewer bits than rows");
    views[i].rows = bitmap.Data();
  }
  return views;
}

/**
 * Reads columns with one value per query: `vectors` [n, dimension], `metrics`, `ks`, `floors`,
 * `afterScores`, `viewRanges` [n, 2] of first views and numbers of views, and ids of rank keys as
 * `afterOffsets` [n + 1] into `afterIds`, where an empty id means no rank key.
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
  const auto view_ranges = array_of<Napi::Uint32Array>(batch, "viewRanges");
  const size_t count = ks.ElementLength();
  require(env, vectors.ElementLength() == count * dimension, "queries: vectors are not [query count, dimension]");
  require(env,
          metrics.ElementLength() == count && floors.ElementLength() == count &&
              after_scores.ElementLength() == count &&
              after_offsets.ElementLength() == count + 1 && view_ranges.ElementLength() == 2 * count,
          "queries: columns have different lengths");
  std::vector<sagitta_query> queries(count);
  for (size_t i = 0; i < count; i++) {
    sagitta_query& query = queries[i];
    const uint32_t* const id = after_offsets.Data() + i;
    require(env, id[0] <= id[1] && id[1] <= after_ids.ElementLength(), "queries: ids of rank keys are out of bounds");
    require(env, metrics.Data()[i] <= SAGITTA_JACCARD, "queries: unknown metric");
    query.vector = vectors.Data() + i * dimension;
    query.metric = static_cast<sagitta_metric>(metrics.Data()[i]);
    query.k = ks.Data()[i];
    query.floor = floors.Data()[i];
    query.after_score = after_scores.Data()[i];
    query.after_id = id[0] == id[1] ? nullptr : after_ids.Data() + id[0];
    query.after_id_bytes = id[1] - id[0];
    query.first_view = view_ranges.Data()[2 * i];
    query.view_count = view_ranges.Data()[2 * i + 1];
  }
  return queries;
}

sagitta_method read_method(const Napi::Object& from) {
  if (!from.Get("method").IsNumber()) return SAGITTA_METHOD_AUTO;
  const uint32_t method = number_of(from, "method");
  require(from.Env(), method <= SAGITTA_METHOD_HEAD_TILES, "method");
  return static_cast<sagitta_method>(method);
}

}  // namespace

batch_tables read_batch(const Napi::Object& from) {
  const uint32_t dimension = number_of(from, "dimension");
  require(from.Env(), dimension > 0, "dimension");
  return {read_blocks(from.Get("blocks").As<Napi::Array>(), dimension), read_views(from),
          read_queries(from, dimension), dimension, number_of(from, "workerCount"), read_method(from)};
}

Napi::Object columns_of(Napi::Env env, const std::vector<sagitta_hits>& all) {
  size_t total = 0;
  for (const sagitta_hits& hits : all) total += hits.count;
  auto offsets = Napi::Uint32Array::New(env, all.size() + 1);
  auto views = Napi::Uint32Array::New(env, total);
  auto rows = Napi::Uint32Array::New(env, total);
  auto scores = Napi::Float64Array::New(env, total);
  auto scanned = Napi::Float64Array::New(env, all.size());
  auto rescored = Napi::Float64Array::New(env, all.size());
  uint32_t at = 0;
  for (size_t i = 0; i < all.size(); i++) {
    const sagitta_hits& hits = all[i];
    offsets.Data()[i] = at;
    std::copy_n(hits.views, hits.count, views.Data() + at);
    std::copy_n(hits.rows, hits.count, rows.Data() + at);
    std::copy_n(hits.scores, hits.count, scores.Data() + at);
    scanned.Data()[i] = static_cast<double>(hits.scanned_count);
    rescored.Data()[i] = static_cast<double>(hits.rescored_count);
    at += hits.count;
  }
  offsets.Data()[all.size()] = at;
  const auto columns = Napi::Object::New(env);
  columns.Set("offsets", offsets);
  columns.Set("views", views);
  columns.Set("rows", rows);
  columns.Set("scores", scores);
  columns.Set("scannedCounts", scanned);
  columns.Set("rescoredCounts", rescored);
  return columns;
}

}  // namespace sagitta::addon
