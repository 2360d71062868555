// SPDX-License-Identifier: Apache-2.0
#include "client/nn/model_config.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/schema.h"

namespace millrace {
namespace {

// Learned embeddings are exchanged and updated as a whole in each step, and
// exist six times (value, gradient, exchange, and the optimizer's state).
constexpr int64_t kMaxEmbeddingValues = int64_t{1} << 27;

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

absl::Status CheckRange(const char* field, int64_t value, int64_t least,
                        int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidField({.problem = FieldError::Problem::kOutOfRange,
                       .field = field,
                       .value = StrCat(value),
                       .limit = most == kNoLimit
                                    ? StrCat("at least ", least)
                                    : StrCat(least, " to ", most)});
}

// The kinds with layers for graphs of several types or relations.
std::string KindsForAnyGraph() {
  std::vector<std::string> names;
  for (const ModelKindInfo& info : kModelKinds) {
    const bool layers = info.make_conv != nullptr || info.make_layer != nullptr;
    if (layers && !info.one_relation_only) names.emplace_back(info.name);
  }
  const std::string last = std::move(names.back());
  names.pop_back();
  return StrCat(absl::StrJoin(names, ", "), " or ", last);
}

absl::Status ValidateKind(const ModelConfig& config, const GraphShape& shape) {
  if (config.kind == ModelKind::kEmbedding &&
      config.decoder == DecoderKind::kNone) {
    return InvalidField({.problem = FieldError::Problem::kNeeds,
                         .field = "model",
                         .value = "embedding",
                         .other_field = "task",
                         .other_value = "link"});
  }
  const ModelKindInfo& info = InfoOf(config.kind);
  if (info.one_relation_only && !shape.homogeneous()) {
    return WithAdvice(
        FieldStatus(absl::StatusCode::kUnimplemented,
                    {.field = "model",
                     .value = std::string(info.name),
                     .limit = StrCat(
                         "needs one node type and one relation, but the "
                         "graph has ",
                         shape.types.size(), " and ", shape.relations.size())}),
        StrCat("use ", KindsForAnyGraph()));
  }
  return absl::OkStatus();
}

absl::Status ValidateWidths(const ModelConfig& config) {
  const bool embedding = config.kind == ModelKind::kEmbedding;
  if (embedding && config.layers != 0) {
    return WithAdvice(InvalidField({.field = "layers",
                                    .value = StrCat(config.layers),
                                    .limit = "the model embedding has none"}),
                      "leave it out");
  }
  if (!embedding) {
    MILLRACE_RETURN_IF_ERROR(
        CheckRange("layers", config.layers, 1, kMaxLayers));
  }
  MILLRACE_RETURN_IF_ERROR(
      CheckRange("hidden", config.hidden, 1, kMaxRowValues));
  MILLRACE_RETURN_IF_ERROR(CheckRange("heads", config.heads, 1, kNoLimit));
  if (InfoOf(config.kind).reads_heads && config.hidden % config.heads != 0) {
    return InvalidField({.field = "heads",
                         .value = StrCat(config.heads),
                         .limit = StrCat("does not divide the ", config.hidden,
                                         " hidden columns")},
                        Reason{"heads_do_not_divide"});
  }
  MILLRACE_RETURN_IF_ERROR(CheckRange("gin_mlp", config.gin_mlp, 1, 2));
  MILLRACE_RETURN_IF_ERROR(CheckRange("bases", config.bases, 0, kNoLimit));
  if (!(config.dropout >= 0.0 && config.dropout < 1.0)) {
    return InvalidField({.problem = FieldError::Problem::kOutOfRange,
                         .field = "dropout",
                         .value = StrCat(config.dropout),
                         .limit = "at least 0 and below 1"});
  }
  return absl::OkStatus();
}

// Checks that messages reach the nodes whose labels are learned; models of
// edges do not need that.
absl::Status ValidateReach(const GraphShape& shape) {
  const bool reached =
      std::any_of(shape.relations.begin(), shape.relations.end(),
                  [&](const GraphShape::Relation& relation) {
                    return relation.lists == shape.seed_type;
                  });
  if (!reached) {
    return WithReason(absl::InvalidArgumentError(
                          StrCat("no relation leads to the seeds' node type ",
                                 shape.types[shape.seed_type].name)),
                      Reason{"seeds_without_neighbors"});
  }
  return absl::OkStatus();
}

absl::Status ValidateShape(const ModelConfig& config, const GraphShape& shape) {
  if (config.decoder == DecoderKind::kNone) {
    const int64_t in = shape.homogeneous() ? shape.types[0].features : 1;
    if (in < 1 || config.out < 1) {
      return absl::InvalidArgumentError(
          StrCat("a model from ", in, " features to ", config.out,
                 " classes; both must be at least 1"));
    }
    MILLRACE_RETURN_IF_ERROR(ValidateReach(shape));
  }
  if (config.kind == ModelKind::kScript) return absl::OkStatus();
  int64_t learned = 0;
  const GraphShape::Type* largest = nullptr;
  const std::vector<bool> read = shape.NeededTypes(config.layers).front();
  for (size_t t = 0; t < read.size(); ++t) {
    const GraphShape::Type& type = shape.types[t];
    if (type.features > 0 || !read[t]) continue;
    learned += type.count;
    if (largest == nullptr || type.count > largest->count) largest = &type;
  }
  if (learned <= kMaxEmbeddingValues / config.hidden) return absl::OkStatus();
  return WithReason(
      absl::ResourceExhaustedError(
          StrCat("node types without features have ", learned, " nodes (",
                 largest->name, ": ", largest->count, "), and embeddings of ",
                 config.hidden, " columns for them would be more than ",
                 kMaxEmbeddingValues, " values")),
      Reason{"too_many_embeddings"});
}

}  // namespace

absl::Status ValidateModel(const ModelConfig& config, const GraphShape& shape) {
  MILLRACE_RETURN_IF_ERROR(ValidateKind(config, shape));
  MILLRACE_RETURN_IF_ERROR(ValidateWidths(config));
  return ValidateShape(config, shape);
}

}  // namespace millrace
