// SPDX-License-Identifier: Apache-2.0
#include "common/wire/stream_layout.h"
