// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/fleet/replicas.h"

namespace millrace::testing {

// Replicas of every partition, named "replica 0", "replica 1", ..., to which no
// call can be made. Pick() takes the first one that is allowed and not lost.
// Threads: any.
class FakeReplicas final : public Replicas {
 public:
  explicit FakeReplicas(int count) {
    for (int i = 0; i < count; ++i) {
      members_.push_back(std::make_shared<FleetMember>());
      members_.back()->address = "replica " + std::to_string(i);
    }
  }

  const std::shared_ptr<FleetMember>& member(int index) const {
    return members_[index];
  }

  // Makes a replica count as lost once it is suspected.
  void Stop(int index) {
    MutexLock lock(&mutex_);
    stopped_.insert(members_[index].get());
  }
  bool suspected(int index) const {
    MutexLock lock(&mutex_);
    return suspected_.count(members_[index].get()) > 0;
  }

  absl::StatusOr<std::shared_ptr<FleetMember>> Pick(
      int, SteadyTime, const std::vector<const FleetMember*>& avoid) override {
    for (const auto& member : members_) {
      const bool avoided =
          std::find(avoid.begin(), avoid.end(), member.get()) != avoid.end();
      if (!avoided && !IsLost(*member)) return member;
    }
    return absl::UnavailableError("no replica is left");
  }

  void Suspect(const FleetMember& member) override {
    MutexLock lock(&mutex_);
    suspected_.insert(&member);
  }

  bool IsLost(const FleetMember& member) const override {
    MutexLock lock(&mutex_);
    return stopped_.count(&member) > 0 && suspected_.count(&member) > 0;
  }

 private:
  std::vector<std::shared_ptr<FleetMember>> members_;  // shared with calls

  mutable Mutex mutex_;
  std::set<const FleetMember*> stopped_ ABSL_GUARDED_BY(mutex_);
  std::set<const FleetMember*> suspected_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::testing
