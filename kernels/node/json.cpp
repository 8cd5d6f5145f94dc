// Borrows the bytes of a request and copies the vectors found into JavaScript's typed arrays.

#include "json.h"

#include <cstring>
#include <string>

#include "../json/vectors.h"
#include "batch.h"

namespace sagitta::addon {

namespace {

/** A thread keeps its arrays for the next request, unless an unusual one made them larger than this. */
constexpr size_t elements_kept_max = 4 << 20;

template <class Element>
void shrink(std::vector<Element>& elements) {
  if (elements.capacity() > elements_kept_max) std::vector<Element>().swap(elements);
}

template <class Array, class Element>
void copy_into(Array target, const std::vector<Element>& elements) {
  if (!elements.empty()) std::memcpy(target.Data(), elements.data(), elements.size() * sizeof(Element));
}

template <class Array, class Element>
Array copy_of(Napi::Env env, const std::vector<Element>& elements) {
  const auto copy = Array::New(env, elements.size());
  copy_into(copy, elements);
  return copy;
}

}  // namespace

Napi::Value cut_vectors(const Napi::CallbackInfo& info) {
  thread_local json::vectors found;
  const auto bytes = array_from<Napi::Uint8Array>(info[0], "bytes");
  const std::string member = info[1].As<Napi::String>();
  const std::string list = info[2].As<Napi::String>();
  const std::string list_member = info[3].As<Napi::String>();
  const json::options options{
      .where = {member, list, list_member},
      .dimension_max = info[4].As<Napi::Number>().Uint32Value(),
      .is_lines = info[5].As<Napi::Boolean>(),
  };
  const auto room = array_from<Napi::Float32Array>(info[6], "room");
  const auto* const text = reinterpret_cast<const char*>(bytes.Data());
  Napi::Value result = info.Env().Null();
  if (json::cut_vectors({text, bytes.ElementLength()}, options, found)) {
    const auto parts = Napi::Array::New(info.Env(), 4);
    parts.Set(uint32_t{0}, copy_of<Napi::Uint8Array>(info.Env(), found.rest));
    parts.Set(uint32_t{1}, copy_of<Napi::Int32Array>(info.Env(), found.lengths));
    parts.Set(uint32_t{2}, static_cast<double>(found.values.size()));
    const bool has_room = room.ElementLength() >= found.values.size();
    if (has_room) copy_into(room, found.values);
    else parts.Set(uint32_t{3}, copy_of<Napi::Float32Array>(info.Env(), found.values));
    result = parts;
  }
  shrink(found.rest);
  shrink(found.values);
  shrink(found.lengths);
  return result;
}

}  // namespace sagitta::addon
