// SPDX-License-Identifier: Apache-2.0
#include "common/cli/numbers.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace millrace {
namespace {

struct Bounds {
  CLI::Validator check;
  std::vector<std::string> good, bad;
  std::string expected;  // what bad values are not
};

TEST(NumbersTest, ValuesAreWithinTheirLimits) {
  const std::string too_large = "9223372036854775808";
  const std::vector<Bounds> all = {
      {AtLeast(0),
       {"0", "1", "0x10", "9223372036854775807"},
       {"-1", "0.5", "", "x", "1x", too_large},
       "a whole number of at least 0"},
      {AtLeast(-2), {"-2", "5"}, {"-3"}, "a whole number of at least -2"},
      {WholeNumber(-1, 5),
       {"-1", "5", "0"},
       {"-2", "6", "2.5", "", "five", too_large},
       "a whole number from -1 to 5"},
      {Number(0.5, 2),
       {"0.5", "2", "1e0"},
       {"0.4999", "2.0001", "-1", "", "x", "nan"},
       "a number from 0.5 to 2"},
      {Number(-1, std::numeric_limits<double>::infinity()),
       {"-1", "1e300", "inf"},
       {"-1.5", "x", "nan"},
       "a number of at least -1"}};
  for (Bounds bounds : all) {
    for (std::string text : bounds.good) EXPECT_EQ(bounds.check(text), "");
    for (std::string text : bounds.bad) {
      EXPECT_EQ(bounds.check(text),
                "\"" + text + "\" is not " + bounds.expected);
    }
  }
}

// What CheckValues() says about the value of an option; empty: it is good.
template <typename Value>
std::string ErrorOf(const std::string& text) {
  CLI::App app("A mill", "race");
  Value value{};
  // The check is also made for the options of commands and groups.
  app.add_subcommand("grind", "Grinds")
      ->add_option_group("Group")
      ->add_option("--value", value, "Value");
  CheckValues(app);
  try {
    app.parse("grind --value=" + text);
    return "";
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
}

TEST(NumbersTest, ValuesAreOfTheirTypes) {
  const std::string most = "18446744073709551615";
  EXPECT_EQ(ErrorOf<int64_t>("-9223372036854775808"), "");
  EXPECT_EQ(ErrorOf<int64_t>("9223372036854775808"),
            "--value: \"9223372036854775808\" exceeds 64 bits");
  EXPECT_EQ(ErrorOf<int64_t>("1.5"), "--value: \"1.5\" is not a whole number");
  EXPECT_EQ(ErrorOf<uint64_t>(most), "");
  EXPECT_EQ(ErrorOf<uint64_t>(most + "0"),
            "--value: \"" + most + "0\" exceeds 64 bits");
  EXPECT_EQ(ErrorOf<uint64_t>("-1"),
            "--value: \"-1\" is not a whole number of at least 0");
  EXPECT_EQ(ErrorOf<uint64_t>("ten"), "--value: \"ten\" is not a whole number");
  EXPECT_EQ(ErrorOf<double>("-0.5e3"), "");
  EXPECT_EQ(ErrorOf<double>("half"), "--value: \"half\" is not a number");
  EXPECT_EQ(ErrorOf<std::string>("half"), "");
}

TEST(NumbersTest, FlagsAreTrueOrFalse) {
  CLI::App app("A mill", "race");
  bool flag = false;
  app.add_flag("--flag", flag, "Flag");
  CheckValues(app);
  app.parse("--flag=true");
  EXPECT_TRUE(flag);
  app.parse("--flag=false");
  EXPECT_FALSE(flag);
  try {
    app.parse("--flag=maybe");
    ADD_FAILURE();
  } catch (const CLI::ParseError& error) {
    EXPECT_STREQ(error.what(), "--flag: \"maybe\" is not true or false");
  }
}

}  // namespace
}  // namespace millrace
