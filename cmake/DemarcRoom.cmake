# The house: one library per room. A room may use only rooms that stand before it in this list; asking for
# another is a configure error, and including another's header does not compile, because each room's public
# headers lie in an include root of their own (build/include/<room>/demarc/<room>).
set(DEMARC_ROOMS base ptx gpu workload emulate locality sim partition cuda probe study report cli)

function(demarc_check_use room used)
  list(FIND DEMARC_ROOMS ${room} room_index)
  list(FIND DEMARC_ROOMS ${used} used_index)
  if(room_index EQUAL -1 OR used_index EQUAL -1)
    message(FATAL_ERROR "demarc: '${room}' uses '${used}': the rooms are ${DEMARC_ROOMS}")
  endif()
  if(NOT used_index LESS room_index)
    message(FATAL_ERROR "demarc: room '${room}' may not use room '${used}': only rooms above it in the house")
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

# demarc_add_room(NAME [COMPUTES] [USES room...] [LINK target...] [PRIVATE_LINK target...])
# COMPUTES: optimised in debug builds too, which would be too slow to test it with.
# Sources: every .cpp below the room's folder. Headers: include/demarc/<room>/ (public), src/<room>/ (private).
function(demarc_add_room room)
  cmake_parse_arguments(ARG "COMPUTES" "" "USES;LINK;PRIVATE_LINK" ${ARGN})
  foreach(used IN LISTS ARG_USES)
    demarc_check_use(${room} ${used})
  endforeach()
  demarc_check_links(${room} ${ARG_LINK} ${ARG_PRIVATE_LINK})

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_library(demarc_${room} STATIC ${sources})
  add_library(demarc::${room} ALIAS demarc_${room})
  set_target_properties(demarc_${room} PROPERTIES EXPORT_NAME ${room})
  demarc_compile_options(demarc_${room})
  if(ARG_COMPUTES)
    target_compile_options(demarc_${room} PRIVATE $<$<CONFIG:Debug>:-O1>)
  endif()

  set(root "${PROJECT_BINARY_DIR}/include/${room}")
  if(EXISTS "${PROJECT_SOURCE_DIR}/include/demarc/${room}")
    file(MAKE_DIRECTORY "${root}/demarc")
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/include/demarc/${room}" "${root}/demarc/${room}" SYMBOLIC)
    target_include_directories(demarc_${room} PUBLIC "$<BUILD_INTERFACE:${root}>")
  endif()
  target_include_directories(demarc_${room} PUBLIC "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
                                            PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  foreach(used IN LISTS ARG_USES)
    target_link_libraries(demarc_${room} PUBLIC demarc::${used})
  endforeach()
  target_link_libraries(demarc_${room} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  set_property(GLOBAL APPEND PROPERTY DEMARC_ROOM_TARGETS demarc_${room})
endfunction()
