# SPDX-License-Identifier: Apache-2.0
# Debian packages, one for each component of MillraceInstall.cmake. `cpack` in the
# build folder makes them; deploy/debian/build.sh builds first.
set(MILLRACE_PACKAGE_CONTACT "Millrace maintainers <maintainers@millrace.invalid>"
    CACHE STRING "The maintainer that Debian packages name")
mark_as_advanced(MILLRACE_PACKAGE_CONTACT)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME millrace)
set(CPACK_PACKAGE_CONTACT ${MILLRACE_PACKAGE_CONTACT})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/DebianFiles.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# LibTorch has half a gigabyte: gzip takes seconds where xz takes minutes.
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
set(CPACK_THREADS 0)
set(MILLRACE_DEBIAN_DIR ${PROJECT_SOURCE_DIR}/deploy/debian)
set(CPACK_MILLRACE_SOURCE_DIR ${PROJECT_SOURCE_DIR})

# millrace_package(COMPONENT PACKAGE DEPENDS list DESCRIPTION text): the first
# line of the text is the summary.
macro(millrace_package component package depends description)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${description}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS ON)
endmacro()

millrace_package(tools millrace "" "tools for graph data and sampler fleets
Millrace serves batches of sampled graphs to trainers of graph neural networks.
.
This package has the tool that imports, partitions and verifies graphs, shows
the state of a fleet of servers, and measures it.")
# For millrace-launch.
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "openssh-client, python3")
millrace_package(server millrace-server
  "adduser, millrace (= ${PROJECT_VERSION})"
  "server of sampled graph batches
Millrace serves batches of sampled graphs to trainers of graph neural networks.
.
This package has the server, with units of systemd that run it as a user of its
own. Each server is started by an administrator: none runs at first.")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
    ${MILLRACE_DEBIAN_DIR}/server/conffiles
    ${MILLRACE_DEBIAN_DIR}/server/postinst
    ${MILLRACE_DEBIAN_DIR}/server/postrm
    ${MILLRACE_DEBIAN_DIR}/server/prerm)
millrace_package(train millrace-train "millrace (= ${PROJECT_VERSION})"
  "trainer of graph neural networks
Millrace serves batches of sampled graphs to trainers of graph neural networks.
.
This package has the trainer, with LibTorch in a folder of its own. It trains
on CPUs, and with millrace-train-cuda on GPUs, too.")
millrace_package(train-cuda millrace-train-cuda
  "millrace-train (= ${PROJECT_VERSION})"
  "trainer of graph neural networks, for GPUs
Millrace serves batches of sampled graphs to trainers of graph neural networks.
.
This package lets millrace-train train on GPUs of NVIDIA. It brings the CUDA
libraries along, which take gigabytes, but not the driver.")
# What MillraceConfig.cmake looks for, and the programs that the configuration of
# gRPC insists on. The shared CUDA runtime is in `millrace`.
set(millrace_dev_depends
  "libabsl-dev, libgrpc++-dev, libprotobuf-dev, libspdlog-dev, libssl-dev, libxxhash-dev, nlohmann-json3-dev, pkg-config, protobuf-compiler, protobuf-compiler-grpc, zlib1g-dev")
if(MILLRACE_CUDA AND CMAKE_CUDA_RUNTIME_LIBRARY STREQUAL "Shared")
  string(APPEND millrace_dev_depends ", millrace (= ${PROJECT_VERSION})")
endif()
millrace_package(dev libmillrace-dev "${millrace_dev_depends}"
  "loader of graph batches, for C++ programs
Millrace serves batches of sampled graphs to trainers of graph neural networks.
.
This package has what find_package(Millrace) of CMake needs: the loader, a
stream of batches from a folder or from a fleet of servers.")
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)

set(CPACK_COMPONENTS_ALL tools server dev)
if(TARGET millrace-train)
  list(APPEND CPACK_COMPONENTS_ALL train)
  # Where dpkg-shlibdeps finds the libraries that no package of Debian has.
  file(GLOB CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    ${MILLRACE_TORCH_DIR}/torch/lib ${MILLRACE_TORCH_DIR}/nvidia/*/lib
    ${MILLRACE_NCCL_DIR}/lib)
endif()
if(MILLRACE_CUDA)
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    ${MILLRACE_CUDA_DIR}/lib)
endif()
if(TARGET millrace-train-cuda)
  # LibTorch needs the driver's library, which no package has. dpkg-shlibdeps is
  # content with an empty one.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/driver/empty.cc CONTENT "")
  add_library(millrace_empty_driver SHARED ${PROJECT_BINARY_DIR}/driver/empty.cc)
  set_target_properties(millrace_empty_driver PROPERTIES
    OUTPUT_NAME cuda SOVERSION 1 UNITY_BUILD OFF
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/driver)
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    ${PROJECT_BINARY_DIR}/driver)
endif()
set(CPACK_MILLRACE_LICENSES ${MILLRACE_TORCH_DIR})
include(CPack)
