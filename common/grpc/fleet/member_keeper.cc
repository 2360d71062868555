// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/member_keeper.h"

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace millrace {

struct MemberKeeper::State {
  Mutex mutex;
  CondVar let_go;
  int held ABSL_GUARDED_BY(mutex) = 0;
  std::vector<std::unique_ptr<FleetMember>> unused ABSL_GUARDED_BY(mutex);
};

MemberKeeper::MemberKeeper() : state_(std::make_shared<State>()) {}

MemberKeeper::~MemberKeeper() {
  {
    State& state = *state_;
    MutexLock lock(&state.mutex);
    state.let_go.Wait(&state.mutex,
                      [&state]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
                        return state.held == 0;
                      });
  }
  EndUnused();
}

std::shared_ptr<FleetMember> MemberKeeper::Make() {
  {
    MutexLock lock(&state_->mutex);
    ++state_->held;
  }
  return std::shared_ptr<FleetMember>(new FleetMember,
                                      [state = state_](FleetMember* member) {
                                        MutexLock lock(&state->mutex);
                                        state->unused.emplace_back(member);
                                        --state->held;
                                        state->let_go.NotifyAll();
                                      });
}

void MemberKeeper::EndUnused() {
  // Declared first, so that it is destroyed after the lock is released.
  std::vector<std::unique_ptr<FleetMember>> unused;
  MutexLock lock(&state_->mutex);
  unused.swap(state_->unused);
}

}  // namespace millrace
