// A device in a process of its own gives the same answers as brute force. On the emulation, a fault happens
// at each call of the driver in turn: the device is lost at once or by a kernel, memory is missing, the
// call or a kernel never returns, or the process is killed. The service's end then gets an error in time,
// or a correct answer, and never waits forever.

#include "cuda_remote_test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "check.h"
#include "test_batch.h"
#include "../cuda/device_state.h"
#include "../cuda/remote.h"

#if defined(SAGITTA_EMULATE_CUDA)
#include "cuda_emulation/settings.h"
#endif

namespace check {
namespace {

using namespace sagitta::cuda;

constexpr deadlines patient{120'000, 60'000, 1e3, 1e3};

/** A process that serves a device, either an open one or (null) one it opens, and the service's end of its channel. */
class served {
 public:
  /** The process calls `prepare` before it serves the device. */
  template <class Prepare>
  served(sagitta_device* opened, const deadlines& patience, Prepare prepare) {
    ends_ = create_channel();
    process_ = fork();
    require(process_ >= 0, "fork");
    if (process_ == 0) {
      close(ends_.service);
      prepare();
      if (opened == nullptr) execute();
      serve_device(ends_.device, ends_.memory, opened);
      _exit(0);
    }
    close(ends_.device);
    device = std::make_unique<remote_device>(ends_.service, ends_.memory, patience);
  }
  served(const served&) = delete;
  ~served() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    close(ends_.service);
    close(ends_.memory);
  }

  /** Closes the service's end. Returns the exit status of the process. */
  int close_channel() {
    const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(none, ends_.service);
    close(none);
    int status = 0;
    require(waitpid(process_, &status, 0) == process_, "waitpid");
    return status;
  }

  std::unique_ptr<remote_device> device;

 private:
  /** Starts this program again: CUDA cannot be used after forking a process that has used it. */
  [[noreturn]] void execute() const {
    for (const int kept : {ends_.device, ends_.memory}) fcntl(kept, F_SETFD, 0);
    execl("/proc/self/exe", "cuda-test", "--serve", std::to_string(ends_.device).c_str(),
          std::to_string(ends_.memory).c_str(), nullptr);
    _exit(127);
  }

  channel_descriptors ends_{};
  pid_t process_ = -1;
};

/** Rows, with head tiles if their dimension has any, and queries; uploads in two steps and searches. */
class workload {
 public:
  explicit workload(uint64_t seed, uint32_t row_count = 150, uint32_t dimension = 40)
      : random_(seed), data_(random_, kind::clustered, row_count, dimension) {
    if (sagitta::has_basis(dimension)) {
      data_.basis = random_basis(random_, dimension, data_.row(3));
      data_.encode();
      batch_.method = SAGITTA_METHOD_HEAD_TILES;
    }
    batch_.add_block(data_);
    batch_.bitmaps.push_back(random_bitmap(random_, data_.row_count, 0.6));
    for (uint32_t q = 0; q < 9; q++) {
      batch_.add_query(query_like(random_, data_), static_cast<sagitta_metric>(q % 4), 5);
      batch_.add_view(0, data_.row_count, q % 4 == 0 ? &batch_.bitmaps.front() : nullptr);
    }
    sagitta_query& query = batch_.queries.back();
    query.after_score = canonical(query.metric, query.vector, data_.row(7), data_.dimension);
    query.after_id = data_.id_bytes.data() + data_.id_offsets[7];
    query.after_id_bytes = static_cast<uint32_t>(data_.id_offsets[8] - data_.id_offsets[7]);
  }

  /** The flags tell whether the values are on the device, and whether its codes are made by the call. */
  void run(remote_device& device, bool has_values, bool has_codes) const {
    sagitta_block rows = data_.block();
    if (!has_codes) rows.codes = rows.coarse = nullptr;
    const bool has_head = has_values && data_.head != nullptr;
    remote_block block = device.create_block(data_.dimension);
    device.reserve(block, data_.row_count / 2, has_values, has_head);
    device.extend(block, rows, data_.row_count / 2 - 3);
    device.reserve(block, data_.row_count, has_values, has_head);
    device.extend(block, rows, data_.row_count);
    const remote_block* const residents[] = {&block};
    const sagitta_batch view = batch_.view(1);
    uint32_t running = 0;
    const auto end = [&] {
      // It has ended even if this throws.
      running--;
      const auto answer = device.end_search(view);
      sagitta_device_times times{};
      require(sagitta_device_answer_times(answer.get(), &times) == SAGITTA_OK, "times");
      require((times.head_queries > 0) == has_head, "a device in a process: head tiles");
      for (uint32_t q = 0; q < view.query_count; q++) {
        sagitta_hits hits{};
        require(sagitta_device_answer_hits(answer.get(), q, &hits) == SAGITTA_OK, "undecided");
        require_true(view, q, hits, "a device in a process");
      }
    };
    try {
      for (; running < SAGITTA_DEVICE_SEARCHES_MAX; running++) device.begin_search(view, residents);
      while (running > 0) end();
    } catch (const failure& failed) {
      // When memory was missing for one search, the other is still in progress.
      while (running > 0 && failed.status == SAGITTA_OUT_OF_MEMORY) end();
      throw;
    }
    device.ping();
    device.destroy(block);
  }

 private:
  random_source random_;
  rows data_;
  test_batch batch_;
};

void test_answers(uint64_t seed) {
  served process(nullptr, patient, [] {});
  process.device->open(0, nullptr);
  std::string kernels;
  const sagitta_device_facts facts = process.device->describe(kernels);
  require(facts.name[0] != 0 && (kernels == "mma" || kernels == "wgmma"), "facts of a device");
  for (const bool has_values : {true, false}) {
    for (const bool has_codes : {true, false}) workload(seed).run(*process.device, has_values, has_codes);
    // Enough rows for a second pass, which head tiles can replace.
    workload(seed, 2600, 136).run(*process.device, has_values, true);
  }
  require(WEXITSTATUS(process.close_channel()) == 0, "the process did not end with the service");
}

/** While an object of this class lives, files of this process cannot grow, and neither can shared memory. */
class without_growth {
 public:
  without_growth() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{1, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  without_growth(const without_growth&) = delete;
  ~without_growth() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

/** Missing host memory is not mistaken for missing device memory, and changes nothing. */
void test_host_memory(uint64_t seed) {
  served process(nullptr, patient, [] {});
  process.device->open(0, "mma");
  random_source random(seed);
  // More bytes than a new channel has room for.
  const rows data(random, kind::clustered, 360, 16'384);
  const sagitta_block uploaded = data.block();
  remote_block block = process.device->create_block(data.dimension);
  process.device->reserve(block, data.row_count, true, false);
  try {
    const without_growth limit;
    process.device->extend(block, uploaded, data.row_count);
    require(false, "shared memory grew beyond the limit");
  } catch (const failure& failed) {
    require(failed.status == SAGITTA_OUT_OF_HOST_MEMORY, "no host memory: " + failed.what);
  }
  require(block.row_count == 0, "no host memory: rows were uploaded");
  process.device->extend(block, uploaded, data.row_count);
  workload(seed).run(*process.device, true, true);
}

#if defined(SAGITTA_EMULATE_CUDA)

struct planned_fault {
  emulation::fault kind;
  const char* name;
  bool is_launch;
  /** Only every n-th launch or call fails, since a fault that hangs costs its deadline. */
  uint64_t step;
};

constexpr planned_fault faults[] = {
    {emulation::fault::lost, "lost", false, 1},
    {emulation::fault::killed, "killed", false, 1},
    {emulation::fault::hang, "hang", false, 9},
    {emulation::fault::lost_in_kernel, "lost in a kernel", true, 1},
    {emulation::fault::memory, "out of memory at a launch", true, 1},
    {emulation::fault::hang_in_kernel, "hang in a kernel", true, 4},
};

/** Returns whether the fault happened, that is, whether there were that many launches or calls. */
bool test_fault(sagitta_device* opened, const workload& work, const planned_fault& fault, uint64_t at) {
  const bool hangs = fault.kind == emulation::fault::hang || fault.kind == emulation::fault::hang_in_kernel;
  const deadlines patience = hangs ? deadlines{1'000, 300, 1e9, 1e9} : patient;
  const std::string what = std::string(fault.name) + " " + std::to_string(at);
  served process(opened, patience, [&] {
    emulation::arm_fault(fault.kind, fault.is_launch ? at : 0, fault.is_launch ? 0 : at);
  });
  try {
    work.run(*process.device, true, true);
    return false;
  } catch (const failure& failed) {
    const bool is_memory = fault.kind == emulation::fault::memory;
    require(failed.status == (is_memory ? SAGITTA_OUT_OF_MEMORY : SAGITTA_DEVICE_LOST),
            what + ": " + failed.what);
    // When memory was missing, the same process can answer again.
    if (is_memory) work.run(*process.device, true, true);
  }
  if (hangs) {
    // A process that hangs ends with the service, too.
    require(WIFEXITED(process.close_channel()), what + ": the process did not end");
  }
  return true;
}

void test_faults(uint64_t seed) {
  sagitta_device* const opened = open_device(0, "mma", {});
  const workload work(seed);
  // The number of launches and calls; a process that hangs and one that is late look alike.
  uint64_t launch_count = 0;
  uint64_t call_count = 0;
  for (const planned_fault& fault : faults) {
    uint64_t& count = fault.is_launch ? launch_count : call_count;
    const bool is_first = count == 0;
    uint64_t at = 1;
    while ((is_first || at <= count) && test_fault(opened, work, fault, at)) at += fault.step;
    require(at > 1, std::string(fault.name) + ": no fault happened");
    if (is_first) count = at - 1;
    std::printf("%s, up to %llu: ok\n", fault.name, static_cast<unsigned long long>(at));
    std::fflush(stdout);
  }
  sagitta_device_close(opened);
}

#endif

}  // namespace

void test_remote_device(uint64_t seed) {
  test_answers(seed);
  test_host_memory(seed);
#if defined(SAGITTA_EMULATE_CUDA)
  test_faults(seed);
#endif
  std::printf("a device in a process of its own: ok\n");
}

}  // namespace check
