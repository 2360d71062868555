// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/conv.h"
#include "client/nn/graph_shape.h"
#include "client/nn/parameters.h"

namespace millrace {

struct Subgraph;

// A model written in Python and saved by torch.jit.script(model).save(FILE).
//
// On homogeneous graphs its forward(x, edge_index[, edge_attr]) takes x as [n,
// features]; edge_index as [2, e] kLong, with the neighbours in row 0 and the
// nodes that list them in row 1, as in PyG; edge_attr as [e, d]. It returns [n,
// w].
// On other graphs it takes dictionaries of these, by node type and by
// SRC__NAME__DST (TorchScript allows no tuples as keys), and returns a
// dictionary by node type, or the matrix if only one type is needed. Types
// without features are left out, and so are relations from or to them. All
// other parameters must have defaults, which are used.
//
// Parameters and buffers are those of the module, under its names. Random draws
// of a forward pass are a function of its DropoutKey, because LibTorch's
// generator is seeded before each pass.
// Not thread-safe; the generator is shared by the whole process.
class ScriptModel {
 public:
  // Loads the module's tensors onto `device`, where subgraphs must be. Only
  // edges at most `layers` hops from a seed matter. NOT_FOUND: no such file.
  // INVALID_ARGUMENT: it is not TorchScript, has another `forward`, or one that
  // fails on two nodes per type; or some parameters are not float32, are not
  // learned, or share memory without being the same tensor.
  // FAILED_PRECONDITION: `forward` needs features of edges, or of a node type
  // that reaches the seeds, and the graph has none.
  static absl::StatusOr<std::unique_ptr<ScriptModel>> Load(
      const std::string& file, const GraphShape& shape, int layers,
      at::Device device = at::kCPU);
  ~ScriptModel();

  // Adds the module's tensors under all of their names; parameters that require
  // no gradient become buffers. A state may lack the module's buffers, because
  // TorchScript does not say which are persistent. `parameters` must outlive
  // the model.
  void AddTo(ParameterSet& parameters);

  // Number of columns of the result.
  int64_t outputs() const { return outputs_; }
  // Whether Forward reads Subgraph::edge_features.
  bool reads_edge_features() const;
  // XXH3-64 of the file.
  uint64_t checksum() const { return checksum_; }

  // The rows of the seeds per node type, [seeds, outputs()], defined for types
  // with GraphShape::IsOutput. Throws what LibTorch throws, with a one-line
  // message.
  std::vector<at::Tensor> Forward(const Subgraph& graph, const Pass& pass);

 private:
  struct Script;  // keeps TorchScript's headers out of this one

  ScriptModel(const std::string& file, const GraphShape& shape,
              at::Device device);
  absl::Status CheckFeatures(int layers) const;
  absl::Status Read();
  absl::Status CheckForward();
  absl::Status CheckParameters() const;
  absl::Status TryForward();
  std::vector<at::Tensor> Call(const Subgraph& graph);
  void CheckRows(const at::Tensor& rows, int64_t nodes);
  void TakeNewBuffers();

  const std::string file_;
  const GraphShape shape_;
  const at::Device device_;
  const std::unique_ptr<Script> script_;
  uint64_t checksum_ = 0;
  int64_t outputs_ = 0;                 // 0 until known
  ParameterSet* parameters_ = nullptr;  // set by AddTo
};

}  // namespace millrace
