# SPDX-License-Identifier: Apache-2.0
# Precompiled headers. Parsing the standard library, Abseil, gRPC, CLI11 and
# GoogleTest takes more than half of a build. They are not used in builds with
# ccache, which would cache nothing.

set(millrace_common_headers
  <algorithm> <condition_variable> <cstdint> <filesystem> <functional> <map>
  <memory> <mutex> <optional> <span> <string> <string_view> <utility> <vector>
  <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
  <absl/strings/str_format.h> <absl/strings/str_join.h>
  <absl/strings/str_split.h>
  <absl/time/clock.h> <absl/time/time.h>)

# A target that exists only so that others can reuse its precompiled header.
function(millrace_header_donor target pic)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cc CONTENT "")
  add_library(${target} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cc)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ${pic})
  target_compile_options(${target} PRIVATE -pthread)
  target_precompile_headers(${target} PRIVATE
    ${millrace_common_headers} ${ARGN})
endfunction()

# Sets `out` to the donor whose flags match those of `target`; empty if there is
# none.
function(millrace_choose_donor out target)
  get_target_property(type ${target} TYPE)
  get_target_property(links ${target} LINK_LIBRARIES)
  set(donor "")
  if(target STREQUAL "millrace")
    set(donor millrace_command_headers)
  elseif(target STREQUAL "millrace_cli" OR "millrace::cli" IN_LIST links
         OR "millrace::flags" IN_LIST links)  # which has it as PUBLIC
    # These are compiled with other flags.
  elseif(type STREQUAL "STATIC_LIBRARY" AND target MATCHES "^millrace_")
    if(target MATCHES "^millrace_(grpc|server|loader)(_|$)")
      set(donor millrace_grpc_headers)
    elseif(NOT target MATCHES "proto|support")
      set(donor millrace_library_headers)
    endif()
  elseif("GTest::gmock_main" IN_LIST links)
    set(donor millrace_test_headers)
  endif()
  set(${out} "${donor}" PARENT_SCOPE)
endfunction()

# Gives every target in `folder` and below a precompiled header unless it has
# one.
function(millrace_precompile_below folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(own ${target} PRECOMPILE_HEADERS)
    get_target_property(reused ${target} PRECOMPILE_HEADERS_REUSE_FROM)
    if(own OR reused)
      continue()
    endif()
    millrace_choose_donor(donor ${target})
    if(donor)
      # The flags must be the same as the donor's, which gets this one from
      # gRPC.
      target_compile_options(${target} PRIVATE -pthread)
      target_precompile_headers(${target} REUSE_FROM ${donor})
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    millrace_precompile_below(${below})
  endforeach()
endfunction()

# Must be called after all targets have been defined.
function(millrace_precompile_headers)
  if(CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_DISABLE_PRECOMPILE_HEADERS)
    return()
  endif()
  millrace_header_donor(millrace_library_headers ON)
  millrace_header_donor(millrace_grpc_headers ON <grpcpp/grpcpp.h>)
  target_link_libraries(millrace_grpc_headers PRIVATE gRPC::grpc++)
  millrace_header_donor(millrace_command_headers OFF
    <CLI/CLI.hpp> <nlohmann/json.hpp>)
  target_link_libraries(millrace_command_headers PRIVATE millrace::cli)
  if(MILLRACE_TESTS)
    millrace_header_donor(millrace_test_headers OFF
      <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(millrace_test_headers PRIVATE GTest::gmock)
    target_compile_options(millrace_test_headers PRIVATE
      ${MILLRACE_TEST_OPTIONS})
  endif()
  millrace_precompile_below(${PROJECT_SOURCE_DIR})
endfunction()
