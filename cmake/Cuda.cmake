# SPDX-License-Identifier: Apache-2.0
# The CUDA language, and the CUDA toolkit as our own imported target. CMake 3.25
# cannot find CUDA 13 by find_package(CUDAToolkit), and does not know C++20 as a
# standard of CUDA.
#
# millrace::cuda   the toolkit's headers, for C++ sources
#
# CMAKE_CUDA_ARCHITECTURES and CMAKE_CUDA_RUNTIME_LIBRARY decide for all targets,
# and no target sets the properties of these names: builds that run without a GPU
# (the preset `cuda`) need PTX and the shared runtime everywhere.
set(MILLRACE_CUDA_DIR ${PROJECT_SOURCE_DIR}/build/deps/cuda/nvidia/cu13
    CACHE PATH "Folder of the CUDA toolkit (holds bin/nvcc)")
if(NOT EXISTS ${MILLRACE_CUDA_DIR}/bin/nvcc)
  message(FATAL_ERROR
    "No CUDA toolkit in ${MILLRACE_CUDA_DIR} (bin/nvcc is missing). Run "
    "deploy/setup.sh --cuda, or set MILLRACE_CUDA_DIR, or configure with "
    "-DMILLRACE_CUDA=OFF to build without CUDA.")
endif()

# Turing, Ampere and Hopper, and PTX from which drivers compile for later ones.
set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90-real 90-virtual
    CACHE STRING "The architectures that kernels are compiled for")
set(CMAKE_CUDA_RUNTIME_LIBRARY Static
    CACHE STRING "The CUDA runtime that programs are linked to: Static or Shared")
if(NOT DEFINED CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${MILLRACE_CUDA_DIR}/bin/nvcc)
endif()
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
enable_language(CUDA)
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>")

add_library(millrace::cuda INTERFACE IMPORTED GLOBAL)
target_include_directories(millrace::cuda SYSTEM INTERFACE
  ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
