# What `make tarball` carries to other machines (DEMARC_STATIC): programs and libraries that need the C library alone, of the
# version of RHEL 9 or a newer one.
set(DEMARC_OLDEST_C_LIBRARY "")
if(DEMARC_STATIC)
  set(DEMARC_OLDEST_C_LIBRARY 2.34)
  add_library(demarc_older_c_library OBJECT "${PROJECT_SOURCE_DIR}/packaging/tarball/older_c_library.c")
  target_compile_options(demarc_older_c_library PRIVATE -D_GNU_SOURCE -O1 -ffunction-sections -fno-builtin-hypot -Wall -Wextra
                                                        $<$<BOOL:${DEMARC_WARNINGS_AS_ERRORS}>:-Werror>)
  set_target_properties(demarc_older_c_library PROPERTIES UNITY_BUILD OFF)
endif()

# demarc_carry(TARGET): the target needs no C++ library, and nothing that the C library has had only since a newer version.
function(demarc_carry target)
  if(DEMARC_STATIC)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:demarc_older_c_library>)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections)
  endif()
endfunction()
