# A confined program loads these libraries, also where little is installed: they need the C library and nothing else. If
# OLDEST is given, this version of it suffices.
# cmake -DLIBRARY=... -DREADELF=... [-DOLDEST=2.34] -P DemarcNeedsTheCLibraryAlone.cmake
# Its words are translated where the user's language is another one.
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C "${READELF}" -W -d --dyn-syms "${LIBRARY}" OUTPUT_VARIABLE text
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
if(OLDEST)
  string(REGEX MATCHALL "[A-Za-z0-9_]+@GLIBC_[0-9.]+" symbols "${text}")
  if(NOT symbols)
    message(FATAL_ERROR "${LIBRARY}: ${READELF} names no function of the C library:\n${text}")
  endif()
  foreach(symbol IN LISTS symbols)
    string(REGEX REPLACE ".*@GLIBC_" "" version "${symbol}")
    if(version VERSION_GREATER OLDEST)
      message(FATAL_ERROR "${LIBRARY} needs version ${version} of the C library, but ${OLDEST} was to suffice: ${symbol}; "
                          "packaging/tarball/older_c_library.c replaces such functions")
    endif()
  endforeach()
endif()
