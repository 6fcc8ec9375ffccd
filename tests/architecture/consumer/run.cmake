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
  set(demarc "${prefix}/bin/demarc")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env "DEMARC_LIBCUDA=${BINARY}/libdemarc_fake_libcuda.so" "DEMARC_CACHE=${work}/cache"
            "${demarc}" exec --tpcs 1,3 -- "${demarc}" verify --tpcs 1,3
    OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE code)
  if(NOT code EQUAL 0 OR NOT text MATCHES "HOLDS")
    message(FATAL_ERROR "the installed program ended with ${code} and printed: ${text}")
  endif()
endif()
