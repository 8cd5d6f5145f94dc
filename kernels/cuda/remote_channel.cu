// The channel between the service and the process of a device.

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "device_state.h"
#include "remote.h"

namespace sagitta::cuda {
namespace {

/** The progress counter comes first; data begin on the next page. */
constexpr size_t head_bytes = 4096;
/** Room for one slice of an upload. */
constexpr size_t initial_bytes = 24 << 20;

[[noreturn]] void fail(const char* what) {
  throw failure{SAGITTA_DEVICE_LOST, std::string(what) + ": " + std::strerror(errno)};
}

[[noreturn]] void fail_ended() {
  throw failure{SAGITTA_DEVICE_LOST, "the process of the GPU has ended"};
}

template <class Message>
void send_message(int socket, const Message& message) {
  ssize_t sent = 0;
  do {
    sent = ::send(socket, &message, sizeof message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) fail_ended();
  if (sent != static_cast<ssize_t>(sizeof message)) fail("the channel of the GPU");
}

/** Returns false when the other end is closed. */
template <class Message>
bool receive_message(int socket, Message& message) {
  ssize_t received = 0;
  do {
    received = recv(socket, &message, sizeof message, 0);
  } while (received < 0 && errno == EINTR);
  if (received == 0 || (received < 0 && errno == ECONNRESET)) return false;
  if (received != static_cast<ssize_t>(sizeof message)) fail("the channel of the GPU");
  return true;
}

}  // namespace

channel_descriptors create_channel() {
#if defined(__linux__)
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) fail("socketpair");
  const int memory = memfd_create("sagitta-gpu", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, head_bytes + initial_bytes) != 0) {
    const int reason = errno;
    for (const int open : {sockets[0], sockets[1], memory}) {
      if (open >= 0) close(open);
    }
    errno = reason;
    fail("shared memory");
  }
  return {sockets[0], sockets[1], memory};
#else
  throw failure{SAGITTA_UNSUPPORTED_TARGET, "GPUs are supported on Linux only"};
#endif
}

packed_rows lay_out_rows(const remote_block& block, uint32_t to) {
  constexpr size_t alignment = 64;
  size_t used = 0;
  const auto take = [&](size_t byte_count) {
    const size_t from = used;
    used += (byte_count + alignment - 1) / alignment * alignment;
    return from;
  };
  const size_t panels = panel_count(to) - block.row_count / panel_rows;
  const bool is_coarse = has_coarse(block.dimension, block.has_values);
  const size_t value_bytes = size_t{block.dimension} * sizeof(float);
  packed_rows rows{};
  take(panels * panel_bytes(block.dimension));
  rows.coarse = take(is_coarse ? panels * coarse_panel_bytes(block.dimension) : 0);
  rows.values = take(block.has_values ? (to - block.row_count) * value_bytes : 0);
  rows.head = take(block.has_head ? panels * head_panel_bytes(block.dimension) : 0);
  rows.basis = take(block.has_head && block.row_count == 0 ? basis_bytes(block.dimension) : 0);
  rows.byte_count = used;
  return rows;
}

channel::channel(int socket, int memory) : socket_(socket), memory_(memory) {
  struct stat status {};
  if (fstat(memory, &status) != 0) fail("shared memory");
  map(static_cast<size_t>(status.st_size));
}

channel::~channel() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

void channel::map(size_t byte_count) {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  mapped_ = nullptr;
  void* const mapped = mmap(nullptr, byte_count, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
  if (mapped == MAP_FAILED) fail("shared memory");
  mapped_ = static_cast<uint8_t*>(mapped);
  mapped_bytes_ = byte_count;
}

void channel::require(size_t byte_count) {
  if (head_bytes + byte_count <= mapped_bytes_) return;
  const size_t grown = head_bytes + byte_count + byte_count / 4;
  if (ftruncate(memory_, static_cast<off_t>(grown)) != 0) {
    throw failure{SAGITTA_OUT_OF_HOST_MEMORY, std::string("shared memory: ") + std::strerror(errno)};
  }
  map(grown);
}

uint8_t* channel::data() const { return mapped_ + head_bytes; }

size_t channel::byte_count() const { return mapped_bytes_ - head_bytes; }

std::atomic<uint64_t>& channel::progress() const {
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  return *reinterpret_cast<std::atomic<uint64_t>*>(mapped_);
}

void channel::send(request message) {
  message.memory_bytes = mapped_bytes_;
  send_message(socket_, message);
}

void channel::send(reply message) {
  message.memory_bytes = mapped_bytes_;
  send_message(socket_, message);
}

bool channel::receive(request& message) {
  if (!receive_message(socket_, message)) return false;
  if (message.memory_bytes > mapped_bytes_) map(message.memory_bytes);
  return true;
}

void channel::receive(reply& message, double milliseconds, const char* what) {
  using clock = std::chrono::steady_clock;
  uint64_t seen = progress().load();
  auto since = clock::now();
  for (;;) {
    const double waited = std::chrono::duration<double, std::milli>(clock::now() - since).count();
    const double left = milliseconds - waited;
    pollfd wanted{socket_, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::clamp(left, 0.0, 1e9)) + 1);
    if (ready < 0 && errno != EINTR) fail("the channel of the GPU");
    if (ready > 0) break;
    const uint64_t now = progress().load();
    if (now != seen) {
      seen = now;
      since = clock::now();
    } else if (left <= 0) {
      throw failure{SAGITTA_DEVICE_LOST, "the GPU made no progress for " +
                                             std::to_string(static_cast<uint64_t>(milliseconds)) +
                                             " ms while " + what};
    }
  }
  if (!receive_message(socket_, message)) fail_ended();
  if (message.memory_bytes > mapped_bytes_) map(message.memory_bytes);
}

}  // namespace sagitta::cuda
