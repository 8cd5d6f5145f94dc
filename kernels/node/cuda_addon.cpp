// The GPU kernels as a Node addon. Does no arithmetic: it checks shapes, borrows the memory of typed
// arrays, and keeps devices and blocks under ticket numbers. They belong to the thread that opened
// them, since a device is used by one thread at a time, and are closed when that thread ends.

#include <napi.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "../cuda/device.h"
#include "batch.h"

using namespace sagitta::addon;

namespace {

/** Throws the message of the device or its driver; `code` tells the engine how to recover. */
void require_ok(Napi::Env env, sagitta_status status) {
  if (status == SAGITTA_OK) return;
  Napi::Error error = status == SAGITTA_INVALID_ARGUMENT || status == SAGITTA_UNSUPPORTED_TARGET
                          ? Napi::RangeError::New(env, sagitta_device_error())
                          : Napi::Error::New(env, sagitta_device_error());
  if (status == SAGITTA_DEVICE_LOST) error.Set("code", Napi::String::New(env, "DEVICE_LOST"));
  if (status == SAGITTA_OUT_OF_MEMORY) error.Set("code", Napi::String::New(env, "OUT_OF_MEMORY"));
  throw error;
}

struct resident_block {
  sagitta_device_block* block;
  uint32_t device;
  uint32_t dimension;
};

/** The devices and blocks of one thread. */
struct open_devices {
  std::unordered_map<uint32_t, sagitta_device*> devices;
  std::unordered_map<uint32_t, resident_block> blocks;
  uint32_t next_ticket = 1;

  ~open_devices() {
    for (const auto& [ticket, device] : devices) sagitta_device_close(device);
  }
};

open_devices& opened(Napi::Env env) { return *env.GetInstanceData<open_devices>(); }

sagitta_device* device_argument(const Napi::CallbackInfo& info, size_t index) {
  const auto& devices = opened(info.Env()).devices;
  const auto found = devices.find(argument(info, index));
  require(info.Env(), found != devices.end(), "device: unknown ticket");
  return found->second;
}

const resident_block& block_with(Napi::Env env, uint32_t ticket) {
  const auto& blocks = opened(env).blocks;
  const auto found = blocks.find(ticket);
  require(env, found != blocks.end(), "block: unknown ticket");
  return found->second;
}

const resident_block& block_argument(const Napi::CallbackInfo& info) {
  return block_with(info.Env(), argument(info, 0));
}

// ── devices ───────────────────────────────────────────────────────────────────────────────

Napi::Value device_count(const Napi::CallbackInfo& info) {
  uint32_t count = 0;
  require_ok(info.Env(), sagitta_device_count(&count));
  return Napi::Number::New(info.Env(), count);
}

/** open(index, kernels or null): a ticket. */
Napi::Value open(const Napi::CallbackInfo& info) {
  std::string kernels;
  if (info[1].IsString()) kernels = info[1].As<Napi::String>();
  sagitta_device* device = nullptr;
  require_ok(info.Env(), sagitta_device_open(argument(info, 0),
                                             info[1].IsString() ? kernels.c_str() : nullptr, &device));
  open_devices& all = opened(info.Env());
  const uint32_t ticket = all.next_ticket++;
  all.devices[ticket] = device;
  return Napi::Number::New(info.Env(), ticket);
}

Napi::Value describe(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  sagitta_device_facts facts{};
  require_ok(env, sagitta_device_describe(device_argument(info, 0), &facts));
  const auto described = Napi::Object::New(env);
  described.Set("name", Napi::String::New(env, facts.name));
  described.Set("kernels", Napi::String::New(env, facts.kernels));
  described.Set("computeCapability", facts.compute_capability);
  described.Set("multiprocessorCount", facts.multiprocessor_count);
  described.Set("driverVersion", facts.driver_version);
  described.Set("runtimeVersion", facts.runtime_version);
  described.Set("memoryBytes", static_cast<double>(facts.memory_bytes));
  described.Set("freeBytes", static_cast<double>(facts.free_bytes));
  return described;
}

void close(const Napi::CallbackInfo& info) {
  sagitta_device* const device = device_argument(info, 0);
  open_devices& all = opened(info.Env());
  const uint32_t ticket = argument(info, 0);
  all.devices.erase(ticket);
  std::erase_if(all.blocks, [&](const auto& entry) { return entry.second.device == ticket; });
  sagitta_device_close(device);
}

// ── blocks ────────────────────────────────────────────────────────────────────────────────

/** blockBytes(dimension, rowCapacity, hasValues) */
Napi::Value block_bytes(const Napi::CallbackInfo& info) {
  const bool has_values = info[2].ToBoolean();
  const uint64_t bytes =
      sagitta_device_block_bytes(argument(info, 0), argument(info, 1), has_values);
  return Napi::Number::New(info.Env(), static_cast<double>(bytes));
}

/** createBlock(device, dimension): a ticket. */
Napi::Value create_block(const Napi::CallbackInfo& info) {
  const uint32_t dimension = argument(info, 1);
  sagitta_device_block* block = nullptr;
  require_ok(info.Env(), sagitta_device_block_create(device_argument(info, 0), dimension, &block));
  open_devices& all = opened(info.Env());
  const uint32_t ticket = all.next_ticket++;
  all.blocks[ticket] = {block, argument(info, 0), dimension};
  return Napi::Number::New(info.Env(), ticket);
}

/** reserve(block, rowCapacity, hasValues): false when the device has no memory for it. */
Napi::Value reserve(const Napi::CallbackInfo& info) {
  const resident_block& resident = block_argument(info);
  const bool has_values = info[2].ToBoolean();
  const sagitta_status status =
      sagitta_device_block_reserve(resident.block, argument(info, 1), has_values);
  if (status != SAGITTA_OUT_OF_MEMORY) require_ok(info.Env(), status);
  return Napi::Boolean::New(info.Env(), status == SAGITTA_OK);
}

/** extend(block, values, codes or null, to) */
void extend(const Napi::CallbackInfo& info) {
  const resident_block& resident = block_argument(info);
  const auto values = array_from<Napi::Float32Array>(info[1], "values");
  const uint32_t to = argument(info, 3);
  require(info.Env(), values.ElementLength() / resident.dimension >= to,
          "extend: there are fewer values than rows");
  const uint8_t* codes = nullptr;
  if (info[2].IsTypedArray()) {
    const auto bytes = array_from<Napi::Uint8Array>(info[2], "codes");
    require(info.Env(), bytes.ElementLength() >= sagitta_codes_bytes(to, resident.dimension),
            "extend: there are fewer codes than rows");
    codes = bytes.Data();
  }
  require_ok(info.Env(), sagitta_device_block_extend(resident.block, values.Data(), codes, to));
}

void destroy_block(const Napi::CallbackInfo& info) {
  sagitta_device_block_destroy(block_argument(info).block);
  opened(info.Env()).blocks.erase(argument(info, 0));
}

// ── search ────────────────────────────────────────────────────────────────────────────────

/** The resident blocks of a batch; each must have the rows that its views search. */
std::vector<sagitta_device_block*> read_residents(const Napi::CallbackInfo& info,
                                                  const batch_tables& batch) {
  const Napi::Env env = info.Env();
  const uint32_t device = argument(info, 0);
  const auto tickets = array_from<Napi::Uint32Array>(info[2], "residents");
  require(env, tickets.ElementLength() == batch.blocks.size(), "residents: there must be one per block");
  std::vector<sagitta_device_block*> residents(batch.blocks.size());
  for (size_t i = 0; i < residents.size(); i++) {
    const resident_block& resident = block_with(env, tickets.Data()[i]);
    require(env, resident.device == device, "residents: a block belongs to another device");
    require(env, resident.dimension == batch.dimension, "residents: a block has another dimension");
    residents[i] = resident.block;
  }
  for (const sagitta_block_view& view : batch.views) {
    require(env, view.block < residents.size(), "view: there is no such block");
    require(env, view.row_count <= sagitta_device_block_rows(residents[view.block]),
            "view: it has more rows than are resident");
  }
  return residents;
}

Napi::Object times_of(Napi::Env env, const sagitta_device_answer* answer) {
  sagitta_device_times times{};
  require_ok(env, sagitta_device_answer_times(answer, &times));
  const auto columns = Napi::Object::New(env);
  columns.Set("uploadMs", times.upload_ms);
  columns.Set("scanMs", times.scan_ms);
  columns.Set("selectMs", times.select_ms);
  columns.Set("rescoreMs", times.rescore_ms);
  columns.Set("totalMs", times.total_ms);
  columns.Set("prepareMs", times.prepare_ms);
  columns.Set("finishMs", times.finish_ms);
  columns.Set("readbackBytes", static_cast<double>(times.readback_bytes));
  return columns;
}

/** search(device, batch, residents): columns of hits, which queries are decided, and times. */
Napi::Value search(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  sagitta_device* const device = device_argument(info, 0);
  const auto tables = read_batch(info[1].As<Napi::Object>());
  const auto residents = read_residents(info, tables);
  const sagitta_batch batch = tables.view();
  sagitta_device_answer* made = nullptr;
  require_ok(env, sagitta_device_search(device, &batch, residents.data(), &made));
  const std::unique_ptr<sagitta_device_answer, void (*)(sagitta_device_answer*)> answer(
      made, sagitta_device_answer_destroy);
  std::vector<sagitta_hits> all(batch.query_count);
  auto is_decided = Napi::Uint8Array::New(env, batch.query_count);
  for (uint32_t query = 0; query < batch.query_count; query++) {
    const sagitta_status status = sagitta_device_answer_hits(made, query, &all[query]);
    is_decided.Data()[query] = status == SAGITTA_OK ? 1 : 0;
    if (status == SAGITTA_NOT_DONE) {
      all[query] = sagitta_hits{};
    } else {
      require_ok(env, status);
    }
  }
  Napi::Object columns = columns_of(env, all);
  columns.Set("isDecided", is_decided);
  columns.Set("times", times_of(env, made));
  return columns;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new open_devices());
  exports.Set("deviceCount", Napi::Function::New(env, device_count));
  exports.Set("open", Napi::Function::New(env, open));
  exports.Set("describe", Napi::Function::New(env, describe));
  exports.Set("close", Napi::Function::New(env, close));
  exports.Set("blockBytes", Napi::Function::New(env, block_bytes));
  exports.Set("createBlock", Napi::Function::New(env, create_block));
  exports.Set("reserve", Napi::Function::New(env, reserve));
  exports.Set("extend", Napi::Function::New(env, extend));
  exports.Set("destroyBlock", Napi::Function::New(env, destroy_block));
  exports.Set("search", Napi::Function::New(env, search));
  return exports;
}

}  // namespace

NODE_API_MODULE(sagitta_cuda, init)
