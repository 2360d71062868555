# SPDX-License-Identifier: Apache-2.0
# Precompiled headers. Parsing the standard library, Abseil, gRPC, LibTorch and
# GoogleTest takes more than half of a build. They are not used in builds with
# ccache, which would cache nothing.
#
# Targets say which of these sets they use, by its name:
#
#   library     the standard library and Abseil
#   grpc        these and gRPC
#   torch       these and LibTorch
#   test        `library` and GoogleTest
#   torch_test  `torch` and GoogleTest

# Whether a target's precompiled headers are those of another one.
set(MILLRACE_PRECOMPILE ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_DISABLE_PRECOMPILE_HEADERS)
  set(MILLRACE_PRECOMPILE OFF)
endif()

# Adds a target that exists only so that others can use its precompiled headers.
function(millrace_precompiled_headers set pic)
  if(NOT MILLRACE_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LINK;OPTIONS" ${ARGN})
  set(target millrace_${set}_headers)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${target}.cc CONTENT "")
  add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/${target}.cc)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ${pic})
  target_link_libraries(${target} PRIVATE ${ARG_LINK})
  target_compile_options(${target} PRIVATE -pthread ${ARG_OPTIONS})
  target_precompile_headers(${target} PRIVATE
    <algorithm> <condition_variable> <cstdint> <filesystem> <functional> <map>
    <memory> <mutex> <optional> <span> <string> <string_view> <utility> <vector>
    <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/strings/str_format.h> <absl/strings/str_join.h>
    <absl/strings/str_split.h> <absl/time/clock.h> <absl/time/time.h>
    ${ARG_UNPARSED_ARGUMENTS})
endfunction()

# Lets `target` use a set of precompiled headers, or none if that is "none".
function(millrace_precompile target set)
  if(NOT MILLRACE_PRECOMPILE OR set STREQUAL "none")
    return()
  endif()
  # The flags must be those of the set, which gets this one from gRPC.
  target_compile_options(${target} PRIVATE -pthread)
  target_precompile_headers(${target} REUSE_FROM millrace_${set}_headers)
endfunction()

millrace_precompiled_headers(library ON)
millrace_precompiled_headers(grpc ON <grpcpp/grpcpp.h> LINK gRPC::grpc++)
if(MILLRACE_TRAIN)
  millrace_precompiled_headers(torch ON <ATen/ATen.h> LINK millrace::torch)
endif()
if(MILLRACE_TESTS)
  millrace_precompiled_headers(test OFF <gmock/gmock.h> <gtest/gtest.h>
    LINK GTest::gmock OPTIONS ${MILLRACE_TEST_OPTIONS})
  if(MILLRACE_TRAIN)
    millrace_precompiled_headers(torch_test OFF <ATen/ATen.h> <gtest/gtest.h>
      LINK GTest::gtest millrace::torch OPTIONS ${MILLRACE_TEST_OPTIONS})
  endif()
endif()
