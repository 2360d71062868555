// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/nccl/calls.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"

namespace millrace::ncclemu {
namespace {

// Of all communicators and planned results. Never destroyed, like what it
// guards, since threads may still run at the end of the process.
Mutex& CallsMutex() {
  static auto* mutex = new Mutex;
  return *mutex;
}

std::map<ncclComm_t, std::shared_ptr<Communicator>>& Handles() {
  static auto* handles =
      new std::map<ncclComm_t, std::shared_ptr<Communicator>>;
  return *handles;
}

struct CallGroup {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<std::pair<std::shared_ptr<Communicator>, Communicator::Call>>
      calls;
};
thread_local CallGroup call_group;
thread_local std::string last_error;

bool IsError(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

}  // namespace

ncclComm_t AddHandle(std::shared_ptr<Communicator> communicator) {
  static uintptr_t last_handle = 0x1000;
  const MutexLock lock(&CallsMutex());
  last_handle += 16;
  const auto handle = reinterpret_cast<ncclComm_t>(last_handle);
  Handles()[handle] = std::move(communicator);
  return handle;
}

std::shared_ptr<Communicator> FindHandle(ncclComm_t handle) {
  const MutexLock lock(&CallsMutex());
  const auto found = Handles().find(handle);
  return found == Handles().end() ? nullptr : found->second;
}

void RemoveHandle(ncclComm_t handle) {
  std::shared_ptr<Communicator> last;  // destroyed without the lock
  const MutexLock lock(&CallsMutex());
  const auto found = Handles().find(handle);
  if (found == Handles().end()) return;
  last = std::move(found->second);
  Handles().erase(found);
}

ncclResult_t Refuse(ncclResult_t result, const std::string& why) {
  KeepLastError(why);
  Say(why);
  return result;
}

const char* KeepLastError(const std::string& text) {
  last_error = text;
  return last_error.c_str();
}

std::string LastError() { return last_error; }

ncclResult_t PlannedResultOf(const char* function, int rank) {
  static auto* calls = new std::map<const PlannedResult*, int>;
  const MutexLock lock(&CallsMutex());
  ncclResult_t result = ncclSuccess;
  for (const PlannedResult& planned : GetNcclSettings().planned_results) {
    if (planned.function != function || planned.rank.value_or(rank) != rank) {
      continue;
    }
    if (++(*calls)[&planned] == planned.call) result = planned.result;
  }
  if (result != ncclSuccess) {
    KeepLastError(absl::StrCat(function, " fails as asked"));
    Say(LastError());
  }
  return result;
}

ncclResult_t CheckReady(const Communicator& communicator) {
  const ncclResult_t state = communicator.state();
  if (state != ncclInProgress) return state;
  return Refuse(ncclInvalidArgument,
                "the communicator is used while its previous call is in "
                "progress");
}

void StartGroup() { ++call_group.depth; }

bool IsInGroup() { return call_group.depth > 0; }

ncclResult_t EndGroup() {
  if (!IsInGroup()) {
    return Refuse(ncclInvalidUsage, "ncclGroupEnd: there is no group");
  }
  if (--call_group.depth > 0) return ncclSuccess;
  const CallGroup group = std::exchange(call_group, {});
  if (IsError(group.error)) return group.error;
  ncclResult_t result = ncclSuccess;
  for (const auto& [communicator, call] : group.calls) {
    const ncclResult_t submitted = communicator->Submit(call);
    if (IsError(submitted)) return submitted;
    if (submitted == ncclInProgress) result = ncclInProgress;
  }
  return result;
}

ncclResult_t SubmitOrAdd(std::shared_ptr<Communicator> communicator,
                         const Communicator::Call& call) {
  if (!IsInGroup()) return communicator->Submit(call);
  call_group.calls.emplace_back(std::move(communicator), call);
  return ncclSuccess;
}

ncclResult_t NoteInGroup(ncclResult_t result) {
  if (IsInGroup() && !IsError(call_group.error)) call_group.error = result;
  return result;
}

}  // namespace millrace::ncclemu
