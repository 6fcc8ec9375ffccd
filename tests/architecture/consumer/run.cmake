# Configures, builds and runs the consumer against the build tree or an install tree.
set(work "${BINARY}/consumer/${TREE}")
file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")
set(prefix "${BINARY}")
if(TREE STREQUAL install)
  set(prefix "${work}/prefix")
  execute_process(COMMAND ${CMAKE_COMMAND} --install "${BINARY}" --prefix "${prefix}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -S "${CMAKE_CURRENT_LIST_DIR}" -B "${work}/build" -G Ninja
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_C_COMPILER=${C_COMPILER} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build "${work}/build" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${work}/build/consumer" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
if(NOT text MATCHES "^demarc [0-9.]+ rank 2 kernels 1\n$")
  message(FATAL_ERROR "the consumer printed: ${text}")
endif()
execute_process(COMMAND "${work}/build/c_consumer" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
if(NOT text MATCHES "^demarc [0-9.]+\n$")
  message(FATAL_ERROR "the consumer of the C interface printed: ${text}")
endif()

# Without CMake: what pkg-config says is enough.
find_program(pkg_config pkg-config REQUIRED)
if(TREE STREQUAL install)
  file(GLOB file "${prefix}/lib*/pkgconfig/demarc.pc" "${prefix}/lib/*/pkgconfig/demarc.pc")
  get_filename_component(folder "${file}" DIRECTORY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env "PKG_CONFIG_PATH=${folder}" "${pkg_config}" --cflags --libs demarc
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  execute_process(COMMAND "${C_COMPILER}" -o "${work}/by_pkg_config" "${CMAKE_CURRENT_LIST_DIR}/main.c" ${flags} COMMAND_ERROR_IS_FATAL ANY)
  get_filename_component(libraries "${folder}" DIRECTORY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env "LD_LIBRARY_PATH=${libraries}" "${work}/by_pkg_config"
                  OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  if(NOT text MATCHES "^demarc [0-9.]+\n$")
    message(FATAL_ERROR "the program that pkg-config helped to build printed: ${text}")
  endif()
endif()

# The installed Python package finds the library beside it.
find_program(python python3)
if(TREE STREQUAL install AND python)
  file(GLOB package "${prefix}/lib*/demarc/python/demarc/__init__.py" "${prefix}/lib/*/demarc/python/demarc/__init__.py")
  get_filename_component(package "${package}" DIRECTORY)
  get_filename_component(package "${package}" DIRECTORY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=DEMARC_LIBRARY "PYTHONPATH=${package}" PYTHONDONTWRITEBYTECODE=1 "${python}" -c
    "import demarc, demarc._library as l; print(demarc.version(), l.find_library(), l.find_program())"
    OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE code)
  if(NOT code EQUAL 0 OR NOT text MATCHES "^[0-9.]+ ${prefix}/.*/libdemarc.so ${prefix}/bin/demarc\n$")
    message(FATAL_ERROR "the installed Python package ended with ${code} and printed: ${text}")
  endif()
endif()

# The installed program finds what it loads into others: a confined `verify` on the stand-in driver holds.
if(TREE STREQUAL install)
  include("${CMAKE_CURRENT_LIST_DIR}/../confines.cmake")
  expect_that_it_confines("the install" "${prefix}/bin/demarc" "${BINARY}" "${work}/cache")
endif()
