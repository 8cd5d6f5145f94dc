// Files mapped into memory, and fast checksums, as a Node addon. It uses V8's interface, because Node-API
// has no SharedArrayBuffer over foreign memory; so it is bound to the version of Node whose headers it was
// compiled with. V8 counts the references of all threads and unmaps a file after the last one.

#include <node.h>

#include <cstring>
#include <memory>
#include <string>

#include "crc32.h"
#include "mapped_files.h"
#include "partial_files.h"

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

void throw_failure(Isolate* isolate, const std::string& what, const failure& failed) {
  const char* const reason = failed.error_number == 0 ? "" : std::strerror(failed.error_number);
  throw_error(isolate, what + failed.what + " " + reason);
}

/** Returns {buffer, index}; V8 calls `unmap` when no thread refers to the buffer anymore. */
Local<v8::Object> object_of(Isolate* isolate, std::unique_ptr<mapping> mapped, v8::BackingStore::DeleterCallback unmap) {
  const auto result = v8::Object::New(isolate);
  set(isolate, result, "index", v8::Integer::NewFromUnsigned(isolate, mapped->index));
  void* const data = mapped->data;
  const size_t byte_length = mapped->byte_length;
  auto store = v8::SharedArrayBuffer::NewBackingStore(data, byte_length, unmap, mapped.release());
  set(isolate, result, "buffer", v8::SharedArrayBuffer::New(isolate, std::move(store)));
  return result;
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
    throw_failure(isolate, std::string(*path) + " cannot be mapped: ", failed);
    return;
  }
  const auto unmap = [](void*, size_t, void* data) {
    const std::unique_ptr<mapping> owned(static_cast<mapping*>(data));
    unmap_file(*owned);
  };
  info.GetReturnValue().Set(object_of(isolate, std::move(mapped), unmap));
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

double number_at(const FunctionCallbackInfo<Value>& info, int at) {
  return info[at]->IsNumber() ? info[at].As<v8::Number>()->Value() : 0;
}

uint32_t index_at(const FunctionCallbackInfo<Value>& info, int at) { return static_cast<uint32_t>(number_at(info, at)); }

/** openQueue(): returns {queue, descriptor}. */
void open_requests(const FunctionCallbackInfo<Value>& info) {
  Isolate* const isolate = info.GetIsolate();
  uint32_t queue = 0;
  int descriptor = -1;
  failure failed{};
  if (!open_queue(queue, descriptor, failed)) {
    throw_failure(isolate, "blocks cannot be fetched: ", failed);
    return;
  }
  const auto result = v8::Object::New(isolate);
  set(isolate, result, "queue", v8::Integer::NewFromUnsigned(isolate, queue));
  set(isolate, result, "descriptor", v8::Integer::New(isolate, descriptor));
  info.GetReturnValue().Set(result);
}

void close_requests(const FunctionCallbackInfo<Value>& info) { close_queue(index_at(info, 0)); }

/** serveQueue(queue): closes the queue when this thread ends, however that happens. */
void serve_requests(const FunctionCallbackInfo<Value>& info) {
  const auto close = [](void* queue) { close_queue(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(queue))); };
  node::AddEnvironmentCleanupHook(info.GetIsolate(), close, reinterpret_cast<void*>(uintptr_t{index_at(info, 0)}));
}

/** mapPartial(descriptor, byteLength, blockBytes, kept, queue): returns {buffer, index, generation}. */
void map_partial(const FunctionCallbackInfo<Value>& info) {
  Isolate* const isolate = info.GetIsolate();
  if (!info[3]->IsUint32Array()) {
    throw_error(isolate, "mapPartial: expected the first block and the count of each run");
    return;
  }
  const auto runs = info[3].As<v8::Uint32Array>();
  std::vector<block_run> kept(runs->Length() / 2);
  runs->CopyContents(kept.data(), kept.size() * sizeof(block_run));
  const partial_options options{
      .descriptor = static_cast<int>(number_at(info, 0)),
      .byte_length = static_cast<size_t>(number_at(info, 1)),
      .block_bytes = static_cast<size_t>(number_at(info, 2)),
      .kept = std::move(kept),
      .queue = index_at(info, 4),
  };
  auto mapped = std::make_unique<mapping>();
  uint32_t generation = 0;
  failure failed{};
  if (!map_partial_file(options, *mapped, generation, failed)) {
    throw_failure(isolate, "the file cannot be mapped: ", failed);
    return;
  }
  const auto unmap = [](void*, size_t, void* data) {
    const std::unique_ptr<mapping> owned(static_cast<mapping*>(data));
    unmap_partial_file(*owned);
  };
  const auto result = object_of(isolate, std::move(mapped), unmap);
  set(isolate, result, "generation", v8::Integer::NewFromUnsigned(isolate, generation));
  info.GetReturnValue().Set(result);
}

void map_one(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(map_block(index_at(info, 0), index_at(info, 1), index_at(info, 2)));
}

void rest_one(const FunctionCallbackInfo<Value>& info) {
  rest_block(index_at(info, 0), index_at(info, 1), index_at(info, 2));
}

void drop_one(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(drop_block(index_at(info, 0), index_at(info, 1), index_at(info, 2)));
}

void fail_one(const FunctionCallbackInfo<Value>& info) { fail_mapping(index_at(info, 0), index_at(info, 1)); }

void punch_hole(const FunctionCallbackInfo<Value>& info) {
  const auto offset = static_cast<size_t>(number_at(info, 1));
  const auto byte_length = static_cast<size_t>(number_at(info, 2));
  info.GetReturnValue().Set(punch(static_cast<int>(number_at(info, 0)), offset, byte_length));
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
  if (!has_partial_files()) return;
  add("openQueue", open_requests);
  add("serveQueue", serve_requests);
  add("closeQueue", close_requests);
  add("mapPartial", map_partial);
  add("mapBlock", map_one);
  add("restBlock", rest_one);
  add("dropBlock", drop_one);
  add("failMapping", fail_one);
  add("punch", punch_hole);
}
