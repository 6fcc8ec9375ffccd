# A confined program loads these libraries, also where little is installed: they need the C library and nothing else.
# cmake -DLIBRARY=... -DREADELF=... -P DemarcNeedsTheCLibraryAlone.cmake
# Its words are translated where the user's language is another one.
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C "${READELF}" -d "${LIBRARY}" OUTPUT_VARIABLE text
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "Shared library: \\[[^]]+\\]" needed "${text}")
if(NOT needed)
  message(FATAL_ERROR "${LIBRARY}: ${READELF} names no library that it needs:\n${text}")
endif()
foreach(line IN LISTS needed)
  if(NOT line MATCHES "\\[(libc|libm|libdl|libpthread|librt|ld-linux[a-z0-9-]*)\\.so[.0-9]*\\]")
    message(FATAL_ERROR "${LIBRARY}: a confined program would have to have this too: ${line}")
  endif()
endforeach()
