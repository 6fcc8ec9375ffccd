# The packages of an optimised build: the tarball's program runs from where it was unpacked, and confines a program; the
# Debian package names what it needs.
# cmake -DBINARY=... -DCPACK=... -P package.cmake
set(work "${BINARY}/architecture/package")
file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")
execute_process(COMMAND "${CPACK}" --config "${BINARY}/CPackConfig.cmake" -G "DEB;TGZ" -B "${work}" WORKING_DIRECTORY "${work}"
                OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "cpack ended with ${code}:\n${text}")
endif()
file(GLOB tarball "${work}/demarc-*.tar.gz")
file(ARCHIVE_EXTRACT INPUT "${tarball}" DESTINATION "${work}/unpacked")
file(GLOB demarc "${work}/unpacked/*/bin/demarc" "${work}/unpacked/bin/demarc")
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env "DEMARC_LIBCUDA=${BINARY}/libdemarc_fake_libcuda.so" "DEMARC_CACHE=${work}/cache"
          "${demarc}" exec --tpcs 1,3 -- "${demarc}" verify --tpcs 1,3
  OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE code)
if(NOT code EQUAL 0 OR NOT text MATCHES "HOLDS")
  message(FATAL_ERROR "the program of ${tarball} ended with ${code} and printed: ${text}")
endif()
file(GLOB_RECURSE archives "${work}/unpacked/*.a")
if(archives)
  message(FATAL_ERROR "${tarball} has what C++ programs alone need: ${archives}")
endif()

find_program(dpkg_deb dpkg-deb REQUIRED)
file(GLOB package "${work}/demarc-*.deb")
execute_process(COMMAND "${dpkg_deb}" --field "${package}" Depends OUTPUT_VARIABLE needs COMMAND_ERROR_IS_FATAL ANY)
if(NOT needs MATCHES "libc6 \\(>= " OR NOT needs MATCHES "libsqlite3-0")
  message(FATAL_ERROR "${package} needs ${needs}")
endif()
execute_process(COMMAND "${dpkg_deb}" --extract "${package}" "${work}/installed" COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS "${work}/installed/usr/lib/systemd/system/demarc.service" start REGEX "^ExecStart=")
if(NOT start MATCHES "^ExecStart=demarc serve " OR NOT EXISTS "${work}/installed/usr/bin/demarc")
  message(FATAL_ERROR "the unit of ${package} starts ${start}")
endif()
