// Code shared by both addons: checked access to typed arrays, a batch of queries from columns, and columns
// from hits. It borrows the memory of the arrays it reads and does no arithmetic.
#pragma once

#include <napi.h>

#include <string>
#include <vector>

#include "../kernels.h"

namespace sagitta::addon {

/** Throws RangeError with the message `what` unless the condition holds. */
void require(Napi::Env env, bool holds, const std::string& what);

inline napi_typedarray_type type_of(const Napi::Uint8Array*) { return napi_uint8_array; }
inline napi_typedarray_type type_of(const Napi::Int32Array*) { return napi_int32_array; }
inline napi_typedarray_type type_of(const Napi::Uint32Array*) { return napi_uint32_array; }
inline napi_typedarray_type type_of(const Napi::Float32Array*) { return napi_float32_array; }
inline napi_typedarray_type type_of(const Napi::Float64Array*) { return napi_float64_array; }

/** Returns the value as a typed array of this type; throws TypeError for anything else. */
template <class Array>
Array array_from(const Napi::Value& value, const char* name) {
  const Array* const wanted = nullptr;
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type_of(wanted)) {
    throw Napi::TypeError::New(value.Env(), std::string(name) + " is not a typed array of the expected type");
  }
  return value.As<Array>();
}

template <class Array>
Array array_of(const Napi::Object& from, const char* name) {
  return array_from<Array>(from.Get(name), name);
}

uint32_t number_of(const Napi::Object& from, const char* name);
uint32_t argument(const Napi::CallbackInfo& info, size_t index);

/** The tables of a batch. JavaScript owns the arrays of blocks and bitmaps. */
struct batch_tables {
  std::vector<sagitta_block> blocks;
  std::vector<sagitta_block_view> views;
  std::vector<sagitta_query> queries;
  uint32_t dimension;
  uint32_t worker_count;
  sagitta_method method;

  /** Returns a batch that points into these tables, which must not move while it is in use. */
  sagitta_batch view() const;
};

/** Reads a batch. Throws RangeError when shapes do not match. */
batch_tables read_batch(const Napi::Object& from);

/** Returns the hits of all queries as columns; the hits of query i are at offsets[i] .. offsets[i + 1]. */
Napi::Object columns_of(Napi::Env env, const std::vector<sagitta_hits>& all);

}  // namespace sagitta::addon
