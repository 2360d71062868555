// SPDX-License-Identifier: Apache-2.0
// What the functions of NCCL's API share: handles, planned results and groups.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>

#include "tests/ptxemu/nccl/communicator.h"

namespace millrace::ncclemu {

// Returns a new handle, which is never used again.
ncclComm_t AddHandle(std::shared_ptr<Communicator> communicator);
// Null if the communicator has been destroyed or aborted.
std::shared_ptr<Communicator> FindHandle(ncclComm_t handle);
void RemoveHandle(ncclComm_t handle);

// Prints what is wrong with a call, keeps it for ncclGetLastError(), and
// returns `result`.
ncclResult_t Refuse(ncclResult_t result, const std::string& why);
// Keeps a text for as long as the calling thread keeps no other.
const char* KeepLastError(const std::string& text);
std::string LastError();

// Counts a call of a function; returns the result that NCCLEMU_FAIL plans, or
// ncclSuccess. `rank` is -1 if the function belongs to none.
ncclResult_t PlannedResultOf(const char* function, int rank);

// As NCCL: a communicator with an error gives it back, and one in progress
// cannot be used.
ncclResult_t CheckReady(const Communicator& communicator);

// The calling thread's group: operations that are submitted at its end.
void StartGroup();
// ncclInvalidUsage: there is no group. Otherwise the first error of a call of
// the group, whose operations are dropped then.
ncclResult_t EndGroup();
bool IsInGroup();
// Submits an operation, or adds it to the group.
ncclResult_t SubmitOrAdd(std::shared_ptr<Communicator> communicator,
                         const Communicator::Call& call);
// Keeps the result of a call of the group, and returns it.
ncclResult_t NoteInGroup(ncclResult_t result);

}  // namespace millrace::ncclemu
