# SPDX-License-Identifier: Apache-2.0
# Everything the project links, as imported targets.
find_package(Threads REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
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

# METIS ships neither a CMake nor a pkg-config file.
find_path(METIS_INCLUDE_DIR metis.h REQUIRED)
find_library(METIS_LIBRARY metis REQUIRED)
add_library(metis::metis UNKNOWN IMPORTED)
set_target_properties(metis::metis PROPERTIES
  IMPORTED_LOCATION ${METIS_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${METIS_INCLUDE_DIR})
