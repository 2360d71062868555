// SPDX-License-Identifier: Apache-2.0
#include "client/nn/script_model.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/nn/model.h"
#include "client/nn/script_forward.h"
#include "client/tensor/batch_tensors.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/random/philox.h"

namespace millrace {
namespace {

constexpr int64_t kMaxScriptBytes = int64_t{1} << 33;

// The most telling line of torch's message: usually the first. An error inside
// a script starts with a traceback, and its own message follows the code.
std::string TellingLine(const std::exception& error) {
  constexpr std::string_view kHere = "<--- HERE";
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error == nullptr
                               ? error.what()
                               : torch_error->what_without_backtrace();
  const size_t here = text.rfind(kHere);
  const bool script = here != std::string::npos;
  const absl::string_view rest =
      absl::string_view(text).substr(script ? here + kHere.size() : 0);
  for (const absl::string_view line : absl::StrSplit(rest, '\n')) {
    const bool code = script && absl::StartsWith(line, " ");
    const absl::string_view words = absl::StripAsciiWhitespace(line);
    if (!code && !words.empty()) return std::string(words);
  }
  return "it does not say why";
}

bool Holds(const std::vector<at::Tensor>& tensors, const at::Tensor& tensor) {
  return std::any_of(
      tensors.begin(), tensors.end(),
      [&](const at::Tensor& other) { return other.is_same(tensor); });
}

// LibTorch's generator is seeded with a single number.
uint64_t RandomSeed(const DropoutKey& key) {
  constexpr uint32_t kScriptDomain = 0x73637269;  // "scri"
  const PhiloxWords words = Philox(
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
      {key.epoch, key.batch, kScriptDomain, 0});
  return (uint64_t{words[1]} << 32) | words[0];
}

}  // namespace

struct ScriptModel::Script {
  // A buffer and the module that holds it; a script may assign a new tensor.
  struct Buffer {
    torch::jit::Module owner;
    std::string name;
    size_t place = 0;  // among the ParameterSet's buffers
  };

  torch::jit::Module module;
  std::vector<Buffer> buffers;
  // The parameter of `forward` that receives edge features, if any.
  std::optional<std::string> edge_argument;
  bool training = true;
};

absl::StatusOr<std::unique_ptr<ScriptModel>> ScriptModel::Load(
    const std::string& file, const GraphShape& shape, int layers,
    at::Device device) {
  auto model =
      std::unique_ptr<ScriptModel>(new ScriptModel(file, shape, device));
  MILLRACE_RETURN_IF_ERROR(model->CheckFeatures(layers));
  MILLRACE_RETURN_IF_ERROR(model->Read());
  MILLRACE_RETURN_IF_ERROR(model->CheckForward());
  MILLRACE_RETURN_IF_ERROR(model->CheckParameters());
  MILLRACE_RETURN_IF_ERROR(model->TryForward());
  return model;
}

ScriptModel::ScriptModel(const std::string& file, const GraphShape& shape,
                         at::Device device)
    : file_(file),
      shape_(shape),
      device_(device),
      script_(std::make_unique<Script>()) {}

ScriptModel::~ScriptModel() = default;

bool ScriptModel::reads_edge_features() const {
  return script_->edge_argument.has_value();
}

absl::Status ScriptModel::CheckFeatures(int layers) const {
  const std::vector<bool> read = shape_.NeededTypes(layers).front();
  for (size_t t = 0; t < read.size(); ++t) {
    const GraphShape::Type& type = shape_.types[t];
    if (!read[t] || type.features > 0) continue;
    return WithReason(
        absl::FailedPreconditionError(StrCat(
            "node type ", type.name,
            " has no features, and a script is given no embeddings for it")),
        Reason{"script_without_features"});
  }
  return absl::OkStatus();
}

absl::Status ScriptModel::Read() {
  MILLRACE_ASSIGN_OR_RETURN(const std::string bytes,
                            ReadFile(file_, kMaxScriptBytes));
  checksum_ = XXH3_64bits(bytes.data(), bytes.size());
  try {
    std::istringstream stream(bytes);
    script_->module = torch::jit::load(stream, device_);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        StrCat(file_, " is not a TorchScript module (", TellingLine(error),
               ")\nsave one with torch.jit.script(model).save(\"", file_,
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
  if (!FitsForward(schema, shape_, edges)) {
    return absl::InvalidArgumentError(
        StrCat(file_, " has ", ForwardText(schema), "\na graph of ",
               shape_.types.size(), " node types and ", shape_.relations.size(),
               " relations needs ", WantedForward(shape_),
               "; further parameters need defaults"));
  }
  if (edges == nullptr) return absl::OkStatus();
  if (GivesEdgeFeatures(shape_)) {
    script_->edge_argument = edges->name();
  } else if (!edges->default_value().has_value()) {
    return WithReason(absl::FailedPreconditionError(
                          StrCat(file_, " has ", ForwardText(schema),
                                 ", but the graph has no features of edges")),
                      Reason{"no_edge_features"});
  }
  return absl::OkStatus();
}

absl::Status ScriptModel::CheckParameters() const {
  bool learns = false;
  std::map<const void*, NamedTensor> seen;  // by address of their memory
  for (const auto& named : script_->module.named_parameters()) {
    if (!named.value.requires_grad()) continue;
    learns = true;
    const NamedTensor& first =
        seen.try_emplace(named.value.data_ptr(),
                         NamedTensor{named.name, named.value})
            .first->second;
    if (!first.tensor.is_same(named.value) && named.value.numel() > 0) {
      return absl::InvalidArgumentError(
          StrCat("parameters ", first.name, " and ", named.name, " of ", file_,
                 " are distinct but share memory\ntie them into one parameter "
                 "(b.weight = a.weight, without .data), or clone one"));
    }
    if (named.value.scalar_type() == at::kFloat) continue;
    return absl::InvalidArgumentError(
        StrCat("parameter ", named.name, " of ", file_, " is ",
               c10::toString(named.value.scalar_type()),
               ", but training uses Float\nscript model.float()"));
  }
  if (learns) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(file_,
             " has no parameter that requires a gradient\nscript the model "
             "before training, and do not freeze it"));
}

absl::Status ScriptModel::TryForward() {
  c10::NoGradGuard no_grad;
  try {
    Forward(SmallestGraph(shape_, device_), Pass{});
    return absl::OkStatus();
  } catch (const std::exception& error) {
    std::vector<std::string> inputs;
    for (const GraphShape::Type& type : shape_.types) {
      inputs.push_back(StrCat(type.name, ": ", type.features));
    }
    return absl::InvalidArgumentError(
        StrCat(TellingLine(error),
               "\nit was tried on two nodes per type, with features as wide as "
               "the graph's (",
               absl::StrJoin(inputs, ", "), ")"));
  }
}

void ScriptModel::AddTo(ParameterSet& parameters) {
  parameters_ = &parameters;
  std::vector<at::Tensor> seen;
  for (const auto& named : script_->module.named_parameters()) {
    if (Holds(seen, named.value)) {  // tied
      parameters.AddAlias(named.name, named.value);
      continue;
    }
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
      // A state_dict omits buffers that are not persistent, and TorchScript
      // does not say which these are.
      parameters.AddBuffer(prefix + named.name, named.value,
                           /*in_every_state=*/false);
    }
  }
}

void ScriptModel::TakeNewBuffers() {
  for (Script::Buffer& buffer : script_->buffers) {
    at::Tensor tensor = buffer.owner.attr(buffer.name).toTensor();
    // Detaches statistics of activations, or the next step would backpropagate
    // through this one.
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
    TORCH_CHECK(false, "forward of ", file_, ": ", TellingLine(error));
  }
}

std::vector<at::Tensor> ScriptModel::Call(const Subgraph& graph) {
  std::vector<c10::IValue> inputs = ForwardInputs(shape_, graph);
  torch::jit::Kwargs named;
  if (script_->edge_argument.has_value()) {
    named[*script_->edge_argument] = EdgeFeatures(shape_, graph);
  }
  // The optimizer would compile a script after a few calls, which changes bits,
  // so that a resumed run would differ from the run that it continues.
  const torch::jit::GraphOptimizerEnabledGuard interpret(false);
  const c10::IValue result = script_->module.forward(std::move(inputs), named);
  std::vector<at::Tensor> rows(shape_.types.size());
  for (size_t t = 0; t < rows.size(); ++t) {
    const auto type = static_cast<TypeIndex>(t);
    if (!shape_.IsOutput(type)) continue;
    at::Tensor all = RowsOf(result, shape_, type);
    if (at::autocast::is_autocast_enabled(device_.type())) all = AsFloat(all);
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
              ShapeText(rows.sizes()), " ", c10::toString(rows.scalar_type()),
              ", but must have a row of Float for each of ", nodes, " nodes");
}

}  // namespace millrace
