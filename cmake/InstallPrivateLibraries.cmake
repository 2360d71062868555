# SPDX-License-Identifier: Apache-2.0
# Runs while a program is installed: copies the libraries that it needs and that
# no package of the system has (LibTorch, the CUDA runtime, NCCL) into `target`.
# They are found as the dynamic linker would: through what each of them needs.
#
# program   the program in the build tree
# bases     programs that are installed before this one and whose libraries it
#           uses
# opened    libraries that are opened by name at run time, besides
# folders   the folders that private libraries are in
# runtime_folder  where the CUDA runtime is, which a program that is linked to the
#           shared one does not say itself
# target    where to
cmake_policy(VERSION 3.25)

# private_libraries(VARIABLE PROGRAM...): sets VARIABLE to the paths.
function(private_libraries variable)
  file(GET_RUNTIME_DEPENDENCIES
    EXECUTABLES ${ARGN}
    LIBRARIES ${opened}
    RESOLVED_DEPENDENCIES_VAR found
    UNRESOLVED_DEPENDENCIES_VAR missing
    CONFLICTING_DEPENDENCIES_PREFIX several
    DIRECTORIES ${runtime_folder}
    POST_INCLUDE_REGEXES ${inside}
    POST_EXCLUDE_REGEXES ".*")
  # NVIDIA's driver is never part of a package.
  list(REMOVE_ITEM missing libcuda.so.1)
  if(missing)
    message(FATAL_ERROR "${ARGN} needs ${missing}, which is not installed")
  endif()
  # NCCL is in the folder of LibTorch, and in that of the CUDA toolkit.
  foreach(name IN LISTS several_FILENAMES)
    list(GET several_${name} 0 first)
    list(APPEND found ${first})
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# Lets a library find the others beside it, and nothing elsewhere: the wheels
# have a layout of their own.
function(look_beside library)
  file(READ_ELF ${library} RPATH rpath RUNPATH runpath)
  if(rpath OR runpath)
    file(RPATH_SET FILE ${library} NEW_RPATH "$ORIGIN")
  endif()
endfunction()

set(inside)
foreach(folder IN LISTS folders)
  file(REAL_PATH ${folder} real)
  foreach(path IN ITEMS ${folder} ${real})
    string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\1" pattern ${path})
    list(APPEND inside "^${pattern}/")
  endforeach()
endforeach()
private_libraries(libraries ${program})
list(APPEND libraries ${opened})
if(bases)
  set(opened)
  private_libraries(from_bases ${bases})
endif()
set(known)
foreach(library IN LISTS from_bases)
  get_filename_component(name ${library} NAME)
  list(APPEND known ${name})
endforeach()
foreach(library IN LISTS libraries)
  get_filename_component(name ${library} NAME)
  if(name IN_LIST known)
    continue()
  endif()
  file(REAL_PATH ${library} real)
  file(INSTALL DESTINATION ${CMAKE_INSTALL_PREFIX}/${target}
    TYPE FILE FILES ${real} RENAME ${name})
  look_beside($ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${target}/${name})
endforeach()
