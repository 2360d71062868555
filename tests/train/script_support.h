// SPDX-License-Identifier: Apache-2.0
// TorchScript modules as files, without Python.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "client/nn/parameters.h"

namespace millrace::testing {

struct TestScript {
  std::vector<NamedTensor> parameters;  // those of floats want a gradient
  std::vector<NamedTensor> buffers = {};
  std::string methods;  // `def forward(self, ...): ...` and what it calls
  // Further names of parameters, before these.
  std::vector<std::pair<std::string, std::string>> aliases = {};
};

// What torch.jit.script(module).save(file) writes of such a module, names
// with dots being those of submodules. Returns the file's name.
std::string SaveScript(const TestScript& script,
                       const std::filesystem::path& file);

// A file as torch.save(state_dict, file) writes it.
std::string SaveStateDict(const std::filesystem::path& file);

// GraphSAGE of two layers as a script: weights of PyG's names with
// underscores for dots, w_convs_0_lin_l_weight and so on. `dropout` after the
// first layer.
TestScript SageScript(const std::vector<NamedTensor>& weights,
                      double dropout = 0);

// The same with first weights that are a function of `seed`.
TestScript SageScript(int64_t in, int64_t hidden, int64_t out, uint64_t seed,
                      double dropout = 0);

}  // namespace millrace::testing
