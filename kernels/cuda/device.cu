// Devices and their resident blocks: the part of the C interface that moves rows.

#include "device.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "../search/valid.h"
#include "call.h"
#include "device_state.h"
#include "kernel_check.h"

using namespace sagitta;
using namespace sagitta::cuda;

namespace {

/** Bytes of each of the two pinned buffers through which rows are uploaded. */
constexpr size_t staging_bytes = 8 * 1024 * 1024;

/** A slice may use this fraction of the free memory (1 / workspace_share), up to the limit. */
constexpr size_t workspace_share = 10;
constexpr size_t workspace_bytes_limit = size_t{2} << 30;

/** The first compute capability with mma.m16n8k32 on bytes and all else that the kernels use. */
constexpr uint32_t capability_min = 80;
constexpr uint32_t capability_of_wgmma = 90;

uint32_t capability_of(const cudaDeviceProp& properties) {
  return static_cast<uint32_t>(10 * properties.major + properties.minor);
}

void open_at(sagitta_device& device, uint32_t index, const char* kernels) {
  device.index = index;
  check(cudaSetDevice(static_cast<int>(index)), "selecting the device");
  check(cudaGetDeviceProperties(&device.properties, static_cast<int>(index)), "properties");
  const uint32_t capability = capability_of(device.properties);
  if (capability < capability_min) {
    throw failure{SAGITTA_UNSUPPORTED_TARGET,
                  std::string(device.properties.name) + " has compute capability " +
                      std::to_string(capability / 10) + "." + std::to_string(capability % 10) +
                      "; expected 8.0 or later"};
  }
  const bool may_wgmma = capability == capability_of_wgmma;
  if (kernels == nullptr) {
    device.kind = scan_kind::best;
  } else if (std::strcmp(kernels, "mma") == 0) {
    device.kind = scan_kind::mma;
  } else if (std::strcmp(kernels, "wgmma") == 0 && may_wgmma) {
    device.kind = scan_kind::wgmma;
  } else {
    throw failure{SAGITTA_UNSUPPORTED_TARGET,
                  std::string(device.properties.name) + " does not run the kernels \"" + kernels +
                      "\""};
  }
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "free memory");
  device.workspace_bytes_max = std::min(workspace_bytes_limit, free_bytes / workspace_share);
  device.searching.open();
  device.uploading.open();
  for (event& phase : device.phases) phase.open();
  for (uint32_t i = 0; i < 2; i++) {
    device.staging[i].require(staging_bytes);
    device.staged[i].open();
  }
  prepare_kernels(device, may_wgmma);
}

/**
 * Copies bytes to the device in chunks of whole units through pinned memory, which `fill(staging, from,
 * byte_count)` writes.
 */
template <class Fill>
void upload(sagitta_device& device, uint8_t* to, size_t byte_count, size_t unit, Fill fill) {
  const size_t chunk_max = std::max<size_t>(1, staging_bytes / unit) * unit;
  for (size_t done = 0; done < byte_count;) {
    const size_t chunk = std::min(chunk_max, byte_count - done);
    const uint32_t buffer = device.next_staging++ % 2;
    // Wait until the buffer's previous contents have been copied.
    check(cudaEventSynchronize(device.staged[buffer]), "upload");
    fill(device.staging[buffer].data(), done, chunk);
    check(cudaMemcpyAsync(to + done, device.staging[buffer].data(), chunk, cudaMemcpyHostToDevice,
                          device.uploading),
          "upload");
    device.staged[buffer].record(device.uploading);
    done += chunk;
  }
}

/** `fill` writes panels to staging memory, as for `upload`, from the first one on that is not full. */
template <class Fill>
void extend(sagitta_device_block& block, const float* new_values, uint32_t to, Fill fill) {
  sagitta_device& device = *block.device;
  const size_t stride = panel_bytes(block.dimension);
  // The last panel may have been partly filled: upload it again.
  const uint32_t first_panel = block.row_count / panel_rows;
  upload(device, block.panels.data() + first_panel * stride, (panel_count(to) - first_panel) * stride,
         stride, fill);
  if (block.has_values) {
    const size_t row_bytes = size_t{block.dimension} * sizeof(float);
    const auto* const from_bytes = reinterpret_cast<const uint8_t*>(new_values);
    upload(device, block.values.data() + block.row_count * row_bytes,
           (to - block.row_count) * row_bytes, row_bytes,
           [&](uint8_t* staging, size_t from, size_t byte_count) {
             std::memcpy(staging, from_bytes + from, byte_count);
           });
  }
  block.uploaded.record(device.uploading);
  block.row_count = to;
}

/** Encodes rows from their values, of which row 0 comes first. */
void extend_encoded(sagitta_device_block& block, const float* values, uint32_t to) {
  const uint32_t dimension = block.dimension;
  const size_t stride = panel_bytes(dimension);
  const uint32_t first_panel = block.row_count / panel_rows;
  extend(block, values + size_t{block.row_count} * dimension, to,
         [&](uint8_t* staging, size_t from, size_t byte_count) {
           const uint32_t first_row =
               (first_panel + static_cast<uint32_t>(from / stride)) * panel_rows;
           const auto rows = static_cast<uint32_t>(byte_count / stride) * panel_rows;
           sagitta_encode(values + size_t{first_row} * dimension, dimension, 0,
                          std::min(rows, to - first_row), staging);
         });
}

void reserve(sagitta_device_block& block, uint32_t row_capacity, bool has_values) {
  sagitta_device& device = *block.device;
  const size_t stride = panel_bytes(block.dimension);
  const size_t row_bytes = size_t{block.dimension} * sizeof(float);
  device_memory panels;
  device_memory values;
  panels.require(panel_count(row_capacity) * stride + panel_slack_bytes);
  if (has_values) values.require(std::max<size_t>(1, row_capacity * row_bytes));
  if (block.row_count > 0) {
    check(cudaMemcpyAsync(panels.data(), block.panels.data(), panel_count(block.row_count) * stride,
                          cudaMemcpyDeviceToDevice, device.uploading),
          "moving a block");
    if (has_values) {
      check(cudaMemcpyAsync(values.data(), block.values.data(), block.row_count * row_bytes,
                            cudaMemcpyDeviceToDevice, device.uploading),
            "moving a block");
    }
  }
  // The old memory is freed when the swapped buffers go out of scope.
  device.uploading.synchronize("moving a block");
  block.panels.swap(panels);
  block.values.swap(values);
  block.row_capacity = row_capacity;
  block.has_values = has_values;
}

/** A CUDA version: 13000 is 13.0. */
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/** All facts but the kernels and the free memory, for which a device has to be opened. */
void describe_properties(const cudaDeviceProp& properties, sagitta_device_facts& facts) {
  std::memset(&facts, 0, sizeof(facts));
  std::memcpy(facts.name, properties.name,
              std::min(sizeof(facts.name) - 1, std::strlen(properties.name)));
  facts.kernels = "";
  facts.compute_capability = capability_of(properties);
  facts.multiprocessor_count = static_cast<uint32_t>(properties.multiProcessorCount);
  facts.memory_bytes = properties.totalGlobalMem;
  int version = 0;
  check(cudaDriverGetVersion(&version), "driver version");
  facts.driver_version = static_cast<uint32_t>(version);
  check(cudaRuntimeGetVersion(&version), "runtime version");
  facts.runtime_version = static_cast<uint32_t>(version);
}

/** The reason why CUDA cannot count devices, for an operator. */
failure explain_missing_driver() {
  (void)cudaGetLastError();
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  if (driver == 0) return {SAGITTA_DEVICE_LOST, "no NVIDIA driver was found"};
  return {SAGITTA_DEVICE_LOST, "the NVIDIA driver supports CUDA " + version_text(driver) +
                                   "; expected " + version_text(runtime) + " or later"};
}

}  // namespace

namespace sagitta::cuda {

sagitta_device* open_device(uint32_t index, const char* kernels, std::function<void()> on_progress) {
  auto device = std::make_unique<sagitta_device>();
  device->on_progress = std::move(on_progress);
  open_at(*device, index, kernels);
  return device.release();
}

void extend_block(sagitta_device_block& block, const float* new_values, const uint8_t* new_panels,
                  uint32_t to) {
  extend(block, new_values, to, [&](uint8_t* staging, size_t from, size_t byte_count) {
    std::memcpy(staging, new_panels + from, byte_count);
  });
}

}  // namespace sagitta::cuda

extern "C" {

const char* sagitta_device_error(void) { return last_error().c_str(); }

sagitta_status sagitta_device_count(uint32_t* count) {
  return guarded([&] {
    int found = 0;
    const cudaError_t error = cudaGetDeviceCount(&found);
    if (error == cudaErrorInsufficientDriver) throw explain_missing_driver();
    if (error == cudaErrorNoDevice) {
      (void)cudaGetLastError();
      found = 0;
    } else {
      check(error, "counting devices");
    }
    *count = static_cast<uint32_t>(found);
    return SAGITTA_OK;
  });
}

sagitta_status sagitta_device_identify(uint32_t index, sagitta_device_facts* facts) {
  return guarded([&] {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, static_cast<int>(index)), "properties");
    describe_properties(properties, *facts);
    return SAGITTA_OK;
  });
}

sagitta_status sagitta_device_open(uint32_t index, const char* kernels, sagitta_device** opened) {
  return guarded([&] {
    *opened = open_device(index, kernels, {});
    return SAGITTA_OK;
  });
}

void sagitta_device_close(sagitta_device* device) {
  if (device == nullptr) return;
  (void)cudaSetDevice(static_cast<int>(device->index));
  (void)cudaDeviceSynchronize();
  delete device;
}

sagitta_status sagitta_device_describe(sagitta_device* device, sagitta_device_facts* facts) {
  return guarded_on(*device, [&] {
    describe_properties(device->properties, *facts);
    facts->kernels = device->has_wgmma ? "wgmma" : "mma";
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "free memory");
    facts->memory_bytes = total_bytes;
    facts->free_bytes = free_bytes;
    return SAGITTA_OK;
  });
}

uint64_t sagitta_device_block_bytes(uint32_t dimension, uint32_t row_capacity, int has_values) {
  uint64_t bytes = panel_count(row_capacity) * panel_bytes(dimension) + panel_slack_bytes;
  if (has_values != 0) bytes += uint64_t{row_capacity} * dimension * sizeof(float);
  return bytes;
}

sagitta_status sagitta_device_block_create(sagitta_device* device, uint32_t dimension,
                                           sagitta_device_block** created) {
  return guarded_on(*device, [&] {
    if (!is_dimension(dimension)) return SAGITTA_INVALID_ARGUMENT;
    auto block = std::make_unique<sagitta_device_block>();
    block->device = device;
    block->dimension = dimension;
    block->uploaded.open();
    sagitta_device_block* const at = block.get();
    device->blocks.emplace(at, std::move(block));
    *created = at;
    return SAGITTA_OK;
  });
}

void sagitta_device_block_destroy(sagitta_device_block* block) {
  if (block == nullptr) return;
  sagitta_device& device = *block->device;
  (void)cudaSetDevice(static_cast<int>(device.index));
  // An upload into its memory may still be running.
  (void)cudaStreamSynchronize(device.uploading);
  device.blocks.erase(block);
}

sagitta_status sagitta_device_block_reserve(sagitta_device_block* block, uint32_t row_capacity,
                                            int has_values) {
  return guarded_on(*block->device, [&] {
    const bool wants_values = has_values != 0;
    if (row_capacity < block->row_count) return SAGITTA_INVALID_ARGUMENT;
    if (wants_values && !block->has_values && block->row_count > 0) return SAGITTA_INVALID_ARGUMENT;
    if (row_capacity == block->row_capacity && !wants_values) {
      // Their upload may still be running.
      block->device->uploading.synchronize("freeing values");
      block->values.release();
      block->has_values = false;
    } else if (row_capacity != block->row_capacity || !block->has_values) {
      reserve(*block, row_capacity, wants_values);
    }
    return SAGITTA_OK;
  });
}

sagitta_status sagitta_device_block_extend(sagitta_device_block* block, const float* values,
                                           const uint8_t* codes, uint32_t to) {
  return guarded_on(*block->device, [&] {
    if (to < block->row_count || to > block->row_capacity) return SAGITTA_INVALID_ARGUMENT;
    if (to == block->row_count) return SAGITTA_OK;
    if (values == nullptr && (block->has_values || codes == nullptr)) return SAGITTA_INVALID_ARGUMENT;
    if (codes == nullptr) {
      extend_encoded(*block, values, to);
    } else {
      const float* const new_values =
          values == nullptr ? nullptr : values + size_t{block->row_count} * block->dimension;
      const size_t first_panel = block->row_count / panel_rows;
      extend_block(*block, new_values, codes + first_panel * panel_bytes(block->dimension), to);
    }
    return SAGITTA_OK;
  });
}

uint32_t sagitta_device_block_rows(const sagitta_device_block* block) { return block->row_count; }

}  // extern "C"
