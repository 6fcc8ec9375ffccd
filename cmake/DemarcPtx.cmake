# Device code: compiled to PTX at build time and embedded, so that one binary drives any GPU and a machine without a
# CUDA toolkit still builds it.
#
#   demarc_embed_ptx(<target> NAME <name> SOURCES <file.cu>...)
#
# gives <target> (a room's library, or any other target that links demarc::gpu) the private header
#
#   #include "<name>_ptx.hpp"
#   std::span<const demarc::gpu::EmbeddedPtx> demarc::embedded::<name>();     // see demarc/gpu/embedded_ptx.hpp
#   const auto* module = gpu::find_ptx(embedded::<name>(), "timed_read", 90); // timed_read.cu, for sm_90 or below
#
# Compilers, in this order:
#   nvcc   compute_75, _80, _90 and _100, as far as this nvcc knows them
#   clang  its NVPTX back end, for the targets it knows; sources include "demarc_kernel.cuh" (kernels/include),
#          which brings what is needed without a CUDA toolkit
#   none   the PTX for sm_75 kept in the folder ptx/ beside the source (<file>.ptx); any GPU runs it
# A source that clang cannot build (it uses CUDA's own headers) falls back to the kept PTX when it contains the line
# "// demarc: needs nvcc".
#
# Drivers refuse PTX of a newer instruction-set version than their own, and nvcc writes its newest whatever the code
# needs; the embedded text says 7.8 (8.6 for sm_100 and above: CUDA 12.8), so that drivers from CUDA 11.8 on take it.
# A source that needs a newer version says so in a line "// demarc: isa 8.3".
#
# After editing a .cu run `ninja demarc_update_ptx` (needs nvcc): it renews the kept files. A test compares them.
# Options: DEMARC_PTX_COMPILER (auto, nvcc, clang, kept), DEMARC_NVCC (path of nvcc).

set(DEMARC_PTX_COMPILER auto CACHE STRING "Compiler of device code: auto, nvcc, clang or kept (the PTX in the tree)")
set_property(CACHE DEMARC_PTX_COMPILER PROPERTY STRINGS auto nvcc clang kept)
set(DEMARC_PTX_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/DemarcPtxEmbed.cmake")
set(DEMARC_PTX_STORE "${PROJECT_BINARY_DIR}/ptx_store" CACHE PATH "Where compiled device code is kept; builds may share it")
set(DEMARC_PTX_COMPILE_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/DemarcPtxCompile.cmake")

# DEMARC_PTX_CLANG: a clang, of whatever version.
macro(demarc_find_ptx_clang)
  find_program(DEMARC_PTX_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14)
endmacro()

function(demarc_find_ptx_targets)
  set(wanted 75 80 90 100)
  set(found "")
  set(compiler kept)
  if(DEMARC_PTX_COMPILER MATCHES "^(auto|nvcc)$")
    find_program(DEMARC_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(DEMARC_NVCC)
      execute_process(COMMAND "${DEMARC_NVCC}" --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
      foreach(target IN LISTS wanted)
        if(known MATCHES "compute_${target}[\r\n]")
          list(APPEND found ${target})
          set(compiler nvcc)
        endif()
      endforeach()
    endif()
  endif()
  if(compiler STREQUAL "kept" AND DEMARC_PTX_COMPILER MATCHES "^(auto|clang)$")
    demarc_find_ptx_clang()
    if(DEMARC_PTX_CLANG)
      set(probe "${PROJECT_BINARY_DIR}/CMakeFiles/demarc_ptx_probe.cu")
      file(WRITE "${probe}" "__attribute__((global)) void probe(int* out) { *out = 1; }\n")
      foreach(target IN LISTS wanted)
        demarc_clang_ptx_command(command ${target} "${probe}" "${probe}.ptx")
        execute_process(COMMAND ${command} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
        if(NOT failed)
          list(APPEND found ${target})
          set(compiler clang)
        endif()
      endforeach()
    endif()
  endif()
  if(NOT DEMARC_PTX_COMPILER STREQUAL "auto" AND NOT DEMARC_PTX_COMPILER STREQUAL compiler)
    message(FATAL_ERROR "demarc: DEMARC_PTX_COMPILER=${DEMARC_PTX_COMPILER}, but no such compiler was found")
  endif()
  set_property(GLOBAL PROPERTY DEMARC_PTX_FOUND_COMPILER ${compiler})
  set_property(GLOBAL PROPERTY DEMARC_PTX_FOUND_TARGETS "${found}")
  message(STATUS "demarc: device code by ${compiler} for sm ${found}")
endfunction()

function(demarc_clang_ptx_command result target source output)
  # Clang must be told of an instruction set that has shuffles, mma and sm_80.
  set(isa "")
  if(target LESS 90)
    set(isa -Xclang -target-feature -Xclang +ptx70)
  endif()
  set(${result} "${DEMARC_PTX_CLANG}" -x cuda --cuda-device-only -nocudainc -nocudalib -Wno-unknown-cuda-version
      --cuda-gpu-arch=sm_${target} ${isa} -std=c++17 -O3 -ffp-contract=fast -S
      -I "${PROJECT_SOURCE_DIR}/kernels/include" -o "${output}" "${source}" PARENT_SCOPE)
endfunction()

function(demarc_nvcc_ptx_command result target source output)
  set(${result} "${DEMARC_NVCC}" -ptx -arch=compute_${target} -std=c++17 -O3 -Wno-deprecated-gpu-targets
      -I "${PROJECT_SOURCE_DIR}/kernels/include" -o "${output}" "${source}" PARENT_SCOPE)
endfunction()

# Adds the commands that make the PTX of one source; the names "<target>=<file>" of what they make go to `result`.
function(demarc_ptx_of_source result source folder)
  get_property(compiler GLOBAL PROPERTY DEMARC_PTX_FOUND_COMPILER)
  get_property(targets GLOBAL PROPERTY DEMARC_PTX_FOUND_TARGETS)
  get_filename_component(stem "${source}" NAME_WE)
  get_filename_component(beside "${source}" DIRECTORY)
  set(kept_file "${beside}/ptx/${stem}.ptx")
  if(compiler STREQUAL "clang")
    file(STRINGS "${source}" needs_nvcc REGEX "^// demarc: needs nvcc")
    if(needs_nvcc)
      set(compiler kept)
    endif()
  endif()
  if(compiler STREQUAL "kept")
    set(${result} "75=${kept_file}" PARENT_SCOPE)
    return()
  endif()
  set(made "")
  set(outputs "")
  set(commands "")
  file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kernels/include/*.cuh" "${beside}/*.cuh")
  # Headers elsewhere that the source names by a relative path.
  file(STRINGS "${source}" relative REGEX "^#include \"\\.\\./")
  foreach(line IN LISTS relative)
    string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" header "${line}")
    cmake_path(ABSOLUTE_PATH header BASE_DIRECTORY "${beside}" NORMALIZE)
    list(APPEND headers "${header}")
  endforeach()
  string(REPLACE ";" "|" sources "${source};${headers}")
  foreach(target IN LISTS targets)
    set(output "${folder}/${stem}.sm_${target}.ptx")
    cmake_language(CALL demarc_${compiler}_ptx_command command ${target} "${source}" "${output}")
    list(APPEND commands COMMAND "${CMAKE_COMMAND}" "-DSTORE=${DEMARC_PTX_STORE}" "-DOUTPUT=${output}"
         "-DSOURCES=${sources}" -P "${DEMARC_PTX_COMPILE_SCRIPT}" -- ${command})
    list(APPEND outputs "${output}")
    list(APPEND made "${target}=${output}")
  endforeach()
  add_custom_command(OUTPUT ${outputs} ${commands} DEPENDS "${source}" ${headers} VERBATIM
                     COMMENT "Compiling ${stem}.cu to PTX")
  if(compiler STREQUAL "nvcc" AND 75 IN_LIST targets)
    set_property(GLOBAL APPEND PROPERTY DEMARC_KEPT_PTX "${folder}/${stem}.sm_75.ptx=${kept_file}")
  endif()
  set(${result} "${made}" PARENT_SCOPE)
endfunction()

function(demarc_embed_ptx target)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES" ${ARGN})
  if(NOT ARG_NAME OR NOT ARG_SOURCES)
    message(FATAL_ERROR "demarc_embed_ptx(${target}): NAME and SOURCES are needed")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}_ptx")
  file(MAKE_DIRECTORY "${folder}")
  set(entries "")
  set(files "")
  foreach(source IN LISTS ARG_SOURCES)
    get_filename_component(source "${source}" ABSOLUTE)
    get_filename_component(stem "${source}" NAME_WE)
    demarc_ptx_of_source(made "${source}" "${folder}")
    file(STRINGS "${source}" isa REGEX "^// demarc: isa [0-9]+\\.[0-9]+" LIMIT_COUNT 1)
    string(REGEX REPLACE "^// demarc: isa ([0-9]+\\.[0-9]+).*" "\\1" isa "${isa}")
    foreach(item IN LISTS made)
      string(REPLACE "=" ";" parts "${item}")
      list(GET parts 1 file)
      list(APPEND entries "${stem}=${item}=${isa}")
      list(APPEND files "${file}")
    endforeach()
  endforeach()
  string(JOIN "\n" list ${entries})
  file(CONFIGURE OUTPUT "${folder}/modules.txt" CONTENT "${list}\n" @ONLY)
  add_custom_command(OUTPUT "${folder}/${ARG_NAME}_ptx.cpp" "${folder}/${ARG_NAME}_ptx.hpp"
    COMMAND "${CMAKE_COMMAND}" -DNAME=${ARG_NAME} -DFOLDER=${folder} -P "${DEMARC_PTX_SCRIPT}"
    DEPENDS ${files} "${folder}/modules.txt" "${DEMARC_PTX_SCRIPT}" VERBATIM
    COMMENT "Embedding the PTX of ${ARG_NAME}")
  add_custom_target(demarc_${ARG_NAME}_source DEPENDS "${folder}/${ARG_NAME}_ptx.cpp")
  add_dependencies(demarc_generated_sources demarc_${ARG_NAME}_source)
  target_sources(${target} PRIVATE "${folder}/${ARG_NAME}_ptx.cpp" "${folder}/${ARG_NAME}_ptx.hpp")
  target_include_directories(${target} PRIVATE "${folder}")
  set_property(SOURCE "${folder}/${ARG_NAME}_ptx.cpp" PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  # Modules are longer than the literals ISO C++ promises; both compilers take them.
  set_property(SOURCE "${folder}/${ARG_NAME}_ptx.cpp" PROPERTY COMPILE_OPTIONS -Wno-overlength-strings)
endfunction()

# Called once at the end of the top CMakeLists.txt: the target that renews the kept PTX.
function(demarc_add_update_ptx)
  get_property(kept GLOBAL PROPERTY DEMARC_KEPT_PTX)
  if(NOT kept)
    return()
  endif()
  set(files "")
  foreach(item IN LISTS kept)
    string(REPLACE "=" ";" parts "${item}")
    list(GET parts 0 made)
    list(APPEND files "${made}")
  endforeach()
  list(JOIN kept "\n" list)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/kept_ptx.txt" CONTENT "${list}\n" @ONLY)
  file(WRITE "${PROJECT_BINARY_DIR}/update_ptx.cmake" [[
file(STRINGS "${LIST}" lines)
foreach(line IN LISTS lines)
  string(REPLACE "=" ";" parts "${line}")
  list(GET parts 0 made)
  list(GET parts 1 kept)
  configure_file("${made}" "${kept}" COPYONLY)
endforeach()
]])
  add_custom_target(demarc_update_ptx
    COMMAND "${CMAKE_COMMAND}" -DLIST=${PROJECT_BINARY_DIR}/kept_ptx.txt -P "${PROJECT_BINARY_DIR}/update_ptx.cmake"
    DEPENDS ${files} VERBATIM COMMENT "Renewing the PTX kept in the tree")
endfunction()

# What has to be made before a source can be read by something else than the compiler.
add_custom_target(demarc_generated_sources)
demarc_find_ptx_targets()
