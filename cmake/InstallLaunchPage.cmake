# SPDX-License-Identifier: Apache-2.0
# Runs while millrace-launch is installed: writes its manual page, which is what
# it prints for --help.
#
# program   the program
# data_dir  the folder for data in the prefix: share
cmake_policy(VERSION 3.25)

set(page $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${data_dir}/man/man1/millrace-launch.1)
execute_process(COMMAND ${CMAKE_COMMAND} -E env COLUMNS=80
    /usr/bin/python3 -B ${program} --help
  OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
# Escapes what troff would take for an escape, a hyphen or a request.
string(REPLACE "\\" "\\e" help "${help}")
string(REPLACE "-" "\\-" help "${help}")
string(REGEX REPLACE "\n([.'])" "\n\\\\&\\1" help "${help}")
file(WRITE ${page}
  ".TH MILLRACE\\-LAUNCH 1\n"
  ".SH NAME\n"
  "millrace\\-launch \\- starts sampler servers and trainers over ssh\n"
  ".SH DESCRIPTION\n"
  ".nf\n${help}.fi\n")
message(STATUS "Installing: ${page}")
