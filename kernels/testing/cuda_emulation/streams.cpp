// Streams run only when a call waits, and no further than needed. Operations that streams and events do
// not order run in random order, so that missing dependencies show up in results.
#include <algorithm>

#include "machine.h"
#include "settings.h"

namespace sagitta::cuda::emulation {
namespace {

bool may_run(const CUstream_st& stream) {
  if (stream.waiting.empty()) return false;
  const auto& needs = stream.waiting.front().needs;
  return needs == nullptr || needs->is_reached;
}

void run_one(CUstream_st& stream) {
  const operation next = std::move(stream.waiting.front());
  stream.waiting.pop_front();
  if (next.run && !stream.owner->is_lost) next.run();
  if (next.reaches == nullptr) return;
  next.reaches->is_reached = true;
  next.reaches->time = std::chrono::steady_clock::now();
}

}  // namespace

void run_until(const std::function<bool()>& is_done, CUstream_st* first) {
  while (!is_done()) {
    if (first != nullptr && may_run(*first) && draw_below(2) == 0) {
      run_one(*first);
      continue;
    }
    std::vector<CUstream_st*> ready;
    for (const auto& device : machine_in_use().devices) {
      std::copy_if(device->streams.begin(), device->streams.end(), std::back_inserter(ready),
                   [](const CUstream_st* stream) { return may_run(*stream); });
    }
    if (ready.empty()) fail("a call waits for work that is in no stream");
    run_one(*ready[draw_below(static_cast<uint32_t>(ready.size()))]);
  }
}

}  // namespace sagitta::cuda::emulation
