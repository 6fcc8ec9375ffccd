# Third-party libraries, all from the distribution's packages (see tools/install-packages.sh).
# They are wrapped in interface targets so that a room names what it needs and nothing leaks further.
if(DEMARC_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
# The distribution has fmt as a shared library only.
set(DEMARC_FMT fmt::fmt)
if(DEMARC_STATIC)
  set(DEMARC_FMT fmt::fmt-header-only)
endif()
find_package(nlohmann_json REQUIRED)
find_package(tl-expected QUIET)
if(NOT TARGET tl::expected)
  add_library(tl::expected INTERFACE IMPORTED GLOBAL)
endif()
find_package(CLI11 REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
# Headers alone, of sources alone: whoever uses an installed library does not need them.
set(DEMARC_EIGEN $<BUILD_INTERFACE:Eigen3::Eigen>)
# Headers alone, of base/hash.hpp.
find_path(DEMARC_XXHASH_FOLDER xxhash.h REQUIRED)
# Headers alone, of serve/config.cpp.
find_path(DEMARC_TOML_FOLDER toml++/toml.h REQUIRED)
find_library(DEMARC_M4RI_LIBRARY m4ri REQUIRED)
find_library(DEMARC_ZSTD_LIBRARY zstd REQUIRED)
find_library(DEMARC_LZ4_LIBRARY lz4 REQUIRED)
find_library(DEMARC_ZSTD_ARCHIVE libzstd.a REQUIRED)
find_library(DEMARC_LZ4_ARCHIVE liblz4.a REQUIRED)
set(DEMARC_THIRD_PARTY m4ri zstd lz4)
# What serves metrics exists as shared libraries alone.
if(NOT DEMARC_STATIC)
  find_library(DEMARC_PROMETHEUS_LIBRARY prometheus-cpp-core REQUIRED)
  find_library(DEMARC_CIVETWEB_LIBRARY civetweb REQUIRED)
  list(APPEND DEMARC_THIRD_PARTY prometheus civetweb)
endif()
find_package(TBB QUIET)

# Libraries without a CMake package of their own, exported with ours.
foreach(lower IN LISTS DEMARC_THIRD_PARTY)
  string(TOUPPER ${lower} name)
  add_library(demarc_${lower} INTERFACE)
  set(library "${DEMARC_${name}_LIBRARY}")
  if(DEMARC_STATIC)
    # The distribution's archives are for programs: a shared library of ours takes the shared one.
    set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
    find_library(DEMARC_${name}_SHARED ${lower} REQUIRED)
    set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
    set(library "$<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>,${DEMARC_${name}_SHARED},${library}>")
  endif()
  target_link_libraries(demarc_${lower} INTERFACE "${library}")
  set_target_properties(demarc_${lower} PROPERTIES EXPORT_NAME third_party_${lower})
endforeach()
