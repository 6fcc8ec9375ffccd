# Shows each gate something it must refuse. cmake -DSOURCE=... -DBINARY=... -P gates.cmake
set(work "${BINARY}/architecture/gates")
file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}/tools" "${work}/src")
file(COPY "${SOURCE}/tools/check-format.sh" "${SOURCE}/tools/check-tidy.sh" "${SOURCE}/tools/check-docs.sh"
     "${SOURCE}/tools/check-snippets.sh" DESTINATION "${work}/tools")
file(COPY "${SOURCE}/.clang-format" "${SOURCE}/.clang-tidy" DESTINATION "${work}")
file(WRITE "${work}/src/bad.cpp" "int  BadName( ){return 0;}\n")
file(WRITE "${work}/page.md" "[nowhere](missing.md)\n")
file(WRITE "${work}/compile_commands.json" "[\n{\n  \"directory\": \"${work}\",\n  \"command\": \"/usr/bin/c++ -std=c++20 -o bad.o -c ${work}/src/bad.cpp\",\n  \"file\": \"${work}/src/bad.cpp\"\n}\n]\n")
execute_process(COMMAND git init -q WORKING_DIRECTORY "${work}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND git add -A WORKING_DIRECTORY "${work}" COMMAND_ERROR_IS_FATAL ANY)

function(expect_refusal pattern)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${work}" RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(code EQUAL 0 OR NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "${ARGN} should have refused (${pattern}), exit ${code}:\n${text}")
  endif()
endfunction()

expect_refusal("code should be clang-formatted" tools/check-format.sh)
expect_refusal("readability-identifier-naming" tools/check-tidy.sh .)
expect_refusal("leads nowhere" tools/check-docs.sh)
file(WRITE "${work}/page.md" "```cpp\nint nobody_compiles_me;\n```\n")
expect_refusal("compiled nowhere" tools/check-docs.sh)

# A program that prints one line stands for demarc.
file(WRITE "${work}/demarc.sh" "#!/bin/sh\n[ \"$1\" = fail ] && exit 1\necho told\n")
file(CHMOD "${work}/demarc.sh" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
file(WRITE "${work}/true.md" "```console\n$ demarc tell\ntold\n```\n")
file(WRITE "${work}/false.md" "```console\n$ demarc tell\nkept silent\n```\n")
file(WRITE "${work}/fails.md" "```console\n$ demarc fail\n```\n")
file(WRITE "${work}/empty.md" "no command\n")
execute_process(COMMAND tools/check-snippets.sh demarc.sh scratch true.md WORKING_DIRECTORY "${work}"
                COMMAND_ERROR_IS_FATAL ANY)
expect_refusal("does not print 'kept silent'" tools/check-snippets.sh demarc.sh scratch false.md)
expect_refusal("ended with exit code 1" tools/check-snippets.sh demarc.sh scratch fails.md)
expect_refusal("holds no command" tools/check-snippets.sh demarc.sh scratch empty.md)
