// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/program.h"

#include <map>
#include <utility>

#include "tests/ptxemu/fat_binary.h"

namespace millrace::ptxemu {
namespace {

struct DeviceName {
  Binary* binary;
  std::string name;
};
using DeviceNames = std::map<const void*, DeviceName>;

DeviceNames& Kernels() {
  static auto* kernels = new DeviceNames;
  return *kernels;
}

DeviceNames& Variables() {
  static auto* variables = new DeviceNames;
  return *variables;
}

// Null if the binary has no PTX.
Module* ModuleOf(Binary* binary, int device) {
  if (!binary->is_extracted) {
    binary->ptx = ExtractPtx(binary->wrapper);
    binary->is_extracted = true;
  }
  std::unique_ptr<Module>& module = binary->modules[device];
  if (module == nullptr && !binary->ptx.empty()) {
    module = std::make_unique<Module>(binary->ptx, device);
  }
  return module.get();
}

}  // namespace

void RegisterKernel(const void* host, Binary* binary, std::string name) {
  Kernels()[host] = {binary, std::move(name)};
}

void RegisterVariable(const void* host, Binary* binary, std::string name) {
  Variables()[host] = {binary, std::move(name)};
}

const Function* FindKernel(const void* host, int device) {
  const auto found = Kernels().find(host);
  if (found == Kernels().end()) return nullptr;
  Module* const module = ModuleOf(found->second.binary, device);
  return module == nullptr ? nullptr : module->FindFunction(found->second.name);
}

bool IsVariable(const void* host) { return Variables().count(host) > 0; }

uint64_t FindVariable(const void* host, int device) {
  const DeviceName& variable = Variables().at(host);
  Module* const module = ModuleOf(variable.binary, device);
  return module == nullptr ? 0 : module->FindVariable(variable.name);
}

}  // namespace millrace::ptxemu
