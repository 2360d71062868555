// SPDX-License-Identifier: Apache-2.0
#include "client/nn/script_model.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <xxhash.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/nn/model.h"
#include "common/base/file.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr int64_t kMaxScriptBytes = int64_t{1} << 33;

constexpr char kForward[] =
    "forward(x: Tensor, edge_index: Tensor[, edge_attr: Tensor])";
constexpr char kTypedForward[] =
    "forward(x_dict: Dict[str, Tensor], edge_index_dict: Dict[str, Tensor][, "
    "edge_attr_dict: Dict[str, Tensor]])";

// The one line of what torch says that tells: the first, or, of an error
// within a script, the first after the traceback, whose lines are indented.
std::string Reason(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error == nullptr
                               ? error.what()
                               : torch_error->what_without_backtrace();
  std::string reason;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool traceback =
        absl::StartsWith(line, " ") || absl::StartsWith(line, "Traceback of") ||
        absl::StartsWith(line, "The following operation failed");
    if (traceback) {
      reason.clear();
    } else if (reason.empty()) {
      reason = std::string(absl::StripAsciiWhitespace(line));
    }
  }
  return reason.empty() ? text : reason;
}

// LibTorch's generator takes one number.
uint64_t RandomSeed(const DropoutKey& key) {
  constexpr uint32_t kScriptDomain = 0x73637269;  // "scri"
  const PhiloxWords words = Philox(
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
      {key.epoch, key.batch, kScriptDomain, 0});
  return (uint64_t{words[1]} << 32) | words[0];
}

at::Tensor EdgeIndex(const Neighbors& lists) {
  return at::stack({lists.index.to(at::kLong),
                    at::repeat_interleave(lists.indptr.diff().to(at::kLong))});
}

std::string ForwardText(const c10::FunctionSchema& schema) {
  std::vector<std::string> arguments;
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.name() == "self") continue;
    arguments.push_back(
        absl::StrCat(argument.name(), ": ", argument.type()->annotation_str()));
  }
  return absl::StrCat("forward(", absl::StrJoin(arguments, ", "), ")");
}

std::string ShapeText(const at::Tensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.sizes(), ", "), "]");
}

// Relations of types that have features.
bool IsPassed(const GraphShape& shape, size_t relation) {
  const GraphShape::Relation& ends = shape.relations[relation];
  return shape.types[ends.neighbors].features > 0 &&
         shape.types[ends.lists].features > 0;
}

// A matrix, or of graphs of several types a dictionary of those that `get`
// gives by number.
template <typename Named, typename Get>
c10::IValue Argument(const GraphShape& shape, const std::vector<Named>& names,
                     Get&& get) {
  if (shape.homogeneous()) return get(0);
  c10::Dict<std::string, at::Tensor> dict;
  for (size_t i = 0; i < names.size(); ++i) {
    const at::Tensor tensor = get(i);
    if (tensor.defined()) dict.insert(names[i].name, tensor);
  }
  return dict;
}

// Whether `forward`, whose first argument is the module, takes a graph; the
// parameter for features of edges, if there is one.
bool FitsForward(const c10::FunctionSchema& schema, bool homogeneous,
                 const c10::Argument*& edges) {
  const c10::TypePtr tensor = c10::TensorType::get();
  const c10::TypePtr wanted =
      homogeneous ? tensor
                  : c10::DictType::create(c10::StringType::get(), tensor);
  const std::vector<c10::Argument>& arguments = schema.arguments();
  if (arguments.size() < 3) return false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const bool of_edges =
        i > 2 && absl::StartsWith(arguments[i].name(), "edge_attr");
    if (of_edges) edges = &arguments[i];
    const bool fits = i <= 2 || of_edges
                          ? wanted->isSubtypeOf(*arguments[i].type())
                          : arguments[i].default_value().has_value();
    if (!fits) return false;
  }
  return true;
}

// Two nodes a type, each in the other's list.
Subgraph SmallestGraph(const GraphShape& shape) {
  Subgraph graph;
  for (const GraphShape::Type& type : shape.types) {
    graph.nodes.push_back(
        {at::zeros({2, type.features}, at::kFloat), {}, {0, 2, 2}});
  }
  const at::Tensor indptr = at::arange(3, at::kInt);
  const at::Tensor index = indptr.narrow(0, 0, 2).flip(0);
  for (const GraphShape::Relation& relation : shape.relations) {
    graph.neighbors.push_back({indptr, index, {}, {}});
    graph.edge_features.push_back(
        relation.features > 0 ? at::zeros({2, relation.features}, at::kFloat)
                              : at::Tensor());
  }
  return graph;
}

// What `forward` says of the nodes of one type.
at::Tensor RowsOf(const c10::IValue& result, const GraphShape& shape,
                  TypeIndex type) {
  if (result.isTensor()) {
    TORCH_CHECK(shape.IsOutput(type) && (!shape.source_type.has_value() ||
                                         shape.source_type == shape.seed_type),
                "the result is one Tensor, but rows of two node types are "
                "wanted");
    return result.toTensor();
  }
  const std::string& name = shape.types[type].name;
  TORCH_CHECK(result.isGenericDict() && !shape.homogeneous(),
              "the result is a ", result.tagKind(), ", not a ",
              shape.homogeneous() ? "Tensor" : "Tensor or Dict[str, Tensor]");
  for (const auto& entry : result.toGenericDict()) {
    if (entry.key().isString() && entry.key().toStringRef() == name) {
      return entry.value().toTensor();
    }
  }
  TORCH_CHECK(false, "the result has no rows of node type ", name);
}

}  // namespace

struct ScriptModel::Script {
  // A buffer and the module that holds it; a script may assign it anew.
  struct Buffer {
    torch::jit::Module owner;
    std::string name;
    size_t place = 0;  // in the ParameterSet's buffers
  };

  torch::jit::Module module;
  std::vector<Buffer> buffers;
  // The parameter of `forward` that is given features of edges, if any is.
  std::optional<std::string> edge_argument;
  bool training = true;
};

absl::StatusOr<std::unique_ptr<ScriptModel>> ScriptModel::Load(
    const std::string& file, const GraphShape& shape, int layers) {
  auto model = std::unique_ptr<ScriptModel>(new ScriptModel(file, shape));
  MILLRACE_RETURN_IF_ERROR(model->CheckFeatures(layers));
  MILLRACE_RETURN_IF_ERROR(model->Read());
  MILLRACE_RETURN_IF_ERROR(model->CheckForward());
  MILLRACE_RETURN_IF_ERROR(model->CheckParameters());
  MILLRACE_RETURN_IF_ERROR(model->TryForward());
  return model;
}

ScriptModel::ScriptModel(const std::string& file, const GraphShape& shape)
    : file_(file), shape_(shape), script_(std::make_unique<Script>()) {}

ScriptModel::~ScriptModel() = default;

bool ScriptModel::reads_edge_features() const {
  return script_->edge_argument.has_value();
}

absl::Status ScriptModel::CheckFeatures(int layers) const {
  const std::vector<bool> read = shape_.NeededTypes(layers).front();
  for (size_t t = 0; t < read.size(); ++t) {
    const GraphShape::Type& type = shape_.types[t];
    if (!read[t] || type.features > 0) continue;
    return absl::FailedPreconditionError(
        StrCat("node type ", type.name,
               " has no features, and a script is given no embeddings for it"
               "\nimport features (--features ",
               type.name, "=F.npy), or use another --model"));
  }
  return absl::OkStatus();
}

absl::Status ScriptModel::Read() {
  MILLRACE_ASSIGN_OR_RETURN(const std::string bytes,
                            ReadFile(file_, kMaxScriptBytes));
  checksum_ = XXH3_64bits(bytes.data(), bytes.size());
  try {
    std::istringstream stream(bytes);
    script_->module = torch::jit::load(stream, at::kCPU);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        StrCat(file_, " is no TorchScript module (", Reason(error),
               ")\nsave one by torch.jit.script(model).save(\"", file_,
               "\"); a state_dict is not enough"));
  }
  return absl::OkStatus();
}

absl::Status ScriptModel::CheckForward() {
  const auto method = script_->module.find_method("forward");
  if (!method.has_value()) {
    return absl::InvalidArgumentError(
        StrCat(file_, " has no forward\nscript a torch.nn.Module"));
  }
  const c10::FunctionSchema& schema = method->function().getSchema();
  const c10::Argument* edges = nullptr;
  if (!FitsForward(schema, shape_.homogeneous(), edges)) {
    return absl::InvalidArgumentError(StrCat(
        file_, " has ", ForwardText(schema), "\na graph of ",
        shape_.types.size(), " node types and ", shape_.relations.size(),
        " relations needs ", shape_.homogeneous() ? kForward : kTypedForward,
        "; further parameters need defaults"));
  }
  if (edges == nullptr) return absl::OkStatus();
  bool stored = false;
  for (size_t r = 0; r < shape_.relations.size(); ++r) {
    stored |= IsPassed(shape_, r) && shape_.relations[r].features > 0;
  }
  if (stored) {
    script_->edge_argument = edges->name();
  } else if (!edges->default_value().has_value()) {
    return absl::FailedPreconditionError(
        StrCat(file_, " has ", ForwardText(schema),
               ", but the graph has no features of edges\nimport the dataset "
               "with --edge-features F.npy"));
  }
  return absl::OkStatus();
}

absl::Status ScriptModel::CheckParameters() const {
  bool learns = false;
  for (const auto& named : script_->module.named_parameters()) {
    if (!named.value.requires_grad()) continue;
    learns = true;
    if (named.value.scalar_type() == at::kFloat) continue;
    return absl::InvalidArgumentError(
        StrCat("parameter ", named.name, " of ", file_, " is ",
               c10::toString(named.value.scalar_type()),
               ", but training is in Float\nscript model.float()"));
  }
  if (learns) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(file_,
             " has no parameter that wants a gradient\nscript the model "
             "as it is before training, not frozen"));
}

absl::Status ScriptModel::TryForward() {
  c10::NoGradGuard no_grad;
  try {
    Forward(SmallestGraph(shape_), Pass{});
    return absl::OkStatus();
  } catch (const std::exception& error) {
    std::vector<std::string> inputs;
    for (const GraphShape::Type& type : shape_.types) {
      inputs.push_back(StrCat(type.name, ": ", type.features));
    }
    return absl::InvalidArgumentError(
        StrCat(Reason(error),
               "\nit was tried on two nodes a type, with features as wide as "
               "the graph's (",
               absl::StrJoin(inputs, ", "), ")"));
  }
}

void ScriptModel::AddTo(ParameterSet& parameters) {
  parameters_ = &parameters;
  std::vector<at::Tensor> seen;  // weights may be tied
  for (const auto& named : script_->module.named_parameters()) {
    const bool known = std::any_of(
        seen.begin(), seen.end(),
        [&](const at::Tensor& tensor) { return tensor.is_same(named.value); });
    if (known) continue;
    seen.push_back(named.value);
    if (named.value.requires_grad()) {
      parameters.AddParameter(named.name, named.value);
    } else {
      parameters.AddBuffer(named.name, named.value);
    }
  }
  for (const auto& module : script_->module.named_modules()) {
    const std::string prefix = module.name.empty() ? "" : module.name + ".";
    for (const auto& named : module.value.named_buffers(/*recurse=*/false)) {
      script_->buffers.push_back(
          {module.value, named.name, parameters.buffers().size()});
      parameters.AddBuffer(prefix + named.name, named.value);
    }
  }
}

void ScriptModel::TakeNewBuffers() {
  for (Script::Buffer& buffer : script_->buffers) {
    at::Tensor tensor = buffer.owner.attr(buffer.name).toTensor();
    // Statistics of activations: the next step must not go back through this.
    if (tensor.requires_grad()) {
      tensor = tensor.detach();
      buffer.owner.setattr(buffer.name, tensor);
    }
    parameters_->ReplaceBuffer(buffer.place, tensor);
  }
}

std::vector<at::Tensor> ScriptModel::Forward(const Subgraph& graph,
                                             const Pass& pass) {
  if (script_->training != pass.training) {
    script_->module.train(pass.training);
    script_->training = pass.training;
  }
  at::manual_seed(RandomSeed(pass.dropout));
  try {
    std::vector<at::Tensor> rows = Call(graph);
    if (parameters_ != nullptr) TakeNewBuffers();
    return rows;
  } catch (const std::exception& error) {
    TORCH_CHECK(false, "forward of ", file_, ": ", Reason(error));
  }
}

std::vector<at::Tensor> ScriptModel::Call(const Subgraph& graph) {
  std::vector<c10::IValue> inputs = {
      Argument(shape_, shape_.types,
               [&](size_t type) {
                 return shape_.types[type].features > 0 ? graph.nodes[type].x
                                                        : at::Tensor();
               }),
      Argument(shape_, shape_.relations, [&](size_t relation) {
        return IsPassed(shape_, relation) ? EdgeIndex(graph.neighbors[relation])
                                          : at::Tensor();
      })};
  torch::jit::Kwargs named;
  if (script_->edge_argument.has_value()) {
    named[*script_->edge_argument] =
        Argument(shape_, shape_.relations, [&](size_t relation) {
          return IsPassed(shape_, relation) ? graph.edge_features[relation]
                                            : at::Tensor();
        });
  }
  // The optimizer compiles a script after a few calls, which changes bits: a
  // resumed run would differ from the one that it goes on with.
  const torch::jit::GraphOptimizerEnabledGuard interpret(false);
  const c10::IValue result = script_->module.forward(std::move(inputs), named);
  std::vector<at::Tensor> rows(shape_.types.size());
  for (size_t t = 0; t < rows.size(); ++t) {
    const auto type = static_cast<TypeIndex>(t);
    if (!shape_.IsOutput(type)) continue;
    const at::Tensor all = RowsOf(result, shape_, type);
    CheckRows(all, graph.nodes[t].x.size(0));
    rows[t] = all.narrow(0, 0, graph.nodes[t].hop_offsets[1]);
  }
  return rows;
}

void ScriptModel::CheckRows(const at::Tensor& rows, int64_t nodes) {
  const bool fits = rows.dim() == 2 && rows.size(0) == nodes &&
                    rows.size(1) > 0 && rows.scalar_type() == at::kFloat;
  if (fits && outputs_ == 0) outputs_ = rows.size(1);
  TORCH_CHECK(fits && rows.size(1) == outputs_, "the result is ",
              ShapeText(rows), " ", c10::toString(rows.scalar_type()),
              ", but a row of Float is wanted of each of ", nodes, " nodes");
}

}  // namespace millrace
