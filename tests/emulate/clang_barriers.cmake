# cmake -DCOMPILE=... -DLAUNCH=... -DFOLDER=... -DPROGRAM=... -P clang_barriers.cmake
# What clang makes of a kernel that reads a shared variable behind a barrier runs without a finding and meets its check.
file(MAKE_DIRECTORY "${FOLDER}")
execute_process(COMMAND ${COMPILE} COMMAND_ERROR_IS_FATAL ANY)
file(READ "${LAUNCH}" text)
string(REPLACE "bundled:leukocyte" "${FOLDER}/leukocyte.ptx" changed "${text}")
if(changed STREQUAL text)
  message(FATAL_ERROR "${LAUNCH} does not name bundled:leukocyte")
endif()
file(WRITE "${FOLDER}/leukocyte.json" "${changed}")
execute_process(COMMAND "${PROGRAM}" emulate --launch "${FOLDER}/leukocyte.json" COMMAND_ERROR_IS_FATAL ANY)
