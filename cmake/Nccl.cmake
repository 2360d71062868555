# SPDX-License-Identifier: Apache-2.0
# NCCL as our own imported targets, if it is there: only trainers on GPUs need it.
#
# millrace::nccl          the library and its headers
# millrace::nccl_headers  the headers, for what is linked to it later
set(MILLRACE_NCCL_DIR ${PROJECT_SOURCE_DIR}/build/deps/cuda/nvidia/nccl
    CACHE PATH "Folder of NCCL (holds include/nccl.h)")
if(NOT EXISTS ${MILLRACE_NCCL_DIR}/include/nccl.h OR
   NOT EXISTS ${MILLRACE_NCCL_DIR}/lib/libnccl.so.2)
  message(STATUS
    "No NCCL in ${MILLRACE_NCCL_DIR}: leaving out what trainers on GPUs need. "
    "Run deploy/setup.sh --cuda, or set MILLRACE_NCCL_DIR to the folder that "
    "holds include/nccl.h.")
  return()
endif()

add_library(millrace::nccl_headers INTERFACE IMPORTED GLOBAL)
target_include_directories(millrace::nccl_headers SYSTEM INTERFACE
  ${MILLRACE_NCCL_DIR}/include)

# Where the library is at run time is told by RUNPATH, which LD_LIBRARY_PATH, and
# with it the stand-in of tests/ptxemu, comes before.
add_library(millrace::nccl SHARED IMPORTED GLOBAL)
set_target_properties(millrace::nccl PROPERTIES
  IMPORTED_LOCATION ${MILLRACE_NCCL_DIR}/lib/libnccl.so.2
  IMPORTED_SONAME libnccl.so.2)
target_link_libraries(millrace::nccl INTERFACE millrace::nccl_headers)
target_link_options(millrace::nccl INTERFACE LINKER:--enable-new-dtags)
