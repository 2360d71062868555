// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::testing {

// What a queue of tests has done, and which of its allocations has to fail.
class QueueCounts {
 public:
  // The n-th allocation from now on fails; 0 for none.
  void FailAllocation(int n) {
    allocations_ = 0;
    failing_allocation_ = n;
  }
  int allocations() const { return allocations_; }
  int live() const { return live_; }

 protected:
  // Counts an allocation. Returns false if it has to fail.
  bool MayAllocate() { return ++allocations_ != failing_allocation_; }

  int live_ = 0;

 private:
  int allocations_ = 0, failing_allocation_ = 0;
};

}  // namespace millrace::testing
