# SPDX-License-Identifier: Apache-2.0
# LibTorch from the pinned wheel, as our own imported target. Unlike the wheel's
# find_package(Torch), this does not need a CUDA toolkit.
#
# millrace::torch   libtorch_cpu and libc10, with their headers
set(MILLRACE_TORCH_DIR ${PROJECT_SOURCE_DIR}/build/deps/torch CACHE PATH
    "Folder the torch wheel was installed into (holds torch/lib)")

set(torch_root ${MILLRACE_TORCH_DIR}/torch)
if(NOT EXISTS ${torch_root}/lib/libtorch_cpu.so)
  message(FATAL_ERROR
    "No LibTorch in ${MILLRACE_TORCH_DIR} (lib/libtorch_cpu.so is missing). "
    "Run deploy/setup.sh, or set MILLRACE_TORCH_DIR, or configure with "
    "-DMILLRACE_TRAIN=OFF to build without millrace-train.")
endif()

add_library(millrace::c10 SHARED IMPORTED GLOBAL)
set_target_properties(millrace::c10 PROPERTIES
  IMPORTED_LOCATION ${torch_root}/lib/libc10.so)

add_library(millrace::torch SHARED IMPORTED GLOBAL)
set_target_properties(millrace::torch PROPERTIES
  IMPORTED_LOCATION ${torch_root}/lib/libtorch_cpu.so
  # The CUDA runtime and CUPTI, which libtorch_cpu.so needs at run time, are
  # beside it and found by its own RPATH.
  IMPORTED_LINK_DEPENDENT_LIBRARIES ""
  INTERFACE_LINK_OPTIONS "LINKER:--allow-shlib-undefined")
target_include_directories(millrace::torch SYSTEM INTERFACE
  ${torch_root}/include
  ${torch_root}/include/torch/csrc/api/include)
target_link_libraries(millrace::torch INTERFACE millrace::c10)

# millrace::torch_cuda   libtorch_cuda and libc10_cuda with the CUDA runtime
# beside them, if what they need is installed (deploy/setup.sh --torch cuda). They
# start without a driver.
set(torch_cuda_libraries ${MILLRACE_TORCH_DIR}/nvidia)
if(MILLRACE_CUDA AND TARGET millrace::nccl AND
   EXISTS ${torch_cuda_libraries}/cu13/lib/libcublas.so.13)
  add_library(millrace::torch_cuda INTERFACE IMPORTED GLOBAL)
  target_link_libraries(millrace::torch_cuda INTERFACE
    # Nothing calls libtorch_cuda directly: it registers its kernels.
    -Wl,--push-state,--no-as-needed
    ${torch_root}/lib/libtorch_cuda.so ${torch_root}/lib/libc10_cuda.so
    -Wl,--pop-state
    ${torch_cuda_libraries}/cu13/lib/libcudart.so.13
    millrace::torch millrace::cuda)
elseif(MILLRACE_CUDA)
  message(STATUS
    "No CUDA libraries of LibTorch in ${MILLRACE_TORCH_DIR}: leaving out "
    "millrace-train-cuda. Run deploy/setup.sh --cuda --torch cuda.")
endif()

# c10d's Gloo header needs gloo's own headers, which are not in the wheel but in
# Debian's libgloo-dev. Code that includes it must define USE_C10D_GLOO. gloo's
# library is never linked: libtorch exports its own.
find_path(MILLRACE_GLOO_INCLUDE_DIR gloo/context.h REQUIRED)
