// The GPU kernels as a Node addon. It does no arithmetic: it checks shapes, borrows the memory of typed
// arrays, and keeps devices and blocks under ticket numbers, which belong to the thread that opened them.
// Each device has a process of its own, which runs `serve`: a service never calls the driver.

#include <napi.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "../cuda/device.h"
#include "../cuda/remote.h"
#include "batch.h"

#if defined(SAGITTA_EMULATE_CUDA)
#include "../testing/cuda_emulation/settings.h"
#endif

using namespace sagitta::addon;
using namespace sagitta::cuda;

namespace {

/** Throws the message of the device or its driver; `code` tells the engine how to recover. */
[[noreturn]] void throw_status(Napi::Env env, sagitta_status status, const std::string& message) {
  Napi::Error error = status == SAGITTA_INVALID_ARGUMENT || status == SAGITTA_UNSUPPORTED_TARGET
                          ? Napi::RangeError::New(env, message)
                          : Napi::Error::New(env, message);
  if (status == SAGITTA_DEVICE_LOST) error.Set("code", Napi::String::New(env, "DEVICE_LOST"));
  if (status == SAGITTA_OUT_OF_MEMORY) error.Set("code", Napi::String::New(env, "OUT_OF_MEMORY"));
  if (status == SAGITTA_OUT_OF_HOST_MEMORY) {
    error.Set("code", Napi::String::New(env, "OUT_OF_HOST_MEMORY"));
  }
  throw error;
}

void require_ok(Napi::Env env, sagitta_status status) {
  if (status != SAGITTA_OK) throw_status(env, status, sagitta_device_error());
}

/** Turns failures of the work into JavaScript errors. */
template <class Work>
auto with_js_errors(Napi::Env env, Work work) {
  try {
    return work();
  } catch (const failure& failed) {
    throw_status(env, failed.status, failed.what);
  } catch (const std::bad_alloc&) {
    throw_status(env, SAGITTA_OUT_OF_HOST_MEMORY, "out of host memory");
  }
}

struct resident_block {
  remote_block block;
  uint32_t device;
};

/** The devices and blocks of one thread. */
struct open_devices {
  std::unordered_map<uint32_t, std::unique_ptr<remote_device>> devices;
  std::unordered_map<uint32_t, resident_block> blocks;
  uint32_t next_ticket = 1;
};

open_devices& opened(Napi::Env env) { return *env.GetInstanceData<open_devices>(); }

remote_device& device_with(Napi::Env env, uint32_t ticket) {
  const auto& devices = opened(env).devices;
  const auto found = devices.find(ticket);
  require(env, found != devices.end(), "device: unknown ticket");
  return *found->second;
}

remote_device& device_argument(const Napi::CallbackInfo& info) {
  return device_with(info.Env(), argument(info, 0));
}

resident_block& block_with(Napi::Env env, uint32_t ticket) {
  auto& blocks = opened(env).blocks;
  const auto found = blocks.find(ticket);
  require(env, found != blocks.end(), "block: unknown ticket");
  return found->second;
}

resident_block& block_argument(const Napi::CallbackInfo& info) {
  return block_with(info.Env(), argument(info, 0));
}

// ── the process of a device ───────────────────────────────────────────────────────────────

Napi::Object facts_of(Napi::Env env, const sagitta_device_facts& facts, const std::string& kernels) {
  const auto described = Napi::Object::New(env);
  described.Set("name", Napi::String::New(env, facts.name));
  described.Set("kernels", Napi::String::New(env, kernels));
  described.Set("computeCapability", facts.compute_capability);
  described.Set("multiprocessorCount", facts.multiprocessor_count);
  described.Set("driverVersion", facts.driver_version);
  described.Set("runtimeVersion", facts.runtime_version);
  described.Set("memoryBytes", static_cast<double>(facts.memory_bytes));
  described.Set("freeBytes", static_cast<double>(facts.free_bytes));
  return described;
}

/** list(): the facts of all devices. It calls the driver, so only a process of its own may call it. */
Napi::Value list(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t count = 0;
  require_ok(env, sagitta_device_count(&count));
  auto all = Napi::Array::New(env, count);
  for (uint32_t i = 0; i < count; i++) {
    sagitta_device_facts facts{};
    require_ok(env, sagitta_device_identify(i, &facts));
    all.Set(i, facts_of(env, facts, facts.kernels));
  }
  return all;
}

/** serve(socket, memory): returns when the service has closed the channel. */
void serve(const Napi::CallbackInfo& info) {
  const int socket = info[0].As<Napi::Number>().Int32Value();
  const int memory = info[1].As<Napi::Number>().Int32Value();
  with_js_errors(info.Env(), [&] { serve_device(socket, memory); });
}

/** createChannel(): descriptors, which the caller must close. */
Napi::Value create_channel_of(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const channel_descriptors made = with_js_errors(env, [] { return create_channel(); });
  const auto channel = Napi::Object::New(env);
  channel.Set("service", made.service);
  channel.Set("device", made.device);
  channel.Set("memory", made.memory);
  return channel;
}

// ── devices ───────────────────────────────────────────────────────────────────────────────

/** open({socket, memory, deadlines}, index, kernels or null): returns a ticket. */
Napi::Value open(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto link = info[0].As<Napi::Object>();
  const auto limits = link.Get("deadlines").As<Napi::Object>();
  const auto number = [](const Napi::Object& from, const char* name) {
    return from.Get(name).As<Napi::Number>().DoubleValue();
  };
  deadlines patience{number(limits, "openMs"), number(limits, "callMs"),
                     number(limits, "productsPerMs"), number(limits, "bytesPerMs")};
#if defined(SAGITTA_EMULATE_CUDA)
  patience.open_ms *= emulation::current_settings().patience;
  patience.call_ms *= emulation::current_settings().patience;
#endif
  std::string kernels;
  if (info[2].IsString()) kernels = info[2].As<Napi::String>();
  return with_js_errors(env, [&] {
    auto device = std::make_unique<remote_device>(static_cast<int>(number(link, "socket")),
                                                  static_cast<int>(number(link, "memory")), patience);
    device->open(argument(info, 1), info[2].IsString() ? kernels.c_str() : nullptr);
    open_devices& all = opened(env);
    const uint32_t ticket = all.next_ticket++;
    all.devices[ticket] = std::move(device);
    return Napi::Number::New(env, ticket);
  });
}

Napi::Value describe(const Napi::CallbackInfo& info) {
  return with_js_errors(info.Env(), [&] {
    std::string kernels;
    const sagitta_device_facts facts = device_argument(info).describe(kernels);
    return facts_of(info.Env(), facts, kernels);
  });
}

void ping(const Napi::CallbackInfo& info) {
  with_js_errors(info.Env(), [&] { device_argument(info).ping(); });
}

/** close(device): forgets the device; the caller ends its process. */
void close(const Napi::CallbackInfo& info) {
  device_argument(info);
  open_devices& all = opened(info.Env());
  const uint32_t ticket = argument(info, 0);
  all.devices.erase(ticket);
  std::erase_if(all.blocks, [&](const auto& entry) { return entry.second.device == ticket; });
}

// ── blocks ────────────────────────────────────────────────────────────────────────────────

struct block_parts {
  bool has_values;
  bool has_head;
};

/** Returns the third argument, {hasValues, hasHead}. */
block_parts parts_argument(const Napi::CallbackInfo& info) {
  const auto parts = info[2].As<Napi::Object>();
  return {parts.Get("hasValues").ToBoolean(), parts.Get("hasHead").ToBoolean()};
}

/** blockBytes(dimension, rowCapacity, {hasValues, hasHead}) */
Napi::Value block_bytes(const Napi::CallbackInfo& info) {
  const block_parts parts = parts_argument(info);
  const uint64_t bytes =
      sagitta_device_block_bytes(argument(info, 0), argument(info, 1), parts.has_values, parts.has_head);
  return Napi::Number::New(info.Env(), static_cast<double>(bytes));
}

/** createBlock(device, dimension): returns a ticket. */
Napi::Value create_block(const Napi::CallbackInfo& info) {
  return with_js_errors(info.Env(), [&] {
    const remote_block block = device_argument(info).create_block(argument(info, 1));
    open_devices& all = opened(info.Env());
    const uint32_t ticket = all.next_ticket++;
    all.blocks[ticket] = {block, argument(info, 0)};
    return Napi::Number::New(info.Env(), ticket);
  });
}

/** reserve(block, rowCapacity, {hasValues, hasHead}): returns false when the device has no memory for it. */
Napi::Value reserve(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  resident_block& resident = block_argument(info);
  const block_parts parts = parts_argument(info);
  try {
    device_with(env, resident.device)
        .reserve(resident.block, argument(info, 1), parts.has_values, parts.has_head);
    return Napi::Boolean::New(env, true);
  } catch (const failure& failed) {
    if (failed.status != SAGITTA_OUT_OF_MEMORY) throw_status(env, failed.status, failed.what);
    return Napi::Boolean::New(env, false);
  }
}

/** extend(block, {values, codes or null, coarse or null, basis or null, head or null}, to) */
void extend(const Napi::CallbackInfo& info) {
  resident_block& resident = block_argument(info);
  const uint32_t dimension = resident.block.dimension;
  const auto from = info[1].As<Napi::Object>();
  const auto values = array_from<Napi::Float32Array>(from.Get("values"), "values");
  const uint32_t to = argument(info, 2);
  require(info.Env(), values.ElementLength() / dimension >= to,
          "extend: there are fewer values than rows");
  const auto codes_from = [&](const char* name, size_t byte_count) -> const uint8_t* {
    if (!from.Get(name).IsTypedArray()) return nullptr;
    const auto bytes = array_from<Napi::Uint8Array>(from.Get(name), name);
    require(info.Env(), bytes.ElementLength() >= byte_count,
            "extend: there are fewer codes than rows");
    return bytes.Data();
  };
  sagitta_block rows{};
  rows.values = values.Data();
  rows.codes = codes_from("codes", sagitta_codes_bytes(to, dimension));
  rows.coarse = codes_from("coarse", sagitta_coarse_bytes(to, dimension));
  rows.basis_bytes = sagitta_basis_bytes(dimension);
  rows.basis = codes_from("basis", rows.basis_bytes);
  rows.head_bytes = sagitta_head_bytes(to, dimension);
  rows.head = codes_from("head", rows.head_bytes);
  with_js_errors(info.Env(), [&] {
    device_with(info.Env(), resident.device).extend(resident.block, rows, to);
  });
}

void destroy_block(const Napi::CallbackInfo& info) {
  const resident_block& resident = block_argument(info);
  with_js_errors(info.Env(), [&] { device_with(info.Env(), resident.device).destroy(resident.block); });
  opened(info.Env()).blocks.erase(argument(info, 0));
}

// ── search ────────────────────────────────────────────────────────────────────────────────

/** Reads the resident blocks of a batch; each must hold the rows that its views search. */
std::vector<const remote_block*> read_residents(const Napi::CallbackInfo& info,
                                                const batch_tables& batch) {
  const Napi::Env env = info.Env();
  const uint32_t device = argument(info, 0);
  const auto tickets = array_from<Napi::Uint32Array>(info[2], "residents");
  require(env, tickets.ElementLength() == batch.blocks.size(), "residents: expected one per block");
  std::vector<const remote_block*> residents(batch.blocks.size());
  for (size_t i = 0; i < residents.size(); i++) {
    const resident_block& resident = block_with(env, tickets.Data()[i]);
    require(env, resident.device == device, "residents: a block belongs to another device");
    require(env, resident.block.dimension == batch.dimension, "residents: a block has another dimension");
    residents[i] = &resident.block;
  }
  for (const sagitta_block_view& view : batch.views) {
    require(env, view.block < residents.size(), "view: the block does not exist");
    require(env, view.row_count <= residents[view.block]->row_count,
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
  columns.Set("repeatedQueryCount", static_cast<double>(times.repeated_queries));
  columns.Set("coarseQueryCount", static_cast<double>(times.coarse_queries));
  columns.Set("headQueryCount", static_cast<double>(times.head_queries));
  columns.Set("abandonedQueryCount", static_cast<double>(times.abandoned_queries));
  columns.Set("readbackBytes", static_cast<double>(times.readback_bytes));
  columns.Set("unpinnedBytes", static_cast<double>(times.unpinned_bytes));
  return columns;
}

/** beginSearch(device, batch, residents) */
void begin_search(const Napi::CallbackInfo& info) {
  remote_device& device = device_argument(info);
  const auto tables = read_batch(info[1].As<Napi::Object>());
  const auto residents = read_residents(info, tables);
  with_js_errors(info.Env(), [&] { device.begin_search(tables.view(), residents.data()); });
}

/**
 * endSearch(device, batch): returns columns of hits, whether each query is decided, and times, of the search that began
 * first.
 */
Napi::Value end_search(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  remote_device& device = device_argument(info);
  const auto tables = read_batch(info[1].As<Napi::Object>());
  const sagitta_batch batch = tables.view();
  const std::unique_ptr<sagitta_device_answer> answer =
      with_js_errors(env, [&] { return device.end_search(batch); });
  sagitta_device_answer* const made = answer.get();
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
  exports.Set("list", Napi::Function::New(env, list));
  exports.Set("serve", Napi::Function::New(env, serve));
  exports.Set("createChannel", Napi::Function::New(env, create_channel_of));
  exports.Set("open", Napi::Function::New(env, open));
  exports.Set("describe", Napi::Function::New(env, describe));
  exports.Set("ping", Napi::Function::New(env, ping));
  exports.Set("close", Napi::Function::New(env, close));
  exports.Set("blockBytes", Napi::Function::New(env, block_bytes));
  exports.Set("createBlock", Napi::Function::New(env, create_block));
  exports.Set("reserve", Napi::Function::New(env, reserve));
  exports.Set("extend", Napi::Function::New(env, extend));
  exports.Set("destroyBlock", Napi::Function::New(env, destroy_block));
  exports.Set("beginSearch", Napi::Function::New(env, begin_search));
  exports.Set("endSearch", Napi::Function::New(env, end_search));
  return exports;
}

}  // namespace

NODE_API_MODULE(sagitta_cuda, init)
