// SPDX-License-Identifier: Apache-2.0
#include "common/wire/job_proto.h"
