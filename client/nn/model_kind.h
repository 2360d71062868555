// SPDX-License-Identifier: Apache-2.0
// The kinds of models and what each of them needs. Options, their help, checks,
// messages and Model read it from the table here; docs/extending.md says how to
// add a layer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace millrace {

class Conv;
class Initializer;
class Layer;
class ParameterSet;
struct LayerSpec;

enum class ModelKind {
  kSage,
  kGat,
  kGatv2,
  kGcn,
  kGin,
  kRgcn,
  kEmbedding,
  kScript
};

// Makes a convolution over one relation, or a layer over all relations, and
// adds its tensors to the set.
using ConvMaker = std::unique_ptr<Conv>(const LayerSpec& spec,
                                        ParameterSet& parameters,
                                        Initializer& initializer);
using LayerMaker = std::unique_ptr<Layer>(const LayerSpec& spec,
                                          ParameterSet& parameters,
                                          Initializer& initializer);

// Each is defined in the file of its name: MakeSageConv in sage_conv.cc.
ConvMaker MakeSageConv, MakeGatConv, MakeGatv2Conv, MakeGcnConv, MakeGinConv;
LayerMaker MakeRgcnLayer;

// A row of the table.
struct ModelKindInfo {
  ModelKind kind;
  // The name, which the argument follows if there is one.
  std::string_view name;
  std::string_view argument = "";
  std::string_view note = "";  // what the help says about it

  // One of the two, or neither if the kind has no layers of ours.
  ConvMaker* make_conv = nullptr;
  LayerMaker* make_layer = nullptr;

  // Whether it works only on graphs of one node type and one relation.
  bool one_relation_only = false;
  // Whether it learns a matrix for each relation, so that users may expect it
  // to tell the types of a relation's edges apart.
  bool relational = false;
  // Whether each node of a homogeneous graph is once in its own list.
  bool self_loops = false;
  // Whether neighbours are weighted by degrees (GcnWeights).
  bool degree_weights = false;
  // Whether layers compute something for every source row, even unused ones.
  bool works_on_sources = false;

  // Fields of ModelConfig that it reads besides those that all layers read.
  bool reads_heads = false;  // which must divide `hidden`
  bool reads_aggr = false;
  bool reads_num_bases = false;
  bool reads_gin_mlp = false;
};

// In the order of the enumerators, which is also that of --help.
inline constexpr ModelKindInfo kModelKinds[] = {
    {.kind = ModelKind::kSage,
     .name = "sage",
     .make_conv = MakeSageConv,
     .reads_aggr = true},
    {.kind = ModelKind::kGat,
     .name = "gat",
     .make_conv = MakeGatConv,
     .self_loops = true,
     .works_on_sources = true,
     .reads_heads = true},
    {.kind = ModelKind::kGatv2,
     .name = "gatv2",
     .make_conv = MakeGatv2Conv,
     .self_loops = true,
     .works_on_sources = true,
     .reads_heads = true},
    {.kind = ModelKind::kGcn,
     .name = "gcn",
     .note = "is only for graphs with one relation",
     .make_conv = MakeGcnConv,
     .one_relation_only = true,
     .degree_weights = true},
    {.kind = ModelKind::kGin,
     .name = "gin",
     .make_conv = MakeGinConv,
     .reads_gin_mlp = true},
    {.kind = ModelKind::kRgcn,
     .name = "rgcn",
     .make_layer = MakeRgcnLayer,
     .relational = true,
     .reads_num_bases = true},
    {.kind = ModelKind::kEmbedding,
     .name = "embedding",
     .note = "learns a row per node, for link prediction"},
    {.kind = ModelKind::kScript,
     .name = "script",
     .argument = ":FILE",
     .note = "is your own, saved by torch.jit.script(model).save(FILE)"}};

constexpr const ModelKindInfo& InfoOf(ModelKind kind) {
  return kModelKinds[static_cast<size_t>(kind)];
}

// INVALID_ARGUMENT: no kind has this name; says which names there are.
absl::StatusOr<ModelKind> ModelKindFromName(std::string_view name);

// The names of the kinds for which `property` is true, in the table's order.
std::vector<std::string> KindsWith(bool ModelKindInfo::*property);

}  // namespace millrace
