// SPDX-License-Identifier: Apache-2.0
// MILLRACE_CHECK ends the process with a message when an invariant of our own
// is broken. Bad input from users, the wire or disk never reaches it; such
// input is reported by a Status.
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
