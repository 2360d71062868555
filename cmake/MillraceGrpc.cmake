# SPDX-License-Identifier: Apache-2.0
# Finds gRPC::grpc++ of gRPC 1.51 or newer, by gRPC's CMake config or, if that
# is not installed, by pkg-config. Used by the build and by
# find_package(Millrace). Only Debian 12's 1.51.1 has been tested; newer
# versions should work, since the code uses only public headers.
find_package(gRPC 1.51 CONFIG QUIET)
if(NOT TARGET gRPC::grpc++)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(grpc++ REQUIRED IMPORTED_TARGET grpc++>=1.51)
  add_library(gRPC::grpc++ INTERFACE IMPORTED)
  target_link_libraries(gRPC::grpc++ INTERFACE PkgConfig::grpc++)
endif()
