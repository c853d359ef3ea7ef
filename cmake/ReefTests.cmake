# Tests, examples and fuzz targets. One file is one executable and one ctest entry.

# Registers a test. Those whose source speaks of threads get the label `threads`: the ones to run under ThreadSanitizer.
function(reef_add_test name target source timeout)
  add_test(NAME ${name} COMMAND ${target})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} ENVIRONMENT "${reef_test_environment}")
  file(STRINGS ${source} threads REGEX "thread" LIMIT_COUNT 1)
  if(threads)
    set_tests_properties(${name} PROPERTIES LABELS threads)
  endif()
endfunction()

# What a sanitizer should do besides stopping at the first finding.
set(reef_test_environment "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
                          "UBSAN_OPTIONS=print_stacktrace=1" "TSAN_OPTIONS=halt_on_error=1")

if(REEF_EXAMPLES)
  file(GLOB reef_example_sources CONFIGURE_DEPENDS examples/*.c)
  foreach(source IN LISTS reef_example_sources)
    cmake_path(GET source STEM name)
    add_executable(example_${name} ${source})
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                                                     RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    # The shared library, as a user would: what is not exported cannot be used.
    target_link_libraries(example_${name} PRIVATE reef_shared reef_flags m)
    reef_add_test(example.${name} example_${name} ${source} 120)
  endforeach()
endif()

if(REEF_TESTS)
  if(REEF_TESTS STREQUAL AUTO)
    set(reef_need "")
  else()
    set(reef_need REQUIRED)
  endif()
  find_path(CMOCKA_INCLUDE_DIR cmocka.h ${reef_need})
  find_library(CMOCKA_LIBRARY cmocka ${reef_need})
  find_path(JANSSON_INCLUDE_DIR jansson.h ${reef_need})
  find_library(JANSSON_LIBRARY jansson ${reef_need})
  mark_as_advanced(CMOCKA_INCLUDE_DIR CMOCKA_LIBRARY JANSSON_INCLUDE_DIR JANSSON_LIBRARY)
endif()

if(REEF_TESTS AND CMOCKA_LIBRARY AND CMOCKA_INCLUDE_DIR AND JANSSON_LIBRARY AND JANSSON_INCLUDE_DIR)
  file(GLOB reef_support_sources CONFIGURE_DEPENDS tests/support/*.c)
  file(GLOB reef_test_sources CONFIGURE_DEPENDS tests/*/test_*.c)
  list(FILTER reef_test_sources EXCLUDE REGEX "/tests/mpi/")

  # Everything a test needs; tests may call internal functions, hence src/ and the static library.
  add_library(reef_test_base INTERFACE)
  target_include_directories(reef_test_base INTERFACE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(reef_test_base SYSTEM INTERFACE ${CMOCKA_INCLUDE_DIR} ${JANSSON_INCLUDE_DIR})
  target_compile_definitions(reef_test_base INTERFACE REEF_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                      REEF_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden")
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    target_compile_definitions(reef_test_base INTERFACE TEST_EMULATED)
  endif()
  target_link_libraries(reef_test_base INTERFACE reef_static reef_flags ${CMOCKA_LIBRARY} ${JANSSON_LIBRARY} m
                                                 Threads::Threads)
  if(reef_support_sources)
    add_library(reef_test_support STATIC ${reef_support_sources})
    target_link_libraries(reef_test_support PUBLIC reef_test_base)
  else()
    add_library(reef_test_support ALIAS reef_test_base)
  endif()

  foreach(source IN LISTS reef_test_sources)
    # tests/agg/test_krum.c becomes agg.krum
    cmake_path(GET source STEM name)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    string(REGEX REPLACE "^test_" "" name ${name})
    add_executable(test_${folder}_${name} ${source})
    set_target_properties(test_${folder}_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_link_libraries(test_${folder}_${name} PRIVATE reef_test_support)
    reef_add_test(${folder}.${name} test_${folder}_${name} ${source} 600)
  endforeach()
elseif(REEF_TESTS)
  message(STATUS "Unit tests are left out: cmocka or jansson not found")
endif()

if(REEF_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "Fuzz targets need clang: cmake --preset fuzz")
  endif()
  file(GLOB reef_fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
  foreach(source IN LISTS reef_fuzz_sources)
    cmake_path(GET source STEM name)
    add_executable(${name} ${source})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/targets)
    target_include_directories(${name} PRIVATE src)
    # LLVMFuzzerTestOneInput has no header.
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Wno-missing-prototypes)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${name} PRIVATE reef_static reef_flags m Threads::Threads)
  endforeach()
endif()
