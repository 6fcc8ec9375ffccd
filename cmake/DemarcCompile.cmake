# Language level, warnings and sanitizers, applied to every target of ours through demarc_compile_options().
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(DEMARC_CCACHE ccache)
if(DEMARC_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # base_dir lets a fresh clone elsewhere reuse what another clone compiled; precompiled headers need the two others.
  # No header of ours is precompiled: where its comments alone change, the cache gives the precompiled header from before, as
  # its preprocessed text is the same; GCC then takes the two for different files and reads it twice.
  set(launcher ${CMAKE_COMMAND} -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
               CCACHE_SLOPPINESS=pch_defines,time_macros ${DEMARC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# Clang up to 16 cannot read <chrono> of libstdc++ 13 and later (Ubuntu 24.04), for a consteval member that is called
# within its own class: as a constexpr member it is as good.
set(DEMARC_LIBRARY_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -std=c++20)
  check_cxx_source_compiles("#include <chrono>\nint main() {}" DEMARC_CHRONO_COMPILES)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT DEMARC_CHRONO_COMPILES)
    set(DEMARC_LIBRARY_OPTIONS -Dconsteval=constexpr)
  endif()
endif()

# GCC looks for memory that it may use again as soon as it has taken 128 MB, and then again and again. That is an eighth of the
# time of our largest units. Where there is memory for three of them it begins at 1 GiB; the largest takes 2.1 GB.
cmake_host_system_information(RESULT DEMARC_MEMORY QUERY TOTAL_PHYSICAL_MEMORY)

# demarc_compile_options(TARGET [SANITIZE list]): with these sanitizers instead of DEMARC_SANITIZE.
function(demarc_compile_options target)
  cmake_parse_arguments(ARG "" "SANITIZE" "" ${ARGN})
  set(sanitize "${DEMARC_SANITIZE}")
  if(DEFINED ARG_SANITIZE)
    set(sanitize "${ARG_SANITIZE}")
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE ${DEMARC_LIBRARY_OPTIONS})
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion
                                           -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 at -O3 reports members of std::variant and std::optional that are never read, and overlapping copies within
    # std::string concatenation (GCC bug 105651); the sanitizers look instead.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-restrict)
    if(DEMARC_MEMORY GREATER 7000)
      target_compile_options(${target} PRIVATE "SHELL:--param ggc-min-heapsize=1048576")
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    # A precompiled header without its time: else ccache finds it new each time.
    target_compile_options(${target} PRIVATE -Wreserved-identifier "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  if(DEMARC_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # Floating point must not depend on the machine: no fused multiply-add behind our back.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  if(DEMARC_SANITIZE)
    # A null pointer faults by itself; looking before each use, and at each object's type, is a tenth of the build.
    target_compile_options(${target} PRIVATE -fsanitize=${sanitize} -fno-sanitize=null,vptr -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${DEMARC_SANITIZE})
  endif()
endfunction()
