# Undefined behaviour is looked for in the rooms: looking in the tests too would double what they take to compile.
string(REPLACE ",undefined" "" DEMARC_TEST_SANITIZE "${DEMARC_SANITIZE}")

# demarc_test_options(TARGET [HOT]): for what belongs to tests, which is compiled more often than it runs long; HOT: but
# for this.
function(demarc_test_options target)
  cmake_parse_arguments(ARG "HOT" "" "" ${ARGN})
  demarc_compile_options(${target} SANITIZE "${DEMARC_TEST_SANITIZE}")
  if(ARG_HOT)
    target_compile_options(${target} PRIVATE -O1)
  else()
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# demarc_add_room_tests(ROOM [OPTIMISED] [THREADED file...] [LINK target...]): tests/<room>/*_test.cpp become one program,
# of which each suite is a ctest test. Tests see the private headers of their room. `make test` runs them under the
# address sanitizer; THREADED: these files under the thread sanitizer too; OPTIMISED: as an optimised build too. What
# takes minutes under a sanitizer lies in tests/<room>/slow and is a program of its own, demarc_<room>_slow_tests, which
# no sanitizer build has.
function(demarc_add_room_tests room)
  cmake_parse_arguments(ARG "OPTIMISED" "" "THREADED;LINK" ${ARGN})
  set(folder "${PROJECT_SOURCE_DIR}/tests/${room}")
  set(programs demarc_${room}_tests)
  set(sources "")
  if(DEMARC_SANITIZE STREQUAL "thread")
    list(TRANSFORM ARG_THREADED PREPEND "${folder}/" OUTPUT_VARIABLE sources)
  endif()
  demarc_add_test_program(${room} "${folder}" ${sources})
  demarc_unoptimised_test_program(demarc_${room}_tests)
  if(EXISTS "${folder}/slow" AND NOT DEMARC_SANITIZE)
    list(APPEND programs demarc_${room}_slow_tests)
    demarc_add_test_program(${room}_slow "${folder}/slow")
    demarc_test_options(demarc_${room}_slow_tests HOT)
    add_dependencies(demarc_optimised_tests demarc_${room}_slow_tests)
    demarc_register_suites(demarc_${room}_slow_tests "${room}.slow." optimised "*")
  endif()
  foreach(program IN LISTS programs)
    target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}/src/${room}" "${folder}")
    # That of the C interface has shared libraries alone.
    if(NOT room STREQUAL "capi")
      target_link_libraries(${program} PRIVATE demarc::${room})
    endif()
    target_link_libraries(${program} PRIVATE ${ARG_LINK})
  endforeach()
  set(label room)
  if(ARG_THREADED)
    set(label threaded)
    add_dependencies(demarc_threaded_tests demarc_${room}_tests)
  endif()
  if(ARG_OPTIMISED)
    set(label optimised)
    add_dependencies(demarc_optimised_tests demarc_${room}_tests)
  endif()
  add_dependencies(demarc_room_tests demarc_${room}_tests)
  demarc_register_suites(demarc_${room}_tests "${room}." ${label} "*")
endfunction()

# demarc_add_card_tests(ROOM [STARTS_PROGRAMS] [SEES room...] [LINK target...]): tests of a room that works on a card, on the
# stand-in for libcuda. What they share lies in tests/cuda: the stand-in, programs that are started, and fixtures. SEES:
# rooms whose private headers the fixtures need; STARTS_PROGRAMS: under `demarc exec`, with its libraries.
function(demarc_add_card_tests room)
  cmake_parse_arguments(ARG "STARTS_PROGRAMS" "" "SEES;LINK" ${ARGN})
  demarc_add_room_tests(${room} LINK ${ARG_LINK} ${CMAKE_DL_LIBS})
  list(TRANSFORM ARG_SEES PREPEND "${PROJECT_SOURCE_DIR}/src/")
  foreach(program demarc_${room}_tests demarc_${room}_slow_tests)
    if(TARGET ${program})
      target_sources(${program} PRIVATE "${PROJECT_SOURCE_DIR}/tests/cuda/fake/fake_config.cpp")
      target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}/tests/cuda" ${ARG_SEES})
      add_dependencies(${program} demarc_fake_libcuda)
      if(ARG_STARTS_PROGRAMS)
        add_dependencies(${program} demarc_preload demarc_exec_subject)
      endif()
    endif()
  endforeach()
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
  demarc_add_test_program(cli "${PROJECT_SOURCE_DIR}/tests/cli")
  demarc_unoptimised_test_program(demarc_cli_tests)
  target_include_directories(demarc_cli_tests PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(demarc_cli_tests PRIVATE ${ARG_LINK})
  add_dependencies(demarc_cli_tests demarc_program)
  add_dependencies(demarc_optimised_tests demarc_cli_tests)
  demarc_register_suites(demarc_cli_tests "cli." verbs "*")
endfunction()

# demarc_<name>_tests from these sources, or from *_test.cpp below the folder without those of its folder slow; with what
# every test program links.
function(demarc_add_test_program name folder)
  set(sources ${ARGN})
  if(NOT sources)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE "${folder}" "${folder}/*_test.cpp")
    list(FILTER sources EXCLUDE REGEX "^slow/")
    list(TRANSFORM sources PREPEND "${folder}/")
  endif()
  if(NOT sources)
    message(FATAL_ERROR "demarc: ${folder} holds no *_test.cpp")
  endif()
  add_executable(demarc_${name}_tests ${sources})
  target_link_libraries(demarc_${name}_tests PRIVATE demarc_test_support GTest::gmock GTest::gtest_main
                                                     demarc_rapidcheck)
endfunction()

# What nearly every test begins with is compiled once, with a program of its own: whatever reuses a precompiled header builds
# all of the program that has it.
function(demarc_unoptimised_test_program program)
  demarc_test_options(${program})
  if(NOT TARGET demarc_test_headers)
    set(source "${PROJECT_BINARY_DIR}/test_headers.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "int main() {}\n")
    add_executable(demarc_test_headers EXCLUDE_FROM_ALL "${source}")
    demarc_test_options(demarc_test_headers)
    target_link_libraries(demarc_test_headers PRIVATE ${DEMARC_FMT} tl::expected GTest::gmock demarc_rapidcheck)
    target_precompile_headers(demarc_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h> <filesystem>
      <fmt/format.h> <tl/expected.hpp>)
  endif()
  target_precompile_headers(${program} REUSE_FROM demarc_test_headers)
endfunction()

# demarc_not_run(WHAT REASON): these tests are not registered, for what the machine lacks ("no ptxas"). not-run.txt of the
# build lists it, in the form that a test prints that finds out itself (tests/support/not_run.hpp); `make test` ends with
# both (tools/sum-up-tests.sh).
function(demarc_not_run what reason)
  message(STATUS "demarc: not run: ${what}: ${reason}")
  set_property(GLOBAL APPEND_STRING PROPERTY DEMARC_NOT_RUN "not run: ${what}: ${reason}\n")
endfunction()

function(demarc_write_not_run)
  get_property(list GLOBAL PROPERTY DEMARC_NOT_RUN)
  file(WRITE "${PROJECT_BINARY_DIR}/not-run.txt" "${list}")
endfunction()

# demarc_add_bench(ROOM NAME [LINK target...]): bench/<room>/<name>_bench.cpp, run by `make bench`. `make test` sees that it
# compiles, without optimisation and without a program: demarc_bench_objects.
function(demarc_add_bench room name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(demarc_${name}_bench "${PROJECT_SOURCE_DIR}/bench/${room}/${name}_bench.cpp")
  demarc_compile_options(demarc_${name}_bench)
  target_include_directories(demarc_${name}_bench PRIVATE "${PROJECT_SOURCE_DIR}/src/${room}")
  target_link_libraries(demarc_${name}_bench PRIVATE demarc::${room} ${ARG_LINK} demarc_test_support
                                                     benchmark::benchmark)
  set_property(GLOBAL APPEND PROPERTY DEMARC_BENCHES demarc_${name}_bench)
  add_library(demarc_${name}_bench_object OBJECT EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/bench/${room}/${name}_bench.cpp")
  demarc_test_options(demarc_${name}_bench_object)
  target_include_directories(demarc_${name}_bench_object PRIVATE
    $<TARGET_PROPERTY:demarc_${name}_bench,INCLUDE_DIRECTORIES>)
  target_link_libraries(demarc_${name}_bench_object PRIVATE demarc::${room} ${ARG_LINK} benchmark::benchmark)
  add_dependencies(demarc_${name}_bench_object demarc_generated_sources)
  set_property(GLOBAL APPEND PROPERTY DEMARC_BENCH_OBJECTS demarc_${name}_bench_object)
endfunction()

# Paths and process helpers shared by tests and benchmarks. Only this small library knows absolute paths, so that
# compiler caches serve every other file of a fresh clone.
function(demarc_add_test_support)
  set(folder "${PROJECT_SOURCE_DIR}/tests/support")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  add_library(demarc_test_support STATIC ${sources})
  demarc_test_options(demarc_test_support)
  target_include_directories(demarc_test_support PUBLIC "${folder}")
  target_link_libraries(demarc_test_support PRIVATE demarc::base)
  set_property(SOURCE "${folder}/paths.cpp" DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" APPEND PROPERTY
    COMPILE_DEFINITIONS DEMARC_SOURCE_DIR="${PROJECT_SOURCE_DIR}" DEMARC_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set_property(SOURCE "${folder}/paths.cpp" DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" PROPERTY
    SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
