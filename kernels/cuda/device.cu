// Devices and their resident blocks: the part of the C interface that moves rows.

#include "device.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "../search/valid.h"
#include "call.h"
#include "device_state.h"
#include "kernel_check.h"

using namespace sagitta;
using namespace sagitta::cuda;

namespace {

/** Bytes of each of the two pinned buffers through which rows are uploaded. */
constexpr size_t staging_bytes = 8 * 1024 * 1024;

/** A slice may use 1 / workspace_share of the free memory, up to the limit; there is one in each slot. */
constexpr size_t workspace_share = 10 * SAGITTA_DEVICE_SEARCHES_MAX;
constexpr size_t workspace_bytes_limit = (size_t{2} << 30) / SAGITTA_DEVICE_SEARCHES_MAX;

/** The first compute capability with mma.m16n8k32 on bytes and everything else that the kernels use. */
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
  } else if (std::strcmp(kernels, "wgmma-ring") == 0 && may_wgmma) {
    device.kind = scan_kind::wgmma_ring;
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
  for (search_slot& slot : device.slots) {
    for (event& phase : slot.phases) phase.open();
  }
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
    const uint64_t buffer = device.upload_count++ % 2;
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

void upload_copy(sagitta_device& device, uint8_t* to, const void* from, size_t byte_count, size_t unit) {
  const auto* const bytes = static_cast<const uint8_t*>(from);
  upload(device, to, byte_count, unit, [&](uint8_t* staging, size_t at, size_t chunk) {
    std::memcpy(staging, bytes + at, chunk);
  });
}

/** Codes of some rows, computed from their values. */
class row_encoder {
 public:
  row_encoder(uint32_t dimension, bool has_codes, bool has_coarse_codes)
      : dimension_(dimension),
        panels_(has_codes ? sagitta_codes_bytes(rows_at_once(), dimension) : 0),
        coarse_(has_coarse_codes ? sagitta_coarse_bytes(rows_at_once(), dimension) : 0),
        refinement_(has_coarse_codes ? sagitta_refinement_bytes(rows_at_once(), dimension) : 0) {}

  /** Whole panels that take about as many bytes as a staging buffer. */
  uint32_t rows_at_once() const {
    const size_t rows = staging_bytes / (size_t{dimension_} * sizeof(float));
    return static_cast<uint32_t>(std::max<size_t>(1, rows / panel_rows)) * panel_rows;
  }
  /** Valid until the next call. */
  const uint8_t* encode(const float* values, uint32_t row_count) {
    sagitta_encode(values, dimension_, 0, row_count, panels_.data());
    return panels_.data();
  }
  const uint8_t* encode_coarse(const float* values, uint32_t row_count) {
    sagitta_encode_coarse(values, dimension_, 0, row_count, coarse_.data(), refinement_.data());
    return coarse_.data();
  }

 private:
  uint32_t dimension_;
  std::vector<uint8_t> panels_;
  std::vector<uint8_t> coarse_;
  std::vector<uint8_t> refinement_;
};

/** Appends rows; `from` starts with row 0. Computes the codes that the caller does not pass. */
void extend(sagitta_device_block& block, const sagitta_block& from, uint32_t to) {
  const uint32_t dimension = block.dimension;
  const bool is_coarse = has_coarse(dimension, block.has_values);
  const bool lacks_codes = from.codes == nullptr;
  const bool lacks_coarse = is_coarse && from.coarse == nullptr;
  row_encoder encoder(dimension, lacks_codes, lacks_coarse);
  std::vector<uint8_t> head;
  while (block.row_count < to) {
    // The last panel may have been partly filled, so it is uploaded again.
    const uint32_t first_panel = block.row_count / panel_rows;
    const uint32_t first_row = first_panel * panel_rows;
    const bool lacks_any = lacks_codes || lacks_coarse;
    const uint32_t next = lacks_any ? std::min(to, first_row + encoder.rows_at_once()) : to;
    const float* const values =
        lacks_any ? from.values + size_t{first_row} * dimension : nullptr;
    new_rows rows{};
    if (block.has_values) rows.values = from.values + size_t{block.row_count} * dimension;
    rows.panels = lacks_codes ? encoder.encode(values, next - first_row)
                              : from.codes + first_panel * panel_bytes(dimension);
    if (is_coarse) {
      rows.coarse = lacks_coarse ? encoder.encode_coarse(values, next - first_row)
                                 : from.coarse + first_panel * coarse_panel_bytes(dimension);
    }
    if (block.has_head) {
      const uint32_t panels = panel_count(next) - first_panel;
      head.resize(panels * head_panel_bytes(dimension));
      join_head_panels(from.head, from.head_bytes, dimension, first_panel, panels, head.data());
      rows.head = head.data();
      rows.basis = from.basis;
    }
    extend_block(block, rows, next);
  }
}

/** Frees what only serves to score rows on the device. */
void release_values(sagitta_device_block& block) {
  // Their upload may still be running.
  block.device->uploading.synchronize("freeing values");
  block.values.release();
  block.coarse.release();
  block.head.release();
  block.basis.reset();
  block.has_values = block.has_head = false;
}

void reserve(sagitta_device_block& block, uint32_t row_capacity, bool has_values, bool has_head) {
  sagitta_device& device = *block.device;
  const size_t stride = panel_bytes(block.dimension);
  const size_t row_bytes = size_t{block.dimension} * sizeof(float);
  const size_t coarse_stride = coarse_panel_bytes(block.dimension);
  const bool is_coarse = has_coarse(block.dimension, has_values);
  device_memory panels;
  device_memory values;
  device_memory coarse;
  device_memory head;
  panels.require(panel_count(row_capacity) * stride + panel_slack_bytes);
  if (has_values) values.require(std::max<size_t>(1, row_capacity * row_bytes));
  if (is_coarse) coarse.require(std::max<size_t>(1, panel_count(row_capacity) * coarse_stride));
  const size_t head_stride = head_panel_bytes(block.dimension);
  if (has_head) head.require(panel_count(row_capacity) * head_stride + panel_slack_bytes);
  const auto move = [&](const device_memory& to, const device_memory& from, size_t byte_count) {
    check(cudaMemcpyAsync(to.data(), from.data(), byte_count, cudaMemcpyDeviceToDevice, device.uploading),
          "moving a block");
  };
  if (block.row_count > 0) {
    move(panels, block.panels, panel_count(block.row_count) * stride);
    if (has_values) move(values, block.values, block.row_count * row_bytes);
    if (is_coarse) move(coarse, block.coarse, panel_count(block.row_count) * coarse_stride);
    if (has_head) move(head, block.head, panel_count(block.row_count) * head_stride);
  }
  // The old memory is freed when the swapped buffers go out of scope.
  device.uploading.synchronize("moving a block");
  block.panels.swap(panels);
  block.values.swap(values);
  block.coarse.swap(coarse);
  block.head.swap(head);
  block.row_capacity = row_capacity;
  block.has_values = has_values;
  block.has_head = has_head;
  if (!has_head) block.basis.reset();
}

/** A CUDA version: 13000 is 13.0. */
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/** Fills in all facts except the kernels and the free memory, for which a device has to be opened. */
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

/** Returns the reason why CUDA cannot count devices, for an operator. */
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

namespace {

/** Returns the basis on the device, where equal bases are one. */
std::shared_ptr<const device_basis> upload_basis(sagitta_device& device, uint32_t dimension, const uint8_t* bytes) {
  basis opened;
  if (!open_basis(bytes, basis_bytes(dimension), dimension, opened)) {
    throw failure{SAGITTA_INVALID_ARGUMENT, "the bytes of a basis are not those of one for this dimension"};
  }
  std::weak_ptr<const device_basis>& known = device.bases[opened.header->digest];
  if (std::shared_ptr<const device_basis> present = known.lock()) return present;
  auto made = std::make_shared<device_basis>();
  made->header = *opened.header;
  made->directions = opened.directions;
  made->error = opened.error;
  const size_t row_bytes = size_t{dimension} * sizeof(float);
  made->matrix.require(opened.directions * row_bytes);
  upload_copy(device, made->matrix.data(), opened.matrix, opened.directions * row_bytes, row_bytes);
  std::erase_if(device.bases, [&](const auto& entry) {
    return entry.second.expired() && entry.first != made->header.digest;
  });
  known = made;
  return made;
}

}  // namespace

void extend_block(sagitta_device_block& block, const new_rows& rows, uint32_t to) {
  sagitta_device& device = *block.device;
  if (block.has_head && block.row_count == 0) block.basis = upload_basis(device, block.dimension, rows.basis);
  // The last panel may have been partly filled, so it is uploaded again.
  const uint32_t first_panel = block.row_count / panel_rows;
  const auto upload_panels = [&](const device_memory& memory, const uint8_t* from, size_t stride) {
    upload_copy(device, memory.data() + first_panel * stride, from,
                (panel_count(to) - first_panel) * stride, stride);
  };
  upload_panels(block.panels, rows.panels, panel_bytes(block.dimension));
  if (block.has_values) {
    const size_t row_bytes = size_t{block.dimension} * sizeof(float);
    upload_copy(device, block.values.data() + block.row_count * row_bytes, rows.values,
                (to - block.row_count) * row_bytes, row_bytes);
  }
  if (has_coarse(block.dimension, block.has_values)) {
    upload_panels(block.coarse, rows.coarse, coarse_panel_bytes(block.dimension));
  }
  if (block.has_head) upload_panels(block.head, rows.head, head_panel_bytes(block.dimension));
  block.last_upload = device.upload_count;
  block.row_count = to;
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
    facts->kernels = !device->has_wgmma                       ? "mma"
                     : device->kind == scan_kind::wgmma_ring ? "wgmma-ring"
                                                             : "wgmma";
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "free memory");
    facts->memory_bytes = total_bytes;
    facts->free_bytes = free_bytes;
    return SAGITTA_OK;
  });
}

uint64_t sagitta_device_block_bytes(uint32_t dimension, uint32_t row_capacity, int has_values, int has_head) {
  uint64_t bytes = panel_count(row_capacity) * panel_bytes(dimension) + panel_slack_bytes;
  if (has_values != 0) bytes += uint64_t{row_capacity} * dimension * sizeof(float);
  if (has_coarse(dimension, has_values != 0)) {
    bytes += panel_count(row_capacity) * coarse_panel_bytes(dimension);
  }
  if (has_values != 0 && has_head != 0) {
    bytes += panel_count(row_capacity) * head_panel_bytes(dimension) + panel_slack_bytes;
  }
  return bytes;
}

sagitta_status sagitta_device_block_create(sagitta_device* device, uint32_t dimension,
                                           sagitta_device_block** created) {
  return guarded_on(*device, [&] {
    if (!is_dimension(dimension)) return SAGITTA_INVALID_ARGUMENT;
    auto block = std::make_unique<sagitta_device_block>();
    block->device = device;
    block->dimension = dimension;
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
                                            int has_values, int has_head) {
  return guarded_on(*block->device, [&] {
    const bool wants_values = has_values != 0;
    const bool wants_head = wants_values && has_head != 0;
    if (row_capacity < block->row_count) return SAGITTA_INVALID_ARGUMENT;
    if (wants_head && !has_basis(block->dimension)) return SAGITTA_INVALID_ARGUMENT;
    const bool has_more = (wants_values && !block->has_values) || (wants_head && !block->has_head);
    if (has_more && block->row_count > 0) return SAGITTA_INVALID_ARGUMENT;
    if (row_capacity == block->row_capacity && !wants_values) {
      release_values(*block);
    } else if (row_capacity != block->row_capacity || has_more || wants_head != block->has_head) {
      reserve(*block, row_capacity, wants_values, wants_head);
    }
    return SAGITTA_OK;
  });
}

sagitta_status sagitta_device_block_extend(sagitta_device_block* block, const sagitta_block* rows,
                                           uint32_t to) {
  return guarded_on(*block->device, [&] {
    if (to < block->row_count || to > block->row_capacity) return SAGITTA_INVALID_ARGUMENT;
    if (to == block->row_count) return SAGITTA_OK;
    if (rows->values == nullptr && (block->has_values || rows->codes == nullptr)) {
      return SAGITTA_INVALID_ARGUMENT;
    }
    if (block->has_head && !has_head_of(*rows, block->dimension, to)) return SAGITTA_INVALID_ARGUMENT;
    extend(*block, *rows, to);
    return SAGITTA_OK;
  });
}

uint32_t sagitta_device_block_rows(const sagitta_device_block* block) { return block->row_count; }

}  // extern "C"
