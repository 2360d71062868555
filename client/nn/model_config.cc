// SPDX-License-Identifier: Apache-2.0
#include "client/nn/model_config.h"

#include <algorithm>
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

absl::Status AtLeastOne(const char* option, int64_t value) {
  if (value >= 1) return absl::OkStatus();
  return UsageError(
      StrCat(option, " is ", value, "\nuse a number of at least 1"));
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
    return UsageError(
        "--model embedding has no layers, and learns edges alone\nuse "
        "--task link, or another --model");
  }
  const ModelKindInfo& info = InfoOf(config.kind);
  if (info.one_relation_only && !shape.homogeneous()) {
    return UnservedError(
        StrCat("--model ", info.name,
               " needs one node type and one relation, but the graph has ",
               shape.types.size(), " and ", shape.relations.size(),
               "\nuse --model ", KindsForAnyGraph()));
  }
  return absl::OkStatus();
}

absl::Status ValidateWidths(const ModelConfig& config) {
  const bool embedding = config.kind == ModelKind::kEmbedding;
  if (embedding && config.layers != 0) {
    return UsageError(
        StrCat("--layers is ", config.layers,
               ", but --model embedding has none\nleave out --layers"));
  }
  if (!embedding) {
    MILLRACE_RETURN_IF_ERROR(AtLeastOne("--layers", config.layers));
  }
  if (config.layers > kMaxLayers) {
    return UsageError(StrCat("--layers is ", config.layers,
                             "\nuse a number of at most ", kMaxLayers));
  }
  MILLRACE_RETURN_IF_ERROR(AtLeastOne("--hidden", config.hidden));
  if (config.hidden > kMaxRowValues) {
    return UsageError(StrCat("--hidden is ", config.hidden,
                             "\nuse a number of at most ", kMaxRowValues));
  }
  MILLRACE_RETURN_IF_ERROR(AtLeastOne("--heads", config.heads));
  if (InfoOf(config.kind).reads_heads && config.hidden % config.heads != 0) {
    return UsageError(StrCat("--heads ", config.heads,
                             " does not divide --hidden ", config.hidden,
                             "\nuse a multiple of --heads for --hidden"));
  }
  if (config.gin_mlp != 1 && config.gin_mlp != 2) {
    return UsageError(StrCat("--gin-mlp is ", config.gin_mlp, "\nuse 1 or 2"));
  }
  if (config.bases < 0) {
    return UsageError(StrCat("--num-bases is ", config.bases,
                             "\nuse 0 (none) or a positive number"));
  }
  if (!(config.dropout >= 0.0 && config.dropout < 1.0)) {
    return UsageError(
        StrCat("--dropout is ", config.dropout, ", not in [0, 1)"));
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
    return absl::InvalidArgumentError(
        StrCat("no relation leads to the seeds' node type ",
               shape.types[shape.seed_type].name,
               "\nuse --direction out, or import with --add-reverse"));
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
  return absl::ResourceExhaustedError(
      StrCat("node types without features have ", learned, " nodes (",
             largest->name, ": ", largest->count, "), and embeddings of ",
             config.hidden, " columns for them would be more than ",
             kMaxEmbeddingValues, " values\nimport features (--features ",
             largest->name, "=F.npy) or use a smaller --hidden"));
}

}  // namespace

absl::Status ValidateModel(const ModelConfig& config, const GraphShape& shape) {
  MILLRACE_RETURN_IF_ERROR(ValidateKind(config, shape));
  MILLRACE_RETURN_IF_ERROR(ValidateWidths(config));
  return ValidateShape(config, shape);
}

}  // namespace millrace
