# SPDX-License-Identifier: Apache-2.0
# Targets that change or check the sources. `deploy/setup.sh --checks` installs
# what they call.
#
#   format   rewrites all C++ and CUDA files that git knows
#   tidy     clang-tidy over common/ and server/; .clang-tidy has the checks.
#            MILLRACE_TIDY_FILES, a regular expression over paths, restricts it
#            to matching paths. Much faster in a unity build (the asan preset),
#            whose units are in the build folder, than file by file.

set(MILLRACE_TIDY_FILES
    "^(${PROJECT_SOURCE_DIR}|${PROJECT_BINARY_DIR})/(common|server)/" CACHE STRING
    "Regular expression over the paths of the files that `tidy` checks")
mark_as_advanced(MILLRACE_TIDY_FILES)

# millrace_check_target(NAME PROGRAM COMMAND...): adds a target that runs the
# commands; without PROGRAM, the target says that it is missing.
function(millrace_check_target name program)
  string(MAKE_C_IDENTIFIER "MILLRACE_${program}" variable)
  find_program(${variable} ${program})
  mark_as_advanced(${variable})
  if(${variable})
    add_custom_target(${name} ${ARGN}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM USES_TERMINAL)
  else()
    add_custom_target(${name}
      COMMAND ${CMAKE_COMMAND} -E echo
              "there is no ${program}; run deploy/setup.sh --checks"
      COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
  endif()
endfunction()

millrace_check_target(format clang-format-14
  COMMAND sh -c
    "git -c safe.directory='*' ls-files -z '*.h' '*.cc' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format-14 -i")

# Clang cannot read GCC's precompiled headers, and its own may not have been
# built, so they are removed from the commands. Warnings that only GCC knows must
# not cause errors.
millrace_check_target(tidy run-clang-tidy-14
  COMMAND ${CMAKE_COMMAND} -D FROM=${PROJECT_BINARY_DIR}
          -D TO=${PROJECT_BINARY_DIR}/tidy
          -P ${CMAKE_CURRENT_LIST_DIR}/TidyCommands.cmake
  COMMAND run-clang-tidy-14 -quiet -p ${PROJECT_BINARY_DIR}/tidy
          -extra-arg=-Wno-unknown-warning-option ${MILLRACE_TIDY_FILES})
add_dependencies(tidy millrace_proto_headers)
