# A confined program loads these libraries, also where little is installed: they need the C library and nothing else.
# cmake -DLIBRARY=... -DREADELF=... -P needs_the_c_library_alone.cmake
execute_process(COMMAND "${READELF}" -d "${LIBRARY}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "Shared library: \\[[^]]+\\]" needed "${text}")
if(NOT needed)
  message(FATAL_ERROR "${LIBRARY}: ${READELF} names no library that it needs:\n${text}")
endif()
foreach(line IN LISTS needed)
  if(NOT line MATCHES "\\[(libc|libm|libdl|libpthread|ld-linux[a-z0-9-]*)\\.so[.0-9]*\\]")
    message(FATAL_ERROR "${LIBRARY}: a confined program would have to have this too: ${line}")
  endif()
endforeach()
