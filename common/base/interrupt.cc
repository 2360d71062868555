// SPDX-License-Identifier: Apache-2.0
#include "common/base/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace millrace {
namespace {

std::atomic<int> interrupt_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void OnSignal(int signal) {
  if (interrupt_signal.exchange(signal) != 0) _exit(128 + signal);
}

}  // namespace

void InstallInterruptHandler() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  // Long loops check the flag, so system calls need not fail with EINTR.
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool Interrupted() {
  return interrupt_signal.load(std::memory_order_relaxed) != 0;
}

std::string InterruptName() {
  const int signal = interrupt_signal.load(std::memory_order_relaxed);
  if (signal == 0) return "";
  return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

absl::Status CheckInterrupted() {
  if (!Interrupted()) return absl::OkStatus();
  return absl::CancelledError("interrupted");
}

}  // namespace millrace
