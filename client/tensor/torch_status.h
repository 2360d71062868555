// SPDX-License-Identifier: Apache-2.0
// The one place where LibTorch's exceptions become statuses.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "common/base/strings.h"

namespace millrace {

// Runs `body`, which returns a Status or a StatusOr, and turns what LibTorch
// throws into INTERNAL, prefixed with `what` (what was being done).
template <typename Body>
auto CatchTorch(std::string_view what, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const c10::Error& error) {
    return absl::InternalError(
        StrCat(what, ": ", error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return absl::InternalError(StrCat(what, ": ", error.what()));
  }
}

}  // namespace millrace
