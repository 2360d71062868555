// SPDX-License-Identifier: Apache-2.0
// Writes TorchScript modules to files without Python.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "client/nn/parameters.h"

namespace millrace::testing {

struct TestScript {
  std::vector<NamedTensor> parameters;  // floats require a gradient
  std::vector<NamedTensor> buffers = {};
  std::string methods;  // `def forward(self, ...): ...` and helpers
  // Additional names for parameters, which come before the ones above.
  std::vector<std::pair<std::string, std::string>> aliases = {};
};

// Writes a module as torch.jit.script(module).save(file) does; names with dots
// belong to submodules. Returns the file's name.
std::string SaveScript(const TestScript& script,
                       const std::filesystem::path& file);

// Writes a file as torch.save(state_dict, file) does.
std::string SaveStateDict(const std::filesystem::path& file);

// A two-layer GraphSAGE as a script. Weights have PyG's names with underscores
// for dots: w_convs_0_lin_l_weight and so on. `dropout` follows the first
// layer.
TestScript SageScript(const std::vector<NamedTensor>& weights,
                      double dropout = 0);

// A script like the above with initial weights that are a function of `seed`.
TestScript SageScript(int64_t in, int64_t hidden, int64_t out, uint64_t seed,
                      double dropout = 0);

}  // namespace millrace::testing
