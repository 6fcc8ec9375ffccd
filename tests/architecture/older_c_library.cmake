# Programs of the tarball need version 2.34 of the C library at most, and exceptions, random numbers and distances still work, in
# programs and in libraries that they load.
# cmake -DSOURCE=... -DBINARY=... -DCOMPILER=... -DC_COMPILER=... -DREADELF=... -P older_c_library.cmake
set(work "${BINARY}/architecture/older_c_library")
file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")
set(flags -fPIC -O0 -static-libgcc -static-libstdc++)
execute_process(COMMAND "${C_COMPILER}" -D_GNU_SOURCE -O1 -fPIC -ffunction-sections -fno-builtin-hypot -c -o "${work}/older.o"
                "${SOURCE}/packaging/tarball/older_c_library.c" COMMAND_ERROR_IS_FATAL ANY)
set(source "${CMAKE_CURRENT_LIST_DIR}/older_c_library.cpp")
execute_process(COMMAND "${COMPILER}" ${flags} -DMAIN "${source}" "${work}/older.o" -o "${work}/program" -ldl COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${COMPILER}" ${flags} -shared -Wl,--exclude-libs,ALL "${source}" "${work}/older.o" -o "${work}/library.so"
                COMMAND_ERROR_IS_FATAL ANY)
foreach(made program library.so)
  execute_process(COMMAND ${CMAKE_COMMAND} "-DLIBRARY=${work}/${made}" "-DREADELF=${READELF}" -DOLDEST=2.34
                          -P "${SOURCE}/cmake/DemarcNeedsTheCLibraryAlone.cmake" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND "${work}/program" "${work}/library.so" OUTPUT_VARIABLE text RESULT_VARIABLE code)
if(NOT code EQUAL 0 OR NOT text STREQUAL "works\n")
  message(FATAL_ERROR "the program ended with ${code} and printed: ${text}")
endif()
