// SPDX-License-Identifier: Apache-2.0
#include "client/cli/import_formats.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/words.h"
#include "common/ingest/formats/glt.h"
#include "common/ingest/formats/npy_graph.h"
#include "common/ingest/formats/ogb.h"
#include "common/ingest/formats/partition_folder.h"
#include "common/ingest/formats/pyg.h"
#include "common/ingest/formats/reddit.h"
#include "common/ingest/formats/tu.h"

namespace millrace {
namespace {

const std::map<std::string, TuFeatures> kTuFeatures = {
    {"default", TuFeatures::kDefault},
    {"ones", TuFeatures::kOnes},
    {"degree", TuFeatures::kDegree},
    {"labels", TuFeatures::kLabels},
    {"attributes", TuFeatures::kAttributes}};

// "NAME=FILE" or "FILE" (NAME is "").
std::pair<std::string, std::string> SplitName(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

absl::StatusOr<NamedFiles> ParseFiles(const std::string& option,
                                      const std::vector<std::string>& texts) {
  NamedFiles files;
  for (const std::string& text : texts) {
    const auto [name, path] = SplitName(text);
    if (!files.emplace(name, path).second) {
      return UsageError(StrCat(option, " ", text, ": given twice for ",
                               name.empty() ? "the same type" : name));
    }
  }
  return files;
}

// Assigns seeds without a name to the only type with labels.
void NameSeeds(NpyInput& input) {
  if (input.labels.size() != 1 || input.labels.contains("")) return;
  const std::string& type = input.labels.begin()->first;
  for (NamedFiles* seeds : {&input.train, &input.valid, &input.test}) {
    if (!seeds->contains("") || seeds->contains(type)) continue;
    auto file = seeds->extract("");
    file.key() = type;
    LogInfo(StrCat("the seeds of ", file.mapped().string(), " are of type ",
                   type, ", the only one with labels"));
    seeds->insert(std::move(file));
  }
}

absl::StatusOr<NpyInput> ParseNpyInput(const ImportFlags& flags) {
  NpyInput input;
  for (const std::string& text : flags.edges) {
    input.edges.push_back(SplitName(text));
  }
  for (const std::string& text : flags.node_counts) {
    const auto [name, number] = SplitName(text);
    int64_t count = 0;
    if (!absl::SimpleAtoi(number, &count) || count < 0) {
      return UsageError(StrCat("--num-nodes ", text, ": give N or TYPE=N"));
    }
    input.node_counts[name] = count;
  }
  const std::pair<const char*,
                  std::pair<const std::vector<std::string>*, NamedFiles*>>
      columns[] = {
          {"--features", {&flags.features, &input.features}},
          {"--labels", {&flags.labels, &input.labels}},
          {"--node-times", {&flags.node_times, &input.node_times}},
          {"--edge-weights", {&flags.edge_weights, &input.edge_weights}},
          {"--edge-times", {&flags.edge_times, &input.edge_times}},
          {"--edge-types", {&flags.edge_types, &input.edge_types}},
          {"--edge-features", {&flags.edge_features, &input.edge_features}},
          {"--train", {&flags.train, &input.train}},
          {"--valid", {&flags.valid, &input.valid}},
          {"--test", {&flags.test, &input.test}}};
  for (const auto& [option, column] : columns) {
    MILLRACE_ASSIGN_OR_RETURN(*column.second,
                              ParseFiles(option, *column.first));
  }
  NameSeeds(input);
  return input;
}

absl::StatusOr<RawGraph> OpenOgbFromFlags(const ImportFlags& flags) {
  OgbInput input;
  input.directory = flags.directory;
  input.split = flags.ogb_split;
  if (!input.split.empty() && flags.options.makes_splits()) {
    return UsageError(
        "--split takes the folder's split, which --split-fractions and "
        "--folds replace; leave one of the two out");
  }
  MILLRACE_ASSIGN_OR_RETURN(input.features,
                            ParseFiles("--features", flags.features));
  return OpenOgb(input, flags.options);
}

absl::StatusOr<RawGraph> OpenNpyFromFlags(const ImportFlags& flags) {
  MILLRACE_ASSIGN_OR_RETURN(const NpyInput input, ParseNpyInput(flags));
  return OpenNpy(input);
}

absl::StatusOr<RawGraph> OpenRedditFromFlags(const ImportFlags& flags) {
  return OpenReddit(flags.directory, flags.options);
}

PartitionFolderInput ParsePartitionFolder(const ImportFlags& flags) {
  PartitionFolderInput input;
  input.directory = flags.directory;
  input.type = flags.label_type;
  // Scratch files go next to the dataset. Several columns are restored at the
  // same time, while edges wait in memory too.
  input.restore.scratch = std::filesystem::absolute(flags.target).parent_path();
  input.restore.memory_bytes = flags.options.memory_bytes / 16;
  return input;
}

absl::StatusOr<RawGraph> OpenPygFromFlags(const ImportFlags& flags) {
  return OpenPygPartitions(ParsePartitionFolder(flags), flags.options);
}

absl::StatusOr<RawGraph> OpenGltFromFlags(const ImportFlags& flags) {
  return OpenGltPartitions(ParsePartitionFolder(flags), flags.options);
}

absl::StatusOr<RawGraph> MakeFakeFromFlags(const ImportFlags& flags) {
  return MakeFake(flags.fake);
}

absl::StatusOr<RawGraph> OpenTriplesFromFlags(const ImportFlags& flags) {
  TriplesInput input = flags.triples;
  input.directory = flags.directory;
  input.split = flags.ogb_split;
  return OpenTriples(input);
}

absl::StatusOr<RawGraph> OpenTuFromFlags(const ImportFlags& flags) {
  return OpenTu({flags.directory, kTuFeatures.at(flags.node_features)},
                flags.options);
}

void AddFiles(CLI::App& command, const char* option,
              std::vector<std::string>& files, const char* help) {
  command.add_option(option, files, help)
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
}

void AddDirectory(CLI::App& command, ImportFlags& flags, const char* help) {
  command.add_option("DIR", flags.directory, help)->required();
}

void AddSplitFolder(CLI::App& command, ImportFlags& flags) {
  command
      .add_option("--split", flags.ogb_split,
                  "folder under split/; needed if there are several")
      ->type_name("NAME");
}

void AddOgb(CLI::App& command, ImportFlags& flags) {
  AddDirectory(command, flags, "the folder with raw/");
  AddSplitFolder(command, flags);
  AddFiles(command, "--features", flags.features,
           "node features (.npy) instead of the folder's, TYPE=FILE if there "
           "are several types; repeatable");
}

void AddNpy(CLI::App& command, ImportFlags& flags) {
  AddFiles(command, "--edges", flags.edges,
           "integers [2, E] (sources, destinations) or [E, 2]; "
           "SRC__NAME__DST=FILE for each of several relations");
  command.get_option("--edges")->required();
  command
      .add_option("--num-nodes", flags.node_counts,
                  "number of nodes of a type, if not all of them have "
                  "features, labels or edges")
      ->type_name("[TYPE=]N")
      ->allow_extra_args(false);
  AddFiles(command, "--features", flags.features, "node features [n, d]");
  AddFiles(command, "--labels", flags.labels,
           "node labels [n] or [n, k]: integers, or floats (NaN: none)");
  AddFiles(command, "--node-times", flags.node_times, "integers [n]");
  AddFiles(command, "--edge-weights", flags.edge_weights, "floats [E]");
  AddFiles(command, "--edge-times", flags.edge_times, "integers [E]");
  AddFiles(command, "--edge-types", flags.edge_types, "integers [E]");
  AddFiles(command, "--edge-features", flags.edge_features, "floats [E, d]");
  const char* seeds =
      "Seeds: node ids or a bool mask [n]; with SRC__NAME__DST=FILE edge ids, "
      "a bool mask [E] or pairs of nodes [n, 2]";
  AddFiles(command, "--train", flags.train, seeds);
  AddFiles(command, "--valid", flags.valid, seeds);
  AddFiles(command, "--test", flags.test, seeds);
}

void AddTu(CLI::App& command, ImportFlags& flags) {
  AddDirectory(command, flags, "the folder with DS_A.txt (or .txt.gz)");
  command
      .add_option("--node-features", flags.node_features,
                  "ones, degree (one-hot in-degree), labels (one-hot node "
                  "labels) or attributes; default: labels if the "
                  "collection has them, otherwise ones")
      ->check(OneOf(kTuFeatures));
}

void AddTriples(CLI::App& command, ImportFlags& flags) {
  AddDirectory(command, flags,
               "a folder with names in train.txt, valid.txt and test.txt (or "
               ".tsv, .csv), or with numbers in split/NAME/*.csv and raw/; "
               "all may be gzipped");
  command
      .add_option("--columns", flags.triples.columns,
                  "columns of a line: h (head), r (relation), t (tail)")
      ->transform(CommaList())
      ->type_name("COLUMNS");
  command.add_flag("--reciprocal", flags.triples.reciprocal,
                   "append the triple (t, r + R, h) for each (h, r, t) of "
                   "train, where R is the number of relations");
  AddSplitFolder(command, flags);
  command
      .add_option("--names-out", flags.names_out,
                  "folder for entities.txt and relations.txt: the names, "
                  "number 0 in the first line")
      ->type_name("DIR");
}

void AddReddit(CLI::App& command, ImportFlags& flags) {
  AddDirectory(command, flags,
               "the folder with reddit_data.npz and reddit_graph.npz");
}

void AddPartitions(CLI::App& command, ImportFlags& flags) {
  AddDirectory(command, flags,
               "the partitioner's folder; if it is named DS-partitions, labels "
               "and splits are taken from DS-label/ and DS-*-partitions/ "
               "beside it");
  command
      .add_option("--type", flags.label_type,
                  "node type of the labels and splits, if several types have "
                  "that many nodes")
      ->type_name("TYPE");
  command
      .add_option("--assignment-out", flags.assignment_out,
                  "where to write the partition of each node, for "
                  "`millrace partition --method given`: a .npy file, or a "
                  "folder of TYPE.npy if there are several types")
      ->type_name("FILE");
}

void AddFake(CLI::App& command, ImportFlags& flags) {
  FakeInput& input = flags.fake;
  command.add_option("--nodes", input.nodes, "number of nodes")->required();
  command.add_option("--avg-degree", input.average_degree, "edges per node")
      ->required();
  command.add_option("--features", input.features, "features of a node")
      ->required();
  command.add_option("--classes", input.classes, "number of classes")
      ->required();
  command.add_option("--seed", input.seed, "seed for the random numbers");
  flags.options.split_fractions = {0.8, 0.1, 0.1};
}

constexpr ImportFormat kFormats[] = {
    {"ogb", "a folder in OGB's raw layout: raw/ (CSV or binary), split/NAME/",
     "ogb tests/data/cora --split public --out cora", &AddOgb,
     &OpenOgbFromFlags},
    {"npy", "arrays in .npy files",
     "npy --edges edges.npy --features x.npy --labels y.npy \\\n"
     "      --train train.npy --valid valid.npy --test test.npy --out graph",
     &AddNpy, &OpenNpyFromFlags},
    {"tu", "a collection of small graphs in TU Dortmund's format",
     "tu tests/data/mutag --folds 10 --out mutag", &AddTu, &OpenTuFromFlags},
    {"triples", "a knowledge graph: triples of head, relation and tail",
     "triples FB15k-237 --reciprocal --out fb15k", &AddTriples,
     &OpenTriplesFromFlags},
    {"reddit", "the Reddit data set as DGL and PyG ship it",
     "reddit reddit/raw --out reddit.store", &AddReddit, &OpenRedditFromFlags},
    {"pyg-partitions",
     "a folder written by torch_geometric.distributed.Partitioner",
     "pyg-partitions products-partitions \\\n"
     "      --assignment-out parts.npy --out products",
     &AddPartitions, &OpenPygFromFlags},
    {"glt-partitions",
     "a folder written by GraphLearn-for-PyTorch's partitioners",
     "glt-partitions products-partitions \\\n"
     "      --assignment-out parts.npy --out products",
     &AddPartitions, &OpenGltFromFlags},
    {"fake", "random numbers that a model can learn from",
     "fake --nodes 10000 --avg-degree 8 --features 32 --classes 4 \\\n"
     "      --out fake",
     &AddFake, &MakeFakeFromFlags}};

}  // namespace

std::span<const ImportFormat> ImportFormats() { return kFormats; }

}  // namespace millrace
