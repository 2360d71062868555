// SPDX-License-Identifier: Apache-2.0
// The two status macros of the project.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of `expr` from the enclosing function unless it is OK.
#define MILLRACE_RETURN_IF_ERROR(expr)                                    \
  do {                                                                    \
    if (absl::Status millrace_status_ = (expr); !millrace_status_.ok()) { \
      return millrace_status_;                                            \
    }                                                                     \
  } while (false)

// Evaluates `expr` (a StatusOr), returns its status if it is not OK, and
// otherwise moves the value into `lhs` (a declaration or an lvalue).
#define MILLRACE_ASSIGN_OR_RETURN(lhs, expr)                                \
  MILLRACE_ASSIGN_OR_RETURN_IMPL_(MILLRACE_CONCAT_(millrace_or_, __LINE__), \
                                  lhs, expr)

#define MILLRACE_ASSIGN_OR_RETURN_IMPL_(or_value, lhs, expr) \
  auto or_value = (expr);                                    \
  if (!or_value.ok()) return std::move(or_value).status();   \
  lhs = *std::move(or_value)
#define MILLRACE_CONCAT_(a, b) MILLRACE_CONCAT_INNER_(a, b)
#define MILLRACE_CONCAT_INNER_(a, b) a##b
