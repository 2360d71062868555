// SPDX-License-Identifier: Apache-2.0
#include "common/wire/error_info.h"
