// A device in a process of its own: faults of the driver or of a kernel end only that process, and a new
// process has a clean context. Commands go through a socket, rows and batches through memory that both
// processes map; neither has a name, so nothing is left behind.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "failure.h"
#include "found.h"

namespace sagitta::cuda {

/** The ends of a new channel, which the caller closes. */
struct channel_descriptors {
  /** Sockets of the service and of the process of the device. */
  int service;
  int device;
  int memory;
};

/** Throws `failure`. */
channel_descriptors create_channel();

enum class request_kind : uint32_t {
  open,
  describe,
  create_block,
  reserve,
  extend,
  destroy_block,
  begin_search,
  end_search,
  ping,
};

/** remote_server.cu defines the meaning of the numbers. */
struct request {
  request_kind kind;
  uint32_t numbers[3];
  uint64_t memory_bytes;
  char text[16];
};

struct reply {
  int32_t status;
  uint32_t number;
  uint64_t memory_bytes;
  /** The reason of a failure, or the name of the kernels. */
  char text[512];
};

/** One end of a channel. The caller keeps ownership of the descriptors. */
class channel {
 public:
  channel(int socket, int memory);
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  ~channel();

  /**
   * Makes the shared memory at least this large; its address may change. Throws OUT_OF_HOST_MEMORY with
   * nothing changed.
   */
  void require(size_t byte_count);
  uint8_t* data() const;
  /** Bytes of data that this end has mapped. */
  size_t byte_count() const;
  /** Counts the parts of long calls; written by the process of the device. */
  std::atomic<uint64_t>& progress() const;

  void send(request message);
  void send(reply message);
  /** Returns false when the other end is closed. */
  bool receive(request& message);
  /**
   * Throws `failure` (DEVICE_LOST) when the other end is closed, or makes no progress for this time.
   */
  void receive(reply& message, double milliseconds, const char* what);

 private:
  void map(size_t byte_count);
  int socket_;
  int memory_;
  uint8_t* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
};

/** How long a call may go without progress before its process counts as hung. */
struct deadlines {
  /** For opening, which loads and checks the kernels. */
  double open_ms;
  /** For any other call; the work of the call is added to it. */
  double call_ms;
  /** Rates that any device reaches: integer products, and bytes copied to it. */
  double products_per_ms;
  double bytes_per_ms;
};

/** A block in the process of a device. */
struct remote_block {
  uint32_t number = 0;
  uint32_t dimension = 0;
  uint32_t row_count = 0;
  uint32_t row_capacity = 0;
  bool has_values = false;
  bool has_head = false;
};

/**
 * The service's end. All methods throw `failure`; after DEVICE_LOST the process must be ended, whatever it
 * is doing. OUT_OF_HOST_MEMORY leaves the device and its blocks unchanged.
 */
class remote_device {
 public:
  remote_device(int socket, int memory, const deadlines& deadlines)
      : channel_(socket, memory), deadlines_(deadlines) {}

  /** `kernels` is NULL for the fastest kernels. */
  void open(uint32_t index, const char* kernels);
  /** Sets `kernels` to the name of the kernels in use. */
  sagitta_device_facts describe(std::string& kernels);
  remote_block create_block(uint32_t dimension);
  /** Throws OUT_OF_MEMORY with the block unchanged. */
  void reserve(remote_block& block, uint32_t row_capacity, bool has_values, bool has_head);
  /** Like sagitta_device_block_extend. */
  void extend(remote_block& block, const sagitta_block& rows, uint32_t to);
  void destroy(const remote_block& block);
  /**
   * Begins a search, of which up to SAGITTA_DEVICE_SEARCHES_MAX may be in progress. The batch may change until the end,
   * but rows may only be appended to the blocks. Throws with nothing begun.
   */
  void begin_search(const sagitta_batch& batch, const remote_block* const* residents);
  /** Returns the answer of the search that began first, whose batch this is. It has ended even if this throws. */
  std::unique_ptr<sagitta_device_answer> end_search(const sagitta_batch& batch);
  /** Throws if the device is lost. */
  void ping();

 private:
  reply call(request message, double milliseconds, const char* what);
  channel channel_;
  deadlines deadlines_;
  /** The integer products of the searches in progress. */
  std::deque<double> products_;
};

/**
 * The end of the device's process: answers requests until the service closes its end. If that happens
 * during a call, the process ends at once. Tests pass a device that is already open.
 */
void serve_device(int socket, int memory, sagitta_device* opened = nullptr);

/**
 * The layout of rows to append in shared memory: panels from the first one that is not full, then, if the
 * block has them, coarse codes of the same rows, values of the new ones and head tiles of the same rows, with the basis
 * before the first row. Offsets are in bytes.
 */
struct packed_rows {
  size_t coarse;
  size_t values;
  size_t head;
  size_t basis;
  size_t byte_count;
};
packed_rows lay_out_rows(const remote_block& block, uint32_t to);

/** The layout of a batch in shared memory; offsets in bytes from its start. */
struct packed_batch {
  uint32_t block_count;
  uint32_t view_count;
  uint32_t query_count;
  uint32_t dimension;
  uint32_t method;
  uint32_t unused;
  uint64_t blocks;
  uint64_t views;
  uint64_t queries;
  uint64_t vectors;
  uint64_t bitmaps;
  uint64_t byte_count;
};
struct packed_block {
  uint32_t number;
  uint32_t row_count;
};
struct packed_view {
  /** The offset of its bitmap; 0 if there is none. */
  uint64_t bitmap;
  uint32_t block;
  uint32_t row_count;
};
struct packed_query {
  double floor;
  double after_score;
  uint32_t has_after;
  uint32_t metric;
  uint32_t k;
  uint32_t first_view;
  uint32_t view_count;
  uint32_t unused;
};

/** The layout of the rows found. */
struct packed_found {
  uint64_t queries;
  uint64_t rows;
  uint64_t row_count;
  sagitta_device_times times;
};

}  // namespace sagitta::cuda
