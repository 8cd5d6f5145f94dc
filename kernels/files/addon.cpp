// Files mapped into memory, and fast checksums, as a Node addon. It uses V8's interface, because Node-API
// has no SharedArrayBuffer over foreign memory; so it is bound to the version of Node whose headers it was
// compiled with. V8 counts the references of all threads and unmaps a file after the last one.

#include <node.h>

#include <cstring>
#include <memory>
#include <string>

#include "crc32.h"
#include "mapped_files.h"

namespace {

using namespace sagitta::files;
using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

Local<v8::String> text(Isolate* isolate, const std::string& content) {
  return v8::String::NewFromUtf8(isolate, content.c_str()).ToLocalChecked();
}

void throw_error(Isolate* isolate, const std::string& message) {
  isolate->ThrowException(v8::Exception::Error(text(isolate, message)));
}

void set(Isolate* isolate, Local<v8::Object> object, const char* name, Local<Value> value) {
  object->Set(isolate->GetCurrentContext(), text(isolate, name), value).Check();
}

/** map(path, byteLength): returns {buffer, index}, where flags()[index] tells whether the mapping is damaged. */
void map(const FunctionCallbackInfo<Value>& info) {
  Isolate* const isolate = info.GetIsolate();
  if (!info[0]->IsString() || !info[1]->IsNumber()) {
    throw_error(isolate, "map: expected a path and a length");
    return;
  }
  const v8::String::Utf8Value path(isolate, info[0]);
  const auto byte_length = static_cast<size_t>(info[1].As<v8::Number>()->Value());
  auto mapped = std::make_unique<mapping>();
  failure failed{};
  if (!map_file(*path, byte_length, *mapped, failed)) {
    const char* const reason = failed.error_number == 0 ? "" : std::strerror(failed.error_number);
    throw_error(isolate, std::string(*path) + " cannot be mapped: " + failed.what + " " + reason);
    return;
  }
  const auto unmap = [](void*, size_t, void* data) {
    const std::unique_ptr<mapping> owned(static_cast<mapping*>(data));
    unmap_file(*owned);
  };
  const auto result = v8::Object::New(isolate);
  set(isolate, result, "index", v8::Integer::NewFromUnsigned(isolate, mapped->index));
  void* const data = mapped->data;
  auto store =
      v8::SharedArrayBuffer::NewBackingStore(data, byte_length, unmap, mapped.release());
  set(isolate, result, "buffer", v8::SharedArrayBuffer::New(isolate, std::move(store)));
  info.GetReturnValue().Set(result);
}

/** flags(): returns an Int32Array over shared memory, indexed by mapping. */
void flags(const FunctionCallbackInfo<Value>& info) {
  Isolate* const isolate = info.GetIsolate();
  auto store = v8::SharedArrayBuffer::NewBackingStore(
      damage_flags, sizeof damage_flags, [](void*, size_t, void*) {}, nullptr);
  const auto buffer = v8::SharedArrayBuffer::New(isolate, std::move(store));
  info.GetReturnValue().Set(v8::Int32Array::New(buffer, 0, mapping_count_max));
}

/** crc32(bytes, crc): returns zlib's checksum, continued from `crc`. */
void checksum(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsUint8Array() || !info[1]->IsNumber()) {
    throw_error(info.GetIsolate(), "crc32: expected bytes and the checksum of the bytes before");
    return;
  }
  const auto bytes = info[0].As<v8::Uint8Array>();
  const auto* const data = static_cast<const uint8_t*>(bytes->Buffer()->GetBackingStore()->Data());
  const uint32_t before = info[1].As<v8::Number>()->Uint32Value(info.GetIsolate()->GetCurrentContext()).FromJust();
  info.GetReturnValue().Set(crc32(data + bytes->ByteOffset(), bytes->ByteLength(), before));
}

}  // namespace

NODE_MODULE_INIT(/* exports, module, context */) {
  (void)module;
  Isolate* const isolate = context->GetIsolate();
  const auto add = [&](const char* name, v8::FunctionCallback function) {
    set(isolate, exports, name, v8::Function::New(context, function).ToLocalChecked());
  };
  add("map", map);
  add("flags", flags);
  if (has_crc32()) add("crc32", checksum);
}
