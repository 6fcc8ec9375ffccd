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
