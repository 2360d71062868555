// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_rules.h"

#include <gtest/gtest.h>

#include <optional>

#include "common/base/field_error.h"

namespace millrace {
namespace {

TEST(JobRulesTest, ADefaultJobBreaksNoRule) {
  EXPECT_TRUE(CheckJobOptions(JobSpec()).ok());
}

TEST(JobRulesTest, ErrorsNameFieldValueAndLimit) {
  JobSpec spec;
  spec.batch_size = 0;
  const std::optional<FieldError> error = GetFieldError(CheckJobOptions(spec));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->problem, FieldError::Problem::kOutOfRange);
  EXPECT_EQ(error->field, "batch_size");
  EXPECT_EQ(error->value, "0");
  EXPECT_EQ(error->limit, "1 to 1073741824");
}

}  // namespace
}  // namespace millrace
