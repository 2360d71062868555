// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch_assembler.h"
