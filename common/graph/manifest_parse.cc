// SPDX-License-Identifier: Apache-2.0
// Checks every value of store.json before it is used.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/manifest.h"
#include "common/graph/manifest_checks.h"
#include "common/graph/manifest_checksum.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

// ---- Single values ----

absl::Status ParseError(std::string_view what) {
  return absl::DataLossError(std::string(what));
}

absl::StatusOr<const Json*> Member(const Json& object, const char* key) {
  if (!object.is_object()) return ParseError("expected an object");
  const auto member = object.find(key);
  if (member == object.end()) {
    return ParseError(absl::StrCat("'", key, "' is missing"));
  }
  return &*member;
}

absl::Status Take(const Json& json, int64_t& value) {
  if (!json.is_number_integer()) return ParseError("expected a whole number");
  if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{INT64_MAX}) {
    return ParseError("a number exceeds 63 bits");
  }
  value = json.get<int64_t>();
  return absl::OkStatus();
}

absl::Status Take(const Json& json, uint64_t& value) {
  if (!json.is_number_unsigned()) {
    return ParseError("expected a whole number >= 0");
  }
  value = json.get<uint64_t>();
  return absl::OkStatus();
}

absl::Status Take(const Json& json, bool& value) {
  if (!json.is_boolean()) return ParseError("expected true or false");
  value = json.get<bool>();
  return absl::OkStatus();
}

absl::Status Take(const Json& json, std::string& value) {
  if (!json.is_string()) return ParseError("expected a string");
  value = json.get_ref<const std::string&>();
  return absl::OkStatus();
}

template <typename T>
absl::Status Take(const Json& json, std::vector<T>& values) {
  if (!json.is_array()) return ParseError("expected a list");
  values.clear();
  for (const Json& item : json) {
    MILLRACE_RETURN_IF_ERROR(Take(item, values.emplace_back()));
  }
  return absl::OkStatus();
}

absl::Status Take(const Json& json, ColumnSpec& column);
absl::Status Take(const Json& json, ListTime& time);

template <typename T>
absl::Status Get(const Json& object, const char* key, T& value) {
  MILLRACE_ASSIGN_OR_RETURN(const Json* member, Member(object, key));
  absl::Status status = Take(*member, value);
  if (status.ok()) return status;
  return ParseError(absl::StrCat("'", key, "': ", status.message()));
}

absl::Status Take(const Json& json, ColumnSpec& column) {
  if (json.is_null()) return absl::OkStatus();
  std::string dtype;
  MILLRACE_RETURN_IF_ERROR(Get(json, "dtype", dtype));
  MILLRACE_ASSIGN_OR_RETURN(column.dtype, DTypeFromName(dtype));
  if (!column.present()) return ParseError("dtype none");
  return Get(json, "shape", column.row_shape);
}

absl::Status Take(const Json& json, ListTime& time) {
  if (json.is_null()) {
    time = ListTime::kNone;
  } else if (json == "edge") {
    time = ListTime::kEdge;
  } else if (json == "neighbor") {
    time = ListTime::kNeighbor;
  } else {
    return ParseError("expected \"edge\", \"neighbor\" or null");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ParseHex16(std::string_view digits) {
  uint64_t value = 0;
  if (digits.size() != kNoChecksum.size()) {
    return ParseError("expected 16 hex digits");
  }
  for (const char c : digits) {
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && !(c >= 'a' && c <= 'f')) {
      return ParseError("expected 16 hex digits");
    }
    value =
        value << 4 | static_cast<uint64_t>(decimal ? c - '0' : c - 'a' + 10);
  }
  return value;
}

absl::StatusOr<FileInfo> ParseFile(const Json& json) {
  FileInfo file;
  std::string xxh3;
  MILLRACE_RETURN_IF_ERROR(Get(json, "path", file.path));
  MILLRACE_RETURN_IF_ERROR(Get(json, "bytes", file.bytes));
  MILLRACE_RETURN_IF_ERROR(Get(json, "xxh3", xxh3));
  MILLRACE_ASSIGN_OR_RETURN(file.xxh3, ParseHex16(xxh3));
  return file;
}

absl::Status ParseType(const Json& json, Manifest& manifest) {
  NodeType type;
  std::string id_dtype;
  std::vector<uint64_t> offsets;
  MILLRACE_RETURN_IF_ERROR(Get(json, "name", type.name));
  MILLRACE_RETURN_IF_ERROR(Get(json, "count", type.count));
  MILLRACE_RETURN_IF_ERROR(Get(json, "offsets", offsets));
  MILLRACE_RETURN_IF_ERROR(Get(json, "id_dtype", id_dtype));
  MILLRACE_RETURN_IF_ERROR(Get(json, "feature", type.feature));
  MILLRACE_RETURN_IF_ERROR(Get(json, "label", type.label));
  MILLRACE_RETURN_IF_ERROR(Get(json, "time", type.has_time));
  MILLRACE_RETURN_IF_ERROR(Get(json, "hotness", type.has_hotness));
  if (id_dtype != DTypeName(type.id_dtype())) {
    return ParseError(absl::StrCat("id_dtype '", absl::CHexEscape(id_dtype),
                                   "' does not fit ", type.count, " nodes"));
  }
  // PartitionBook needs at least two.
  if (offsets.size() < 2) {
    return ParseError("'offsets' has fewer than two numbers");
  }
  manifest.books.emplace_back(std::move(offsets));
  manifest.schema.node_types.push_back(std::move(type));
  return absl::OkStatus();
}

absl::Status ParseRelation(const Json& json, Schema& schema) {
  Relation relation;
  std::string src;
  std::string dst;
  MILLRACE_RETURN_IF_ERROR(Get(json, "src", src));
  MILLRACE_RETURN_IF_ERROR(Get(json, "dst", dst));
  MILLRACE_ASSIGN_OR_RETURN(relation.src, schema.FindType(src));
  MILLRACE_ASSIGN_OR_RETURN(relation.dst, schema.FindType(dst));
  MILLRACE_RETURN_IF_ERROR(Get(json, "name", relation.name));
  MILLRACE_RETURN_IF_ERROR(Get(json, "edges", relation.edge_count));
  MILLRACE_RETURN_IF_ERROR(Get(json, "max_edge_id", relation.max_edge_id));
  MILLRACE_RETURN_IF_ERROR(Get(json, "in", relation.has_in));
  MILLRACE_RETURN_IF_ERROR(Get(json, "out", relation.has_out));
  MILLRACE_RETURN_IF_ERROR(Get(json, "weight", relation.has_weight));
  MILLRACE_RETURN_IF_ERROR(Get(json, "time", relation.time));
  MILLRACE_RETURN_IF_ERROR(Get(json, "type", relation.has_type));
  MILLRACE_RETURN_IF_ERROR(Get(json, "feature", relation.feature));
  schema.relations.push_back(std::move(relation));
  return absl::OkStatus();
}

// Reads the members that node splits and edge splits have in common.
template <typename Split>
absl::Status ParseSeeds(const Json& json, Split& split) {
  MILLRACE_RETURN_IF_ERROR(Get(json, "name", split.name));
  MILLRACE_RETURN_IF_ERROR(Get(json, "count", split.count));
  split.identity.within_store = !json.contains("fingerprint");
  if (!split.identity.within_store) {
    MILLRACE_RETURN_IF_ERROR(
        Get(json, "fingerprint", split.identity.fingerprint));
  }
  return Get(json, "part_counts", split.part_counts);
}

absl::Status ParseSplit(const Json& json, Manifest& manifest) {
  SplitInfo split;
  std::string type;
  MILLRACE_RETURN_IF_ERROR(Get(json, "type", type));
  MILLRACE_ASSIGN_OR_RETURN(split.type, manifest.schema.FindType(type));
  MILLRACE_RETURN_IF_ERROR(ParseSeeds(json, split));
  manifest.splits.push_back(std::move(split));
  return absl::OkStatus();
}

absl::Status ParseEdgeSplit(const Json& json, Manifest& manifest) {
  EdgeSplitInfo split;
  std::string relation;
  MILLRACE_RETURN_IF_ERROR(Get(json, "relation", relation));
  MILLRACE_ASSIGN_OR_RETURN(split.relation,
                            manifest.schema.FindRelation(relation));
  MILLRACE_RETURN_IF_ERROR(ParseSeeds(json, split));
  MILLRACE_RETURN_IF_ERROR(Get(json, "edge_id", split.has_edge_id));
  MILLRACE_RETURN_IF_ERROR(Get(json, "time", split.has_time));
  MILLRACE_RETURN_IF_ERROR(Get(json, "edge_type", split.has_edge_type));
  MILLRACE_RETURN_IF_ERROR(Get(json, "label", split.label));
  MILLRACE_RETURN_IF_ERROR(Get(json, "negatives", split.negatives));
  manifest.edge_splits.push_back(std::move(split));
  return absl::OkStatus();
}

absl::StatusOr<PartitioningInfo> ParsePartitioning(const Json& json) {
  PartitioningInfo partitioning;
  MILLRACE_RETURN_IF_ERROR(Get(json, "method", partitioning.method));
  MILLRACE_RETURN_IF_ERROR(Get(json, "seed", partitioning.seed));
  MILLRACE_RETURN_IF_ERROR(Get(json, "hot", partitioning.hot));
  if (json.contains("cut_edges")) {
    MILLRACE_RETURN_IF_ERROR(Get(json, "cut_edges", partitioning.cut_edges));
  }
  return partitioning;
}

// Calls parse(item) for each item of a list; an error says which item it was.
template <typename Parse>
absl::Status ForEach(const Json& root, const char* key, const Parse& parse) {
  MILLRACE_ASSIGN_OR_RETURN(const Json* list, Member(root, key));
  if (!list->is_array()) {
    return ParseError(absl::StrCat("'", key, "' is not a list"));
  }
  size_t index = 0;
  for (const Json& item : *list) {
    const absl::Status status = parse(item);
    if (!status.ok()) {
      return ParseError(
          absl::StrCat("'", key, "'[", index, "]: ", status.message()));
    }
    ++index;
  }
  return absl::OkStatus();
}

// Called before the checksum is checked, since another version may compute it
// differently.
absl::StatusOr<int> ReadVersion(const Json& root) {
  std::string format;
  int64_t version = 0;
  MILLRACE_RETURN_IF_ERROR(Get(root, "format", format));
  MILLRACE_RETURN_IF_ERROR(Get(root, "version", version));
  if (format != kStoreFormat) {
    return ParseError(absl::StrCat("'format' is '", absl::CHexEscape(format),
                                   "', not '", std::string(kStoreFormat), "'"));
  }
  if (version >= kOldestStoreVersion && version <= kStoreVersion) {
    return static_cast<int>(version);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("store version ", version, "; this program reads versions ",
                   kOldestStoreVersion, " to ", kStoreVersion,
                   version > kStoreVersion ? ", use a newer one"
                                           : ", import and partition again"));
}

absl::StatusOr<Manifest> ParseContent(const Json& root) {
  Manifest manifest;
  int64_t sampling_version = 0;
  int64_t parts = 0;
  MILLRACE_RETURN_IF_ERROR(Get(root, "sampling_version", sampling_version));
  if (sampling_version != kSamplingVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "sampling version ", sampling_version, "; this program has ",
        kSamplingVersion, ", import and partition again"));
  }
  MILLRACE_RETURN_IF_ERROR(Get(root, "uuid", manifest.uuid));
  MILLRACE_RETURN_IF_ERROR(Get(root, "fingerprint", manifest.fingerprint));
  manifest.dataset_fingerprint = manifest.fingerprint;
  if (root.contains("dataset_fingerprint")) {
    MILLRACE_RETURN_IF_ERROR(
        Get(root, "dataset_fingerprint", manifest.dataset_fingerprint));
  }
  MILLRACE_RETURN_IF_ERROR(Get(root, "parts", parts));
  MILLRACE_ASSIGN_OR_RETURN(const Json* partitioning,
                            Member(root, "partitioning"));
  MILLRACE_ASSIGN_OR_RETURN(manifest.partitioning,
                            ParsePartitioning(*partitioning));
  MILLRACE_RETURN_IF_ERROR(ForEach(
      root, "node_types",
      [&manifest](const Json& item) { return ParseType(item, manifest); }));
  MILLRACE_RETURN_IF_ERROR(
      ForEach(root, "relations", [&manifest](const Json& item) {
        return ParseRelation(item, manifest.schema);
      }));
  MILLRACE_RETURN_IF_ERROR(ForEach(
      root, "splits",
      [&manifest](const Json& item) { return ParseSplit(item, manifest); }));
  if (root.contains("edge_splits")) {
    MILLRACE_RETURN_IF_ERROR(
        ForEach(root, "edge_splits", [&manifest](const Json& item) {
          return ParseEdgeSplit(item, manifest);
        }));
  }
  MILLRACE_RETURN_IF_ERROR(
      Get(root, "neighbor_original_ids", manifest.neighbor_original_ids));
  MILLRACE_RETURN_IF_ERROR(
      ForEach(root, "files", [&manifest](const Json& item) -> absl::Status {
        MILLRACE_ASSIGN_OR_RETURN(FileInfo file, ParseFile(item));
        manifest.files.push_back(std::move(file));
        return absl::OkStatus();
      }));
  if (parts != manifest.partition_count()) {
    return ParseError(absl::StrCat("'parts' is ", parts,
                                   ", but the offsets describe ",
                                   manifest.partition_count(), " partitions"));
  }
  return manifest;
}

// Checks the fingerprint in a split's entry, or fills it in if there is none.
template <typename Split>
absl::Status TakeFingerprint(const SplitFingerprints& fingerprints,
                             const std::string& folder, Split& split) {
  const auto actual = fingerprints.find(folder);
  if (actual == fingerprints.end()) {
    return ParseError(absl::StrCat("no file of ", folder, " is listed"));
  }
  if (split.identity.within_store) {
    split.identity.fingerprint = actual->second;
  }
  if (split.identity.fingerprint == actual->second) return absl::OkStatus();
  return ParseError(
      absl::StrCat("the fingerprint of ", folder, " is not that of its files"));
}

absl::Status TakeFingerprints(Manifest& manifest) {
  const SplitFingerprints actual = ComputeSplitFingerprints(manifest.files);
  for (SplitInfo& split : manifest.splits) {
    MILLRACE_RETURN_IF_ERROR(
        TakeFingerprint(actual, SplitFolder(manifest.schema, split), split));
  }
  for (EdgeSplitInfo& split : manifest.edge_splits) {
    MILLRACE_RETURN_IF_ERROR(
        TakeFingerprint(actual, SplitFolder(manifest.schema, split), split));
  }
  if (manifest.fingerprint == ComputeFingerprint(manifest)) {
    return absl::OkStatus();
  }
  return ParseError("the fingerprint is not that of the list of files");
}

absl::StatusOr<Manifest> ParseAll(std::string_view json) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return ParseError("not JSON");
  MILLRACE_ASSIGN_OR_RETURN(const int version, ReadVersion(root));
  MILLRACE_RETURN_IF_ERROR(VerifyChecksum(json));
  MILLRACE_ASSIGN_OR_RETURN(Manifest manifest, ParseContent(root));
  manifest.version = version;
  MILLRACE_RETURN_IF_ERROR(ValidateManifest(manifest));
  MILLRACE_RETURN_IF_ERROR(TakeFingerprints(manifest));
  return manifest;
}

}  // namespace

absl::StatusOr<Manifest> ParseManifest(std::string_view json,
                                       std::string_view origin) {
  absl::StatusOr<Manifest> manifest = ParseAll(json);
  if (manifest.ok()) return manifest;
  const absl::Status& status = manifest.status();
  const absl::StatusCode code =
      status.code() == absl::StatusCode::kFailedPrecondition
          ? status.code()
          : absl::StatusCode::kDataLoss;
  return absl::Status(
      code, absl::StrCat(std::string(origin), ": ", status.message()));
}

}  // namespace millrace
