// The end of a device's process: handles requests of the service one after another.

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <unordered_map>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "call.h"
#include "remote.h"
#include "search.h"

namespace sagitta::cuda {
namespace {

constexpr size_t alignment = 64;

/** A copy of a batch from shared memory, which the next call overwrites. */
class received_batch {
 public:
  explicit received_batch(const uint8_t* from) {
    packed_batch head{};
    std::memcpy(&head, from, sizeof head);
    bytes_ = std::make_unique_for_overwrite<uint64_t[]>(head.byte_count / sizeof(uint64_t) + 1);
    auto* const copy = reinterpret_cast<uint8_t*>(bytes_.get());
    std::memcpy(copy, from, head.byte_count);
    const auto* const blocks = reinterpret_cast<const packed_block*>(copy + head.blocks);
    const auto* const views = reinterpret_cast<const packed_view*>(copy + head.views);
    const auto* const queries = reinterpret_cast<const packed_query*>(copy + head.queries);
    const auto* const vectors = reinterpret_cast<const float*>(copy + head.vectors);
    blocks_.resize(head.block_count);
    for (uint32_t b = 0; b < head.block_count; b++) {
      blocks_[b].row_count = blocks[b].row_count;
      block_numbers.push_back(blocks[b].number);
    }
    for (uint32_t v = 0; v < head.view_count; v++) {
      const auto* const bitmap = reinterpret_cast<const uint32_t*>(copy + views[v].bitmap);
      views_.push_back({views[v].bitmap == 0 ? nullptr : bitmap, views[v].block, views[v].row_count});
    }
    queries_.resize(head.query_count);
    for (uint32_t q = 0; q < head.query_count; q++) {
      const packed_query& packed = queries[q];
      sagitta_query& query = queries_[q];
      query.vector = vectors + size_t{q} * head.dimension;
      query.floor = packed.floor;
      query.after_score = packed.after_score;
      // Only the service compares ids; here it matters only whether there is a rank key.
      query.after_id = packed.has_after != 0 ? copy : nullptr;
      query.metric = static_cast<sagitta_metric>(packed.metric);
      query.k = packed.k;
      query.first_view = packed.first_view;
      query.view_count = packed.view_count;
    }
    batch = {blocks_.data(),   views_.data(),   queries_.data(), head.block_count,
             head.view_count,  head.query_count, head.dimension, 1,
             static_cast<sagitta_method>(head.method)};
  }
  received_batch(const received_batch&) = delete;

  sagitta_batch batch{};
  std::vector<uint32_t> block_numbers;

 private:
  std::unique_ptr<uint64_t[]> bytes_;
  std::vector<sagitta_block> blocks_;
  std::vector<sagitta_block_view> views_;
  std::vector<sagitta_query> queries_;
};

class device_server {
 public:
  device_server(int socket, int memory, sagitta_device* opened)
      : channel_(socket, memory), device_(opened) {}
  ~device_server() { sagitta_device_close(device_); }
  device_server(const device_server&) = delete;

  void run() {
    request message{};
    while (channel_.receive(message)) {
      message.text[sizeof message.text - 1] = 0;
      reply answer{};
      answer.status = guarded([&] { return handle(message, answer); });
      if (answer.status != SAGITTA_OK) {
        std::strncpy(answer.text, last_error().c_str(), sizeof answer.text - 1);
      }
      if (!send(answer)) return;
    }
  }

 private:
  /** Returns false when the service is gone, which needs no answer. */
  bool send(const reply& answer) {
    try {
      channel_.send(answer);
      return true;
    } catch (const failure&) {
      return false;
    }
  }

  sagitta_status handle(const request& message, reply& answer) {
    const uint32_t* const numbers = message.numbers;
    if (message.kind == request_kind::open) return open(numbers[0], message.text);
    if (device_ == nullptr) return SAGITTA_INVALID_ARGUMENT;
    switch (message.kind) {
      case request_kind::describe: return describe(answer);
      case request_kind::create_block: return create_block(numbers[0], answer);
      case request_kind::reserve:
        return sagitta_device_block_reserve(block(numbers[0]), numbers[1], (numbers[2] & 1) != 0,
                                            (numbers[2] & 2) != 0);
      case request_kind::extend: return extend(numbers[0], numbers[1]);
      case request_kind::destroy_block:
        sagitta_device_block_destroy(block(numbers[0]));
        blocks_.erase(numbers[0]);
        return SAGITTA_OK;
      case request_kind::begin_search: return begin();
      case request_kind::end_search: return end();
      case request_kind::ping: return ping();
      default: return SAGITTA_INVALID_ARGUMENT;
    }
  }

  sagitta_status open(uint32_t index, const char* kernels) {
    if (device_ != nullptr) return SAGITTA_INVALID_ARGUMENT;
    device_ = open_device(index, *kernels == 0 ? nullptr : kernels,
                          [this] { channel_.progress().fetch_add(1); });
    return SAGITTA_OK;
  }

  sagitta_status describe(reply& answer) {
    sagitta_device_facts facts{};
    const sagitta_status status = sagitta_device_describe(device_, &facts);
    std::strncpy(answer.text, facts.kernels == nullptr ? "" : facts.kernels, sizeof answer.text - 1);
    std::memcpy(channel_.data(), &facts, sizeof facts);
    return status;
  }

  sagitta_status create_block(uint32_t dimension, reply& answer) {
    sagitta_device_block* created = nullptr;
    const sagitta_status status = sagitta_device_block_create(device_, dimension, &created);
    if (status != SAGITTA_OK) return status;
    answer.number = next_number_++;
    blocks_[answer.number] = created;
    return SAGITTA_OK;
  }

  sagitta_device_block* block(uint32_t number) const {
    const auto found = blocks_.find(number);
    if (found == blocks_.end()) throw failure{SAGITTA_INVALID_ARGUMENT, "the block does not exist"};
    return found->second;
  }

  /** The rows are in shared memory. */
  sagitta_status extend(uint32_t number, uint32_t to) {
    sagitta_device_block& extended = *block(number);
    return guarded_on(*device_, [&] {
      const packed_rows layout = lay_out_rows(
          {number, extended.dimension, extended.row_count, extended.row_capacity, extended.has_values,
           extended.has_head},
          to);
      const uint8_t* const from = channel_.data();
      extend_block(extended,
                   {reinterpret_cast<const float*>(from + layout.values), from, from + layout.coarse,
                    from + layout.head, from + layout.basis},
                   to);
      return SAGITTA_OK;
    });
  }

  sagitta_status begin() {
    auto received = std::make_unique<received_batch>(channel_.data());
    std::vector<sagitta_device_block*> residents;
    for (const uint32_t number : received->block_numbers) residents.push_back(block(number));
    return guarded_on(*device_, [&] {
      if (!has_rows(*device_, received->batch, residents.data())) return SAGITTA_INVALID_ARGUMENT;
      begin_search(*device_, received->batch, residents.data());
      begun_.push_back(std::move(received));
      return SAGITTA_OK;
    });
  }

  sagitta_status end() {
    if (begun_.empty()) return SAGITTA_INVALID_ARGUMENT;
    const std::unique_ptr<received_batch> ended = std::move(begun_.front());
    begun_.pop_front();
    return guarded_on(*device_, [&] {
      write(end_search(*device_));
      return SAGITTA_OK;
    });
  }

  /** Writes what a search has found to shared memory. */
  void write(const batch_found& found) {
    const auto aligned = [](size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
    const size_t query_bytes = found.queries.size() * sizeof(query_found);
    const size_t row_bytes = found.rows.size() * sizeof(row_found);
    packed_found head{};
    head.queries = aligned(sizeof head);
    head.rows = head.queries + aligned(query_bytes);
    head.row_count = found.rows.size();
    head.times = found.times;
    channel_.require(head.rows + row_bytes);
    std::memcpy(channel_.data(), &head, sizeof head);
    if (query_bytes > 0) std::memcpy(channel_.data() + head.queries, found.queries.data(), query_bytes);
    if (row_bytes > 0) std::memcpy(channel_.data() + head.rows, found.rows.data(), row_bytes);
  }

  sagitta_status ping() {
    return guarded_on(*device_, [&] {
      const cudaError_t error = cudaStreamQuery(device_->uploading);
      if (error != cudaErrorNotReady) check(error, "heartbeat");
      return SAGITTA_OK;
    });
  }

  channel channel_;
  sagitta_device* device_;
  std::unordered_map<uint32_t, sagitta_device_block*> blocks_;
  /** In the order of their beginnings. */
  std::deque<std::unique_ptr<received_batch>> begun_;
  uint32_t next_number_ = 1;
};

/** Ends this process as soon as the service has closed its end, even while a call of the driver hangs. */
void end_with_service(int socket) {
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  std::thread([socket] {
    pollfd closed{socket, 0, 0};
    while (poll(&closed, 1, -1) <= 0 || (closed.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0) {
    }
    _exit(0);
  }).detach();
}

}  // namespace

void serve_device(int socket, int memory, sagitta_device* opened) {
  // The service ends this process when it ends itself, after the last search.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  // Kernels are loaded when the device is opened: later there may be no memory for them.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  end_with_service(socket);
  device_server(socket, memory, opened).run();
}

}  // namespace sagitta::cuda
