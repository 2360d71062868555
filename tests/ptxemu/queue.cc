// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/queue.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace millrace::ptxemu {
namespace {

enum class Progress {
  kDone,     // a piece of work was done
  kRunning,  // another thread runs a host function
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
void RunFirst(Stream* stream) {
  Device& device = GetRuntime().devices[stream->device];
  if (device.fault == cudaSuccess) {
    Memory::Get().SetActingDevice(stream->device);
    stream->is_running = true;
    const absl::Status status = stream->queue.front().run();
    stream->is_running = false;
    if (!status.ok()) SetFault(&device, status);
  }
  stream->queue.pop_front();
  ++stream->done;
}

Progress RunSomething() {
  std::vector<Stream*> ready;
  bool is_running = false;
  for (Stream* stream : GetRuntime().streams) {
    if (IsReady(*stream)) ready.push_back(stream);
    is_running |= stream->is_running;
  }
  if (ready.empty()) return is_running ? Progress::kRunning : Progress::kNone;
  RunFirst(ready[GetRuntime().random() % ready.size()]);
  return Progress::kDone;
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
  if (!GetSettings().in_background || GetRuntime().has_background_thread) {
    return;
  }
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

}  // namespace

Ticket LastTicket(Stream* stream) { return {stream, stream->enqueued}; }

void Enqueue(Stream* stream, std::function<absl::Status()> run,
             std::vector<Ticket> after) {
  StartBackgroundThread();
  AddDefaultStreamOrder(*stream, &after);
  stream->queue.push_back({std::move(run), std::move(after)});
  ++stream->enqueued;
  RunWhatTheScheduleAllows();
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
      case Progress::kRunning: {
        const ReleasedLock released;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        break;
      }
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

bool HasReached(Ticket ticket) {
  if (!IsDone(ticket) && RunSomething() == Progress::kRunning) {
    const ReleasedLock released;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return IsDone(ticket);
}

}  // namespace millrace::ptxemu
