# Undefined behaviour is looked for in the rooms: looking in the tests too would double what they take to compile.
string(REPLACE ",undefined" "" DEMARC_TEST_SANITIZE "${DEMARC_SANITIZE}")

# demarc_add_room_tests(ROOM [THREADED|OPTIMISED] [SLOW pattern...] [LINK target...]): tests/<room>/*_test.cpp become one
# program, of which each suite is a ctest test. Tests see the private headers of their room. `make test` runs them under
# the address sanitizer; THREADED: under the thread sanitizer too; OPTIMISED: as an optimised build too. SLOW: what takes
# minutes under a sanitizer (patterns of --gtest_filter) runs as an optimised build alone.
function(demarc_add_room_tests room)
  cmake_parse_arguments(ARG "THREADED;OPTIMISED" "" "SLOW;LINK" ${ARGN})
  demarc_add_test_program(${room})
  target_include_directories(demarc_${room}_tests PRIVATE "${PROJECT_SOURCE_DIR}/src/${room}"
                                                          "${PROJECT_SOURCE_DIR}/tests/${room}")
  target_link_libraries(demarc_${room}_tests PRIVATE demarc::${room} ${ARG_LINK})
  set(label room)
  if(ARG_THREADED)
    set(label threaded)
    add_dependencies(demarc_threaded_tests demarc_${room}_tests)
  endif()
  if(ARG_OPTIMISED)
    set(label optimised)
  endif()
  if(ARG_OPTIMISED OR ARG_SLOW)
    add_dependencies(demarc_optimised_tests demarc_${room}_tests)
  endif()
  add_dependencies(demarc_room_tests demarc_${room}_tests)
  set(quick "*")
  if(ARG_SLOW)
    list(JOIN ARG_SLOW ":" slow)
    set(quick "*-${slow}")
  endif()
  demarc_register_suites(demarc_${room}_tests "${room}." ${label} "${quick}")
  if(ARG_SLOW AND NOT DEMARC_SANITIZE)
    demarc_register_suites(demarc_${room}_tests "${room}.slow." optimised "${slow}")
  endif()
endfunction()

# Each suite of a test program, as far as `filter` means it, becomes a ctest test once the program is built.
function(demarc_register_suites target prefix label filter)
  string(MAKE_C_IDENTIFIER "${target}.${prefix}suites" name)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}.cmake")
  file(GENERATE OUTPUT "${file}" CONTENT "set(program \"$<TARGET_FILE:${target}>\")
set(launcher \"$<TARGET_PROPERTY:${target},CROSSCOMPILING_EMULATOR>\")
set(prefix \"${prefix}\")
set(label ${label})
set(filter \"${filter}\")
include(\"${PROJECT_SOURCE_DIR}/cmake/DemarcSuites.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${file}")
endfunction()

# demarc_add_verb_tests([LINK target...]): tests/cli/*_test.cpp, which run the program as a user does.
function(demarc_add_verb_tests)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  demarc_add_test_program(cli)
  target_include_directories(demarc_cli_tests PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(demarc_cli_tests PRIVATE ${ARG_LINK})
  add_dependencies(demarc_cli_tests demarc_program)
  add_dependencies(demarc_optimised_tests demarc_cli_tests)
  demarc_register_suites(demarc_cli_tests "cli." verbs "*")
endfunction()

# demarc_<name>_tests from tests/<name>/*_test.cpp, with what every test program links.
function(demarc_add_test_program name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${name}/*_test.cpp")
  if(NOT sources)
    message(FATAL_ERROR "demarc: tests/${name} holds no *_test.cpp")
  endif()
  add_executable(demarc_${name}_tests ${sources})
  demarc_compile_options(demarc_${name}_tests SANITIZE "${DEMARC_TEST_SANITIZE}")
  # Tests are compiled more often than they run long.
  target_compile_options(demarc_${name}_tests PRIVATE $<$<CONFIG:Debug>:-O0> $<$<CONFIG:Release>:-O1>)
  target_link_libraries(demarc_${name}_tests PRIVATE demarc_test_support GTest::gmock GTest::gtest_main
                                                     demarc_rapidcheck)
endfunction()

# demarc_add_bench(ROOM NAME [LINK target...]): bench/<room>/<name>_bench.cpp, run by `make bench`.
function(demarc_add_bench room name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(demarc_${name}_bench "${PROJECT_SOURCE_DIR}/bench/${room}/${name}_bench.cpp")
  demarc_compile_options(demarc_${name}_bench)
  target_include_directories(demarc_${name}_bench PRIVATE "${PROJECT_SOURCE_DIR}/src/${room}")
  target_link_libraries(demarc_${name}_bench PRIVATE demarc::${room} ${ARG_LINK} demarc_test_support
                                                     benchmark::benchmark)
  set_property(GLOBAL APPEND PROPERTY DEMARC_BENCHES demarc_${name}_bench)
endfunction()

# Paths and process helpers shared by tests and benchmarks. Only this small library knows absolute paths, so that
# compiler caches serve every other file of a fresh clone.
function(demarc_add_test_support)
  set(folder "${PROJECT_SOURCE_DIR}/tests/support")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  add_library(demarc_test_support STATIC ${sources})
  demarc_compile_options(demarc_test_support SANITIZE "${DEMARC_TEST_SANITIZE}")
  target_compile_options(demarc_test_support PRIVATE $<$<CONFIG:Release>:-O1>)
  target_include_directories(demarc_test_support PUBLIC "${folder}")
  set_property(SOURCE "${folder}/paths.cpp" DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" APPEND PROPERTY
    COMPILE_DEFINITIONS DEMARC_SOURCE_DIR="${PROJECT_SOURCE_DIR}" DEMARC_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set_property(SOURCE "${folder}/paths.cpp" DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" PROPERTY
    SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
