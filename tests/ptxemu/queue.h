// SPDX-License-Identifier: Apache-2.0
// The queues of the streams. Queued work runs inside the program's calls, when
// the schedule says so or when something waits for it, in any order that
// streams and events allow.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/ptxemu/runtime.h"

namespace millrace::ptxemu {

// Adds work, which runs after that of `after`. An error that it returns becomes
// the fault of the stream's device.
void Enqueue(Stream* stream, std::function<absl::Status()> run,
             std::vector<Ticket> after = {});
// The same for work that lasts, such as a collective that waits for other
// processes: `step` is called again and again, until it returns true. It must
// not block. From the first such work on, a thread runs queued work even while
// the program does not call CUDA, unless PTXEMU_BACKGROUND forbids it.
void EnqueueLasting(Stream* stream, std::function<absl::StatusOr<bool>()> step);
// The same for a function of the program, which runs without the lock.
void EnqueueHostFunction(Stream* stream, std::function<void()> run);

// Runs pieces of work until the ticket's, or all of a stream or device, is
// done.
void WaitForTicket(Ticket ticket);
void WaitForStream(Stream* stream);
void WaitForDevice(int device);
void WaitForAllDevices();
// Runs at most one piece of work.
void RunOnePiece();
// The same, then says whether the ticket's is done.
bool HasReached(Ticket ticket);

// The last work of the stream so far.
Ticket LastTicket(Stream* stream);

}  // namespace millrace::ptxemu
