// SPDX-License-Identifier: Apache-2.0
// The names of the files that importers read. Inputs of import_fuzz.cc refer to
// them by number, and make_corpus.py reads these lists, so append new ones at
// the end.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace::fuzz {

enum class ImportFormat : uint8_t {
  kNpy = 0,
  kOgb = 1,
  kTu = 2,
  kTriples = 3,
  kReddit = 4,
  kPyg = 5,
  kGlt = 6,
};
inline constexpr int kImportFormats = 7;

// clang-format off: make_corpus.py needs one row per list.
inline constexpr auto kNpyFiles = std::to_array<std::string_view>(
    {"edges.npy", "features.npy", "labels.npy", "times.npy", "edge_weights.npy",
     "edge_times.npy", "train.npy", "test.npy"});
inline constexpr auto kOgbFiles = std::to_array<std::string_view>(
    {"raw/edge.csv",
     "raw/num-node-list.csv",
     "raw/num-edge-list.csv",
     "raw/node-feat.csv",
     "raw/node-label.csv",
     "raw/node_year.csv",
     "raw/edge-feat.csv",
     "raw/edge_weight.csv",
     "raw/edge_reltype.csv",
     "split/random/train.csv",
     "split/random/valid.csv",
     "split/random/test.csv",
     "raw/triplet-type-list.csv",
     "raw/num-node-dict.csv",
     "raw/nodetype-has-feat.csv",
     "raw/nodetype-has-label.csv",
     "raw/node-feat/a/node-feat.csv",
     "raw/node-label/a/node-label.csv",
     "raw/relations/a___to___b/edge.csv",
     "raw/relations/a___to___b/num-edge-list.csv",
     "raw/data.npz",
     "raw/node-label.npz"});
inline constexpr auto kTuFiles = std::to_array<std::string_view>(
    {"DS_A.txt", "DS_graph_indicator.txt", "DS_graph_labels.txt",
     "DS_node_labels.txt", "DS_node_attributes.txt", "DS_edge_labels.txt",
     "DS_edge_attributes.txt", "DS_graph_attributes.txt"});
inline constexpr auto kTriplesFiles = std::to_array<std::string_view>(
    {"train.txt", "valid.txt", "test.txt", "raw/num-node-list.csv",
     "raw/num-relation-list.csv", "split/a/train.csv", "split/a/valid.csv",
     "split/a/test.csv"});
inline constexpr auto kRedditFiles =
    std::to_array<std::string_view>({"reddit_data.npz", "reddit_graph.npz"});
inline constexpr auto kPygFiles = std::to_array<std::string_view>(
    {"META.json", "node_map.pt", "edge_map.pt", "part_0/graph.pt",
     "part_0/node_feats.pt", "part_0/edge_feats.pt", "part_1/graph.pt",
     "part_1/node_feats.pt", "part_1/edge_feats.pt", "../DS-label/label.pt",
     "../DS-train-partitions/partition0.pt"});
inline constexpr auto kGltFiles = std::to_array<std::string_view>(
    {"META", "node_pb.pt", "edge_pb.pt", "part0/graph/rows.pt",
     "part0/graph/cols.pt", "part0/graph/eids.pt", "part0/graph/weights.pt",
     "part0/node_feat/ids.pkl", "part0/node_feat/feats.pkl",
     "part0/edge_feat/ids.pkl", "part0/edge_feat/feats.pkl",
     "part1/graph/rows.pt", "part1/graph/cols.pt", "part1/graph/eids.pt",
     "graph/rows.pt", "graph/cols.pt", "../DS-label/label.pt"});
// clang-format on

inline std::span<const std::string_view> ImportFiles(ImportFormat format) {
  switch (format) {
    case ImportFormat::kNpy:
      return kNpyFiles;
    case ImportFormat::kOgb:
      return kOgbFiles;
    case ImportFormat::kTu:
      return kTuFiles;
    case ImportFormat::kTriples:
      return kTriplesFiles;
    case ImportFormat::kReddit:
      return kRedditFiles;
    case ImportFormat::kPyg:
      return kPygFiles;
    default:
      return kGltFiles;
  }
}

}  // namespace millrace::fuzz
