// What both addons share: typed arrays read by their types, a batch of queries out of columns, and
// hits into columns. Borrows the memory of the arrays that it reads and does no arithmetic.
#pragma once

#include <napi.h>

#include <string>
#include <vector>

#include "../kernels.h"

namespace sagitta::addon {

/** Throws RangeError with `what` when it does not hold. */
void require(Napi::Env env, bool holds, const std::string& what);

inline napi_typedarray_type type_of(const Napi::Uint8Array*) { return napi_uint8_array; }
inline napi_typedarray_type type_of(const Napi::Int32Array*) { return napi_int32_array; }
inline napi_typedarray_type type_of(const Napi::Uint32Array*) { return napi_uint32_array; }
inline napi_typedarray_type type_of(const Napi::Float32Array*) { return napi_float32_array; }
inline napi_typedarray_type type_of(const Napi::Float64Array*) { return napi_float64_array; }

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

uint32_t number_of(const Napi::Object& from, const char* name);
uint32_t argument(const Napi::CallbackInfo& info, size_t index);

/** A batch, and the tables that it points into; the arrays of blocks and the bitmaps are JavaScript's. */
struct batch_tables {
  std::vector<sagitta_block> blocks;
  std::vector<sagitta_part> parts;
  std::vector<sagitta_query> queries;
  uint32_t dimension;
  uint32_t worker_count;

  /** Points into these tables, which stay where they are meanwhile. */
  sagitta_batch view() const;
};

/** RangeError where the shapes do not fit each other. */
batch_tables read_batch(const Napi::Object& from);

/** Columns of the hits of all queries; those of query i are at offsets[i] .. offsets[i + 1]. */
Napi::Object columns_of(Napi::Env env, const std::vector<sagitta_hits>& all);

}  // namespace sagitta::addon
