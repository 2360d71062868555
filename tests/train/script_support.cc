// SPDX-License-Identifier: Apache-2.0
#include "tests/train/script_support.h"

#include <ATen/ops/ones.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/nn/model.h"

namespace millrace::testing {

std::string SaveScript(const TestScript& script,
                       const std::filesystem::path& file) {
  torch::jit::Module module("__torch__.Model");
  module.register_attribute("training", c10::BoolType::get(), true);
  for (const NamedTensor& named : script.parameters) {
    const at::Tensor tensor = named.tensor.detach();
    tensor.requires_grad_(tensor.is_floating_point());
    module.register_parameter(named.name, tensor, /*is_buffer=*/false);
  }
  for (const auto& [name, of] : script.aliases) {
    module.register_parameter(name, module.attr(of).toTensor(),
                              /*is_buffer=*/false);
  }
  for (const NamedTensor& named : script.buffers) {
    module.register_buffer(named.name, named.tensor.detach().clone());
  }
  module.define(script.methods);
  module.save(file.string());
  return file.string();
}

std::string SaveStateDict(const std::filesystem::path& file) {
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("weight", at::ones({2}));
  const std::vector<char> bytes = torch::jit::pickle_save(dict);
  std::ofstream(file, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file.string();
}

TestScript SageScript(const std::vector<NamedTensor>& weights, double dropout) {
  TestScript script;
  for (const NamedTensor& named : weights) {
    script.parameters.push_back(
        {"w_" + absl::StrReplaceAll(named.name, {{".", "_"}}), named.tensor});
  }
  script.methods = absl::StrCat(R"(
def mean(self, x, edge_index):
    n = x.size(0)
    sums = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
    counts = torch.bincount(edge_index[1], minlength=n).clamp(min=1)
    return sums / counts.unsqueeze(1)

def forward(self, x, edge_index):
    x = (torch.linear(self.mean(x, edge_index), self.w_convs_0_lin_l_weight,
                      self.w_convs_0_lin_l_bias)
         + torch.linear(x, self.w_convs_0_lin_r_weight))
    x = torch.dropout(torch.relu(x), float()",
                                dropout, R"(), self.training)
    return (torch.linear(self.mean(x, edge_index), self.w_convs_1_lin_l_weight,
                         self.w_convs_1_lin_l_bias)
            + torch.linear(x, self.w_convs_1_lin_r_weight))
)");
  return script;
}

TestScript SageScript(int64_t in, int64_t hidden, int64_t out, uint64_t seed,
                      double dropout) {
  ModelConfig config;
  config.in = in;
  config.hidden = hidden;
  config.out = out;
  config.seed = seed;
  const auto model = Model::Create(config).value();
  return SageScript(model->parameters().State(), dropout);
}

}  // namespace millrace::testing
