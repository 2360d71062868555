# SPDX-License-Identifier: Apache-2.0
# Runs when CPack has installed the components into folders, and before it makes
# packages of these: adds what only Debian's packages have.
cmake_policy(VERSION 3.25)

set(debian ${CPACK_MILLRACE_SOURCE_DIR}/deploy/debian)
set(staging ${CPACK_TEMPORARY_INSTALL_DIRECTORY})

# put(FOLDER FILE...): copies files. CPack has set DESTDIR, which file(INSTALL)
# would heed.
function(put folder)
  file(COPY ${ARGN} DESTINATION ${folder}
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

# compress(FILE...)
function(compress)
  if(ARGN)
    execute_process(COMMAND gzip --best --no-name --force ${ARGN}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
endfunction()

# Copyright, changelog, and what lintian is told.
function(add_documents component)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(root ${staging}/${component})
  set(doc ${root}/usr/share/doc/${package})
  put(${doc} ${debian}/copyright)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${doc}/changelog
    "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; "
    "urgency=medium\n\n"
    "  * Version ${CPACK_PACKAGE_VERSION}; CHANGELOG.md of the sources says what "
    "changed.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  compress(${doc}/changelog)
  if(EXISTS ${debian}/${package}.lintian)
    put(${root}/usr/share/lintian/overrides ${debian}/${package}.lintian)
    file(RENAME ${root}/usr/share/lintian/overrides/${package}.lintian
      ${root}/usr/share/lintian/overrides/${package})
  endif()
  file(GLOB pages ${root}/usr/share/man/man1/*.1)
  compress(${pages})
endfunction()

# The licences of LibTorch and of NVIDIA's libraries, as their wheels have them.
function(add_licenses component package pattern)
  file(GLOB folders
    ${CPACK_MILLRACE_LICENSES}/${pattern}.dist-info/licenses)
  foreach(folder IN LISTS folders)
    string(REGEX REPLACE "^.*/([^/]*)\\.dist-info/.*$" "\\1" name ${folder})
    set(to ${staging}/${component}/usr/share/doc/${package}/licenses/${name})
    file(GLOB files ${folder}/*)
    put(${to} ${files})
    file(GLOB files ${to}/*)
    compress(${files})
  endforeach()
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  add_documents(${component})
endforeach()
if(server IN_LIST CPACK_COMPONENTS_ALL)
  put(${staging}/server/lib/systemd/system
    ${debian}/millrace-server@.service ${debian}/millrace.slice)
  put(${staging}/server/usr/share/doc/millrace-server/examples
    ${debian}/gpu.conf)
  put(${staging}/server/etc/millrace ${debian}/example.conf)
endif()
if(train IN_LIST CPACK_COMPONENTS_ALL)
  add_licenses(train millrace-train torch-*)
  add_licenses(train millrace-train nvidia_cuda_cupti-*)
  add_licenses(train millrace-train nvidia_cuda_runtime-*)
endif()
if(train-cuda IN_LIST CPACK_COMPONENTS_ALL)
  add_licenses(train-cuda millrace-train-cuda nvidia_*)
  # It has the page of the program that starts it.
  set(man ${staging}/train-cuda/usr/share/man/man1)
  file(MAKE_DIRECTORY ${man})
  file(CREATE_LINK millrace-train.1.gz ${man}/millrace-train-cuda.1.gz
    SYMBOLIC)
endif()
