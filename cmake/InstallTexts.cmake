# SPDX-License-Identifier: Apache-2.0
# Runs while a program is installed: writes its manual pages and, for millrace,
# the completion scripts of all programs.
#
# name, program   the program's name, and the program in the build tree
# runtime_folder  where the CUDA runtime is
# data_dir        the folder for data in the prefix: share
cmake_policy(VERSION 3.25)

set(data $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${data_dir})
# A program that is linked to the shared CUDA runtime does not know where it is.
set(ENV{LD_LIBRARY_PATH} $ENV{LD_LIBRARY_PATH}:${runtime_folder})

# write_output(FILE ARGUMENT...): writes what the program prints.
function(write_output file)
  get_filename_component(folder ${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${program} ${ARGN}
    OUTPUT_FILE ${file} COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "Installing: ${file}")
endfunction()

write_output(${data}/man/man1/${name}.1 __man)
if(NOT name STREQUAL "millrace")
  return()
endif()

# Completion lists the commands, each with its description after a tab.
execute_process(COMMAND ${program} __complete ""
  OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n\t]+\t" commands "${lines}")
foreach(command IN LISTS commands)
  string(STRIP ${command} command)
  write_output(${data}/man/man1/millrace-${command}.1 __man ${command})
endforeach()

set(bash ${data}/bash-completion/completions)
set(fish ${data}/fish/vendor_completions.d)
write_output(${bash}/millrace completion bash)
write_output(${data}/zsh/vendor-completions/_millrace completion zsh)
write_output(${fish}/millrace.fish completion fish)
# Shells look for a file with the name of the command.
foreach(other millrace-server millrace-train)
  file(CREATE_LINK millrace ${bash}/${other} SYMBOLIC)
  file(CREATE_LINK millrace.fish ${fish}/${other}.fish SYMBOLIC)
endforeach()
