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
// On homogeneous graphs its forward(x, edge_index[, edge_attr]) takes x as
// [n, features]; edge_index as [2, e] kLong, row 0 the neighbours and row 1
// the nodes that list them, as PyG's; edge_attr as [e, d]. It returns [n, w].
// On others it takes dictionaries of these, by node type and by SRC__REL__DST
// (TorchScript knows no tuples as keys), and returns one by node type, or the
// matrix of the only type that is asked for. Types without features are left
// out, and so are relations from or to them. Further parameters must have
// defaults, and keep them.
//
// Parameters and buffers are the module's own, by its names. Random draws of
// a forward pass are a function of its DropoutKey: LibTorch's generator is
// seeded before each.
// Threads: one at a time; the generator is the process's.
class ScriptModel {
 public:
  // Of edges those count that are at most `layers` hops from a seed.
  // NOT_FOUND: no such file. INVALID_ARGUMENT: no TorchScript in it, another
  // `forward`, or one that fails on two nodes a type; parameters that are not
  // float32, do not learn, or share memory without being one.
  // FAILED_PRECONDITION: no features of a node type that reaches the seeds, or
  // of edges, though `forward` wants them.
  static absl::StatusOr<std::unique_ptr<ScriptModel>> Load(
      const std::string& file, const GraphShape& shape, int layers);
  ~ScriptModel();

  // Adds the module's tensors, by all of its names; parameters that want no
  // gradient are buffers. A state may lack the module's buffers: TorchScript
  // does not say which are persistent. `parameters` must outlive the model.
  void AddTo(ParameterSet& parameters);

  // Columns of the result.
  int64_t outputs() const { return outputs_; }
  // Whether Forward reads Subgraph::edge_features.
  bool reads_edge_features() const;
  // XXH3-64 of the file.
  uint64_t checksum() const { return checksum_; }

  // Rows of the seeds per node type, [seeds, outputs()], defined where
  // GraphShape::IsOutput. Throws what LibTorch throws, its message one line.
  std::vector<at::Tensor> Forward(const Subgraph& graph, const Pass& pass);

 private:
  struct Script;  // keeps TorchScript's headers out of this one

  ScriptModel(const std::string& file, const GraphShape& shape);
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
  const std::unique_ptr<Script> script_;
  uint64_t checksum_ = 0;
  int64_t outputs_ = 0;                 // 0: not known yet
  ParameterSet* parameters_ = nullptr;  // of AddTo
};

}  // namespace millrace
