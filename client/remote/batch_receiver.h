// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/remote/attempt_calls.h"
#include "client/remote/call_context.h"
#include "client/remote/feature_cache.h"
#include "client/remote/frame_receiver.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"
#include "common/wire/batch_assembler.h"

namespace millrace {

// Receives the Sample stream of one attempt to fetch a batch. As soon as the
// ids have arrived, asks the other owners for their rows (Gather), and takes
// those of the cache meanwhile, unless they are on a GPU.
// States: receiving topology -> receiving rows -> complete.
class BatchReceiver final : public FrameReceiver {
 public:
  struct Options {
    CallContext context;
    const ResolvedJob& job;  // references outlive the attempt
    const BatchRequest& request;
    int home;  // partition
    uint64_t max_batch_bytes;
    std::shared_ptr<const CachedFeatures> cache;  // null if there are none
    // The calls for rows are added to these.
    std::shared_ptr<AttemptCalls> calls;
  };
  explicit BatchReceiver(Options options);

  absl::Status OnFrame(const ReceivedFrame& frame) override;
  absl::Status CheckComplete() const override;

  // Per node type, how many rows of the home the server need not send.
  const std::vector<uint64_t>& cached_rows() const { return cached_rows_; }

  // The batch, once it is complete and all calls for rows have succeeded. Rows
  // of features that the cache holds on a GPU are garbage.
  Batch TakeBatch() { return std::move(assembler_->batch()); }

 private:
  absl::Status StartAssembly(const ReceivedFrame& frame);
  absl::Status AskOthers();
  absl::Status StartCalls(std::vector<RowRequest> requests);
  void TakeFromCache();

  const Options options_;
  const std::vector<uint64_t> cached_rows_;
  std::optional<BatchAssembler> assembler_;  // from the first frame on
};

}  // namespace millrace
