// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/batch_stream.h"

#include <functional>
#include <utility>
#include <vector>

#include "common/base/with_ids.h"
#include "common/sample/gather.h"
#include "common/wire/batch_layout.h"

namespace millrace {
namespace {

using Rows = std::shared_ptr<const std::vector<uint32_t>>;

// Writes the ids of the rows to send, given their local ids.
std::function<void(size_t, std::span<uint64_t>)> IdsOfRows(
    std::shared_ptr<const Batch> batch, TypeIndex type, Rows rows) {
  return [batch = std::move(batch), type, rows = std::move(rows)](
             size_t first, std::span<uint64_t> ids) {
    WithIds(batch->nodes[type].id, [&](const auto& all) {
      for (size_t i = 0; i < ids.size(); ++i) ids[i] = all[(*rows)[first + i]];
    });
  };
}

// Writes the feature rows of the edges to send.
std::function<void(size_t, std::span<uint64_t>)> RowsOfEdges(
    std::shared_ptr<const Batch> batch, RelationIndex relation, Rows edges) {
  return [batch = std::move(batch), relation, edges = std::move(edges)](
             size_t first, std::span<uint64_t> rows) {
    const auto all = batch->edges[relation].feature_row.As<uint64_t>();
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = all[(*edges)[first + i]];
  };
}

// An array of the batch that is ready to send.
StreamPart TopologyPart(std::shared_ptr<const Batch> batch,
                        const ArrayInfo& info) {
  StreamPart part;
  part.data = Describe(info.kind).Get(*batch, info.index).data();
  part.owner = std::move(batch);
  return part;
}

StreamPart EdgeFeaturePart(std::shared_ptr<const Batch> batch,
                           RelationIndex relation, int home, Rows edges) {
  StreamPart part;
  part.edge_relation = relation;
  part.edge_part = home;
  part.ids = RowsOfEdges(std::move(batch), relation, std::move(edges));
  return part;
}

StreamPart NodeColumnPart(std::shared_ptr<const Batch> batch, TypeIndex type,
                          NodeColumn column, Rows rows) {
  StreamPart part;
  part.type = type;
  part.column = column;
  part.ids = IdsOfRows(std::move(batch), type, std::move(rows));
  return part;
}

}  // namespace

std::unique_ptr<FrameSource> StreamBatch(
    const RowPlaces& places, const StreamContent& content,
    const std::shared_ptr<const Batch>& batch, int home,
    std::span<const uint64_t> cached_rows) {
  const auto sent = std::make_shared<const SentRows>(
      SelectRows(*batch, content.manifest, content.columns, home, cached_rows));
  StreamLayout layout = LayoutBatch(*batch, content, *sent);
  layout.partition = home;
  std::vector<StreamPart> parts;
  for (const ArrayInfo& info : layout.arrays) {
    const BatchArray& array = Describe(info.kind);
    if (!array.is_column()) {
      parts.push_back(TopologyPart(batch, info));
      continue;
    }
    const Rows rows = {sent, &sent->Of(array, info.index)};
    parts.push_back(array.group == ArrayGroup::kEdgeFeatures
                        ? EdgeFeaturePart(batch, info.index, home, rows)
                        : NodeColumnPart(batch, info.index,
                                         array.column(batch->direction), rows));
  }
  return std::make_unique<FrameSource>(places, std::move(layout),
                                       std::move(parts));
}

}  // namespace millrace
