// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/environment.h"

#include <cstdio>
#include <cstdlib>

namespace millrace::ptxemu {

std::string TextVariable(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

uint64_t NumberVariable(const char* name, uint64_t fallback) {
  const std::string value = TextVariable(name, "");
  if (value.empty()) return fallback;
  char* end = nullptr;
  const uint64_t number = std::strtoull(value.c_str(), &end, 0);
  if (*end != '\0') RefuseVariable(name, value);
  return number;
}

void RefuseVariable(const char* name, const std::string& value) {
  std::fprintf(stderr, "ptxemu: %s=%s is not understood\n", name,
               value.c_str());
  std::abort();
}

}  // namespace millrace::ptxemu
