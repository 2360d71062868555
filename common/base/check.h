// SPDX-License-Identifier: Apache-2.0
// MILLRACE_CHECK: our own broken invariants end the process with a message.
// Bad input from users, wire or disk never reaches it: that is a Status.
#pragma once

namespace millrace {

[[noreturn]] void CheckFailed(const char* file, int line, const char* what);

}  // namespace millrace

#define MILLRACE_CHECK(condition)                              \
  do {                                                         \
    if (!(condition)) [[unlikely]] {                           \
      ::millrace::CheckFailed(__FILE__, __LINE__, #condition); \
    }                                                          \
  } while (false)
