# demarc_fuzzed(TARGET [SOURCE...]): in a build with fuzzers, libFuzzer sees which ways are taken through TARGET, or
# through those of its sources. What reads input is named; counting everywhere would make a build a third dearer.
function(demarc_fuzzed target)
  if(NOT DEMARC_FUZZ)
    return()
  endif()
  if(ARGN)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -fsanitize=fuzzer-no-link)
  else()
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# demarc_add_fuzzer(NAME SOURCE CORPUS LINK target...): a libFuzzer program, where DEMARC_FUZZ is on.
# `demarc_fuzzers` builds them all; fuzzers.txt of the build lists program and corpus for tools/run-fuzzers.sh.
add_custom_target(demarc_fuzzers)
function(demarc_add_fuzzer name source corpus)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  if(NOT DEMARC_FUZZ)
    return()
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL "${source}")
  demarc_compile_options(${name})
  demarc_fuzzed(${name})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  add_dependencies(demarc_fuzzers ${name})
  set_property(GLOBAL APPEND_STRING PROPERTY DEMARC_FUZZER_LIST "$<TARGET_FILE:${name}> ${corpus}\n")
endfunction()

function(demarc_write_fuzzer_list)
  get_property(list GLOBAL PROPERTY DEMARC_FUZZER_LIST)
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/fuzzers.txt" CONTENT "${list}")
endfunction()
