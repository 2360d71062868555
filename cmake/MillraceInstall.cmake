# SPDX-License-Identifier: Apache-2.0
# Installs the programs with the libraries that they bring along, and the loader
# with everything that find_package(Millrace) needs. An installed folder can be
# moved, and needs nothing of the build. The components, which are also packages
# (MillracePackages.cmake):
#
# tools        millrace, millrace-launch, completion, manual pages and docs/
# server       millrace-server
# train        millrace-train and LibTorch
# train-cuda   millrace-train-cuda and LibTorch's libraries for GPUs
# dev          the loader
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(PROGRAMS ${PROJECT_SOURCE_DIR}/deploy/launch/millrace-launch
  TYPE BIN COMPONENT tools)
install(CODE "
  set(program \"${PROJECT_SOURCE_DIR}/deploy/launch/millrace-launch\")
  set(data_dir \"${CMAKE_INSTALL_DATAROOTDIR}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/InstallLaunchPage.cmake\")"
  COMPONENT tools)
set(millrace_doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/millrace)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${millrace_doc_dir} COMPONENT tools)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs
  DESTINATION ${millrace_doc_dir} COMPONENT tools)
# What docs/operations.md starts from.
foreach(folder grafana haproxy kubernetes nftables prometheus slurm)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/deploy/${folder}
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/millrace/deploy COMPONENT tools
    USE_SOURCE_PERMISSIONS
    PATTERN __pycache__ EXCLUDE PATTERN "*_test.*" EXCLUDE)
endforeach()

set(millrace_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Millrace)

# millrace::loader and all libraries that it depends on.
set(millrace_cuda_libraries)
if(MILLRACE_CUDA)
  set(millrace_cuda_libraries
      millrace_cuda_runtime millrace_cuda_graph millrace_cuda_sampler
      millrace_cuda_feature_rows)
endif()
install(TARGETS
  millrace_proto millrace_proto_grpc millrace_base millrace_random
  millrace_file millrace_net
  millrace_graph millrace_sample millrace_sample_draw millrace_sample_seeds
  millrace_sample_local ${millrace_cuda_libraries} millrace_tier
  millrace_wire millrace_grpc millrace_grpc_tls
  millrace_grpc_fleet millrace_grpc_call millrace_loader_remote millrace_loader
  EXPORT MillraceTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/millrace COMPONENT dev
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/millrace
  COMPONENT dev)
install(EXPORT MillraceTargets
  NAMESPACE millrace::
  DESTINATION ${millrace_config_dir} COMPONENT dev)

# Where programs find the libraries that they bring along.
set(millrace_private_dir lib/millrace)

# The CUDA runtime, in the installed folder: what the kernels' libraries need.
set(millrace_cuda_runtime_library)
if(MILLRACE_CUDA AND CMAKE_CUDA_RUNTIME_LIBRARY STREQUAL "Shared")
  set(millrace_cuda_runtime_library ${millrace_private_dir}/libcudart.so.13)
elseif(MILLRACE_CUDA)
  set(millrace_cuda_runtime_library
      ${CMAKE_INSTALL_LIBDIR}/millrace/libcudart_static.a)
  install(FILES ${MILLRACE_CUDA_DIR}/lib/libcudart_static.a
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/millrace COMPONENT dev)
endif()
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/MillraceConfig.cmake.in
  ${PROJECT_BINARY_DIR}/MillraceConfig.cmake
  INSTALL_DESTINATION ${millrace_config_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/MillraceConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/MillraceConfig.cmake
  ${PROJECT_BINARY_DIR}/MillraceConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/MillraceGrpc.cmake
  DESTINATION ${millrace_config_dir} COMPONENT dev)

# Libraries that LibTorch and cuDNN open by name.
set(millrace_opened_libraries)
if(TARGET millrace-train-cuda)
  file(GLOB millrace_opened_libraries
    ${MILLRACE_TORCH_DIR}/torch/lib/libtorch_cuda_linalg.so
    ${MILLRACE_TORCH_DIR}/torch/lib/libcaffe2_nvrtc.so
    ${MILLRACE_TORCH_DIR}/nvidia/cu13/lib/libnvrtc-builtins.so.*
    ${MILLRACE_TORCH_DIR}/nvidia/cudnn/lib/libcudnn_*.so.*)
endif()

# millrace_install_program(PROGRAM COMPONENT [BASES program...]
#                          [OPENED library...]): installs a program with its
# libraries, except those of the programs BASES, and the completion scripts and
# the manual page that it prints.
function(millrace_install_program program component)
  cmake_parse_arguments(ARG "" "" "BASES;OPENED" ${ARGN})
  if(NOT TARGET ${program})
    return()
  endif()
  file(RELATIVE_PATH to_libraries
    /${CMAKE_INSTALL_BINDIR} /${millrace_private_dir})
  if(component MATCHES "^train" OR
     CMAKE_CUDA_RUNTIME_LIBRARY STREQUAL "Shared")
    set_target_properties(${program} PROPERTIES
      INSTALL_RPATH "$ORIGIN/${to_libraries}")
  endif()
  install(TARGETS ${program} RUNTIME COMPONENT ${component})
  set(bases)
  foreach(base IN LISTS ARG_BASES)
    list(APPEND bases $<TARGET_FILE:${base}>)
  endforeach()
  set(folders)
  foreach(folder IN ITEMS ${MILLRACE_NCCL_DIR} ${MILLRACE_CUDA_DIR}
                          ${MILLRACE_TORCH_DIR})
    if(EXISTS ${folder})
      list(APPEND folders ${folder})
    endif()
  endforeach()
  install(CODE "
    set(program \"$<TARGET_FILE:${program}>\")
    set(bases \"${bases}\")
    set(opened \"${ARG_OPENED}\")
    set(folders \"${folders}\")
    set(runtime_folder \"${MILLRACE_CUDA_DIR}/lib\")
    set(target ${millrace_private_dir})
    include(\"${PROJECT_SOURCE_DIR}/cmake/InstallPrivateLibraries.cmake\")"
    COMPONENT ${component})
  if(component STREQUAL "train-cuda")
    return()  # millrace-train starts it and has its page
  endif()
  install(CODE "
    set(name ${program})
    set(program \"$<TARGET_FILE:${program}>\")
    set(runtime_folder \"${MILLRACE_CUDA_DIR}/lib\")
    set(data_dir \"${CMAKE_INSTALL_DATAROOTDIR}\")
    include(\"${PROJECT_SOURCE_DIR}/cmake/InstallTexts.cmake\")"
    COMPONENT ${component})
endfunction()

millrace_install_program(millrace tools)
millrace_install_program(millrace-server server BASES millrace)
millrace_install_program(millrace-train train BASES millrace)
millrace_install_program(millrace-train-cuda train-cuda
  BASES millrace millrace-train OPENED ${millrace_opened_libraries})
