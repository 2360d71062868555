# SPDX-License-Identifier: Apache-2.0
set(MILLRACE_SANITIZER "" CACHE STRING
  "Leave out tests that say nothing under this sanitizer: address, thread or empty")
set_property(CACHE MILLRACE_SANITIZER PROPERTY STRINGS "" address thread)
mark_as_advanced(MILLRACE_SANITIZER)

# Adds a folder's library, with an alias. PUBLIC_HEADERS are installed.
# PRECOMPILED is a set of MillracePrecompile.cmake; `library` if it is missing.
#
#   millrace_library(NAME base SOURCES a.cc PUBLIC_HEADERS a.h HEADERS b.h
#                    PUBLIC x PRIVATE y PRECOMPILED grpc)
function(millrace_library)
  cmake_parse_arguments(ARG "" "NAME;PRECOMPILED"
    "SOURCES;PUBLIC_HEADERS;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED library)
  endif()
  set(target millrace_${ARG_NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(millrace::${ARG_NAME} ALIAS ${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${ARG_NAME}
    POSITION_INDEPENDENT_CODE ON)
  target_sources(${target}
    PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_PUBLIC_HEADERS}
    PRIVATE FILE_SET private_headers TYPE HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  millrace_precompile(${target} ${ARG_PRECOMPILED})
  # In a unity build GCC takes each source for a header, in which a member whose
  # type is in an unnamed namespace would be an error.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# Tests are usually run only once per build, so they are not optimised. Compilers
# spend most of their time on code that they have instrumented, so in the build
# for AddressSanitizer tests neither guide a fuzzer nor check themselves for
# undefined behaviour.
set(MILLRACE_TEST_OPTIONS "$<$<CONFIG:RelWithDebInfo>:-O0>")
# The same for tests that instantiate most of the code that they test.
set(MILLRACE_TEMPLATE_TEST_OPTIONS "$<$<CONFIG:RelWithDebInfo>:-O1>")
if(MILLRACE_SANITIZER STREQUAL "address")
  set(MILLRACE_TEMPLATE_TEST_OPTIONS -O0
    $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=fuzzer-no-link>)
  set(MILLRACE_TEST_OPTIONS
    ${MILLRACE_TEMPLATE_TEST_OPTIONS} -fno-sanitize=undefined)
endif()

# Sets `variable` to the patterns of --gtest_filter that match the suites in
# `source`.
function(millrace_test_suites variable source)
  file(STRINGS ${source} tests REGEX "^(TEST|TEST_F|TEST_P|TYPED_TEST)\\(")
  set(filters)
  foreach(test IN LISTS tests)
    if(NOT test MATCHES "^([A-Z_]+)\\(([A-Za-z0-9]+),")
      message(FATAL_ERROR "${source}: cannot find the suite name in '${test}'")
    endif()
    if(CMAKE_MATCH_1 STREQUAL "TEST_P")
      list(APPEND filters "*/${CMAKE_MATCH_2}.*")
    elseif(CMAKE_MATCH_1 STREQUAL "TYPED_TEST")
      list(APPEND filters "${CMAKE_MATCH_2}/*")
    else()
      list(APPEND filters "${CMAKE_MATCH_2}.*")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES filters)
  set(${variable} ${filters} PARENT_SCOPE)
endfunction()

# All test programs, and the programs that they start.
if(MILLRACE_TESTS)
  add_custom_target(test_programs)
endif()

# Adds a program with a folder's tests, except those that this build excludes.
# ctest runs the suites of each NAME_test.cc in it as a test NAME_test, in a
# process of its own. The tests may start STARTS. PRECOMPILED is a set of
# MillracePrecompile.cmake; `test` if it is missing. TEMPLATES: the tests
# instantiate most of the code that they test.
#
#   millrace_tests(NAME draw_tests SOURCES draw_test.cc LINK millrace::sample
#                  STARTS millrace-server)
function(millrace_tests)
  cmake_parse_arguments(ARG "TEMPLATES" "NAME;TIMEOUT;PRECOMPILED"
    "SOURCES;LINK;STARTS"
    ${ARGN})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED test)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(options ${MILLRACE_TEST_OPTIONS})
  if(ARG_TEMPLATES)
    # Precompiled headers have the options of other tests.
    set(ARG_PRECOMPILED none)
    set(options ${MILLRACE_TEMPLATE_TEST_OPTIONS})
  endif()
  set(sources)
  set(entries)
  foreach(source IN LISTS ARG_SOURCES)
    if(source MATCHES "^([a-z0-9_]+_test)\\.cc$")
      millrace_is_left_out(left_out ${CMAKE_MATCH_1})
      if(left_out)
        continue()
      endif()
      list(APPEND entries ${CMAKE_MATCH_1})
    endif()
    list(APPEND sources ${source})
  endforeach()
  if(NOT entries)
    return()
  endif()
  add_executable(${ARG_NAME} ${sources})
  add_dependencies(test_programs ${ARG_NAME})
  if(ARG_STARTS AND NOT MILLRACE_SANITIZER STREQUAL "thread")
    add_dependencies(test_programs ${ARG_STARTS})
  endif()
  target_compile_features(${ARG_NAME} PRIVATE cxx_std_20)
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  # These give false warnings about std::string at -O3 in GCC 12 (its bugs
  # 105329 and 105651).
  target_compile_options(${ARG_NAME} PRIVATE ${options}
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-maybe-uninitialized>")
  target_compile_definitions(${ARG_NAME} PRIVATE
    MILLRACE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
    MILLRACE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    MILLRACE_BIN_DIR="${PROJECT_BINARY_DIR}/bin"
    MILLRACE_PYTHON="${MILLRACE_PYTHON}")
  set_target_properties(${ARG_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LINK} GTest::gmock_main)
  millrace_precompile(${ARG_NAME} ${ARG_PRECOMPILED})
  # The names of the suites are read at configure time.
  set_property(DIRECTORY APPEND PROPERTY
    CMAKE_CONFIGURE_DEPENDS ${ARG_SOURCES})
  set(known)
  foreach(entry IN LISTS entries)
    millrace_test_suites(filters ${CMAKE_CURRENT_SOURCE_DIR}/${entry}.cc)
    foreach(filter IN LISTS filters)
      if(filter IN_LIST known)
        message(FATAL_ERROR
          "${entry}.cc: suite ${filter} is also in another file of ${ARG_NAME}")
      endif()
    endforeach()
    list(APPEND known ${filters})
    list(JOIN filters ":" filter)
    set_property(GLOBAL APPEND PROPERTY MILLRACE_TEST_ENTRIES
      "${ARG_NAME} ${entry} ${filter}")
    add_test(NAME ${entry} COMMAND ${ARG_NAME} --gtest_filter=${filter})
    millrace_set_test_limits(${entry} ${ARG_TIMEOUT})
    # GoogleTest reports success for a filter that matches nothing.
    set_tests_properties(${entry} PROPERTIES
      FAIL_REGULAR_EXPRESSION "Running 0 tests from 0 test suites")
    if(MILLRACE_SANITIZER STREQUAL "thread")
      set_tests_properties(${entry} PROPERTIES ENVIRONMENT
        TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp)
    endif()
  endforeach()
endfunction()

# Adds the test that ctest runs each GoogleTest test exactly once. Must be
# called after all programs have been defined.
function(millrace_test_entries_test)
  get_property(entries GLOBAL PROPERTY MILLRACE_TEST_ENTRIES)
  list(JOIN entries "\n" lines)
  file(WRITE ${PROJECT_BINARY_DIR}/tests/entries.txt "${lines}\n")
  millrace_python_test(test_entries_test support/test_entries_test.py
    ARGS ${PROJECT_BINARY_DIR}/tests)
endfunction()
