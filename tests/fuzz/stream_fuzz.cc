// SPDX-License-Identifier: Apache-2.0
// The frames of a Sample stream as read by a client. Input: a job, a home, then
// length-prefixed messages.
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/sample/gather.h"
#include "common/sample/resolve_job.h"
#include "common/wire/batch_assembler.h"
#include "common/wire/frame.h"
#include "tests/fuzz/support/graph.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

constexpr uint64_t kMaxBatchBytes = 16 << 20;

// Receives like client/remote/batch_receiver.cc.
class Receiver {
 public:
  explicit Receiver(const AssemblerRequest& request) : request_(request) {}

  // Returns whether more messages may follow.
  bool TakeMessage(std::string_view message) {
    // Takes the message in slices, like gRPC's.
    const auto bytes = std::as_bytes(std::span(message));
    const size_t cut = bytes.size() / 3;
    const std::vector<std::span<const std::byte>> slices = {
        bytes.first(cut), {}, bytes.subspan(cut)};
    const absl::StatusOr<FrameView> frame = ParseFrame(slices);
    failed_ = !frame.ok() || !Take(*frame).ok();
    return !failed_;
  }

  // Reads everything in the batch.
  void Use() {
    if (failed_ || !assembler_.has_value() || !assembler_->done()) return;
    MILLRACE_CHECK(assembler_->topology_done());
    const Batch& batch = assembler_->batch();
    const Schema& schema = request_.manifest.schema;
    for (size_t r = 0; r < batch.edges.size(); ++r) {
      const EdgeBlock& block = batch.edges[r];
      const Relation& relation = schema.relations[r];
      Touch(block.indptr);
      Touch(block.neighbor);
      Touch(block.edge_id);
      FeatureOwners(batch, relation, block,
                    request_.manifest.books[relation.dst]);
    }
    for (size_t t = 0; t < batch.nodes.size(); ++t) {
      const NodeBlock& block = batch.nodes[t];
      Touch(block.id);
      for (int64_t i = 0; i < block.id.rows(); ++i) {
        request_.manifest.books[t].Owner(
            static_cast<uint64_t>(block.id.IntegerAt(i)));
      }
    }
    Touch(batch.walks);
    Touch(batch.seed_to_local);
  }

 private:
  absl::Status Take(const FrameView& frame) {
    if (!assembler_.has_value()) {
      if (!frame.header.stream.has_value()) {
        return absl::InternalError("the first frame lacks the layout");
      }
      MILLRACE_ASSIGN_OR_RETURN(
          BatchAssembler assembler,
          BatchAssembler::Create(request_, *frame.header.stream));
      assembler_.emplace(std::move(assembler));
    }
    for (const std::span<const std::byte> piece : frame.payload) {
      MILLRACE_RETURN_IF_ERROR(assembler_->Write(piece));
    }
    return absl::OkStatus();
  }

  const AssemblerRequest request_;
  std::optional<BatchAssembler> assembler_;
  bool failed_ = false;
};

void Run(Input input) {
  const size_t number = input.Byte() % RichJobs().size();
  const int home = input.Byte() % kParts;
  const FuzzJob& asked = RichJobs()[number];
  const Manifest& manifest = RichStore()->manifest();
  const auto job = ResolveJob(asked.spec, manifest);
  MILLRACE_CHECK(job.ok());
  const BatchRequest request = {.explicit_seeds = asked.explicit_seeds,
                                .columns = asked.columns};
  Receiver receiver({.manifest = manifest,
                     .job = *job,
                     .request = request,
                     .home = home,
                     .max_bytes = kMaxBatchBytes});
  while (!input.empty() && receiver.TakeMessage(input.Piece())) {
  }
  receiver.Use();
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::Run({data, size});
  return 0;
}
