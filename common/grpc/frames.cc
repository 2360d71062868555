// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/frames.h"
