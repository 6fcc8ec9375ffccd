# Device code: compiled to PTX at build time and embedded, so that one binary drives any GPU and a machine without a
# CUDA toolkit still builds it.
#
#   demarc_embed_ptx(<target> NAME <name> SOURCES <file.cu>...)
#
# gives <target> (a room's library, or any other target that links demarc::device) the private header
#
#   #include "<name>_ptx.hpp"
#   std::span<const demarc::gpu::EmbeddedPtx> demarc::embedded::<name>();     // see demarc/device/embedded_ptx.hpp
#   const auto* module = gpu::find_ptx(embedded::<name>(), "timed_read", 90); // timed_read.cu, for sm_90 or below
#
# A build without tests and benchmarks takes the PTX for sm_75 that is kept in the folder ptx/ beside the source
# (<file>.ptx): it costs no time, any GPU runs it, and nvcc makes the same of our sources for sm_80 and sm_90. A build
# with them, or one that DEMARC_PTX_COMPILER tells to, compiles, by the first of these that there is:
#   nvcc   compute_75, _80, _90 and _100, as far as this nvcc knows them
#   clang  its NVPTX back end, for the targets it knows; sources include "demarc_kernel.cuh" (kernels/include),
#          which brings what is needed without a CUDA toolkit
# Where there is neither, it takes the kept PTX.
# A source that clang cannot build (it uses CUDA's own headers) falls back to the kept PTX when it contains the line
# "// demarc: needs nvcc".
#
# Drivers refuse PTX of a newer instruction-set version than their own, and nvcc writes its newest whatever the code
# needs; the embedded text says 7.8 (8.6 for sm_100 and above: CUDA 12.8), so that drivers from CUDA 11.8 on take it.
# A source that needs a newer version says so in a line "// demarc: isa 8.3". One whose instructions sm_75 lacks says
# in a line "// demarc: sm 80" for which target alone it is compiled and kept.
#
# After editing a .cu, or a header beside it, run `ninja demarc_update_ptx` (needs nvcc): it renews the kept files. Each
# ends with the hash of what it was made of; where it is taken and does not fit, that is an error. A test compares text too.
# Options: DEMARC_PTX_COMPILER (auto, nvcc, clang, kept), DEMARC_NVCC (path of nvcc).

set(DEMARC_PTX_COMPILER auto CACHE STRING
    "Compiler of device code: nvcc, clang, kept (the PTX in the tree) or auto (kept unless tests or benchmarks are built)")
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
  set(asked "${DEMARC_PTX_COMPILER}")
  if(asked STREQUAL "auto" AND NOT DEMARC_BUILD_TESTS AND NOT DEMARC_BUILD_BENCH)
    set(asked kept)
  endif()
  if(asked MATCHES "^(auto|nvcc)$")
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
  if(compiler STREQUAL "kept" AND asked MATCHES "^(auto|clang)$")
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
  if(NOT asked STREQUAL "auto" AND NOT asked STREQUAL compiler)
    message(FATAL_ERROR "demarc: DEMARC_PTX_COMPILER=${DEMARC_PTX_COMPILER}, but no such compiler was found")
  endif()
  set_property(GLOBAL PROPERTY DEMARC_PTX_FOUND_COMPILER ${compiler})
  set_property(GLOBAL PROPERTY DEMARC_PTX_FOUND_TARGETS "${found}")
  if(compiler STREQUAL "kept")
    message(STATUS "demarc: device code as it is kept in the tree, for sm 75 and above")
  else()
    message(STATUS "demarc: device code by ${compiler} for sm ${found}")
  endif()
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

# The headers that a source may include: kernels/include, those beside it, and those that it names by a relative path.
function(demarc_ptx_headers result source)
  get_filename_component(beside "${source}" DIRECTORY)
  file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kernels/include/*.cuh" "${beside}/*.cuh")
  file(STRINGS "${source}" relative REGEX "^#include \"\\.\\./")
  foreach(line IN LISTS relative)
    string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" header "${line}")
    cmake_path(ABSOLUTE_PATH header BASE_DIRECTORY "${beside}" NORMALIZE)
    list(APPEND headers "${header}")
  endforeach()
  set(${result} "${headers}" PARENT_SCOPE)
endfunction()

# The line that a kept file made of these sources ends with.
function(demarc_ptx_mark result)
  set(text "")
  foreach(file IN LISTS ARGN)
    file(SHA256 "${file}" hash)
    string(APPEND text "${hash} ")
  endforeach()
  string(SHA256 hash "${text}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  set(${result} "// demarc: made of ${hash}" PARENT_SCOPE)
endfunction()

# Is the kept file there, and made of what its source is now?
function(demarc_check_kept_ptx kept_file mark source)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${kept_file}")
  set(last "")
  if(EXISTS "${kept_file}")
    file(STRINGS "${kept_file}" last REGEX "^// demarc: made of ")
  endif()
  if(NOT last STREQUAL mark)
    message(FATAL_ERROR "demarc: ${kept_file} is not made of what ${source} and its headers are now: run `ninja demarc_update_ptx` "
                        "in a build with -DDEMARC_PTX_COMPILER=nvcc, or build with that option, or with clang for nvcc")
  endif()
endfunction()

# Adds the commands that make the PTX of one source; the names "<target>=<file>" of what they make go to `result`.
function(demarc_ptx_of_source result source folder)
  get_property(compiler GLOBAL PROPERTY DEMARC_PTX_FOUND_COMPILER)
  get_property(targets GLOBAL PROPERTY DEMARC_PTX_FOUND_TARGETS)
  get_filename_component(stem "${source}" NAME_WE)
  get_filename_component(beside "${source}" DIRECTORY)
  set(kept_file "${beside}/ptx/${stem}.ptx")
  demarc_ptx_headers(headers "${source}")
  demarc_ptx_mark(mark "${source}" ${headers})
  set(kept_target 75)
  file(STRINGS "${source}" alone REGEX "^// demarc: sm [0-9]+" LIMIT_COUNT 1)
  if(alone)
    string(REGEX REPLACE "^// demarc: sm ([0-9]+).*" "\\1" kept_target "${alone}")
    if(NOT kept_target IN_LIST targets)
      set(compiler kept)
    endif()
    set(targets ${kept_target})
  endif()
  set(by_nvcc "")
  if(compiler STREQUAL "nvcc" AND kept_target IN_LIST targets)
    set(by_nvcc "${folder}/${stem}.sm_${kept_target}.ptx")
  endif()
  set_property(GLOBAL APPEND PROPERTY DEMARC_KEPT_PTX "${by_nvcc}=${kept_file}=${mark}")
  if(compiler STREQUAL "clang")
    file(STRINGS "${source}" needs_nvcc REGEX "^// demarc: needs nvcc")
    if(needs_nvcc)
      set(compiler kept)
    endif()
  endif()
  if(compiler STREQUAL "kept")
    demarc_check_kept_ptx("${kept_file}" "${mark}" "${source}")
    set(${result} "${kept_target}=${kept_file}" PARENT_SCOPE)
    return()
  endif()
  set(made "")
  set(outputs "")
  set(commands "")
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

# Called once at the end of the top CMakeLists.txt. kept_ptx.txt lists "<made by nvcc here, if any>=<kept>=<its last line>"
# for the test that compares them; with nvcc there is the target that renews what is kept.
function(demarc_add_update_ptx)
  get_property(kept GLOBAL PROPERTY DEMARC_KEPT_PTX)
  list(JOIN kept "\n" list)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/kept_ptx.txt" CONTENT "${list}\n" @ONLY)
  set(files "${kept}")
  list(TRANSFORM files REPLACE "=.*" "")
  list(REMOVE_ITEM files "")
  if(NOT files)
    return()
  endif()
  file(WRITE "${PROJECT_BINARY_DIR}/update_ptx.cmake" [[
file(STRINGS "${LIST}" lines)
foreach(line IN LISTS lines)
  string(REPLACE "=" ";" parts "${line}")
  list(POP_FRONT parts made kept mark)
  file(READ "${made}" text)
  file(WRITE "${kept}" "${text}${mark}\n")
endforeach()
]])
  add_custom_target(demarc_update_ptx
    COMMAND "${CMAKE_COMMAND}" -DLIST=${PROJECT_BINARY_DIR}/kept_ptx.txt -P "${PROJECT_BINARY_DIR}/update_ptx.cmake"
    DEPENDS ${files} VERBATIM COMMENT "Renewing the PTX kept in the tree")
endfunction()

# What has to be made before a source can be read by something else than the compiler.
add_custom_target(demarc_generated_sources)
demarc_find_ptx_targets()
