// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/queue.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "common/base/status_macros.h"

namespace millrace::ptxemu {
namespace {

enum class Progress {
  kDone,     // a piece of work was done
  kWaiting,  // for another process, or for a thread that runs a host function
  kNone
};

bool IsDone(const Ticket& ticket) {
  return ticket.stream->done >= ticket.number;
}

bool IsReady(const Stream& stream) {
  if (stream.queue.empty() || stream.is_running) return false;
  const std::vector<Ticket>& after = stream.queue.front().after;
  return std::all_of(after.begin(), after.end(), IsDone);
}

void SetFault(Device* device, const absl::Status& status) {
  device->fault = cudaErrorIllegalAddress;
  device->fault_message = std::string(status.message());
  std::fprintf(stderr, "ptxemu: FAULT: %s\n", device->fault_message.c_str());
}

// Runs the stream's first work, or drops it if the device has had a fault.
// Returns false if the work is not done yet.
bool RunFirst(Stream* stream) {
  Device& device = GetRuntime().devices[stream->device];
  if (device.fault == cudaSuccess) {
    Memory::Get().SetActingDevice(stream->device);
    stream->is_running = true;
    const absl::StatusOr<bool> is_done = stream->queue.front().step();
    stream->is_running = false;
    if (is_done.ok() && !*is_done) return false;
    if (!is_done.ok()) SetFault(&device, is_done.status());
  }
  stream->queue.pop_front();
  ++stream->done;
  return true;
}

Progress RunSomething() {
  std::vector<Stream*> ready;
  bool is_waiting = false;
  for (Stream* stream : GetRuntime().streams) {
    if (IsReady(*stream)) ready.push_back(stream);
    is_waiting |= stream->is_running;
  }
  while (!ready.empty()) {
    const size_t chosen = GetRuntime().random() % ready.size();
    if (RunFirst(ready[chosen])) return Progress::kDone;
    is_waiting = true;
    ready.erase(ready.begin() + static_cast<ptrdiff_t>(chosen));
  }
  return is_waiting ? Progress::kWaiting : Progress::kNone;
}

void RunWhatTheScheduleAllows() {
  switch (GetSettings().schedule) {
    case Schedule::kEager:
      while (RunSomething() == Progress::kDone) {
      }
      break;
    case Schedule::kRandom:
      while (GetRuntime().random() % 3 == 0 &&
             RunSomething() == Progress::kDone) {
      }
      break;
    case Schedule::kLazy:
      break;
  }
}

void RunInBackground() {
  std::mt19937_64 random(GetSettings().seed + 1);
  while (true) {
    const uint64_t microseconds = GetSettings().schedule == Schedule::kLazy
                                      ? 10'000
                                      : 100 + random() % 2000;
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    const MutexLock lock(&RuntimeMutex());
    for (uint64_t n = random() % 4; n > 0; --n) {
      if (RunSomething() != Progress::kDone) break;
    }
  }
}

void StartBackgroundThread() {
  if (GetRuntime().has_background_thread) return;
  GetRuntime().has_background_thread = true;
  std::thread(RunInBackground).detach();
}

// What the default stream's order with the other streams of its device demands.
void AddDefaultStreamOrder(const Stream& stream, std::vector<Ticket>* after) {
  Stream* const default_stream =
      GetRuntime().devices[stream.device].default_stream;
  if (&stream != default_stream) {
    if (stream.waits_for_default) after->push_back(LastTicket(default_stream));
    return;
  }
  for (Stream* other : GetRuntime().streams) {
    if (other != &stream && other->waits_for_default &&
        other->device == stream.device) {
      after->push_back(LastTicket(other));
    }
  }
}

void Push(Stream* stream, Work work) {
  AddDefaultStreamOrder(*stream, &work.after);
  stream->queue.push_back(std::move(work));
  ++stream->enqueued;
  RunWhatTheScheduleAllows();
}

// Lets other threads, or processes, get on.
void Pause(int microseconds) {
  const ReleasedLock released;
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

}  // namespace

Ticket LastTicket(Stream* stream) { return {stream, stream->enqueued}; }

void Enqueue(Stream* stream, std::function<absl::Status()> run,
             std::vector<Ticket> after) {
  if (GetSettings().background == Background::kAlways) StartBackgroundThread();
  Push(stream, {[run = std::move(run)]() -> absl::StatusOr<bool> {
                  MILLRACE_RETURN_IF_ERROR(run());
                  return true;
                },
                std::move(after)});
}

void EnqueueLasting(Stream* stream,
                    std::function<absl::StatusOr<bool>()> step) {
  if (GetSettings().background != Background::kNever) StartBackgroundThread();
  Push(stream, {std::move(step), {}});
}

void EnqueueHostFunction(Stream* stream, std::function<void()> run) {
  Enqueue(stream, [run = std::move(run)] {
    const ReleasedLock released;
    CurrentThread().is_in_host_function = true;
    run();
    CurrentThread().is_in_host_function = false;
    return absl::OkStatus();
  });
}

void WaitForTicket(Ticket ticket) {
  CurrentThread().has_waited = true;
  while (!IsDone(ticket)) {
    switch (RunSomething()) {
      case Progress::kDone:
        break;
      case Progress::kWaiting:
        Pause(50);
        break;
      case Progress::kNone:
        std::fprintf(stderr, "ptxemu: a stream waits for ever\n");
        std::abort();
    }
  }
}

void WaitForStream(Stream* stream) { WaitForTicket(LastTicket(stream)); }

void WaitForDevice(int device) {
  // A copy, since other threads may create streams meanwhile.
  const std::vector<Stream*> streams = GetRuntime().streams;
  for (Stream* stream : streams) {
    if (stream->device == device) WaitForStream(stream);
  }
}

void WaitForAllDevices() {
  for (size_t device = 0; device < GetRuntime().devices.size(); ++device) {
    WaitForDevice(static_cast<int>(device));
  }
}

void RunOnePiece() { RunSomething(); }

bool HasReached(Ticket ticket) {
  if (!IsDone(ticket) && RunSomething() == Progress::kWaiting) Pause(20);
  return IsDone(ticket);
}

}  // namespace millrace::ptxemu
