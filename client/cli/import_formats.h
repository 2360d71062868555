// SPDX-License-Identifier: Apache-2.0
// The formats that `millrace import` reads, with their options.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ingest/formats/fake.h"
#include "common/ingest/formats/triples.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// The options as they were given.
struct ImportFlags {
  ImportOptions options;
  std::string self_loops = "keep";
  std::string normalize_features = "none";
  std::string edge_split_by = "random";
  std::string target;
  bool json = false;

  FakeInput fake;

  std::string directory;
  std::string ogb_split;
  std::string node_features = "default";
  std::string label_type;
  std::string assignment_out;

  TriplesInput triples;  // all but directory and split
  std::string names_out;

  std::vector<std::string> edges, node_counts;
  std::vector<std::string> features, labels, node_times;
  std::vector<std::string> edge_weights, edge_times, edge_types, edge_features;
  std::vector<std::string> train, valid, test;
};

struct ImportFormat {
  const char* name;
  const char* help;
  const char* example;  // follows `millrace import`
  // Adds the options that only this format has.
  void (*add_options)(CLI::App& command, ImportFlags& flags);
  // Opens the input's graph.
  absl::StatusOr<RawGraph> (*open)(const ImportFlags& flags);
};

// All formats, in the order of --help.
std::span<const ImportFormat> ImportFormats();

}  // namespace millrace
