// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/member_keeper.h"

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace millrace {

struct MemberKeeper::State {
  absl::Mutex mutex;
  int held ABSL_GUARDED_BY(mutex) = 0;
  std::vector<std::unique_ptr<FleetMember>> unused ABSL_GUARDED_BY(mutex);
};

MemberKeeper::MemberKeeper() : state_(std::make_shared<State>()) {}

MemberKeeper::~MemberKeeper() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->mutex.Await(absl::Condition(
        +[](int* held) { return *held == 0; }, &state_->held));
  }
  EndUnused();
}

std::shared_ptr<FleetMember> MemberKeeper::Make() {
  {
    absl::MutexLock lock(&state_->mutex);
    ++state_->held;
  }
  return std::shared_ptr<FleetMember>(new FleetMember,
                                      [state = state_](FleetMember* member) {
                                        absl::MutexLock lock(&state->mutex);
                                        state->unused.emplace_back(member);
                                        --state->held;
                                      });
}

void MemberKeeper::EndUnused() {
  std::vector<std::unique_ptr<FleetMember>> unused;  // dies after the lock
  absl::MutexLock lock(&state_->mutex);
  unused.swap(state_->unused);
}

}  // namespace millrace
