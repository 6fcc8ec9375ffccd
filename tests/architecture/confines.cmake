# Says with an error that the program `demarc` of `what` does not confine a `verify` of its own on the stand-in driver.
function(expect_that_it_confines what demarc binary cache)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env "DEMARC_LIBCUDA=${binary}/libdemarc_fake_libcuda.so" "DEMARC_CACHE=${cache}"
            "${demarc}" exec --tpcs 1,3 -- "${demarc}" verify --tpcs 1,3
    OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE code)
  if(NOT code EQUAL 0 OR NOT text MATCHES "HOLDS")
    message(FATAL_ERROR "the program of ${what} ended with ${code} and printed: ${text}")
  endif()
endfunction()
