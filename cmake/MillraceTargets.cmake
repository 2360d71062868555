# SPDX-License-Identifier: Apache-2.0
option(MILLRACE_TSAN
  "Leave out tests that ThreadSanitizer cannot judge (the tsan preset)" OFF)
mark_as_advanced(MILLRACE_TSAN)

# Adds a folder's library, with an alias and verified headers.
#
#   millrace_library(NAME base SOURCES a.cc HEADERS a.h PUBLIC x PRIVATE y)
function(millrace_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  set(target millrace_${ARG_NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(millrace::${ARG_NAME} ALIAS ${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${ARG_NAME}
    POSITION_INDEPENDENT_CODE ON
    VERIFY_INTERFACE_HEADER_SETS ON)
  target_sources(${target} PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# Tests are usually run only once per build, so optimise them less.
set(MILLRACE_TEST_OPTIONS "$<$<CONFIG:RelWithDebInfo>:-O1>")

# millrace_test(NAME draw_test SOURCES draw_test.cc LINK millrace::sample)
function(millrace_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT" "SOURCES;LINK" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_compile_features(${ARG_NAME} PRIVATE cxx_std_20)
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  # These give false warnings about std::string at -O3 in GCC 12 (its bugs
  # 105329 and 105651).
  target_compile_options(${ARG_NAME} PRIVATE ${MILLRACE_TEST_OPTIONS}
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-maybe-uninitialized>")
  target_compile_definitions(${ARG_NAME} PRIVATE
    MILLRACE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
    MILLRACE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    MILLRACE_BIN_DIR="${PROJECT_BINARY_DIR}/bin"
    MILLRACE_PYTHON="${MILLRACE_PYTHON}")
  set_target_properties(${ARG_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LINK} GTest::gmock_main)
  if(MILLRACE_TSAN AND ARG_NAME IN_LIST MILLRACE_NOT_UNDER_TSAN)
    set_target_properties(${ARG_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
  set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
