// SPDX-License-Identifier: Apache-2.0
#include "client/train/task/link_batch.h"

#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "client/train/task/labels.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

NegativeShape ShapeOf(const EdgeSeedBlock& seeds, NegativeMode mode) {
  switch (mode) {
    case NegativeMode::kBinary:
      return NegativeShape::kPairs;
    case NegativeMode::kShared:
      return NegativeShape::kShared;
    case NegativeMode::kInBatch:
      return NegativeShape::kInBatch;
    case NegativeMode::kTriplet:
    case NegativeMode::kNone:
      break;
  }
  return seeds.negative_dst.present() ? NegativeShape::kPerSeed
                                      : NegativeShape::kNone;
}

}  // namespace

absl::StatusOr<LinkBatch> MakeLinkBatch(const Batch& batch, NegativeMode mode) {
  const EdgeSeedBlock& seeds = batch.edge_seeds;
  LinkBatch links;
  links.negatives = ShapeOf(seeds, mode);
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(batch.seed, links.id.src));
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(seeds.dst, links.id.dst));
  MILLRACE_RETURN_IF_ERROR(
      ViewIfPresent(seeds.negative_src, links.id.negative_src));
  MILLRACE_RETURN_IF_ERROR(
      ViewIfPresent(seeds.negative_dst, links.id.negative_dst));
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(batch.seed_to_local, links.row.src));
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(seeds.dst_local, links.row.dst));
  MILLRACE_RETURN_IF_ERROR(
      ViewIfPresent(seeds.negative_src_local, links.row.negative_src));
  MILLRACE_RETURN_IF_ERROR(
      ViewIfPresent(seeds.negative_local, links.row.negative_dst));
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(seeds.edge_type, links.edge_type));
  if (links.negatives == NegativeShape::kNone && seeds.label.present()) {
    MILLRACE_ASSIGN_OR_RETURN(const at::Tensor stored,
                              ViewAsTensor(seeds.label));
    MILLRACE_ASSIGN_OR_RETURN(links.label,
                              ReadLabels(TaskKind::kBinary, stored));
  }
  MILLRACE_RETURN_IF_ERROR(CatchTorch("reading seeds", [&] {
    if (links.edge_type.defined()) {
      links.edge_type = links.edge_type.to(at::kLong);
    }
    if (links.label.defined()) links.label = links.label.squeeze(1);
    return absl::OkStatus();
  }));
  return links;
}

LinkEnds SendEnds(const LinkEnds& ends, at::Device device) {
  return {Send(ends.src, device), Send(ends.dst, device),
          Send(ends.negative_src, device), Send(ends.negative_dst, device)};
}

LinkBatch SendLinks(const LinkBatch& links, at::Device device) {
  return {links.negatives, SendEnds(links.id, device),
          SendEnds(links.row, device), Send(links.edge_type, device),
          Send(links.label, device)};
}

LinkEnds TakeEnds(const LinkEnds& index, const at::Tensor& source,
                  const at::Tensor& destination) {
  const auto take = [](const at::Tensor& rows, const at::Tensor& numbers) {
    return numbers.defined() ? rows.index_select(0, numbers) : at::Tensor();
  };
  return {take(source, index.src), take(destination, index.dst),
          take(source, index.negative_src),
          take(destination, index.negative_dst)};
}

}  // namespace millrace
