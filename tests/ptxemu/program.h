// SPDX-License-Identifier: Apache-2.0
// The device code that a program has registered. Registration precedes main(),
// and does not read the environment.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/ptxemu/instruction.h"
#include "tests/ptxemu/module.h"
#include "tests/ptxemu/settings.h"

namespace millrace::ptxemu {

// A fat binary of the program. Each device that uses it has its own module.
struct Binary {
  const void* wrapper;
  bool is_extracted = false;
  std::string ptx = {};
  std::unique_ptr<Module> modules[kMaxDevices] = {};
};

void RegisterKernel(const void* host, Binary* binary, std::string name);
void RegisterVariable(const void* host, Binary* binary, std::string name);

// The kernel that the program calls by the address of a host function; null if
// there is none.
const Function* FindKernel(const void* host, int device);

bool IsVariable(const void* host);
// The address of the device's copy of a variable; 0 if the program has no code
// for the device.
uint64_t FindVariable(const void* host, int device);

}  // namespace millrace::ptxemu
