# SPDX-License-Identifier: Apache-2.0
# Installs the programs, and the loader with everything that
# find_package(Millrace) needs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(PROGRAMS ${PROJECT_SOURCE_DIR}/deploy/launch/millrace-launch
  TYPE BIN COMPONENT tools)

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
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/millrace
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/millrace)
install(EXPORT MillraceTargets
  NAMESPACE millrace::
  DESTINATION ${millrace_config_dir})

if(CMAKE_CUDA_RUNTIME_LIBRARY STREQUAL "Shared")
  set(millrace_cuda_runtime_library ${MILLRACE_CUDA_DIR}/lib/libcudart.so)
else()
  set(millrace_cuda_runtime_library
      ${MILLRACE_CUDA_DIR}/lib/libcudart_static.a)
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
  DESTINATION ${millrace_config_dir})

# LibTorch stays where deploy/setup.sh installed it; the trainer's run path
# points there.
foreach(program millrace millrace-server millrace-train)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES
      INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${program} RUNTIME)
  endif()
endforeach()
