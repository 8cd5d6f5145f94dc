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
  const auto given = info[1].As<Napi::Object>();
  const auto room = array_of<Napi::Float32Array>(given, "room");
  const std::string member = given.Get("member").As<Napi::String>();
  const std::string list = given.Get("list").As<Napi::String>();
  const std::string list_member = given.Get("listMember").As<Napi::String>();
  const json::options options{
      .where = {member, list, list_member},
      .dimension_max = number_of(given, "dimensionMax"),
      .is_lines = given.Get("isLines").As<Napi::Boolean>(),
  };
  const auto* const text = reinterpret_cast<const char*>(bytes.Data());
  Napi::Value result = info.Env().Null();
  if (json::cut_vectors({text, bytes.ElementLength()}, options, found)) {
    const auto arrays = Napi::Object::New(info.Env());
    arrays.Set("rest", copy_of<Napi::Uint8Array>(info.Env(), found.rest));
    arrays.Set("valueCount", static_cast<double>(found.values.size()));
    const bool has_room = room.ElementLength() >= found.values.size();
    if (has_room) copy_into(room, found.values);
    else arrays.Set("values", copy_of<Napi::Float32Array>(info.Env(), found.values));
    arrays.Set("lengths", copy_of<Napi::Int32Array>(info.Env(), found.lengths));
    result = arrays;
  }
  shrink(found.rest);
  shrink(found.values);
  shrink(found.lengths);
  return result;
}

}  // namespace sagitta::addon
