// SPDX-License-Identifier: Apache-2.0
#include "client/train/link/link_table.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <utility>
#include <vector>

#include "client/tensor/torch_status.h"
#include "client/train/task/batch_loop.h"
#include "client/train/task/link_batch.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr int64_t kSeedsPerFetch = 65536;

absl::Status CheckTypes(const LinkTable& table, const std::string& split) {
  if (table.size() == 0) return absl::OkStatus();
  const int64_t least = table.edge_type.min().item().toLong();
  if (least >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("split ", split,
                                           " has the edge type ", least,
                                           "\nedge types must be at least 0"));
}

}  // namespace

int64_t LinkTable::edge_types() const {
  return size() == 0 ? 1 : edge_type.max().item().toLong() + 1;
}

JobSpec BareLinkJob(const JobSpec& job, const std::string& split) {
  JobSpec bare;
  bare.seed = job.seed;
  bare.seed_kind = SeedKind::kEdge;
  bare.seed_type = job.seed_type;
  bare.direction = job.direction;
  bare.split = split;
  bare.fanouts = {0};
  bare.shuffle = false;
  return bare;
}

absl::StatusOr<LinkTable> ReadLinkTable(std::shared_ptr<BatchSource> source,
                                        const JobSpec& job,
                                        const std::string& split,
                                        std::optional<ExplicitSeeds> seeds) {
  JobSpec bare = BareLinkJob(job, split);
  bare.batch_size = kSeedsPerFetch;
  LoaderOptions options;
  options.columns.features = false;
  options.columns.labels = LabelRows::kNone;
  options.seeds = std::move(seeds);
  std::vector<at::Tensor> src, dst, type;
  MILLRACE_RETURN_IF_ERROR(ForEachBatch(
      std::move(source), bare, std::move(options), /*what=*/"", at::kCPU,
      [&](const Batch& batch) -> absl::Status {
        MILLRACE_ASSIGN_OR_RETURN(const LinkBatch links,
                                  MakeLinkBatch(batch, NegativeMode::kNone));
        src.push_back(links.id.src);
        dst.push_back(links.id.dst);
        type.push_back(links.edge_type.defined()
                           ? links.edge_type
                           : at::zeros_like(links.id.src));
        return absl::OkStatus();
      }));
  return CatchTorch("reading a split", [&]() -> absl::StatusOr<LinkTable> {
    const auto join = [](const std::vector<at::Tensor>& parts) {
      return parts.empty() ? at::empty({0}, at::kLong) : at::cat(parts);
    };
    const LinkTable table{join(src), join(dst), join(type)};
    MILLRACE_RETURN_IF_ERROR(CheckTypes(table, split));
    return table;
  });
}

}  // namespace millrace
