// SPDX-License-Identifier: Apache-2.0
// Conversion of features to narrower dtypes for the wire (see CastFloats).
#pragma once

#include "absl/status/status.h"
#include "common/base/dtype.h"
#include "common/graph/schema.h"

namespace millrace {

// Whether features may be converted: any floats to float16 or bfloat16, and any
// dtype to itself.
bool CanCast(DType from, DType to);

// INVALID_ARGUMENT: the features of `type`, which it must have, cannot be
// converted to `to`; the message names the type.
absl::Status CheckCast(const NodeType& type, DType to);

}  // namespace millrace
