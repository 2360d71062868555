# SPDX-License-Identifier: Apache-2.0
# Everything that the project links, as imported targets.
find_package(Threads REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Protobuf REQUIRED)
include(MillraceGrpc)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
if(MILLRACE_TESTS)
  find_package(GTest CONFIG REQUIRED)
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

# The parts of gRPC that its pkg-config files do not describe.
if(NOT TARGET gRPC::grpc++_reflection)
  find_library(GRPC_REFLECTION_LIBRARY grpc++_reflection REQUIRED)
  add_library(gRPC::grpc++_reflection UNKNOWN IMPORTED)
  set_target_properties(gRPC::grpc++_reflection PROPERTIES
    IMPORTED_LOCATION ${GRPC_REFLECTION_LIBRARY}
    INTERFACE_LINK_LIBRARIES gRPC::grpc++)
endif()
if(NOT TARGET gRPC::grpc_cpp_plugin)
  find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
  add_executable(gRPC::grpc_cpp_plugin IMPORTED)
  set_target_properties(gRPC::grpc_cpp_plugin PROPERTIES
    IMPORTED_LOCATION ${GRPC_CPP_PLUGIN})
endif()

# METIS has neither a CMake nor a pkg-config file.
find_path(METIS_INCLUDE_DIR metis.h REQUIRED)
find_library(METIS_LIBRARY metis REQUIRED)
add_library(metis::metis UNKNOWN IMPORTED)
set_target_properties(metis::metis PROPERTIES
  IMPORTED_LOCATION ${METIS_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${METIS_INCLUDE_DIR})
