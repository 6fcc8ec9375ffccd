# The house: one library per room. A room may use only rooms that stand before it in this list; asking for
# another is a configure error, and including another's header does not compile, because each room's public
# headers lie in an include root of their own (build/include/<room>/demarc/<room>).
set(DEMARC_ROOMS base ptx fatbin device launch color workload emulate locality sim partition driver lease guest card exec capi
    serve probe study sweep report cli plugin)

# What runs inside programs of others may use these and nothing else, wherever it stands in the list.
set(DEMARC_GUEST_USES base ptx fatbin device launch color driver lease)

function(demarc_check_use room used)
  list(FIND DEMARC_ROOMS ${room} room_index)
  list(FIND DEMARC_ROOMS ${used} used_index)
  if(room_index EQUAL -1 OR used_index EQUAL -1)
    message(FATAL_ERROR "demarc: '${room}' uses '${used}': the rooms are ${DEMARC_ROOMS}")
  endif()
  if(NOT used_index LESS room_index)
    message(FATAL_ERROR "demarc: room '${room}' may not use room '${used}': only rooms above it in the house")
  endif()
  # What it uses brings along what that uses.
  if((room STREQUAL "guest" OR room IN_LIST DEMARC_GUEST_USES) AND NOT used IN_LIST DEMARC_GUEST_USES)
    message(FATAL_ERROR "demarc: room '${room}' may not use room '${used}': it runs inside programs of others and may use "
                        "${DEMARC_GUEST_USES}")
  endif()
endfunction()

# A room that is linked by its target's name counts as used.
function(demarc_check_links room)
  foreach(target IN LISTS ARGN)
    if(target MATCHES "^demarc(::|_)(.+)$")
      if(CMAKE_MATCH_2 IN_LIST DEMARC_ROOMS)
        demarc_check_use(${room} ${CMAKE_MATCH_2})
      endif()
    endif()
  endforeach()
endfunction()

# Every hot or warm source is one of the room's.
function(demarc_check_hot room hot sources)
  foreach(file IN LISTS hot)
    if(NOT file IN_LIST sources)
      message(FATAL_ERROR "demarc: room '${room}' has no source '${file}', which its HOT or WARM names")
    endif()
  endforeach()
endfunction()

# demarc_add_room(NAME [LIBRARIES folder] [HOT source...] [WARM source...] [USES room...] [LINK target...] [PRIVATE_LINK target...] [OPTIONS option...])
# HOT and WARM: where the time of a run goes. A release build compiles these sources with -O3 and the others with -O1. A
# debug build compiles hot sources with -O1, because tests would be too slow otherwise, and all others without optimisation.
# Sources: every .cpp below the room's folder, but for the folder of its LIBRARIES (demarc_add_shared). Headers: include/demarc/<room>/ (public), src/<room>/ (private).
function(demarc_add_room room)
  cmake_parse_arguments(ARG "" "LIBRARIES" "HOT;WARM;USES;LINK;PRIVATE_LINK;OPTIONS" ${ARGN})
  foreach(used IN LISTS ARG_USES)
    demarc_check_use(${room} ${used})
  endforeach()
  demarc_check_links(${room} ${ARG_LINK} ${ARG_PRIVATE_LINK})

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(ARG_LIBRARIES)
    file(GLOB_RECURSE libraries CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_LIBRARIES}/*.cpp")
    list(REMOVE_ITEM sources ${libraries})
  endif()
  list(TRANSFORM ARG_HOT PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  list(TRANSFORM ARG_WARM PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set(dear ${ARG_HOT} ${ARG_WARM})
  demarc_check_hot(${room} "${dear}" "${sources}")
  # A fuzzer counts the ways through the room's own target. So what reads input stays there.
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT DEMARC_FUZZ)
    list(APPEND ARG_HOT ${ARG_WARM})
  endif()
  list(REMOVE_ITEM sources ${ARG_HOT})
  add_library(demarc_${room} STATIC ${sources})
  add_library(demarc::${room} ALIAS demarc_${room})
  set_target_properties(demarc_${room} PROPERTIES EXPORT_NAME ${room})
  target_compile_options(demarc_${room} PRIVATE $<$<CONFIG:Release>:-O1>)
  set(targets demarc_${room})
  if(ARG_HOT)
    add_library(demarc_${room}_hot OBJECT ${ARG_HOT})
    target_compile_options(demarc_${room}_hot PRIVATE $<$<CONFIG:Debug>:-O1>)
    target_sources(demarc_${room} PRIVATE $<TARGET_OBJECTS:demarc_${room}_hot>)
    list(APPEND targets demarc_${room}_hot)
  endif()

  set(root "${PROJECT_BINARY_DIR}/include/${room}")
  if(EXISTS "${PROJECT_SOURCE_DIR}/include/demarc/${room}")
    file(MAKE_DIRECTORY "${root}/demarc")
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/include/demarc/${room}" "${root}/demarc/${room}" SYMBOLIC)
    target_include_directories(demarc_${room} PUBLIC "$<BUILD_INTERFACE:${root}>")
  endif()
  target_include_directories(demarc_${room} PUBLIC "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  list(TRANSFORM ARG_USES PREPEND demarc::)
  target_link_libraries(demarc_${room} PUBLIC ${ARG_USES} ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  foreach(target IN LISTS targets)
    demarc_compile_options(${target})
    # A library that brings the room along leaves out what it does not use (demarc_add_shared).
    target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections ${ARG_OPTIONS})
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  endforeach()
  if(ARG_HOT)
    target_include_directories(demarc_${room}_hot PRIVATE "${root}")
    target_link_libraries(demarc_${room}_hot PRIVATE ${ARG_USES} ${ARG_LINK} ${ARG_PRIVATE_LINK})
  endif()
  set_property(GLOBAL APPEND PROPERTY DEMARC_ROOM_TARGETS demarc_${room})
endfunction()

# demarc_add_shared(NAME [ALONE] SOURCES source... USES room...): a library that is loaded into other programs. It brings its
# rooms along, but only what of them is used, and exports nothing of them. It is of the room in whose folder it is made, and
# may use this and what this may use. ALONE: it needs nothing but the C library.
function(demarc_add_shared name)
  cmake_parse_arguments(ARG "ALONE" "" "SOURCES;USES" ${ARGN})
  get_filename_component(room "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  demarc_check_shared(${room} ${ARG_USES})
  add_library(${name} SHARED ${ARG_SOURCES} $<$<NOT:$<BOOL:${DEMARC_STATIC}>>:$<TARGET_OBJECTS:demarc_shared_formatting>>)
  demarc_compile_options(${name})
  target_include_directories(${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  list(TRANSFORM ARG_USES PREPEND demarc::)
  target_link_libraries(${name} PRIVATE ${ARG_USES})
  # A sanitizer must see every allocation and release: its runtime goes with the shared C++ library.
  if(NOT DEMARC_SANITIZE)
    target_link_options(${name} PRIVATE -static-libgcc -static-libstdc++)
  endif()
  # fmt is compiled in (src/guest/libraries/formatting.cpp), so its library drops out of those needed.
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,--as-needed -Wl,--gc-sections)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  add_dependencies(demarc_installed ${name})
  demarc_carry(${name})
  if(ARG_ALONE OR DEMARC_STATIC)
    # The decompressors of room fatbin as archives. The linker takes them before their shared libraries only if they
    # stand right behind the room.
    target_link_libraries(${name} PRIVATE demarc::fatbin "${DEMARC_ZSTD_ARCHIVE}" "${DEMARC_LZ4_ARCHIVE}")
    demarc_needs_the_c_library_alone(${name})
  endif()
endfunction()

function(demarc_check_shared room)
  foreach(used IN LISTS ARGN)
    if(NOT used STREQUAL room)
      demarc_check_use(${room} ${used})
    endif()
  endforeach()
endfunction()

# A program or library that needs more is refused when it is linked. A sanitizer's runtime would be one thing more.
function(demarc_needs_the_c_library_alone target)
  if(NOT DEMARC_SANITIZE)
    if(NOT CMAKE_READELF)
      message(FATAL_ERROR "demarc: no readelf, which looks at what ${target} needs: install binutils")
    endif()
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
      COMMAND ${CMAKE_COMMAND} "-DLIBRARY=$<TARGET_FILE:${target}>" "-DREADELF=${CMAKE_READELF}"
              "-DOLDEST=${DEMARC_OLDEST_C_LIBRARY}"
              -P "${PROJECT_SOURCE_DIR}/cmake/DemarcNeedsTheCLibraryAlone.cmake")
  endif()
endfunction()
