// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/relation_import.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/edge_buckets.h"
#include "common/ingest/edge_reader.h"
#include "common/ingest/list_writer.h"

namespace millrace {
namespace {

// The entries of a list are in the order of their ids: the user's edges, then
// their reverses, then added self loops.
enum Segment { kForward = 0, kBackward = 1, kLoops = 2, kSegments = 3 };

class RelationImporter {
 public:
  RelationImporter(const RelationImport& import, StoreWriter& store)
      : import_(import),
        edges_(import.edges),
        store_(store),
        same_type_(import.edges.src == import.edges.dst) {}

  absl::StatusOr<Relation> Run();

 private:
  void Describe();
  EdgeLayout Layout(Direction direction) const;
  EdgeBuckets::Options BucketOptions(Direction direction, int segments) const;
  absl::StatusOr<std::unique_ptr<ListWriter>> OpenLists(Direction direction);
  absl::Status ReadEdges(EdgeBuckets& in);
  absl::Status CheckTimes(const EdgeChunk& chunk) const;
  absl::Status CheckTime(const EdgeChunk& chunk, int64_t i, bool src) const;
  absl::Status AppendChunk(const EdgeChunk& chunk, EdgeBuckets& in);
  absl::Status AppendIn(Segment segment, const EdgeChunk& chunk, int64_t i,
                        EdgeBuckets& in);
  absl::Status AppendLoops(EdgeBuckets& in);
  absl::Status WriteIn(EdgeBuckets& in, EdgeBuckets& out);
  absl::Status WriteOut(EdgeBuckets& out);

  uint64_t GroupBytes() const { return import_.options.memory_bytes / 6; }
  const std::vector<int64_t>& times(TypeIndex type) const {
    return import_.node_times[type];
  }
  bool has_times(TypeIndex type) const {
    return import_.graph.nodes[type].time != nullptr;
  }
  int64_t node_count(TypeIndex type) const {
    return import_.graph.nodes[type].count;
  }

  const RelationImport& import_;
  const RawEdges& edges_;
  StoreWriter& store_;
  const bool same_type_;
  Relation relation_;
  std::string name_;
  int64_t user_edges_ = 0;
  std::vector<bool> has_loop_;  // per node, for SelfLoops::kAdd
};

void RelationImporter::Describe() {
  relation_.src = import_.reverse ? edges_.dst : edges_.src;
  relation_.dst = import_.reverse ? edges_.src : edges_.dst;
  relation_.name = StrCat(import_.reverse ? "rev_" : "", edges_.name);
  relation_.has_in = true;
  relation_.has_out = true;
  relation_.has_weight = edges_.weight != nullptr;
  relation_.has_type = edges_.type != nullptr;
  if (edges_.time != nullptr) {
    relation_.time = ListTime::kEdge;
  } else if (has_times(edges_.src) || has_times(edges_.dst)) {
    relation_.time = ListTime::kNeighbor;
  }
  if (edges_.feature != nullptr) {
    relation_.feature = {DType::kFloat32, {edges_.feature->width()}};
  }
  name_ = StrCat(import_.graph.nodes[relation_.src].name, "__", relation_.name,
                 "__", import_.graph.nodes[relation_.dst].name);
}

EdgeLayout RelationImporter::Layout(Direction direction) const {
  const bool in = direction == Direction::kIn;
  const int64_t largest =
      std::max(node_count(edges_.src), node_count(edges_.dst));
  EdgeLayout layout;
  layout.wide = largest > std::numeric_limits<uint32_t>::max();
  layout.has_weight = relation_.has_weight;
  layout.has_type = relation_.has_type;
  layout.has_time =
      edges_.time != nullptr || has_times(in ? relation_.src : relation_.dst);
  layout.has_slot = !in && relation_.feature.present();
  layout.feature_width = in && edges_.feature ? edges_.feature->width() : 0;
  return layout;
}

EdgeBuckets::Options RelationImporter::BucketOptions(Direction direction,
                                                     int segments) const {
  EdgeBuckets::Options options;
  options.layout = Layout(direction);
  options.end =
      node_count(direction == Direction::kIn ? relation_.dst : relation_.src);
  options.segments = segments;
  // Both directions are buffered at the same time, and a group and its longest
  // list are in memory as well.
  options.memory_bytes = import_.options.memory_bytes / 4;
  options.scratch_file =
      store_.scratch() / StrCat(DirectionName(direction), ".edges");
  return options;
}

absl::StatusOr<std::unique_ptr<ListWriter>> RelationImporter::OpenLists(
    Direction direction) {
  const TypeIndex neighbor =
      direction == Direction::kIn ? relation_.src : relation_.dst;
  ListWriter::Options options;
  options.relation = name_;
  options.direction = direction;
  options.layout = Layout(direction);
  options.neighbor_count = node_count(neighbor);
  NodeType type;
  type.count = options.neighbor_count;
  options.index_dtype = type.id_dtype();
  // The out-lists are made from the in-lists, which are coalesced already.
  options.coalesce = import_.options.coalesce && direction == Direction::kIn;
  return ListWriter::Create(store_, std::move(options));
}

absl::StatusOr<Relation> RelationImporter::Run() {
  Describe();
  auto out = std::make_unique<EdgeBuckets>(BucketOptions(Direction::kOut, 1));
  {
    EdgeBuckets in(BucketOptions(Direction::kIn, kSegments));
    MILLRACE_RETURN_IF_ERROR(ReadEdges(in));
    MILLRACE_RETURN_IF_ERROR(WriteIn(in, *out));
  }
  MILLRACE_RETURN_IF_ERROR(WriteOut(*out));
  return relation_;
}

absl::Status RelationImporter::ReadEdges(EdgeBuckets& in) {
  if (import_.options.self_loops == SelfLoops::kAdd && same_type_) {
    has_loop_.assign(static_cast<size_t>(node_count(edges_.src)), false);
  }
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<EdgeReader> reader,
                            EdgeReader::Open(import_.graph, edges_));
  const int64_t expected = edges_.declared_count >= 0
                               ? edges_.declared_count
                               : edges_.endpoints->rows();
  Progress progress(StrCat("read ", name_), expected, "edges");
  EdgeChunk chunk;
  while (true) {
    MILLRACE_ASSIGN_OR_RETURN(const bool more, reader->Next(chunk));
    if (!more) break;
    MILLRACE_RETURN_IF_ERROR(CheckTimes(chunk));
    MILLRACE_RETURN_IF_ERROR(AppendChunk(chunk, in));
    user_edges_ += chunk.count;
    progress.Set(user_edges_);
  }
  in.SetIdOffset(kBackward, user_edges_);
  MILLRACE_RETURN_IF_ERROR(AppendLoops(in));
  progress.Finish();
  return absl::OkStatus();
}

// If there are edge times, temporal jobs compare only these with a seed's time,
// so an edge must not be earlier than its ends. All of the user's edges are
// checked, since those that are left out of the graph may be seeds.
absl::Status RelationImporter::CheckTimes(const EdgeChunk& chunk) const {
  if (edges_.time == nullptr) return absl::OkStatus();
  for (const bool src : {true, false}) {
    if (!has_times(src ? edges_.src : edges_.dst)) continue;
    for (int64_t i = 0; i < chunk.count; ++i) {
      MILLRACE_RETURN_IF_ERROR(CheckTime(chunk, i, src));
    }
  }
  return absl::OkStatus();
}

absl::Status RelationImporter::CheckTime(const EdgeChunk& chunk, int64_t i,
                                         bool src) const {
  const TypeIndex type = src ? edges_.src : edges_.dst;
  const int64_t node = src ? chunk.src(i) : chunk.dst(i);
  const int64_t node_time = times(type)[node];
  if (chunk.time[i] >= node_time) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(
      edges_.time->Where(chunk.first + i), ": the edge from ", chunk.src(i),
      " to ", chunk.dst(i), " of ", import_.graph.RelationName(edges_),
      " has the time ", chunk.time[i], ", before the time ", node_time,
      " of its ", src ? "source, " : "destination, ",
      import_.graph.nodes[type].name, " ", node,
      "\nan edge cannot be older than its ends: correct the times, or "
      "import either edge times or node times"));
}

absl::Status RelationImporter::AppendChunk(const EdgeChunk& chunk,
                                           EdgeBuckets& in) {
  const ImportOptions& options = import_.options;
  const bool undirected = options.undirected && same_type_ && !import_.reverse;
  for (int64_t i = 0; i < chunk.count; ++i) {
    if (!import_.held_out.empty() && import_.held_out[chunk.first + i]) {
      continue;
    }
    const bool loop = same_type_ && chunk.src(i) == chunk.dst(i);
    // Self loops get no reverse, so a reverse relation has none of them.
    if (loop && (import_.reverse || options.self_loops == SelfLoops::kRemove)) {
      continue;
    }
    if (loop && !has_loop_.empty()) has_loop_[chunk.src(i)] = true;
    MILLRACE_RETURN_IF_ERROR(AppendIn(kForward, chunk, i, in));
    if (undirected && !loop) {
      MILLRACE_RETURN_IF_ERROR(AppendIn(kBackward, chunk, i, in));
    }
  }
  return absl::OkStatus();
}

absl::Status RelationImporter::AppendIn(Segment segment, const EdgeChunk& chunk,
                                        int64_t i, EdgeBuckets& in) {
  const bool backward = import_.reverse != (segment == kBackward);
  EdgeRecord record;
  record.node = backward ? chunk.src(i) : chunk.dst(i);
  record.neighbor = backward ? chunk.dst(i) : chunk.src(i);
  record.edge_id = chunk.first + i;
  if (!chunk.weight.empty()) record.weight = chunk.weight[i];
  if (!chunk.type.empty()) record.type = static_cast<int32_t>(chunk.type[i]);
  if (edges_.time != nullptr) {
    record.time = chunk.time[i];
  } else if (has_times(relation_.src)) {
    record.time = times(relation_.src)[record.neighbor];
  }
  const float* features = nullptr;
  if (edges_.feature != nullptr) {
    features = chunk.feature.data() + i * edges_.feature->width();
  }
  return in.Append(segment, record, features);
}

absl::Status RelationImporter::AppendLoops(EdgeBuckets& in) {
  if (has_loop_.empty()) return absl::OkStatus();
  const bool doubled = import_.options.undirected && !import_.reverse;
  in.SetIdOffset(kLoops, doubled ? 2 * user_edges_ : user_edges_);
  for (int64_t node = 0; node < node_count(edges_.src); ++node) {
    if (has_loop_[node]) continue;
    EdgeRecord record{.node = node, .neighbor = node, .edge_id = node};
    if (edges_.time == nullptr && has_times(edges_.src)) {
      record.time = times(edges_.src)[node];
    }
    MILLRACE_RETURN_IF_ERROR(in.Append(kLoops, record, nullptr));
  }
  return absl::OkStatus();
}

absl::Status RelationImporter::WriteIn(EdgeBuckets& in, EdgeBuckets& out) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<ListWriter> lists,
                            OpenLists(Direction::kIn));
  Progress progress(StrCat("in-lists of ", name_), in.edge_count(), "edges");
  const std::vector<int64_t>& dst_times = times(relation_.dst);
  const bool edge_times = edges_.time != nullptr;
  const bool dst_has_times = has_times(relation_.dst);
  const auto append_out = [&](const EdgeRecord& edge, int64_t position) {
    EdgeRecord reversed = edge;
    std::swap(reversed.node, reversed.neighbor);
    reversed.slot = position;
    if (!edge_times) {
      reversed.time = dst_has_times ? dst_times[edge.node] : 0;
    }
    return out.Append(0, reversed, nullptr);
  };
  int64_t done = 0;
  MILLRACE_RETURN_IF_ERROR(
      in.ForEachGroup(GroupBytes(), [&](const EdgeGroup& group) {
        MILLRACE_RETURN_IF_ERROR(lists->Write(group, append_out));
        done += group.starts.back();
        progress.Set(done);
        return absl::OkStatus();
      }));
  progress.Finish();
  relation_.edge_count = lists->edge_count();
  relation_.max_edge_id = lists->max_edge_id();
  return lists->Finish();
}

absl::Status RelationImporter::WriteOut(EdgeBuckets& out) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<ListWriter> lists,
                            OpenLists(Direction::kOut));
  Progress progress(StrCat("out-lists of ", name_), out.edge_count(), "edges");
  MILLRACE_RETURN_IF_ERROR(
      out.ForEachGroup(GroupBytes(), [&](const EdgeGroup& group) {
        MILLRACE_RETURN_IF_ERROR(lists->Write(group, nullptr));
        progress.Set(lists->edge_count());
        return absl::OkStatus();
      }));
  progress.Finish();
  return lists->Finish();
}

}  // namespace

absl::StatusOr<Relation> ImportRelation(const RelationImport& import,
                                        StoreWriter& store) {
  return RelationImporter(import, store).Run();
}

}  // namespace millrace
